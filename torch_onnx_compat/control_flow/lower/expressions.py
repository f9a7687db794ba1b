"""Rewrites the expressions of statements that take decisions, and marks the statements.

A rewritten expression gives plain Python values the results that Python gives: the run-time module decides at each
call whether the values are traced.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable
from typing import Any, TypeVar

import torch

from torch_onnx_compat.backends.checks import ASSERTIONS
from torch_onnx_compat.control_flow.find.syntax import INNER, children, copy_tree, walk_all, walk_scope
from torch_onnx_compat.control_flow.lower.effects import OWNER_OF

RUNTIME = "_rt"
"""The name under which rewritten functions import the run-time module."""

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_BUILTINS = frozenset(
    {"int", "float", "bool", "min", "max", "round", "abs", "any", "all", "len", "sum", "list", "tuple", "map"}
    | {"range", "enumerate", "zip", "reversed", "divmod"}
)
_KINDS = {"isinstance": 2, "type": 1, "is_tensor": 1, "hasattr": 2, "is_": 2, "is_not": 2}
"""Functions that tell what a value is, with the number of their arguments; they ask in every statement."""

_FACTORIES = frozenset({"tensor", "as_tensor", "asarray", "new"})
"""Functions that make a tensor of a number, which may be asked for its kind later; they do so in every statement."""

_LEGACY = "Tensor"
"""The end of the names of those that are constructors: ``torch.Tensor``, ``torch.LongTensor`` and the like."""

_ATTRIBUTES = frozenset(
    {"item", "tolist", "unbind", "split", "chunk", "numel", "new_tensor", "floor", "ceil", "trunc"}
    | {"sqrt", "log", "log2", "exp", "sin", "cos", "tanh", "isclose", "prod", "round"}
    | {"maximum", "minimum", "log10", "fmod", "pow", "hypot", "copysign", "view", "reshape", "expand"}
    | {"repeat", "isnan", "isinf", "isfinite"}
)
"""Methods that have a stand-in, and those whose name a function with a stand-in has, too."""

_METHODS = frozenset(name for kind in (torch.Tensor, list, dict, set, str) for name in dir(kind))
"""What is called on a tensor or a container; the analysis of a function knows it by its name."""

S = TypeVar("S", bound=ast.AST)


def runtime_call(function: str, *arguments: ast.expr, at: ast.AST) -> ast.Call:
    """A call of a run-time function, at the position of `at`."""
    attribute = ast.Attribute(ast.Name(RUNTIME, ast.Load()), function, ast.Load())
    return set_location(ast.Call(attribute, list(arguments), []), at)


def set_location(node: S, at: ast.AST) -> S:
    """Gives a new node, and the new nodes inside it, the position of an old one."""
    # On one line: Python attributes a call to the line on which the called expression ends.
    line, column = at.lineno, at.col_offset  # type: ignore[attr-defined]
    place = {"lineno": line, "end_lineno": line, "col_offset": column, "end_col_offset": column}
    todo: list[ast.AST] = [node]
    while todo:
        new = todo.pop()
        inside = new.__dict__
        if "lineno" in inside:
            continue  # an old node; nodes inside it are old, or got their position when they were put there
        if "lineno" in new._attributes:
            inside.update(place)
        todo += children(new)
    return node


def local_function(name: str, parameters: Iterable[str], body: list[ast.stmt], at: ast.AST) -> ast.FunctionDef:
    """``def name(parameters): body``."""
    arguments = ast.arguments([], [ast.arg(parameter) for parameter in parameters], None, [], [], None, [])
    more: Any = {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}  # Python 3.12
    made = ast.FunctionDef(name, arguments, [], [], None, None, **more)
    set_location(made, at)
    made.body = body
    return made


def thunk(expression: ast.expr) -> ast.Lambda:
    """``lambda: expression``."""
    arguments = ast.arguments([], [], None, [], [], None, [])
    return set_location(ast.Lambda(arguments, expression), expression)


class Expressions(ast.NodeTransformer):
    """Rewrites expressions in place, statement by statement.

    Args:
        lines: Lines on which decisions were seen.
        first: Name of the function's first parameter, for ``super()``.
        loops: Lines of loops that cannot be unrolled.
    """

    def __init__(self, lines: Collection[int], first: str, loops: Collection[int] = ()) -> None:
        self._lines = lines
        self._loops = loops
        self._first = first
        self._active = self._raises = False
        self._outer: set[str] = set()

    def visit(self, node: ast.AST) -> Any:
        """Visits a node; a statement is active if one of its own lines holds a decision."""
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            self._outer.update(node.names)
        if not INNER[node.__class__]:
            return node
        if not isinstance(node, ast.stmt):
            return super().visit(node)
        before = self._active
        last = _head_end(node)
        self._active = any(line in self._lines for line in range(node.lineno, last + 1))
        self._raises = isinstance(node, ast.Raise)
        if isinstance(node, (ast.If, ast.While)):
            node.masked = self._active or getattr(node, "is_decision", False)  # type: ignore[union-attr]
        if isinstance(node, (ast.For, ast.While)):
            node.is_whole = node.lineno in self._loops  # type: ignore[union-attr]
            node.in_file = node.is_whole or (self._active and isinstance(node, ast.For))  # type: ignore[union-attr]
        result = super().visit(node)
        self._active = before
        return result

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visits the children of a node, as ast.NodeTransformer does, in a third of the time."""
        inside = node.__dict__
        for name in INNER[node.__class__]:
            value = inside.get(name)
            if type(value) is list:
                value[:] = [item and self.visit(item) for item in value]
            elif value is not None:
                inside[name] = self.visit(value)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """``assert a``: the condition is checked unless it depends on the inputs; the message stays."""
        self.generic_visit(node)
        if self._active:
            node.test = runtime_call("holds", node.test, at=node.test)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """``a < b`` in every statement, since a later decision may use it; ``a < b < c`` in decisions only."""
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return self._rewrite_identity(node)
        operands = [node.left, *node.comparators]
        symbols = [_COMPARISONS.get(type(op)) for op in node.ops]
        if None in symbols or any(isinstance(o, ast.Constant) and not _is_number(o) for o in operands):
            return node
        if len(symbols) > 1 and not self._active:
            return node
        arguments: list[ast.expr] = [operands[0]]
        for symbol, operand in zip(symbols, operands[1:], strict=True):
            arguments += [ast.Constant(symbol), operand]
        return runtime_call("compare", *arguments, at=node)

    def _rewrite_identity(self, node: ast.Compare) -> ast.AST:
        """``a is True``, ``a is b``: a tensor that stands for a number is no such object."""
        if not _may_be_of_numbers(node):
            return node
        same = runtime_call("is_same", node.left, node.comparators[0], at=node)
        return same if isinstance(node.ops[0], ast.Is) else runtime_call("not_", same, at=node)

    def visit_Match(self, node: Any) -> ast.AST:
        """``match a``: a tensor that stands for a number matches none of a number's patterns."""
        self.generic_visit(node)
        node.subject = runtime_call("subject", node.subject, at=node.subject)
        matched: ast.AST = node
        return matched

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """``a and b``: the second operand is a lambda, which is called when its value is needed."""
        self.generic_visit(node)
        if not self._active or not all(map(_can_wait, node.values[1:])):
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return runtime_call(name, node.values[0], *map(thunk, node.values[1:]), at=node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """``not a``."""
        self.generic_visit(node)
        if self._active and isinstance(node.op, ast.Not):
            return runtime_call("not_", node.operand, at=node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """``a if c else b``."""
        self.generic_visit(node)
        if not self._active or not (_can_wait(node.body) and _can_wait(node.orelse)):
            return node
        # What a raise decides is in the text of its error, which the file does not have.
        name = "choose_any" if self._raises else "choose"
        return runtime_call(name, node.test, thunk(node.body), thunk(node.orelse), at=node)

    def visit_List(self, node: ast.List) -> ast.AST:
        """``[a, *b]``."""
        self.generic_visit(node)
        if not self._active or not any(isinstance(item, ast.Starred) for item in node.elts):
            return node
        return _listed(node) if isinstance(node.ctx, ast.Load) else node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        """``[f(item) for item in items if c(item)]``; ``[None for _ in range(n)]`` is ``[None] * n``."""
        count = _length_of_nones(node)
        if count is not None:
            nothing = set_location(ast.List([node.elt], ast.Load()), node)
            return runtime_call("repeat", nothing, self.visit(count), at=node)
        return self._rewrite_items(node, "collect")

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        """``(f(item) for item in items if c(item))``."""
        return self._rewrite_items(node, "generate")

    def _rewrite_items(self, node: ast.ListComp | ast.GeneratorExp, name: str) -> ast.AST:
        self.generic_visit(node)
        generator = node.generators[0]
        if not self._active or len(node.generators) > 1 or not all(map(_can_wait, [node.elt, *generator.ifs])):
            return node
        target = generator.target
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        if not all(isinstance(name, ast.Name) for name in targets):
            return node
        names = [name.id for name in targets if isinstance(name, ast.Name)]

        def function_of_item(value: ast.expr) -> ast.Lambda:
            arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
            return set_location(ast.Lambda(arguments, value), value)

        more: list[ast.expr] = [ast.Constant(isinstance(target, ast.Tuple))]
        if generator.ifs:
            first, *rest = generator.ifs
            test = runtime_call("and_", first, *map(thunk, rest), at=first) if rest else first
            more.append(function_of_item(test))
        return runtime_call(name, generator.iter, function_of_item(node.elt), *more, at=node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Calls that turn tensors into numbers; ``super()``, which needs its arguments inside a nested function."""
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Name) and function.id == "super" and not node.args and self._first:
            node.args = [set_location(ast.Name(n, ast.Load()), node) for n in ("__class__", self._first)]
        if _asks_for_kind(node) or _may_make_tensor(function) or _may_assert(function):
            node.func = runtime_call("callee", function, at=function)
            return node
        named = isinstance(function, ast.Name) and function.id in _BUILTINS
        if self._active and (named or (isinstance(function, ast.Attribute) and _may_be_replaced(function.attr))):
            node.func = runtime_call("callee", function, at=function)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """``[None] * n``, ``(x,) * n``."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Mult):
            return node
        for items, count in ((node.left, node.right), (node.right, node.left)):
            if isinstance(items, (ast.List, ast.Tuple)) and items.elts:
                return runtime_call("repeat", items, count, at=node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """``x[i][j] = y`` is a write into the tensor x, and not into a view of it, which loops cannot follow.

        ``y = [*y, x]`` makes a list longer, as ``y.append(x)`` does.
        """
        self.generic_visit(node)
        if isinstance(node.value, ast.List) and any(isinstance(item, ast.Starred) for item in node.value.elts):
            node.value = _listed(node.value)
        for target in node.targets:
            _write_to_owner(target)
        return node

    def visit_Delete(self, node: ast.Delete) -> ast.AST:
        """``del y`` becomes ``y = UNDEFINED``, which can be joined."""
        targets = [name for target in node.targets for name in _each(target)]
        own = [name.id for name in targets if isinstance(name, ast.Name) and name.id not in self._outer]
        if len(own) < len(targets):
            return self.generic_visit(node)
        undefined = ast.Attribute(ast.Name(RUNTIME, ast.Load()), "UNDEFINED", ast.Load())
        return set_location(ast.Assign([ast.Name(name, ast.Store()) for name in own], undefined), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """``n += 1`` of a tensor that stands for a number is not in place: other names may refer to it.

        ``x[k] += 1`` of a tensor is no write into a view, which loops cannot follow, but one into ``x``.
        """
        self.generic_visit(node)
        operator = ast.Constant(type(node.op).__name__)
        if isinstance(node.target, ast.Subscript) and _may_be_repeated(node.target):
            item = copy_tree(node.target)
            item.ctx = ast.Load()
            owner = copy_tree(node.target.value)
            changed = runtime_call("augment_item", operator, item, node.value, owner, at=node)
            _write_to_owner(node.target)
            return set_location(ast.Assign([node.target], changed), node)
        if not isinstance(node.target, ast.Name):
            return node
        old = ast.Name(node.target.id, ast.Load())
        value = runtime_call("augment", operator, set_location(old, node), node.value, at=node)
        return set_location(ast.Assign([node.target], value), node)


def _length_of_nones(node: ast.ListComp) -> ast.expr | None:
    """The n of ``[None for _ in range(n)]``; None for any other list."""
    generator, *others = node.generators
    items = generator.iter
    if others or generator.ifs or not isinstance(node.elt, ast.Constant) or node.elt.value is not None:
        return None
    if not isinstance(items, ast.Call) or not isinstance(items.func, ast.Name) or items.func.id != "range":
        return None
    return items.args[0] if len(items.args) == 1 and not items.keywords else None


def tells_numbers_apart(node: ast.AST) -> bool:
    """Whether code may do otherwise with a tensor that stands for a number than with the number.

    It asks for the type or the identity of a value, or changes a number in place. All else that Python does with
    numbers, tensors do as well, or a log of decisions sees it.
    """
    return any(_tells_numbers_apart(one) for one in walk_all(node))


def _tells_numbers_apart(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _asks_for_kind(node)
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], (ast.Is, ast.IsNot)) and _may_be_of_numbers(node)
    return isinstance(node, ast.AugAssign) or type(node).__name__ == "Match"  # Python 3.10


def _asks_for_kind(node: ast.Call) -> bool:
    function = node.func
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return _KINDS.get(name) == len(node.args)


def _may_be_replaced(attribute: str) -> bool:
    """Whether an attribute that is called may be a function that has a stand-in, or one that is scripted."""
    return attribute in _ATTRIBUTES or not (attribute in _METHODS or attribute.endswith("_"))


def _may_make_tensor(function: ast.expr) -> bool:
    """Whether it is one of those functions by its name, or a variable of the model's own that may hold one."""
    if isinstance(function, ast.Attribute):
        return function.attr in _FACTORIES or function.attr.endswith(_LEGACY)
    return isinstance(function, ast.Name) and not hasattr(builtins, function.id)


def _may_assert(function: ast.expr) -> bool:
    """Whether it is one of torch's assertions by its name."""
    return isinstance(function, ast.Attribute) and function.attr.startswith(ASSERTIONS)


def _may_be_of_numbers(node: ast.Compare) -> bool:
    """Whether ``a is b`` may be asked of numbers; nothing that is None is one."""
    sides = [side for side in (node.left, *node.comparators) if isinstance(side, ast.Constant)]
    return all(map(_is_number, sides))


def _may_be_repeated(node: ast.AST) -> bool:
    """Whether an expression may be computed twice instead of once."""
    return not any(
        isinstance(one, (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for one in walk_all(node)
    )


def _listed(node: ast.List) -> ast.Call:
    """``[a, *b]`` as a call with each item, and whether it has a star."""
    parts = [
        ast.Tuple(
            [ast.Constant(isinstance(item, ast.Starred)), item.value if isinstance(item, ast.Starred) else item],
            ast.Load(),
        )
        for item in node.elts
    ]
    return runtime_call("listed", *parts, at=node)


def _write_to_owner(target: ast.expr) -> None:
    """Changes the target ``x[i][j]`` so that it is an item of x, where x is a tensor."""
    inner = target.value if isinstance(target, ast.Subscript) else None
    if not isinstance(target, ast.Subscript) or not isinstance(inner, ast.Subscript) or not _may_be_repeated(inner):
        return
    if not any(isinstance(one, ast.Slice) for one in walk_all(inner.slice)):
        parts = [inner.value, inner.slice]
        key = runtime_call("key_of", *map(copy_tree, parts), _as_argument(target.slice), at=target)
        target.value, target.slice = runtime_call(OWNER_OF, *parts, at=inner), key


def _as_argument(key: ast.expr) -> ast.expr:
    """An index as an expression that can be an argument: ``1:`` is ``slice(1, None, None)``."""
    if isinstance(key, ast.Slice):
        parts = (part or ast.Constant(None) for part in (key.lower, key.upper, key.step))
        return runtime_call("slice_", *parts, at=key)
    if isinstance(key, ast.Tuple):
        key.elts = [_as_argument(part) for part in key.elts]
    return key


def _each(target: ast.expr) -> list[ast.expr]:
    """The targets in a target: ``del (a, b)``."""
    return [one for t in target.elts for one in _each(t)] if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _head_end(stmt: ast.stmt) -> int:
    """The last line of a statement; of a compound statement the last line of its head."""
    if isinstance(stmt, (ast.If, ast.While)):
        return stmt.test.end_lineno or stmt.lineno
    if isinstance(stmt, ast.For):
        return stmt.iter.end_lineno or stmt.lineno
    if isinstance(stmt, ast.With):
        return max(item.context_expr.end_lineno or stmt.lineno for item in stmt.items)
    if isinstance(stmt, (ast.Try, ast.FunctionDef, ast.ClassDef)):
        return stmt.lineno - 1
    return stmt.end_lineno or stmt.lineno


def _is_number(node: ast.Constant) -> bool:
    return isinstance(node.value, (int, float))


def _can_wait(node: ast.expr) -> bool:
    """Whether an expression means the same inside a lambda."""
    return not any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in walk_scope(node))
