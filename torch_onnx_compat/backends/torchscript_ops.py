"""The `op` of symbolic bodies over a TorchScript graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.onnx import JitScalarType, symbolic_helper  # type: ignore[attr-defined]

from torch_onnx_compat.backends import internals
from torch_onnx_compat.catalogue.entry import decline
from torch_onnx_compat.ops import Number, Ops, Value, number_dtype


class TorchScriptOps(Ops):
    """Adds nodes to the graph of one symbolic call.

    Args:
        graph: torch's GraphContext.
        opset: Opset of the export.
    """

    def __init__(self, graph: Any, opset: int) -> None:
        self._graph = graph
        self.opset = opset

    def node(
        self, op_type: str, inputs: Sequence[Value | None], attributes: dict[str, Any], outputs: int, domain: str = ""
    ) -> Value | tuple[Value, ...]:
        """Adds one node; several outputs come as a tuple."""
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        values = [_none(self._graph) if i is None else i for i in inputs]
        suffixed = {f"{k}_{_suffix(v)}": _plain(v) for k, v in attributes.items()}
        name = f"{domain}::{op_type}" if domain else op_type
        result = self._graph.op(name, *values, outputs=outputs, **suffixed)
        return tuple(result) if outputs > 1 else result

    def constant(self, value: Number | Sequence[Any] | npt.NDArray[Any], dtype: torch.dtype) -> Value:
        """A constant tensor."""
        return self._graph.op("Constant", value_t=torch.tensor(np.asarray(value), dtype=dtype))

    def dtype(self, value: Value | Number) -> torch.dtype:
        """Element type of an argument."""
        if isinstance(value, (bool, int, float)):
            return number_dtype(value)
        found = JitScalarType.from_value(value, JitScalarType.UNDEFINED)
        if found == JitScalarType.UNDEFINED:
            decline("the element type must be known, which it is not everywhere inside a scripted loop")
        return found.dtype()

    def shape(self, value: Value) -> tuple[int | None, ...] | None:
        """Sizes, None where dynamic."""
        sizes = symbolic_helper._get_tensor_sizes(value, allow_nonstatic=True)
        return None if sizes is None else tuple(sizes)

    def number(self, value: Value | Number | None) -> Number | None:
        """The argument as a Python number; a 0-dimensional constant is one to TorchScript. None if it is none."""
        if value is None or isinstance(value, (bool, int, float)):
            return value
        node = value.node()
        if node.kind() != "onnx::Constant" or not node.hasAttribute("value"):
            return None
        tensor = node.t("value")
        if tensor.dim():
            return None
        number: Number = tensor.item()
        return number

    def result_type(self, *values: Value | Number) -> torch.dtype:
        """The dtype of the operator's traced result, or torch's promotion of the arguments."""
        node = getattr(self._graph, "original_node", None)
        if node is not None and node.outputsSize() == 1:
            kind = JitScalarType.from_value(node.output(), JitScalarType.UNDEFINED)
            if kind != JitScalarType.UNDEFINED:
                return kind.dtype()
        return _promote([self._example(v) for v in values])

    def result_is_empty(self) -> bool:
        """Whether the operator's traced result has no elements."""
        node = getattr(self._graph, "original_node", None)
        kind = node.output().type() if node is not None and node.outputsSize() == 1 else None
        return 0 in (getattr(kind, "sizes", lambda: None)() or ())

    def is_size(self, value: Value | Number) -> bool:
        """Whether the value is computed from sizes and non-negative constants only, and so is never negative."""
        return _from_sizes(value, depth=16)

    def _example(self, value: Value | Number) -> Any:
        number = self.number(value)
        if number is not None:
            return number
        rank = self.rank(value)
        return torch.empty([0] * (1 if rank is None else rank), dtype=self.dtype(value))


def _promote(examples: list[Any]) -> torch.dtype:
    dtype = examples[0].dtype if isinstance(examples[0], torch.Tensor) else number_dtype(examples[0])
    total = examples[0]
    for example in examples[1:]:
        dtype = torch.result_type(total, example)
        total = torch.empty([0], dtype=dtype)
    return dtype


def _from_sizes(value: Any, depth: int) -> bool:
    if isinstance(value, (bool, int, float)):
        return value >= 0
    node = value.node()
    kind = node.kind()
    if kind == "onnx::Constant" and node.hasAttribute("value"):
        tensor = node.t("value")
        return not tensor.is_floating_point() and bool((tensor >= 0).all())
    if kind == "onnx::Shape":
        return True
    first_only = ("onnx::Gather", "onnx::Slice", "onnx::Squeeze", "onnx::Unsqueeze", "onnx::Cast", "onnx::Reshape")
    if depth and kind in first_only:
        return _from_sizes(next(node.inputs()), depth - 1)
    if depth and kind in ("onnx::Mul", "onnx::Add", "onnx::Div", "onnx::Mod", "onnx::Concat"):
        return all(_from_sizes(i, depth - 1) for i in node.inputs())
    return False


def _none(graph: Any) -> Any:
    none = graph.op("prim::Constant")
    none.setType(internals.optional_tensor_type())
    return none


def _suffix(value: Any) -> str:
    first = value[0] if isinstance(value, (list, tuple)) and value else value
    if isinstance(first, torch.Tensor):
        return "t"
    if isinstance(first, str):
        return "s"
    return "f" if isinstance(first, float) else "i"


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
