"""Finds the Python decisions that a TorchScript trace freezes: bool(), int(), item(), len() … of a traced tensor.

The origins of each value are found in the trace: the data of an input, sizes, or constants.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.stack import frames
from torch_onnx_compat.tracing import is_tracing, recorded_value, without_tracing
from torch_onnx_compat.watch import Watcher

_CONVERSIONS = {
    Tensor.__bool__: "bool()",
    Tensor.__int__: "int()",
    Tensor.__float__: "float()",
    Tensor.__index__: "an index",
    Tensor.__len__: "len()",
    Tensor.__contains__: "in",
    Tensor.item: "item()",
    Tensor.tolist: "tolist()",
    Tensor.numpy: "numpy()",
    Tensor.__array__: "numpy()",
}


_LITERALS = frozenset({torch.tensor, torch.as_tensor})
"""Functions that copy the values of tensors in a list into a constant."""

_READS = frozenset({Tensor.size, Tensor.numel, torch.numel, Tensor.nelement, Tensor.shape.__get__})  # type: ignore[attr-defined]
"""Functions that read sizes."""

_WATCHERS = (
    __name__,
    "torch_onnx_compat.watch",
    "torch_onnx_compat.rewrite",
    "torch_onnx_compat.backends.writes",
    "torch_onnx_compat.backends.repairs",
)
"""Modules whose frames are on the stack between a conversion and the statement that causes it."""


@dataclass(frozen=True)
class Decision:
    """A conversion of a traced tensor to a Python value."""

    place: str
    """File and line of the model's own code, ``models/net.py:41``."""
    conversion: str
    from_data: bool
    """Whether its value depends on the data of an input."""
    sizes: tuple[int, ...]
    """The sizes that its value was computed from."""
    statements: tuple[tuple[str, int], ...]
    """File and line of the statement that converts, and of the model's own statement below it on the stack."""

    @property
    def guard(self) -> bool:
        """Whether it only decides if an error is raised, which changes no result. Slow: parses the source."""
        return any(_is_guard(filename, line) for filename, line in self.statements)

    def __str__(self) -> str:
        what = "the values of the inputs" if self.from_data else "a size"
        return f"{self.place}: {self.conversion} of {what}"


class DecisionLog(Watcher):
    """Records decisions while a model is traced.

    Args:
        inputs: How many of the trace's inputs are inputs of the model; the others are parameters.
    """

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.decisions: list[Decision] = []
        self.inputs = inputs
        self._read: dict[int, int] = {}
        self._depth = 0
        self._rounding = ExitStack()

    def __enter__(self) -> Any:
        # round() of a size works in eager torch, where sizes are numbers; in a trace they are tensors, which lack it.
        if not self._depth:
            self._rounding.enter_context(internals.add_tensor_method("__round__", _round_size))
        self._depth += 1
        return super().__enter__()  # type: ignore[no-untyped-call,unused-ignore]

    def __exit__(self, *error: Any) -> None:
        self._depth -= 1
        if not self._depth:
            self._rounding.close()
        super().__exit__(*error)  # type: ignore[no-untyped-call,unused-ignore]

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call converts a tensor, or reads sizes."""
        return func in _CONVERSIONS or func in _READS or func in _LITERALS

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Records a conversion, makes the call, and keeps the sizes that it reads."""
        conversion = _CONVERSIONS.get(func)
        if conversion is not None and is_tracing() and args and isinstance(args[0], Tensor):
            self._record(args[0], conversion)
        elif func in _LITERALS and is_tracing() and args:
            for tensor in _tensors_in(args[0]):  # torch.tensor converts them in C++, where no mode sees it
                self._record(tensor, "torch.tensor()")
        result = self.pass_on(func, args, kwargs)
        if is_tracing() and isinstance(result, torch.Size):
            self._remember(result)
        elif is_tracing() and isinstance(result, Tensor) and func in _READS:
            self._remember((result,))
        return result

    def value_of(self, size: int) -> int:
        """The number that a size had when it was read; -1 if it was not seen."""
        return self._read.get(size, -1)

    def _remember(self, sizes: Iterable[Any]) -> None:
        """Keeps the numbers that sizes had when they were read."""
        for size in sizes:
            if isinstance(size, Tensor):
                key = _identity(size)
                with without_tracing():
                    self._read[key] = int(size)

    def _record(self, tensor: Tensor, conversion: str) -> None:
        if conversion == "len()":
            with without_tracing():
                self._add(conversion, False, (int(tensor.shape[0]),))
            return
        from_data, leaves = origins(tensor, self.inputs)
        harmless = asks_for_emptiness(tensor, is_condition=conversion == "bool()")
        if (from_data or leaves) and not harmless:
            self._add(conversion, from_data, tuple(map(self.value_of, leaves)))

    def _add(self, conversion: str, from_data: bool, sizes: tuple[int, ...]) -> None:
        place, statements = _statements()
        self.decisions.append(Decision(place, conversion, from_data, sizes, statements))


_QUESTIONS = {("aten::eq", 0), ("aten::ne", 0), ("aten::gt", 0), ("aten::le", 0), ("aten::lt", 1), ("aten::ge", 1)}
"""Comparisons of a size with a number that ask whether it is 0."""

_MAY_BE_EMPTY = frozenset(
    f"aten::{name}"
    for name in [
        "nonzero",
        "nonzero_numpy",
        "masked_select",
        "index",
        "repeat_interleave",
        "bincount",
        "unfold",
        "diff",
        "_unique2",
        "unique_dim",
        "unique_consecutive",
        "narrow",
        "split",
        "split_with_sizes",
        "chunk",
        "tensor_split",
        "arange",
        "linspace",
        "constant_pad_nd",
        "pad",
        "diagonal",
    ]
) | {"torchvision::nms", "prim::NumToTensor", "prim::PythonOp", "prim::CallFunction"}
"""Operators that may yield an empty tensor though no input is empty, all that compute with sizes included."""


_SHAPED_AS_FIRST = frozenset(
    f"aten::{name}" for name in ("index_put", "index_put_", "copy_", "masked_fill", "masked_fill_")
)


def asks_for_emptiness(tensor: Tensor, *, is_condition: bool = False) -> bool:
    """Whether a traced tensor only says if another one is empty; the answer is fixed, as no dynamic axis has size 0.

    Args:
        tensor: The tensor.
        is_condition: Whether the tensor is converted to a bool: then a size itself asks this question.
    """
    value = recorded_value(tensor)
    node = value.node()
    compared = list(node.inputs())
    if node.kind().startswith("aten::") and len(compared) == 2:
        number = compared[1].toIValue()
        if isinstance(number, Tensor):
            number = None
        if (node.kind(), number) not in _QUESTIONS:
            return False
        value = compared[0]
    elif not is_condition:
        return False
    if value.node().kind() == "prim::NumToTensor":
        value = next(value.node().inputs())
    if value.node().kind() not in ("aten::size", "aten::numel"):
        return False
    return all(_is_never_empty(n) for n in _ancestors(next(value.node().inputs())))


def _ancestors(value: Any) -> Iterator[Any]:
    seen: set[int] = set()
    todo = [value]
    while todo:
        value = todo.pop()
        if value.unique() not in seen:
            seen.add(value.unique())
            node = value.node()
            yield node
            todo += list(node.inputs())[: 1 if node.kind() in _SHAPED_AS_FIRST else None]


def _is_never_empty(node: Any) -> bool:
    if node.kind() != "aten::slice":
        return node.kind() not in _MAY_BE_EMPTY
    start, end = (bound.toIValue() for bound in list(node.inputs())[2:4])
    return start in (None, 0) and (end is None or (isinstance(end, int) and end > 0))


def _round_size(tensor: Tensor, digits: int | None = None) -> int | float:
    return round(tensor.item(), digits)


def _tensors_in(data: Any) -> Iterator[Tensor]:
    for item in data if isinstance(data, (list, tuple)) else ():
        if isinstance(item, Tensor):
            yield item
        else:
            yield from _tensors_in(item)


def _identity(tensor: Tensor) -> int:
    """The number of a tensor's value: the trace renames values after Python variables."""
    return int(recorded_value(tensor).unique())


def origins(tensor: Tensor, inputs: int) -> tuple[bool, list[int]]:
    """Whether a traced tensor depends on input data, and the sizes that it depends on."""
    value = recorded_value(tensor)
    from_data = False
    sizes: list[int] = []
    seen: set[int] = set()
    todo = [value]
    while todo:
        value = todo.pop()
        if value.unique() in seen:
            continue
        seen.add(value.unique())
        node = value.node()
        kind = node.kind()
        if kind == "prim::Param":
            from_data |= any(v.unique() == value.unique() for v in list(node.outputs())[:inputs])
        elif (
            kind == "prim::NumToTensor" and next(node.inputs()).node().kind() in ("aten::size", "aten::numel")
        ) or kind in ("aten::size", "aten::numel", "prim::shape", "aten::dim"):
            sizes.append(value.unique())
        else:
            todo.extend(node.inputs())
    return from_data, sorted(sizes)


def _statements() -> tuple[str, tuple[tuple[str, int], ...]]:
    """The place in the model's code; the converting statement, which may be torch's, and the model's statement."""
    converting: tuple[str, int] | None = None
    for frame in frames():
        here = (frame.f_code.co_filename, frame.f_lineno)
        if converting is None and frame.f_globals.get("__name__") not in _WATCHERS:
            converting = here
        if is_user_file(here[0]):
            return short(*here), (converting or here, here)
    return "unknown place", (converting,) if converting else ()


@functools.lru_cache(maxsize=512)
def _is_guard(filename: str, line: int) -> bool:
    """Whether a line belongs to an assert, or to the test of an if that does nothing but raise or warn."""
    for node in ast.walk(_parse_file(filename)):
        if isinstance(node, ast.Assert) and node.lineno <= line <= (node.end_lineno or node.lineno):
            return True
        if isinstance(node, ast.If) and node.lineno <= line <= (node.test.end_lineno or node.lineno):
            return _only_complains(node)
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
            and ast.unparse(node.value.func) in ("torch._assert", "_assert", "torch._check")
        ):
            return True
    return False


def _only_complains(statement: ast.If) -> bool:
    """Whether every branch, at any depth, raises or warns."""
    return all(
        isinstance(s, ast.Raise) or _is_warning(s) or (isinstance(s, ast.If) and _only_complains(s))
        for s in (*statement.body, *statement.orelse)
    )


def _is_warning(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func).rpartition(".")[2] in ("warn", "warning", "warning_once", "print")
    )


@functools.lru_cache(maxsize=64)
def _parse_file(filename: str) -> ast.AST:
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])
