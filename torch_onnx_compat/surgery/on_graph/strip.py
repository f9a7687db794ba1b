"""Cuts the postprocessing off a graph: the file ends with the last layers with weights, and the host runs the rest.

A layer is a convolution, a linear or recurrent layer, or a product with a constant. A node that no layer follows is
postprocessing, unless it is the bias, normalisation or activation of a layer. A convolution of a softmax to one channel
computes an expectation (of the distributions over distances in YOLO's boxes), which is decoding and no layer.
"""

from __future__ import annotations

import onnx_ir as ir

from torch_onnx_compat.graph.excerpt import excerpt, is_constant, operands_of
from torch_onnx_compat.graph.names import claim_name
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.surgery.on_graph.cut_graph import CutGraph
from torch_onnx_compat.surgery.on_graph.stage import make_stage

LAYERS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN", "DeformConv", "Einsum"})
ACTIVATIONS = frozenset(
    {"Relu", "LeakyRelu", "PRelu", "Clip", "HardSwish", "Gelu", "Elu", "Selu", "Mish", "BatchNormalization"}
)
_MOVES = frozenset({"Transpose", "Reshape", "Unsqueeze", "Squeeze", "Identity"})


def strip(cut: CutGraph) -> None:
    """Moves the nodes after the last layers into a stage; notes it if there are none."""
    model = cut.network
    tail = _tail(model)
    finals = list(model.graph.outputs)
    if not any(final.producer() in tail for final in finals):
        cut.notes.append("postprocess: nothing is computed after the last layers; the file is as it was.")
        return
    read = {id(v): v for node in model.graph if node in tail for v in operands_of(node) if not is_constant(v)}
    cuts = [value for value in read.values() if value.producer() not in tail]
    heads = [value for value in cuts if not value.is_graph_input()]
    if not heads:
        cut.notes.append("postprocess: the model has no layer with weights; the file is as it was.")
        return
    for value in heads:
        node = value.producer()
        if node is not None and not value.is_graph_output():
            claim_name(model, value, _name_after_module(node))
    kept = [final for final in finals if final.producer() not in tail]
    after = [final for final in finals if final.producer() in tail]
    cut.postprocess = make_stage("postprocess", excerpt(model, cuts, after, "postprocess"))
    outputs = list({id(value): value for value in (*heads, *kept)}.values())
    cut.network = excerpt(model, list(model.graph.inputs), outputs, str(model.graph.name))


def _tail(model: ir.Model) -> set[ir.Node]:
    """The nodes that no layer follows, and that belong to no layer."""
    layers = {node for node in model.graph if _is_layer(node)}
    leading: set[ir.Node] = set(layers)
    for node in reversed(list(model.graph)):
        if node in leading:
            leading.update(p for v in operands_of(node) if (p := v.producer()) is not None)
    for node in model.graph:
        if node not in leading and _belongs_to_layer(node, leading):
            leading.update(_activation(node))
    return {node for node in model.graph if node not in leading}


def _is_layer(node: ir.Node) -> bool:
    if node.domain or node.op_type not in LAYERS:
        return False
    weights = [v for v in node.inputs if v is not None and is_constant(v)]
    if not weights:  # a product of two computed values, as in attention; a convolution with computed weights is a layer
        return node.op_type == "Conv"
    return not _is_expectation(node)


def _is_expectation(node: ir.Node) -> bool:
    weight = node.inputs[1]
    if node.op_type not in ("Conv", "MatMul", "Gemm") or weight is None or weight.shape is None:
        return False
    outputs = weight.shape[0] if node.op_type == "Conv" else weight.shape[-1]
    value = node.inputs[0]
    source = None if value is None else value.producer()
    while source is not None and source.op_type in _MOVES and source.inputs[0] is not None:
        source = source.inputs[0].producer()
    return outputs == 1 and source is not None and source.op_type == "Softmax"


def _belongs_to_layer(node: ir.Node, layers: set[ir.Node]) -> bool:
    """Whether a node is the bias, the normalisation or the activation of a layer that computes its first input."""
    inputs = [v for v in node.inputs if v is not None and not is_constant(v)]
    if not inputs or not all(_is_result(v, layers) for v in inputs[:1]):
        return False
    if node.op_type in ACTIVATIONS:
        return True
    if node.op_type == "Add":  # a bias
        return len(inputs) == 1 and inputs[0].producer() is not None and _ends_in_product(inputs[0])
    return node.op_type == "Sigmoid" and bool(_activation(node)[1:])


def _is_result(value: ir.Value, layers: set[ir.Node]) -> bool:
    node = value.producer()
    return node is not None and node in layers and (node.op_type in LAYERS | ACTIVATIONS | {"Add"})


def _ends_in_product(value: ir.Value) -> bool:
    node = value.producer()
    return node is not None and node.op_type in ("MatMul", "Conv", "Gemm", "ConvTranspose")


def _activation(node: ir.Node) -> list[ir.Node]:
    """The nodes of an activation that begins here: the node, and after a sigmoid the product that makes it a SiLU."""
    if node.op_type != "Sigmoid":
        return [node]
    value = node.inputs[0]
    for user, _ in node.outputs[0].uses():
        if user.op_type == "Mul" and any(v is value for v in user.inputs):
            return [node, user]
    return [node]


def _name_after_module(node: ir.Node) -> str:
    """The path of the node's module, with ``_`` for dots; TorchScript writes it as ``/head/head.0/conv/Conv``."""
    *parts, last = place(node).strip("/").split("/")
    parts = parts or [last]
    path = [part for part, after in zip(parts, [*parts[1:], ""], strict=True) if not after.startswith(f"{part}.")]
    return ".".join(path).replace(".", "_") or str(node.outputs[0].name)
