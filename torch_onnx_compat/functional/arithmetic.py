"""Numbers that Python computes from sizes, computed in the file as Python does: in float64.

Under TorchScript the size of an axis is a tensor, and ``20 / x.shape[2]`` a float32; under torch.export it is symbolic,
and the exporter writes float32 for it. A floor of either is one off for some sizes in a hundred. `exact` goes back to
where a number came from and repeats its arithmetic; of one axis, as the TorchScript exporter makes float32 of a float64
without axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.tracing import (
    constant,
    current_trace,
    hints_of,
    is_tracing,
    record_as,
    recorded_value,
    without_tracing,
)

SYMBOLS = (torch.SymInt, torch.SymFloat)


def varies(number: Any) -> bool:
    """Whether a number is one that the file computes."""
    return isinstance(number, (Tensor, *SYMBOLS))


def is_size_of(number: Any, x: Tensor, dim: int) -> bool:
    """Whether a number is the size of an axis for every input, as far as its origin tells.

    Args:
        number: A size in a TorchScript trace, or a symbolic number.
        x: A tensor.
        dim: Its axis, negative from the end.
    """
    if isinstance(number, SYMBOLS):
        size: Any = x.shape[dim]
        return isinstance(size, SYMBOLS) and bool(number.node.expr == size.node.expr)
    if not (isinstance(number, Tensor) and is_tracing()):
        return False
    node = recorded_value(number).node()
    while node.kind() in _KEPT:
        node = next(node.inputs()).node()
    inputs = list(node.inputs())
    if node.kind() != "aten::size" or len(inputs) != 2:
        return False
    is_axis = inputs[1].toIValue() % x.dim() == dim % x.dim()
    return bool(is_axis and _shaped_as(inputs[0]).unique() == _shaped_as(recorded_value(x)).unique())


_ELEMENTWISE_NAMES = """
abs batch_norm celu clamp clone contiguous detach dropout elu exp gelu hardsigmoid hardswish hardtanh instance_norm
leaky_relu log mish neg pow prelu relu relu6 selu sigmoid silu softplus sqrt tanh to
"""
_ELEMENTWISE = frozenset(f"aten::{name}{end}" for name in _ELEMENTWISE_NAMES.split() for end in ("", "_"))
"""What yields a tensor of its first operand's shape, or of a larger one that another operand is broadcast with."""

_BROADCAST = frozenset({"aten::clamp", "aten::pow"})
"""Those whose other operands may be tensors of more cells."""


def _shaped_as(value: Any) -> Any:
    """The earliest value of a trace from which a value has its shape."""
    while True:
        node = value.node()
        inputs = list(node.inputs())
        is_larger = node.kind() in _BROADCAST and any(map(_may_have_axes, inputs[1:]))
        if node.kind() not in _ELEMENTWISE or is_larger:
            return value
        value = inputs[0]


def _may_have_axes(value: Any) -> bool:
    if value.node().kind() == "prim::Constant":
        constant = value.toIValue()
        return isinstance(constant, Tensor) and constant.dim() > 0
    kind = value.type()
    return bool(kind.kind() == "TensorType" and kind.dim() != 0)


def exact(number: Any, like: Tensor) -> Tensor:
    """A number as a float64 tensor of shape (1,).

    Args:
        number: A Python number, a traced or any other tensor of one element, or a symbolic number.
        like: A tensor on the device to compute on.
    """
    if isinstance(number, SYMBOLS):
        return _Symbolic(number.node, like).value_of(number.node.expr)
    if not isinstance(number, Tensor):
        return constant([float(number)], like, torch.float64)
    found = _Traced(like).value_of(recorded_value(number)) if is_tracing() else None
    return number.reshape(1).double() if found is None else found


def _floor_divided(a: Tensor, b: Tensor) -> Tensor:
    return (a / b).floor()


def _remainder(a: Tensor, b: Tensor) -> Tensor:
    return a - (a / b).floor() * b


def _whole_part(a: Tensor) -> Tensor:
    return a.long().double()


# TorchScript

_KEPT = frozenset(
    {"prim::NumToTensor", "aten::Int", "aten::ScalarImplicit", "aten::detach", "aten::clone", "aten::contiguous"}
    | {f"aten::{name}" for name in ("reshape", "view", "squeeze", "unsqueeze", "expand", "lift_fresh", "alias", "item")}
)
"""What yields the number that its first operand holds."""

_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "aten::neg": torch.neg,
    "aten::floor": torch.floor,
    "aten::ceil": torch.ceil,
    "aten::trunc": _whole_part,
    "aten::sqrt": torch.sqrt,
    "aten::abs": torch.abs,
    "aten::reciprocal": torch.reciprocal,
}
_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "aten::mul": torch.mul,
    "aten::minimum": torch.minimum,
    "aten::maximum": torch.maximum,
    "aten::min": torch.minimum,
    "aten::max": torch.maximum,
    "aten::floor_divide": _floor_divided,
    "aten::remainder": _remainder,
}


class _Traced:
    """Goes back through a TorchScript trace."""

    def __init__(self, like: Tensor) -> None:
        self._like = like

    def value_of(self, value: Any) -> Tensor | None:
        """A value of the trace, computed again; None if it is more than arithmetic on sizes and numbers."""
        node = value.node()
        kind, inputs = node.kind(), list(node.inputs())
        if kind == "prim::Constant":
            number = value.toIValue()
            if isinstance(number, Tensor) and number.numel() == 1:
                with without_tracing():
                    number = number.item()
            return constant([float(number)], self._like, torch.float64) if isinstance(number, (int, float)) else None
        if kind == "aten::size" and len(inputs) == 2:
            return self._size(value, inputs)
        if kind in _KEPT or kind == "aten::full":
            return self.value_of(inputs[1 if kind == "aten::full" else 0])
        if kind in ("aten::to", "aten::_to_copy"):
            return self._convert(value, inputs[0])
        operands = [self.value_of(one) for one in inputs[: 1 if kind in _UNARY else 2]]
        if any(operand is None for operand in operands):
            return None
        return self._apply(kind, inputs, operands)

    def _apply(self, kind: str, inputs: list[Any], operands: list[Any]) -> Tensor | None:
        if kind in _UNARY:
            return _UNARY[kind](operands[0])
        if kind == "aten::mul" and inputs[0].node().kind() == "aten::reciprocal":
            # What torch makes of a number divided by a tensor. Python divides.
            divisor = self.value_of(next(inputs[0].node().inputs()))
            return None if divisor is None else operands[1] / divisor
        if kind in _BINARY:
            return _BINARY[kind](operands[0], operands[1])
        if kind in ("aten::add", "aten::sub", "aten::rsub"):
            return self._sum(kind, inputs, operands)
        if kind == "aten::div":
            quotient: Tensor = operands[0] / operands[1]
            rounding = inputs[2].toIValue() if len(inputs) > 2 else None
            return {None: quotient, "floor": quotient.floor(), "trunc": quotient.trunc()}[rounding]
        return None

    def _sum(self, kind: str, inputs: list[Any], operands: list[Tensor]) -> Tensor | None:
        factor = inputs[2].toIValue() if len(inputs) > 2 else 1
        if factor != 1:
            return None
        a, b = reversed(operands) if kind == "aten::rsub" else operands
        return a + b if kind == "aten::add" else a - b

    def _size(self, value: Any, inputs: list[Any]) -> Tensor | None:
        sizes, dim = inputs[0].type().sizes(), inputs[1].toIValue()
        if sizes is None or dim is None:
            return None
        with without_tracing():
            size = torch.tensor(sizes[dim])
        # The trace knows the size as a number; a tensor of it is what operations take.
        graph = current_trace().graph()
        made = graph.create("prim::NumToTensor", [value], 1)
        graph.insertNode(made)
        made.output().inferTypeFrom(size)
        record_as(size, made.output())
        return size.to(self._like.device).reshape(1).double()

    def _convert(self, value: Any, operand: Any) -> Tensor | None:
        number = self.value_of(operand)
        dtype = value.type().dtype()
        return number if number is None or (dtype is not None and dtype.is_floating_point) else _whole_part(number)


# torch.export

_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "FloatTrueDiv": torch.div,
    "IntTrueDiv": torch.div,
    "ToFloat": lambda a: a,
    "Identity": lambda a: a,
    "TruncToInt": _whole_part,
    "TruncToFloat": _whole_part,
    "FloorToInt": torch.floor,
    "CeilToInt": torch.ceil,
    "FloorDiv": _floor_divided,
    "CleanDiv": torch.div,
    "PythonMod": _remainder,
    "Mod": _remainder,
}
_FOLDED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": torch.add,
    "Mul": torch.mul,
    "Min": torch.minimum,
    "Max": torch.maximum,
}


class _Symbolic:
    """Goes through the expression of a symbolic number."""

    def __init__(self, node: Any, like: Tensor) -> None:
        self._node, self._like = node, like

    def value_of(self, expression: Any) -> Tensor:
        """An expression as operations on tensors."""
        if expression.is_Symbol:
            hint = hints_of(self._node.shape_env).get(expression)
            size = self._node.shape_env.create_symintnode(expression, hint=None if hint is None else int(hint))
            return torch.full((1,), size, dtype=torch.int64, device=self._like.device).double()
        if expression.is_number:
            return constant([float(expression)], self._like, torch.float64)
        name = type(expression).__name__
        operands = [self.value_of(operand) for operand in expression.args]
        if name in _FUNCTIONS:
            return _FUNCTIONS[name](*operands)
        if name in _FOLDED:
            result = operands[0]
            for operand in operands[1:]:
                result = _FOLDED[name](result, operand)
            return result
        if name == "Pow":
            return torch.pow(*operands)
        raise NotImplementedError(f"a size that depends on {expression}")
