"""The `op` of symbolic bodies over onnxscript, as torch's dynamo exporter records it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import torch
from onnxscript import values

from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.ops import ONNX_TYPES, TORCH_TYPES, Number, Ops, Value, number_dtype


class DynamoOps(Ops):
    """Calls onnxscript operators; the exporter's recorder turns the calls into nodes.

    Args:
        opset: Opset of the export.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset

    def node(
        self, op_type: str, inputs: Sequence[Value | None], attributes: dict[str, Any], outputs: int, domain: str = ""
    ) -> Value | tuple[Value, ...]:
        """Adds one node; several outputs come as a tuple."""
        if op_type == "Split" and outputs > 1 and len(inputs) < 2:
            attributes = {**attributes, "num_outputs": outputs}
        if domain:
            return self._custom(domain, op_type, inputs, attributes, outputs)
        result = getattr(values.Opset("", self.opset), op_type)(*inputs, **attributes)
        return tuple(result) if isinstance(result, (list, tuple)) else result

    def _custom(
        self, domain: str, op_type: str, inputs: Sequence[Value | None], attributes: dict[str, Any], outputs: int
    ) -> Value | tuple[Value, ...]:
        recorder = _recorder()
        node = ir.Node(
            domain, op_type, list(inputs), ir.convenience.convert_attributes(attributes), num_outputs=outputs, version=1
        )
        recorder.nodes.append(node)
        return tuple(node.outputs) if outputs > 1 else node.outputs[0]

    def constant(self, value: Number | Sequence[Any] | npt.NDArray[Any], dtype: torch.dtype) -> Value:
        """A constant tensor."""
        tensor = torch.tensor(np.asarray(value), dtype=dtype)
        data = ir.tensor(tensor.numpy()) if dtype is not torch.bfloat16 else ir.tensor(
            tensor.float().numpy(), dtype=ir.DataType(ONNX_TYPES[dtype])
        )
        return getattr(values.Opset("", self.opset), "Constant")(value=data)

    def dtype(self, value: Value | Number) -> torch.dtype:
        """Element type of an argument."""
        if isinstance(value, (bool, int, float)):
            return number_dtype(value)
        found = TORCH_TYPES.get(int(value.dtype)) if value.dtype is not None else None
        if found is None:
            raise UnsupportedError(f"the element type of {value.name!r} is not known to the dynamo exporter.")
        return found

    def shape(self, value: Value) -> tuple[int | None, ...] | None:
        """Sizes, None where dynamic."""
        if value.shape is None:
            return None
        return tuple(size if isinstance(size, int) else None for size in value.shape)

    def number(self, value: Value | Number | None) -> Number | None:
        """The Python number that the argument is."""
        return value if isinstance(value, (bool, int, float)) else None

    def result_type(self, *values: Value | Number) -> torch.dtype:
        """torch's promotion of the arguments."""
        examples = [v if isinstance(v, (bool, int, float)) else self._example(v) for v in values]
        total: Any = examples[0]
        for example in examples[1:]:
            total = torch.empty([0], dtype=torch.result_type(total, example))
        return total.dtype if isinstance(total, torch.Tensor) else number_dtype(total)

    def is_size(self, value: Value | Number) -> bool:
        """Whether the value is computed from sizes; torch.export keeps those out of tensor operators."""
        return isinstance(value, (bool, int, float)) and value >= 0

    def _example(self, value: Value) -> torch.Tensor:
        rank = self.rank(value)
        return torch.empty([0] * (1 if rank is None else rank), dtype=self.dtype(value))


def _recorder() -> Any:
    from onnxscript import evaluator

    return evaluator.default()
