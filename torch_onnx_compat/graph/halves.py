"""Has onnxruntime round to halves where a model does so.

onnxruntime's CPU computes most operators on halves in float32, with casts around them, and drops a cast to halves with
the one that follows it: nothing is rounded then. Casts that stand in the file in pairs stay. They are put behind a cast
to halves whose result is compared or selected from, which is exact in eager torch: ``x.half().max() > 1`` is false for
1.0001. Products and sums are left alone, as what they lose is within the rounding of halves.
"""

from __future__ import annotations

import onnx_ir as ir

from torch_onnx_compat.graph.names import claim_name
from torch_onnx_compat.graph.walk import all_nodes

_EXACT = frozenset(
    {
        "Abs",
        "Neg",
        "Sign",
        "Relu",
        "ThresholdedRelu",
        "Clip",
        "Max",
        "Min",
        "ReduceMax",
        "ReduceMin",
        "ArgMax",
        "ArgMin",
    }
    | {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Floor", "Ceil", "Round", "Where", "TopK", "Unique"}
    | {"MaxPool", "GlobalMaxPool", "Pad", "Tile", "Trilu", "Resize", "DepthToSpace", "SpaceToDepth"}
)
"""Operators that compare, select or move; those that onnxruntime's CPU has for halves, as Reshape, need no casts."""

_HELD = (ir.DataType.FLOAT16, ir.DataType.BOOL, ir.DataType.INT8, ir.DataType.UINT8)
"""Types all of whose values are halves."""


def keep_rounding(model: ir.Model) -> None:
    """Puts a cast to float32 and one back behind casts to float16 that exact operators read, in place."""
    for cast in [node for node in all_nodes(model.graph) if _rounds(node)]:
        readers = [use.node for use in cast.outputs[0].uses()]
        if not any(reader.op_type in _EXACT for reader in readers):
            continue
        half = cast.outputs[0]
        wide = _cast(half, ir.DataType.FLOAT)
        again = _cast(wide.outputs[0], ir.DataType.FLOAT16)
        assert cast.graph is not None
        cast.graph.insert_after(cast, [wide, again])
        for node in (wide, again):
            claim_name(model, node.outputs[0], f"{half.name}_rounded")
        for reader in readers:
            for index, value in enumerate(reader.inputs):
                if value is half and reader.op_type in _EXACT:
                    reader.replace_input_with(index, again.outputs[0])


def _rounds(node: ir.Node) -> bool:
    """Whether a node makes halves of numbers that need not be halves."""
    if node.op_type != "Cast" or node.attributes["to"].as_int() != ir.DataType.FLOAT16:
        return False
    return node.inputs[0] is not None and node.inputs[0].dtype not in _HELD


def _cast(value: ir.Value, dtype: ir.DataType) -> ir.Node:
    node = ir.node("Cast", [value], {"to": int(dtype)})
    node.outputs[0].type, node.outputs[0].shape = ir.TensorType(dtype), value.shape
    return node
