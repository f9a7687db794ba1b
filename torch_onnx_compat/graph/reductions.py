"""Reduces nothing to what torch makes of it: the mean of no numbers is NaN, and of no truths none is true.

onnxruntime makes 0 of the mean, and the least integer of the maximum by which dynamo's exporter writes ``any``. Torch
refuses other maxima of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from torch_onnx_compat.graph import shapes
from torch_onnx_compat.graph.builder import Builder, Scope
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.emptiness import Emptiness
from torch_onnx_compat.graph.walk import all_nodes

_MEANS = ("ReduceMean", "GlobalAveragePool")


def keep_nothing(model: ir.Model) -> None:
    """Mends the reductions of what may be empty at run time, in place; the others stay as they are."""
    nodes = [node for node in all_nodes(model.graph) if _differs_for_nothing(node)]
    if not nodes or not _of_nothing(nodes, Emptiness(model)):
        return
    shapes.infer_model(model)  # which tells of more values that they are never empty
    scope = Scope(model)
    for node, given in _of_nothing(nodes, Emptiness(model)):
        _mend(node, given, scope, model.opset_imports[""])


def _differs_for_nothing(node: ir.Node) -> bool:
    if node.op_type != "ReduceMax":
        return node.op_type in _MEANS
    cast = node.inputs[0].producer() if node.inputs[0] is not None else None
    truths = cast.inputs[0] if cast is not None and cast.op_type == "Cast" else None
    return truths is not None and truths.dtype is ir.DataType.BOOL


def _of_nothing(nodes: Sequence[ir.Node], emptiness: Emptiness) -> list[tuple[ir.Node, ir.Value]]:
    """The nodes that may reduce nothing, each with what it reduces."""
    pairs = ((node, node.inputs[0]) for node in nodes)
    return [(node, given) for node, given in pairs if given is not None and emptiness.may_be_empty(given, _axes(node))]


def _axes(node: ir.Node) -> Sequence[int] | None:
    """The axes that are reduced; None where they are all, or not known."""
    if "axes" in node.attributes:
        return node.attributes["axes"].as_ints()
    tensor = constant_tensor(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if tensor is None else tensor.numpy().reshape(-1).tolist()


def _mend(node: ir.Node, given: ir.Value, scope: Scope, opset: int) -> None:
    """Divides a mean, and multiplies a maximum, by 1, and by 0 where nothing is reduced."""
    result = node.outputs[0]
    dtype = result.dtype or given.dtype
    if dtype is None or node.graph is None:
        return
    uses = list(result.uses())
    places = [place for place, value in enumerate(node.graph.outputs) if value is result]
    op = Builder(scope, node, opset)
    has_cells = op.Cast(op.Cast(op.Size(given), to=ir.DataType.BOOL), to=dtype)
    mended = op.Mul(result, has_cells) if node.op_type == "ReduceMax" else op.Div(result, has_cells)
    mended.type, mended.shape = ir.TensorType(dtype), result.shape
    for use in uses:
        use.node.replace_input_with(use.idx, mended)
    for place in places:
        node.graph.outputs[place] = mended
    node.graph.insert_after(node, op.nodes)
