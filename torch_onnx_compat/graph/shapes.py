"""Infers the element types and shapes of values, for rules that need them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import onnx_ir as ir

from torch_onnx_compat.graph import schema
from torch_onnx_compat.graph.walk import all_nodes

_DATA_LIMIT = 1024
"""Constants of at most this many elements are passed to inference, which reads axes, shapes and the like from them."""


def infer_model(model: ir.Model) -> None:
    """Infers types and shapes if an input of any node lacks one; weights are neither read nor copied."""
    values = (value for graph in model.graphs() for node in graph for value in node.inputs if value is not None)
    if all(value.type is not None and _is_known(value.shape) for value in values):
        return
    with _weights_as_inputs(model.graph):
        proto = ir.to_proto(model)
    try:
        proto = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError):
        return  # A rule that needs a type or a shape refuses its node.
    found = {info.name: info.type for info in _infos(proto.graph)}
    for graph in model.graphs():
        for node in graph:
            for value in node.outputs:
                if value.name in found:
                    _set(value, found[value.name])


def infer_functions(model: ir.Model) -> None:
    """Gives the values inside functions the types that they have at the functions' calls, where they have none."""
    graphs = [model.graph, *(function.graph for function in reversed(model.functions.values()))]
    for node in (node for graph in graphs for node in all_nodes(graph)):
        function = model.functions.get((node.domain, node.op_type, node.overload))
        if function is None:
            continue
        for given, value in zip(node.inputs, function.inputs, strict=False):
            if given is not None and value.type is None:
                value.type = given.type
        opset = function.opset_imports.get("", model.opset_imports[""])
        for inner in all_nodes(function.graph):
            if any(value.type is None for value in inner.outputs):
                infer_node(inner, opset)


def _is_known(shape: ir.Shape | None) -> bool:
    """Whether each axis has a size or a name."""
    return shape is not None and all(isinstance(axis, int) or axis.value is not None for axis in shape)


def infer_node(node: ir.Node, opset: int) -> None:
    """Sets types and shapes of a new node's outputs, as far as the inference of its operator knows them."""
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
        return  # The node contradicts its schema; the check of the whole model reports it.
    for value in node.outputs:
        if str(value.name) in found:
            _set(value, found[str(value.name)])


def type_proto(value: ir.Value | None) -> onnx.TypeProto:
    """The type and shape as protobuf; an empty one for an omitted or unknown value."""
    if value is None or value.type is None:
        return onnx.TypeProto()
    return ir.serde.serialize_value(value).type


def _set(value: ir.Value, found: onnx.TypeProto) -> None:
    """Takes over what inference found; an empty result changes nothing."""
    value.type = ir.serde.deserialize_type_proto_for_type(found) or value.type
    value.shape = ir.serde.deserialize_type_proto_for_shape(found) or value.shape


def _infos(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from (*graph.value_info, *graph.output)
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from _infos(inner)


@contextmanager
def _weights_as_inputs(graph: ir.Graph) -> Iterator[None]:
    """Makes large initializers plain inputs of the graph for a while, so that their numbers are not serialised."""
    initializers, inputs = list(graph.initializers.values()), list(graph.inputs)
    weights = [v for v in initializers if v.const_value is None or v.const_value.size > _DATA_LIMIT]
    for value in weights:
        del graph.initializers[str(value.name)]
    graph.inputs.extend(value for value in weights if not any(value is given for given in inputs))
    try:
        yield
    finally:
        graph.inputs.clear()
        graph.inputs.extend(inputs)
        graph.initializers.clear()
        for value in initializers:
            graph.initializers[str(value.name)] = value
