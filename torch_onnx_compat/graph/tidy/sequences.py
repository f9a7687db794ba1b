"""Sequences of which the parts are known, as plain tensors: few engines have sequences.

SequenceAt(SplitToSequence(x, size), k) with a dynamic chunk size -> Slice(x, k * size, (k + 1) * size): dynamo exports
torch.split of a dynamic size so, and onnxscript 0.7's constant folder fails on it. The last chunk may be shorter; Slice
clamps its end in the same way.

SequenceMap(SequenceConstruct(a, b), body) -> SequenceConstruct(body(a), body(b)): hstack is exported so. onnxruntime
1.32 loads no such body that reads constants outside of it.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.walk import all_graphs, inner_graphs


def unroll_maps(model: ir.Model) -> None:
    """Computes each part of a known sequence by a copy of the body, in place."""
    for graph in list(all_graphs(model)):
        for node in list(graph):
            if node.op_type == "SequenceMap" and node.domain == "":
                _unroll(graph, node)


def _unroll(graph: ir.Graph, mapped: ir.Node) -> None:
    body = next(inner_graphs(mapped))
    maker = mapped.inputs[0].producer() if mapped.inputs[0] is not None else None
    if maker is None or maker.op_type != "SequenceConstruct" or len(mapped.inputs) > 1 or body.initializers:
        return
    copies = [_copy_before(mapped, body, element) for element in maker.inputs if element is not None]
    for output, values in zip(mapped.outputs, zip(*copies, strict=True), strict=True):
        whole = ir.node("SequenceConstruct", values)
        graph.insert_before(mapped, whole)
        ir.convenience.replace_all_uses_with(output, whole.outputs[0], replace_graph_outputs=True)
    graph.remove(mapped, safe=True)


def _copy_before(mapped: ir.Node, body: ir.Graph, element: ir.Value) -> list[ir.Value]:
    """Puts a copy of a body of one input before the node that holds it; returns the copy's outputs."""
    copy = body.clone(allow_outer_scope_values=True)
    ir.convenience.replace_all_uses_with(copy.inputs[0], element, replace_graph_outputs=True)
    outputs, nodes = list(copy.outputs), list(copy)
    copy.outputs.clear()
    copy.remove(nodes)
    for node in nodes:
        for output in node.outputs:
            output.name = None
    assert mapped.graph is not None
    mapped.graph.insert_before(mapped, nodes)
    return outputs


def slice_split_sequences(model: ir.Model) -> None:
    """Rewrites, in place, every such sequence whose parts are all read at constant, non-negative positions."""
    for node in list(model.graph):
        if node.op_type == "SplitToSequence" and node.domain == "" and len(node.inputs) > 1:
            _rewrite(model.graph, node)


def _rewrite(graph: ir.Graph, split: ir.Node) -> None:
    data, size = split.inputs[0], split.inputs[1]
    if data is None or size is None or _number(size) is not None or not _is_scalar(size):
        return
    users = [use.node for use in split.outputs[0].uses()]
    positions = [_number(u.inputs[1]) if u.op_type == "SequenceAt" else None for u in users]
    if any(p is None or p < 0 for p in positions):
        return
    axis = split.attributes.get_int("axis", 0)
    flat = ir.node("Reshape", [size, _constant(graph, split, [-1])])
    axes = _constant(graph, split, [axis])
    graph.insert_before(split, flat)
    for user, position in zip(users, positions, strict=True):
        assert position is not None
        start = ir.node("Mul", [flat.outputs[0], _constant(graph, split, [position])])
        end = ir.node("Mul", [flat.outputs[0], _constant(graph, split, [position + 1])])
        part = ir.node("Slice", [data, start.outputs[0], end.outputs[0], axes])
        part.metadata_props.update(user.metadata_props)
        part.outputs[0].shape, part.outputs[0].type = user.outputs[0].shape, user.outputs[0].type
        graph.insert_before(user, [start, end, part])
        for index, output in enumerate(graph.outputs):
            if output is user.outputs[0]:
                part.outputs[0].name, user.outputs[0].name = output.name, None
                graph.outputs[index] = part.outputs[0]
        ir.convenience.replace_all_uses_with(user.outputs[0], part.outputs[0])
        graph.remove(user, safe=True)


def _constant(graph: ir.Graph, before: ir.Node, values: list[int]) -> ir.Value:
    node = ir.node("Constant", [], {"value": ir.tensor(np.asarray(values, np.int64))})
    graph.insert_before(before, node)
    return node.outputs[0]


def _number(value: ir.Value | None) -> int | None:
    if value is None:
        return None
    tensor = ir.convenience.get_const_tensor(value)
    return int(tensor.numpy().item()) if tensor is not None and tensor.size == 1 else None


def _is_scalar(value: ir.Value) -> bool:
    return value.shape is not None and len(value.shape) == 0
