"""The `op` that symbolic bodies are written against: ONNX operators by name, for whichever exporter runs.

A body calls ``op.GridSample(x, grid, mode="linear")``. A Value stands for a tensor of the graph under construction; a
Python number among the inputs becomes a constant of the element type of the first Value beside it, a list of int
becomes a 1-D int64 constant, None an omitted optional input. Keyword arguments are ONNX attributes.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from onnx import TensorProto

Value: TypeAlias = Any
"""A tensor of the graph under construction; opaque to bodies."""

Number: TypeAlias = bool | int | float

ONNX_TYPES: dict[torch.dtype, int] = {
    torch.float32: TensorProto.FLOAT,
    torch.float64: TensorProto.DOUBLE,
    torch.float16: TensorProto.FLOAT16,
    torch.bfloat16: TensorProto.BFLOAT16,
    torch.int8: TensorProto.INT8,
    torch.int16: TensorProto.INT16,
    torch.int32: TensorProto.INT32,
    torch.int64: TensorProto.INT64,
    torch.uint8: TensorProto.UINT8,
    torch.bool: TensorProto.BOOL,
}
"""ONNX element types of the torch dtypes that both exporters know."""

TORCH_TYPES: dict[int, torch.dtype] = {onnx: dtype for dtype, onnx in ONNX_TYPES.items()}


class Ops(abc.ABC):
    """ONNX operators of one opset, by name, and the few questions a body may ask about a Value.

    Attributes:
        opset: The opset that the nodes belong to.
    """

    opset: int

    @abc.abstractmethod
    def node(
        self, op_type: str, inputs: Sequence[Value | None], attributes: dict[str, Any], outputs: int, domain: str = ""
    ) -> Value | tuple[Value, ...]:
        """Adds one node; several outputs come as a tuple."""

    @abc.abstractmethod
    def constant(self, value: Number | Sequence[Any] | npt.NDArray[Any], dtype: torch.dtype) -> Value:
        """A constant tensor."""

    @abc.abstractmethod
    def dtype(self, value: Value | Number) -> torch.dtype:
        """Element type of an operator's input; a Python number has torch's default for its kind.

        Raises:
            Declined: TorchScript does not know it, as happens inside a scripted loop.
            UnsupportedError: dynamo does not know it, as of what a node has just computed.
        """

    @abc.abstractmethod
    def shape(self, value: Value) -> tuple[int | None, ...] | None:
        """Sizes, None where dynamic; None altogether when even the rank is unknown."""

    @abc.abstractmethod
    def number(self, value: Value | Number | None) -> Number | None:
        """The Python number that the argument is, or None when it is a tensor of the graph."""

    @abc.abstractmethod
    def result_type(self, *values: Value | Number) -> torch.dtype:
        """The dtype that torch's promotion rules give to an operation on these arguments."""

    @abc.abstractmethod
    def result_is_empty(self) -> bool:
        """Whether the operator's result is known to have no elements at the example; it may have some elsewhere."""

    @abc.abstractmethod
    def is_size(self, value: Value | Number) -> bool:
        """Whether the value is computed from sizes and non-negative constants only, and so is never negative."""

    def rank(self, value: Value) -> int | None:
        """Number of axes, or None when unknown."""
        shape = self.shape(value)
        return None if shape is None else len(shape)

    def cast(self, value: Value | Number, dtype: torch.dtype) -> Value:
        """The argument as a tensor of this element type; adds no node where it has it already."""
        number = self.number(value)
        if number is not None:
            return self.constant(number, dtype)
        if self.dtype(value) == dtype:
            return value
        return self.Cast(value, to=ONNX_TYPES[dtype])

    def promoted(self, *values: Value | Number) -> tuple[torch.dtype, tuple[Value, ...]]:
        """The arguments cast to their common dtype by torch's promotion rules, and that dtype."""
        dtype = self.result_type(*values)
        return dtype, tuple(self.cast(value, dtype) for value in values)

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if not op_type[:1].isupper():
            raise AttributeError(op_type)

        def call(*inputs: Any, _outputs: int = 1, _domain: str = "", **attributes: Any) -> Any:
            values = self._inputs(inputs)
            given = {k: v for k, v in attributes.items() if v is not None}
            return self.node(op_type, values, given, _outputs, _domain)

        return call

    def _inputs(self, inputs: Sequence[Any]) -> list[Value | None]:
        like = next((i for i in inputs if not isinstance(i, (bool, int, float, list, tuple, type(None)))), None)
        return [self._input(i, like) for i in inputs]

    def _input(self, item: Any, like: Value | None) -> Value | None:
        if isinstance(item, (list, tuple)):
            return self.constant(np.asarray(item, np.int64), torch.int64)
        if isinstance(item, (bool, int, float)):
            return self.constant(item, self.dtype(like if like is not None else item))
        return item


def number_dtype(number: Number) -> torch.dtype:
    """Torch's default dtype for a Python number."""
    if isinstance(number, bool):
        return torch.bool
    return torch.int64 if isinstance(number, int) else torch.get_default_dtype()
