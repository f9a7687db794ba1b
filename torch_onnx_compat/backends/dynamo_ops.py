"""The `op` of symbolic bodies under torch's dynamo exporter, which records onnxscript's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import torch

from torch_onnx_compat.backends import internals
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.ops import ONNX_TYPES, TORCH_TYPES, Number, Ops, Value, number_dtype

_OF_SIZES = {
    "Shape": 0,
    "Size": 0,
    "Squeeze": 1,
    "Gather": 1,
    "Cast": 1,
    "Add": 2,
    "Mul": 2,
    "Div": 2,
    "Min": 9,
    "Max": 9,
}
"""Operators whose result is not negative if their inputs are sizes, and how many inputs have to be sizes."""


class DynamoOps(Ops):
    """Adds nodes to those that the exporter records for one operator.

    Args:
        opset: Opset of the export.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset

    def node(
        self, op_type: str, inputs: Sequence[Value | None], attributes: dict[str, Any], outputs: int, domain: str = ""
    ) -> Value | tuple[Value, ...]:
        """Adds one node; several outputs come as a tuple."""
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        if op_type == "Split" and outputs > 1 and len(inputs) < 2 and self.opset >= 18:
            attributes = {**attributes, "num_outputs": outputs}
        node = ir.Node(
            domain,
            op_type,
            list(inputs),
            ir.convenience.convert_attributes(attributes),
            num_outputs=outputs,
            version=1 if domain else self.opset,
        )
        internals.record_node(node)
        return tuple(node.outputs) if outputs > 1 else node.outputs[0]

    def constant(self, value: Number | Sequence[Any] | npt.NDArray[Any], dtype: torch.dtype) -> Value:
        """A constant tensor."""
        tensor = torch.tensor(np.asarray(value), dtype=dtype)
        kind = ir.DataType(ONNX_TYPES[dtype])
        bits = tensor.view(torch.uint16) if dtype is torch.bfloat16 else tensor  # numpy has no bfloat16
        data = ir.tensor(bits.numpy(), dtype=kind)
        result: Any = self.node("Constant", [], {"value": data}, 1)
        result.dtype, result.shape, result.const_value = kind, ir.Shape(tensor.shape), data
        return result

    def dtype(self, value: Value | Number) -> torch.dtype:
        """Element type of an argument."""
        if isinstance(value, (bool, int, float)):
            return number_dtype(value)
        found = TORCH_TYPES.get(int(value.dtype)) if value.dtype is not None else None
        if found is None:
            raise UnsupportedError(f"the element type of {value.name!r} is not known to the dynamo exporter.")
        return found

    def cast(self, value: Value | Number, dtype: torch.dtype) -> Value:
        """The argument as a tensor of this element type; the types of computed values are not known yet."""
        if not isinstance(value, (bool, int, float)) and value.dtype is None:
            return self.Cast(value, to=ONNX_TYPES[dtype])
        return super().cast(value, dtype)

    def shape(self, value: Value) -> tuple[int | None, ...] | None:
        """Sizes, None where dynamic."""
        if value.shape is None:
            return None
        return tuple(size if isinstance(size, int) else None for size in value.shape)

    def number(self, value: Value | Number | None) -> Number | None:
        """The argument as a Python number; a 0-dimensional constant is one, as in TorchScript. None if it is none."""
        if value is None or isinstance(value, (bool, int, float)):
            return value
        tensor = ir.convenience.get_const_tensor(value)
        if tensor is None or tensor.shape.rank() or tensor.dtype is ir.DataType.STRING:
            return None
        number: Number = tensor.numpy().item()
        return number

    def result_type(self, *values: Value | Number) -> torch.dtype:
        """Torch's promotion of the arguments."""
        examples = [v if isinstance(v, (bool, int, float)) else self._example(v) for v in values]
        total: Any = examples[0]
        for example in examples[1:]:
            total = torch.empty([0], dtype=torch.result_type(total, example))
        return total.dtype if isinstance(total, torch.Tensor) else number_dtype(total)

    def result_is_empty(self) -> bool:
        """Never known: torch.export has symbols for sizes that may be 0."""
        return False

    def is_size(self, value: Value | Number) -> bool:
        """Whether the value is computed from sizes and non-negative constants only, by the nodes recorded so far."""
        number = self.number(value)
        if number is not None or isinstance(value, (bool, int, float)):
            return number is not None and number >= 0
        producer = value.producer()
        if producer is None or producer.op_type not in _OF_SIZES:
            return False
        return all(i is None or self.is_size(i) for i in producer.inputs[: _OF_SIZES[producer.op_type]])

    def _example(self, value: Value) -> torch.Tensor:
        rank = self.rank(value)
        return torch.empty([0] * (1 if rank is None else rank), dtype=self.dtype(value))
