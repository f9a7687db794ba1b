"""Where the values of a TorchScript trace come from: the data of an input, sizes or constants; what may be empty."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from typing import Any

from torch import Tensor

from torch_onnx_compat.backends.data_sizes import NO_SIZES, SHAPED_AS_FIRST, DataSizes, Origins, is_source
from torch_onnx_compat.tracing import recorded_value


def identity(tensor: Tensor) -> int:
    """The number of a tensor's value: the trace renames values after Python variables."""
    return int(recorded_value(tensor).unique())


def origins(tensor: Tensor, inputs: int, data_sizes: DataSizes) -> tuple[bool, list[int]]:
    """Whether a traced tensor depends on input data, and the sizes that it depends on."""
    from_values, sizes, from_sizes = find_origins(tensor, inputs, data_sizes)
    return from_values or from_sizes, sizes


def depends_on(tensor: Tensor, other: Tensor) -> bool:
    """Whether one traced tensor is computed from another."""
    wanted = identity(other)
    return any(value.unique() == wanted for value in _values_behind(recorded_value(tensor)))


def is_of_weights(tensor: Tensor, inputs: int) -> bool:
    """Whether a traced tensor is computed from weights and constants alone, and so is the same in every run.

    Args:
        tensor: The tensor.
        inputs: How many of the trace's inputs are the model's.
    """
    of_inputs: set[int] | None = None
    for value in _values_behind(recorded_value(tensor)):
        if value.node().kind() != "prim::Param":
            continue
        if of_inputs is None:
            of_inputs = {one.unique() for one in list(value.node().outputs())[:inputs]}
        if value.unique() in of_inputs:
            return False
    return True


def find_origins(tensor: Tensor, inputs: int, data_sizes: DataSizes) -> tuple[bool, list[int], bool]:
    """Whether a traced tensor depends on values of inputs, its sizes, and whether values decide one of these.

    Each value of the trace is looked at once: a model may ask many questions at the end of a long trace.
    """
    known = data_sizes.origins
    todo = [recorded_value(tensor)]
    wanted = todo[0].unique()
    while todo:
        value = todo[-1]
        number = value.unique()
        if number in known:
            todo.pop()
            continue
        found = _own_origins(value, inputs, data_sizes)
        if found is None:
            before = list(value.node().inputs())
            waiting = [v for v in before if v.unique() not in known]
            if waiting:
                todo += waiting
                continue
            found = _union({known[v.unique()] for v in before}, is_varying=number in data_sizes.varying)
        known[number] = found
        todo.pop()
    from_values, sizes, from_sizes = known[wanted]
    return from_values, sorted(sizes), from_sizes


def _own_origins(value: Any, inputs: int, data_sizes: DataSizes) -> Origins | None:
    """The origins of a value that no other one explains; None if those of its node's inputs are its."""
    node = value.node()
    kind = node.kind()
    from_values = value.unique() in data_sizes.varying
    if kind == "prim::Param":
        return from_values or any(v.unique() == value.unique() for v in list(node.outputs())[:inputs]), NO_SIZES, False
    if kind == "prim::NumToTensor":
        is_size = next(node.inputs()).node().kind() in ("aten::size", "aten::numel")
    else:
        is_size = kind in ("aten::size", "aten::numel", "prim::shape", "aten::dim")
    return (from_values, frozenset({value.unique()}), data_sizes.is_of_data(node)) if is_size else None


def _union(parts: Set[Origins], *, is_varying: bool) -> Origins:
    sizes = frozenset().union(*(part[1] for part in parts)) if len(parts) != 1 else next(iter(parts))[1]
    return is_varying or any(part[0] for part in parts), sizes, any(part[2] for part in parts)


_QUESTIONS = {("aten::eq", 0), ("aten::ne", 0), ("aten::gt", 0), ("aten::le", 0), ("aten::lt", 1), ("aten::ge", 1)}
"""Comparisons of a size with a number that ask whether it is 0."""

_MAY_BE_EMPTY = frozenset(
    f"aten::{name}"
    for name in [
        "unfold",
        "diff",
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
) | {"prim::NumToTensor", "prim::PythonOp", "prim::CallFunction"}
"""Operators that may yield an empty tensor though no input is empty, all that compute with sizes included.

Those of which values decide the size are not among them.
"""


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
    values = _values_behind(next(value.node().inputs()), SHAPED_AS_FIRST)
    return all(_is_never_empty(one.node()) for one in values)


def _values_behind(value: Any, by_first: Collection[str] = ()) -> Iterator[Any]:
    """A value of a trace, and those that it is computed from, each once.

    Args:
        value: The value.
        by_first: Kinds of nodes of which only the first operand counts.
    """
    seen: set[int] = set()
    todo = [value]
    while todo:
        value = todo.pop()
        if value.unique() not in seen:
            seen.add(value.unique())
            yield value
            node = value.node()
            todo += list(node.inputs())[: 1 if node.kind() in by_first else None]


def _is_never_empty(node: Any) -> bool:
    if node.kind() != "aten::slice":
        return node.kind() not in _MAY_BE_EMPTY and not is_source(node)
    start, end = (bound.toIValue() for bound in list(node.inputs())[2:4])
    return start in (None, 0) and (end is None or (isinstance(end, int) and end > 0))
