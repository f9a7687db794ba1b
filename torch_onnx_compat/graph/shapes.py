"""Element types and shapes of values, for rules that cannot do without."""

from __future__ import annotations

import logging

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from torch_onnx_compat.graph import schema

_DATA_LIMIT = 1024
"""Constants of at most this many elements are shown to inference, which reads axes, shapes and the like from them."""


def infer_model(model: ir.Model) -> None:
    """Fills in types and shapes, once, if an input of any node lacks them; weights are not copied."""
    values = [value for graph in model.graphs() for node in graph for value in node.inputs if value is not None]
    if all(value.type is not None and value.shape is not None for value in values):
        return
    log = logging.getLogger("onnx_ir")
    level = log.level
    log.setLevel(logging.ERROR)  # What inference cannot do is reported where a rule misses it.
    try:
        ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)
    finally:
        log.setLevel(level)


def infer_node(node: ir.Node, opset: int) -> None:
    """Sets types and shapes of a new node's outputs, as far as its operator's own inference gets."""
    known = schema.find(node.op_type, opset)
    values = [value for value in node.inputs if value is not None]
    if known is None or any(value.type is None for value in values):
        return
    types = {str(value.name): type_proto(value) for value in values}
    tensors = {str(value.name): value.const_value for value in values if not value.is_graph_input()}
    data = {n: ir.serde.serialize_tensor(t) for n, t in tensors.items() if t is not None and t.size <= _DATA_LIMIT}
    imports = [onnx.helper.make_opsetid("", opset)]
    try:
        found = onnx.shape_inference.infer_node_outputs(
            known, ir.serde.serialize_node(node), types, data, opset_imports=imports
        )
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
        return  # The node contradicts its schema; the check of the finished model says how.
    for value in node.outputs:
        if str(value.name) in found:
            value.type = ir.serde.deserialize_type_proto_for_type(found[str(value.name)])
            value.shape = ir.serde.deserialize_type_proto_for_shape(found[str(value.name)])


def type_proto(value: ir.Value | None) -> onnx.TypeProto:
    """The type and shape as protobuf; an empty one for an omitted or unknown value."""
    if value is None or value.type is None:
        return onnx.TypeProto()
    return ir.serde.serialize_value(value).type
