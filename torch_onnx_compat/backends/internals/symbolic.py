"""Tensors without values and sizes without numbers: torch's fake tensors, with a shape environment that never decides.

torch's own environment takes the answer to a question, ``h == 224``, for a fact and asks no more about that axis. Here
every question is answered from the example and forgotten, so the next one is asked too.
"""

from __future__ import annotations

import importlib
import math
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.internals import expressions
from torch_onnx_compat.places import is_user_file

Asked = Callable[[Any, Any], None]
"""Told of each question: a sympy expression, and its value at the example's sizes."""


class Symbols:
    """One set of symbolic sizes, and the fake tensors that have them.

    Args:
        asked: Told of each question.
    """

    def __init__(self, asked: Asked) -> None:
        from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

        self.kind: Any = FakeTensor
        self.environment: Any = _environment(asked)
        self.mode: Any = FakeTensorMode(
            shape_env=self.environment, allow_non_fake_inputs=True, static_shapes=False, allow_fallback_kernels=False
        )
        self.mode.cache_enabled = False  # no two calls of one run have the same symbols; the keys cost a third of it

    def fake(self, tensor: Tensor, dynamic: Collection[int] = ()) -> tuple[Tensor, dict[Any, int]]:
        """A fake of a tensor, and the dimension that each symbol of its shape stands for.

        Args:
            tensor: Any plain tensor.
            dynamic: Dimensions whose sizes are symbols.
        """
        from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

        if not dynamic:
            with without_modes():
                return self.mode.from_tensor(tensor, static_shapes=True), {}
        kinds = [DimDynamic.DYNAMIC if dim in dynamic else DimDynamic.STATIC for dim in range(tensor.dim())]
        context: Any = StatelessSymbolicContext(dynamic_sizes=kinds)
        with without_modes():
            shape = self.mode.from_tensor(tensor, symbolic_context=context).shape
        # A tensor of its own: the memory of the one above is as large as the example's, whatever its shape.
        fake = self.run(torch.empty, (tuple(shape),), {"dtype": tensor.dtype, "device": tensor.device})
        return fake, {shape[dim].node.expr: dim for dim in dynamic}

    def fake_of_data(self, tensor: Tensor, fixed: Collection[int]) -> Tensor:
        """A fake whose sizes are symbols for what values decide.

        Args:
            tensor: Any plain tensor.
            fixed: Dimensions whose sizes are numbers.
        """
        import sympy

        shape: list[Any] = list(tensor.shape)
        for dim in set(range(tensor.dim())) - set(fixed):
            symbol = self.environment.create_unbacked_symint()
            self.environment.data_sizes[symbol.node.expr] = sympy.Integer(shape[dim])
            shape[dim] = symbol
        fake: Tensor = self.run(torch.empty, (tuple(shape),), {"dtype": tensor.dtype, "device": tensor.device})
        return fake

    def size(self, expression: Any) -> Any:
        """A size that is made of those of this set; a number if it has no symbol."""
        if not getattr(expression, "free_symbols", None):
            return int(expression)
        return self.environment.create_symintnode(expression, hint=int(self.environment.number(expression)))

    def run(self, function: Any, args: Any, kwargs: Any) -> Any:
        """What an operator yields for fakes: fakes of the right shapes."""
        with self.mode:
            return function(*args, **kwargs)

    def another(self, fake: Tensor) -> Tensor:
        """Another fake of the same shape, as detach makes it; torch's own way there, without its dispatch."""
        from torch._subclasses import fake_impls

        made: Tensor = fake_impls.fast_detach(self.mode, fake)  # type: ignore[arg-type, unused-ignore]
        return made

    def in_shape(self, fake: Tensor, shape: Sequence[Any]) -> Tensor:
        """A fake in the shape that was asked for.

        torch computes a part of it, as the quotient of a size and its other parts; quotients of quotients grow.
        """
        if all(type(size) is int for size in shape) or any(_is_same_size(-1, size) for size in shape):
            return fake
        if all(_is_same_size(one, other) for one, other in zip(fake.shape, shape, strict=True)):
            return fake
        options = {"dtype": fake.dtype, "device": fake.device}
        made: Tensor = self.run(torch.empty_strided, (tuple(shape), fake.stride()), options)
        return made

    def learn_sizes(self, fake: Tensor, real: Tensor) -> None:
        """Takes the sizes of what values decide from the real tensor beside a fake."""
        import sympy

        sizes: Sequence[Any] = fake.shape
        for size, number in zip(sizes, real.shape, strict=True):
            if is_of_data(size) and size.node.expr.is_Symbol:
                self.environment.data_sizes.setdefault(size.node.expr, sympy.Integer(number))


def _is_same_size(one: Any, other: Any) -> bool:
    """Whether two sizes are one expression; asks nothing."""
    a, b = (size.node.expr if is_symbolic(size) else size for size in (one, other))
    return bool(a == b)


def is_of_data(size: Any) -> bool:
    """Whether values decide a size."""
    return is_symbolic(size) and bool(expressions.data_symbols(size.node.expr))


def is_symbolic(value: Any) -> bool:
    """Whether a value is a symbolic number."""
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def fixed_number(value: Any) -> int | None:
    """What a symbolic number is at every size; None if that varies."""
    expression = value.node.expr
    return int(expression) if getattr(expression, "is_number", False) else None


def number_of(value: Any) -> Any:
    """A symbolic number at the example's sizes; asks nothing."""
    node = value.node
    if node.hint is not None:
        return node.hint
    return node.shape_env.number(node.expr)


def is_data_dependent(error: BaseException) -> bool:
    """Whether an operator's error says that its fake cannot do without values, or that there is none."""
    from torch._subclasses import fake_tensor

    names = (
        "DataDependentOutputException",
        "DynamicOutputShapeException",
        "UnsupportedOperatorException",
        "UnsupportedFakeTensorException",
    )
    kinds = tuple(getattr(fake_tensor, name) for name in names if hasattr(fake_tensor, name))
    return isinstance(error, (*kinds, NotImplementedError))


def python_kernels() -> AbstractContextManager[None]:
    """While active, composite operators run in Python where torch has written them so, as torch.export runs them."""
    from torch._dispatch.python import enable_python_dispatcher

    context: AbstractContextManager[None] = enable_python_dispatcher()
    return context


def python_form(operator: Any) -> Callable[..., Any] | None:
    """The Python function in which torch has written an operator again; None if it has not."""
    from torch._decomp import decomposition_table

    return decomposition_table.get(operator)


def is_asked_by_python(stack: Iterable[types.FrameType]) -> bool:
    """Whether Python asks a symbolic number, and not C++ within an operator.

    Args:
        stack: The frames of the question, the innermost first.
    """
    for frame in stack:
        if frame.f_code.co_filename == torch.__file__ and frame.f_code.co_name.startswith("__"):
            return True  # SymBool.__bool__, SymInt.__index__ and the like
        if is_user_file(frame.f_code.co_filename):
            return False
    return False


@contextmanager
def without_modes() -> Iterator[None]:
    """Runs plain torch, below every dispatch mode."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():
        yield


@contextmanager
def without_values() -> Iterator[None]:
    """Runs torch on plain sizes, below every mode, with tensors that have no values."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with without_modes(), FakeTensorMode(allow_non_fake_inputs=True):
        yield


def _reader(
    torchs_own: Callable[..., Any], symbols: Symbols, read: Callable[[Any], bool], plain: Callable[..., Any]
) -> Callable[..., Any]:
    """The method of a symbolic size that tells `read`, and answers as the example's number or as an object."""

    def method(self: Any, *args: Any) -> Any:
        if getattr(self.node, "shape_env", None) is not symbols.environment:
            return torchs_own(self, *args)
        return object.__hash__(self) if read(self) else plain(_NUMBERS[type(self)](number_of(self)), *args)

    return method


_KINDS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_TEXTS: dict[str, Callable[..., Any]] = {"__str__": str, "__repr__": repr, "__format__": format}


@contextmanager
def watch_numbers(symbols: Symbols, read: Callable[[str, Any], bool]) -> Iterator[None]:
    """While active, texts of symbolic numbers and hashes of sizes are the example's, and `read` is told of them.

    The hash of a symbolic float or bool is that of its value, for which torch itself asks.

    Args:
        symbols: Whose numbers; a model that calls torch.cond makes torch compile, with sizes of its own.
        read: Told what is read, ``"text"`` or ``"hash"``, and of what; says whether the hash is to be the object's.
    """
    with ExitStack() as stack:
        for kind in _KINDS:
            for name, plain in _TEXTS.items():
                method = _reader(getattr(kind, name), symbols, partial(read, "text"), plain)
                stack.enter_context(_with_method(kind, name, method))
        method = _reader(torch.SymInt.__hash__, symbols, partial(read, "hash"), hash)
        stack.enter_context(_with_method(torch.SymInt, "__hash__", method))
        yield


@contextmanager
def watch_texts(read: Callable[[Any], str | None]) -> Iterator[None]:
    """While active, `read` is told the symbolic number of which a text is made; it may give the text."""

    def reader(plain: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *args: Any) -> Any:
            text = read(self) if self.node.expr.free_symbols else None
            return plain(self, *args) if text is None else text

        return method

    with ExitStack() as stack:
        for kind in _KINDS:
            for name in _TEXTS:
                stack.enter_context(_with_method(kind, name, reader(getattr(kind, name))))
        yield


@contextmanager
def _with_method(kind: type, name: str, method: Callable[..., Any]) -> Iterator[None]:
    """While active, a class has this method."""
    before = vars(kind).get(name)
    setattr(kind, name, method)
    try:
        yield
    finally:
        if before is None:
            delattr(kind, name)
        else:
            setattr(kind, name, before)


@contextmanager
def hashes(of_object: Callable[[], bool]) -> Iterator[None]:
    """While active, a symbolic size has the hash of its object where torch.export has none and `of_object` says so."""
    before = torch.SymInt.__hash__

    def hash_of(size: Any) -> int:
        try:
            return before(size)
        except TypeError:
            if of_object():
                return object.__hash__(size)
            raise

    torch.SymInt.__hash__ = hash_of  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        torch.SymInt.__hash__ = before  # type: ignore[method-assign]


@contextmanager
def watch_plain_numbers(is_told: Callable[[type, Any], bool]) -> Iterator[None]:
    """While active, each symbolic number that becomes a plain one is asked about.

    torch.export notes no condition for a float, as it does for a size that becomes an int.

    Args:
        is_told: Whether a number of this kind, int or float, and of this expression is only told. Then it becomes the
            example's, or 1 where it has none, and nothing is assumed.
    """
    from torch.fx.experimental.sym_node import SymNode

    def reader(kind: type, plain: Callable[..., Any]) -> Callable[..., Any]:
        def guard(self: Any, *args: Any) -> Any:
            if self.expr.free_symbols and is_told(kind, self.expr):
                return kind(1 if self.hint is None else self.hint)
            return plain(self, *args)

        return guard

    with ExitStack() as stack:
        stack.enter_context(_with_method(SymNode, "guard_float", reader(float, SymNode.guard_float)))
        stack.enter_context(_with_method(SymNode, "guard_int", reader(int, SymNode.guard_int)))
        yield


@contextmanager
def watch_data_dependent_errors(tell: Callable[[], None]) -> Iterator[None]:
    """While active, `tell` is called where torch raises because values decide the answer to a question.

    The error is a RuntimeError, which a model may catch.
    """
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    plain: Any = ShapeEnv._make_data_dependent_error

    def make_error(self: Any, *args: Any, **kwargs: Any) -> Any:
        tell()
        return plain(self, *args, **kwargs)

    ShapeEnv._make_data_dependent_error = make_error  # type: ignore[method-assign]
    try:
        yield
    finally:
        ShapeEnv._make_data_dependent_error = plain  # type: ignore[method-assign]


@contextmanager
def told_as_numbers(modules: Iterable[str], is_told: Callable[[Any], bool] = lambda number: True) -> Iterator[None]:
    """While active, a model that asks whether a symbolic number is an int, or a float, is told so as in eager torch.

    Args:
        modules: The Python modules whose code is told so; torch itself has to tell the two apart.
        is_told: Of which symbolic numbers.
    """

    def number_of(value: Any) -> type | None:
        number = _NUMBERS.get(type(value))
        return number if number is not None and is_told(value) else None

    told = {"isinstance": _is_instance(number_of), "type": _type(number_of)}
    found = (sys.modules.get(name) for name in modules)
    scopes = [vars(module) for module in found if isinstance(module, types.ModuleType)]
    # A run without numbers may be made while a model is captured, and has its own answers.
    changed = [
        (scope, name, scope.get(name))
        for scope in scopes
        for name in told
        if name not in scope or pythons_own(scope[name]) is not scope[name]
    ]
    try:
        for scope, name, _ in changed:
            scope[name] = told[name]
        yield
    finally:
        for scope, name, before in changed:
            if before is None:
                scope.pop(name, None)
            else:
                scope[name] = before


def pythons_own(function: Any) -> Any:
    """Python's function, where `told_as_numbers` has put another in its place."""
    return vars(function).get(_OWN, function) if isinstance(function, (types.FunctionType, type)) else function


_OWN = "torch_onnx_compat_pythons_own"
_NUMBERS: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}


def _is_instance(number_of: Callable[[Any], type | None]) -> Callable[[Any, Any], bool]:
    """`isinstance`, for a model whose symbolic numbers are numbers."""

    def is_instance(value: Any, kind: Any) -> bool:
        number = number_of(value)
        if isinstance(value, kind) or number is None:
            return isinstance(value, kind)
        kinds = kind if type(kind) is tuple else (kind,)
        return any(isinstance(one, type) and issubclass(number, one) for one in kinds)

    vars(is_instance)[_OWN] = isinstance
    return is_instance


def _type(number_of: Callable[[Any], type | None]) -> type:
    """`type`, for such a model: all that it does is what `type` does, but for a symbolic number."""

    class LikeType(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            number = number_of(args[0]) if len(args) == 1 else None
            return type(*args, **kwargs) if number is None else number

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, type)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, type)

    class Type(type, metaclass=LikeType):
        def __class_getitem__(cls, item: Any) -> Any:
            return type[item]

    setattr(Type, _OWN, type)
    return Type


_MOST_TERMS = 32
"""Terms, multiplied out, of the longest polynomials whose common factors sympy is asked for."""


class _QuickSympy:
    """sympy, whose `simplify` only divides term by term, and whose `gcd` is 1 for long polynomials.

    torch simplifies what a common factor of a quotient's two sides leaves. It needs no more than the division, and the
    general search for a shorter form takes seconds where sizes are quotients of quotients. To find the factor, sympy
    multiplies both sides out, which takes minutes where a size is a product of several sizes of padded windows.
    """

    def __getattr__(self, name: str) -> Any:
        import sympy

        return getattr(sympy, name)

    @staticmethod
    def simplify(expression: Any) -> Any:
        """The same number, with a product's sum multiplied out."""
        import sympy

        return sympy.expand_mul(expression, deep=False)

    @staticmethod
    def gcd(one: Any, other: Any) -> Any:
        """A common factor: the greatest, or 1, which leaves a quotient as it is."""
        import sympy

        return sympy.gcd(one, other) if max(map(_count_terms, (one, other))) <= _MOST_TERMS else sympy.S.One


def _count_terms(expression: Any) -> float:
    """Terms of an expression once it is multiplied out; infinite where that are a great many."""
    import sympy

    if isinstance(expression, sympy.Add):
        return sum(map(_count_terms, expression.args))
    if isinstance(expression, sympy.Mul):
        return math.prod(map(_count_terms, expression.args))
    if isinstance(expression, sympy.Pow) and isinstance(expression.exp, sympy.Integer):
        terms, power = _count_terms(expression.base), abs(int(expression.exp))
        return 1 if terms == 1 else terms**power if power <= _MOST_TERMS else math.inf
    return 1


@contextmanager
def quick_quotients() -> Iterator[None]:
    """While active, torch makes quotients of sizes without a search for their shortest forms."""
    functions: Any = importlib.import_module("torch.utils._sympy.functions")
    if vars(functions).get("sympy") is None:  # a version of torch that imports it otherwise
        yield
        return
    before = functions.sympy
    functions.sympy = _QuickSympy()
    try:
        yield
    finally:
        functions.sympy = before


_LARGE = 4096
"""What a size counts as while the operator that makes it runs: neither 0 nor 1."""


class _Placeless:
    """Does not look for the places where symbols are made: nobody asks, and torch imports a compiler to find them."""

    def _get_stack_summary(self, is_debug: bool = False, framework_loc: Any = None) -> tuple[Any, str]:
        from torch._guards import SLoc

        return SLoc("", None), ""


def _environment(asked: Asked) -> Any:
    import sympy
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from torch_onnx_compat.tracing import hints_of

    class Environment(_Placeless, ShapeEnv):
        """Answers from the example, and learns nothing from the answer."""

        def number(self, expression: Any) -> Any:
            """An expression at the example's sizes."""
            known = self.__dict__.setdefault("_numbers", {})
            if expression not in known:
                found = sympy.sympify(expression).xreplace({**hints_of(self), **self.data_sizes})
                if found.free_symbols:
                    return found  # while the operator that makes the size still runs
                known[expression] = found
            return known[expression]

        @property
        def data_sizes(self) -> dict[Any, Any]:
            """The example's sizes of what values decide, by symbol."""
            known: dict[Any, Any] = self.__dict__.setdefault("_data_sizes", {})
            return known

        def evaluate_expr(
            self,
            orig_expr: Any,
            hint: Any = None,
            fx_node: Any = None,
            size_oblivious: bool = False,
            fallback_value: Any = None,
            **kwargs: Any,
        ) -> Any:
            """The answer at the example's sizes; while an operator makes a size that values decide, torch's guess."""
            if getattr(orig_expr, "is_number", True) or orig_expr in (sympy.true, sympy.false):
                return orig_expr
            value = self.number(orig_expr)
            if not (value.is_number or value in (sympy.true, sympy.false)):
                large = dict.fromkeys(value.free_symbols, sympy.Integer(_LARGE))
                return value.xreplace(large) if fallback_value is None else fallback_value
            asked(orig_expr, value)
            return value

    return Environment(
        duck_shape=False, specialize_zero_one=False, allow_scalar_outputs=False, allow_dynamic_output_shape_ops=True
    )
