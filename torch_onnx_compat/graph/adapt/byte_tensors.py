"""Computes tensors of bytes, such as a picture as a camera gives it, in float32 where a target has bytes nowhere else.

TensorRT takes bytes at inputs and outputs alone. Operators that move, select or compare numbers give the same whether a
number is held in a byte or in float32, so they are written behind a cast, and a cast that follows is made of the
numbers in float32. Arithmetic is left alone: in bytes it wraps.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder, Scope
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.obstacle import Refusal
from torch_onnx_compat.graph.replacement import replace
from torch_onnx_compat.graph.walk import all_nodes

_BYTES = (ir.DataType.UINT8, ir.DataType.INT8)
DATA = {
    **dict.fromkeys(("Concat", "Max", "Min"), range(10**6)),
    **dict.fromkeys(("ScatterElements", "ScatterND"), (0, 2)),
    "Pad": (0, 2),
    "Clip": (0, 1, 2),
    **dict.fromkeys(("ArgMax", "ArgMin", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements"), (0,)),
    **dict.fromkeys(("GatherND", "Identity", "MaxPool", "ReduceMax", "ReduceMin", "Reshape"), (0,)),
    **dict.fromkeys(("Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "TopK"), (0,)),
    **dict.fromkeys(("Transpose", "Unsqueeze"), (0,)),
}
"""Of operators that give the same in bytes and in float32, the inputs whose numbers are meant."""
_ADDING = ("add", "mul")
"""Reductions of a scatter that are arithmetic."""


def widen_bytes(model: ir.Model, is_bad: Callable[[ir.Node], bool]) -> int:
    """Rewrites nodes on bytes that the target does not run, in place, and those that follow on them.

    Args:
        model: The model, with types.
        is_bad: Whether the target does not run a node right.

    Returns:
        How many nodes were rewritten.
    """
    scope, opset = Scope(model), model.opset_imports[""]
    wide: dict[ir.Value, ir.Value] = {}
    count = 0
    for node in list(all_nodes(model.graph)):
        if _is_on_bytes(node) and (any(value in wide for value in node.inputs if value) or is_bad(node)):
            count += _rewrite(Builder(scope, node, opset), node, wide, is_bad)
    for back, value in wide.items():
        for user, index in back.uses():
            if user.op_type == "Cast" and not user.domain:
                user.replace_input_with(index, value)
                _skip_needless(user, value)
    return count


def _skip_needless(cast: ir.Node, value: ir.Value) -> None:
    made = cast.outputs[0]
    if cast.attributes["to"].as_int() == ir.DataType.FLOAT and not made.is_graph_output():
        ir.convenience.replace_all_uses_with(made, value)


def is_same_in_bytes(node: ir.Node) -> bool:
    """Whether a node gives the same numbers in bytes as in float32."""
    reduction = node.attributes.get("reduction")
    is_arithmetic = reduction is not None and reduction.as_string() in _ADDING
    return not node.domain and node.op_type in DATA and not is_arithmetic


def _is_on_bytes(node: ir.Node) -> bool:
    first = node.inputs[0] if node.inputs else None
    return first is not None and first.dtype in _BYTES and is_same_in_bytes(node)


def _rewrite(op: Builder, node: ir.Node, wide: dict[ir.Value, ir.Value], is_bad: Callable[[ir.Node], bool]) -> bool:
    places, kind = DATA[node.op_type], node.inputs[0].dtype if node.inputs[0] is not None else None
    assert kind is not None
    inputs: list[ir.Value | None] = list(node.inputs)
    for index, value in enumerate(inputs):
        if index in places and value is not None:
            inputs[index] = _widened(op, value, wide)
    made = op.clone(node, inputs)
    if any(is_bad(new) for new in op.nodes):
        return False
    backs = [
        op.Cast(value, to=kind) if old.dtype == kind else value for old, value in zip(node.outputs, made, strict=True)
    ]
    try:
        is_replaced = replace(node, op, backs)
    except Refusal:
        return False
    wide.update((back, value) for back, value in zip(backs, made, strict=True) if back is not value)
    return is_replaced


def _widened(op: Builder, value: ir.Value, wide: dict[ir.Value, ir.Value]) -> ir.Value:
    tensor = constant_tensor(value)
    if tensor is not None:
        return op.constant(tensor.numpy(), ir.DataType.FLOAT)
    return wide[value] if value in wide else op.Cast(value, to=ir.DataType.FLOAT)
