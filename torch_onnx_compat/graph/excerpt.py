"""Excerpts: a part of a graph as a model of its own, which shares the weights; and the nodes that such a part needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedOpsetsPass

from torch_onnx_compat.garbage import pause_collection
from torch_onnx_compat.graph.walk import all_nodes


def operands_of(node: ir.Node) -> Iterator[ir.Value]:
    """The values that a node reads, including those that its subgraphs capture from outside."""
    yield from (value for value in node.inputs if value is not None)
    inner: list[ir.Node] = []
    for attribute in node.attributes.values():
        if attribute.type is ir.AttributeType.GRAPH:
            inner += all_nodes(attribute.as_graph())
        elif attribute.type is ir.AttributeType.GRAPHS:
            inner += [n for graph in attribute.as_graphs() for n in all_nodes(graph)]
    own = {id(output) for n in inner for output in n.outputs}
    for n in inner:
        for value in n.inputs:
            if value is not None and id(value) not in own and value.graph is node.graph:
                yield value


def is_constant(value: ir.Value) -> bool:
    """Whether a value is a weight or another initializer: neither computed nor an input."""
    return value.producer() is None and not value.is_graph_input()


def ancestors(values: Collection[ir.Value], stop: Collection[ir.Value] = ()) -> set[ir.Node]:
    """The nodes that compute the values, back to the inputs or to the values in `stop`."""
    stops = {id(value) for value in stop}
    found: set[ir.Node] = set()
    waiting = [value for value in values if id(value) not in stops]
    while waiting:
        node = waiting.pop().producer()
        if node is None or node in found:
            continue
        found.add(node)
        waiting += [value for value in operands_of(node) if id(value) not in stops]
    return found


@pause_collection()
def excerpt(model: ir.Model, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], name: str) -> ir.Model:
    """The nodes between some values as a model of its own; the model itself stays as it is.

    Args:
        model: The whole.
        inputs: Values that become inputs, under their names.
        outputs: Values that become outputs.
        name: Of the new graph.

    Raises:
        ValueError: The outputs depend on an input of the whole that is not among `inputs`.
    """
    chosen = ancestors(outputs, inputs)
    nodes = [node for node in model.graph if node in chosen]
    given = {id(value) for value in inputs}
    weights = {id(v): v for node in nodes for v in operands_of(node) if is_constant(v) and id(v) not in given}
    weights |= {id(v): v for v in outputs if is_constant(v)}
    for value in (v for node in nodes for v in operands_of(node)):
        if value.is_graph_input() and id(value) not in given and value.graph is model.graph:
            raise ValueError(f"{name}: depends on {value.name!r}, which is not among its inputs")
    graph = onnx.GraphProto(name=name)
    graph.node.extend(ir.serde.serialize_node(node) for node in nodes)
    graph.input.extend(ir.serde.serialize_value(v) for v in (*inputs, *weights.values()))
    graph.output.extend(ir.serde.serialize_value(v) for v in outputs)
    shown = {id(v) for v in (*inputs, *outputs)}
    inner = (v for node in nodes for v in node.outputs if v.name and v.type is not None and id(v) not in shown)
    graph.value_info.extend(ir.serde.serialize_value(v) for v in inner)
    proto = onnx.ModelProto(ir_version=model.ir_version, graph=graph)
    proto.opset_import.extend(onnx.helper.make_opsetid(d, v) for d, v in model.opset_imports.items())
    proto.functions.extend(ir.serde.serialize_function(f) for f in model.functions.values())
    part = ir.serde.deserialize_model(proto)
    named = {value.name: value for value in part.graph.inputs}
    for weight in weights.values():
        value = named[weight.name]
        part.graph.inputs.remove(value)
        value.const_value = weight.const_value
        part.graph.register_initializer(value)
    RemoveUnusedOpsetsPass()(part)
    part.opset_imports.setdefault("", model.opset_imports[""])
    part.metadata_props.update(model.metadata_props)
    return part


def copy_of(model: ir.Model) -> ir.Model:
    """A copy that shares the weights, its nodes in the same order, those of functions with their types."""
    copy = excerpt(model, model.graph.inputs, model.graph.outputs, model.graph.name or "main_graph")
    for function, twin in zip(model.functions.values(), copy.functions.values(), strict=True):
        for node, other in zip(all_nodes(function.graph), all_nodes(twin.graph), strict=True):
            for value, made in zip((*node.inputs, *node.outputs), (*other.inputs, *other.outputs), strict=True):
                if value is not None and made is not None and made.type is None:
                    made.type, made.shape = value.type, value.shape
    return copy
