"""Folds the arithmetic between an input and the first convolution or linear layer into the layer's weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder, Scope
from torch_onnx_compat.graph.excerpt import is_constant
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.graph.unused import RemoveUnusedNodes
from torch_onnx_compat.surgery.on_graph.absorb import CannotAbsorb, Dense, absorb
from torch_onnx_compat.surgery.on_graph.leading import leading_nodes

_MOST_CHANNELS = 4
"""Most channels of a picture that is padded with different numbers by channel."""


def fold(model: ir.Model) -> tuple[list[str], bool]:
    """Folds the preprocessing of each input, in place, as far as possible.

    Returns:
        A note for each input: the nodes that were folded and the layer, or why none was; and whether any were.
    """
    scope = Scope(model)
    notes = []
    is_folded = False
    for source in model.graph.inputs:
        region = set(leading_nodes(model, source))
        values = [source, *(output for node in region for output in node.outputs)]
        readers = [user for value in values for user, _ in value.uses() if user not in region]
        layers = dict.fromkeys(user for user in readers if user.op_type in ("Conv", "Gemm", "MatMul"))
        results = [_fold_into(model, scope, layer, region) for layer in layers]
        is_folded |= any(absorbed for absorbed, _ in results)
        text = "; ".join(told for _, told in results) or "no convolution or linear layer reads it"
        notes.append(f"preprocess: input {source.name!r}: {text}.")
    RemoveUnusedNodes()(model)
    return notes, is_folded


def _fold_into(model: ir.Model, scope: Scope, layer: ir.Node, region: set[ir.Node]) -> tuple[bool, str]:
    """Whether something was folded into a layer, and what, or why not."""
    absorbed: list[ir.Node] = []
    where = place(layer)
    try:
        dense = _read_dense(layer)
        value, reason = _absorb_nodes(model, layer, dense, region, absorbed)
        if not absorbed:
            return False, f"nothing is folded into {where}: {reason}"
        _write(model, scope, layer, dense, value)
    except CannotAbsorb as error:
        return False, f"nothing is folded into {where}: {error}"
    return True, f"{', '.join(node.op_type for node in reversed(absorbed))} folded into {where}"


def _absorb_nodes(
    model: ir.Model, layer: ir.Node, dense: Dense, region: set[ir.Node], absorbed: list[ir.Node]
) -> tuple[ir.Value, str]:
    """Absorbs node after node; returns the layer's new input, and why the next node is not absorbed."""
    value = layer.inputs[0]
    assert value is not None
    axis = -3 if layer.op_type == "Conv" and value.shape is not None and len(value.shape) == 4 else -1
    if layer.op_type == "Conv" and axis != -3:
        raise CannotAbsorb("it is no convolution of pictures")
    while True:
        node = value.producer()
        if node is None or node not in region:
            return value, "nothing is computed before it"
        if len(list(value.uses())) != 1 or value.is_graph_output():
            return value, f"what it reads is used {len(list(value.uses())) + value.is_graph_output()} times"
        inputs = [v for v in node.inputs if v is not None and not is_constant(v)]
        if len(inputs) != 1:
            return value, f"{node.op_type} joins several values"
        try:
            value = absorb(dense, node, inputs[0], axis)
        except CannotAbsorb as error:
            return value, str(error)
        absorbed.append(node)


def _read_dense(layer: ir.Node) -> Dense:
    if layer.op_type == "Conv":
        return _read_convolution(layer)
    weights = _constant(layer.inputs[1])
    if weights.ndim != 2 or any(_attribute(layer, name, 1.0) != 1.0 for name in ("alpha", "beta")):
        raise CannotAbsorb("it is no plain linear layer")
    if _attribute(layer, "transA", 0):
        raise CannotAbsorb("it is transposed")
    matrix = weights if _attribute(layer, "transB", 0) else weights.T
    bias = _constant(layer.inputs[2]) if len(layer.inputs) > 2 and layer.inputs[2] is not None else np.zeros(1)
    if bias.ndim > 1:
        raise CannotAbsorb("its bias is no vector")
    return Dense(matrix[None, :, :, None], np.broadcast_to(bias, matrix.shape[:1])[None])


def _read_convolution(layer: ir.Node) -> Dense:
    if _attribute(layer, "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise CannotAbsorb("it pads by auto_pad")
    weights = _constant(layer.inputs[1])
    groups = int(_attribute(layer, "group", 1))
    outputs, inputs = weights.shape[:2]
    bias = _constant(layer.inputs[2]) if len(layer.inputs) > 2 and layer.inputs[2] is not None else np.zeros(outputs)
    return Dense(weights.reshape(groups, outputs // groups, inputs, -1), bias.reshape(groups, -1))


def _write(model: ir.Model, scope: Scope, layer: ir.Node, dense: Dense, value: ir.Value) -> None:
    """Gives the layer its new weights and its new input."""
    op = Builder(scope, layer, model.opset_imports[""])
    weight = layer.inputs[1]
    assert weight is not None
    assert weight.dtype is not None
    bias = op.constant(dense.bias.reshape(-1), weight.dtype)
    if layer.op_type == "Conv":
        old = _constant(weight)
        layer.replace_input_with(0, _pad(op, layer, dense, value))
        layer.replace_input_with(1, op.constant(dense.weights.reshape(old.shape), weight.dtype))
    else:
        matrix = dense.weights[0, :, :, 0]
        layer.replace_input_with(0, value)
        layer.replace_input_with(1, op.constant(matrix if _attribute(layer, "transB", 0) else matrix.T, weight.dtype))
    assert layer.graph is not None
    layer.graph.insert_before(layer, op.nodes)
    if layer.op_type == "MatMul":
        _add_after(model, scope, layer, bias)
    else:
        layer.resize_inputs(3)
        layer.replace_input_with(2, bias)


def _pad(op: Builder, layer: ir.Node, dense: Dense, value: ir.Value) -> ir.Value:
    pads = list(_attribute(layer, "pads", (0, 0, 0, 0)))
    if not any(pads) or not dense.padding.any():
        return value
    beside = dense.padding
    if len(beside) > _MOST_CHANNELS and (beside != beside[0]).any():
        raise CannotAbsorb(f"its padding would have to be a number of its own in each of {len(beside)} channels")
    whole = [0, 0, *pads[:2], 0, 0, *pads[2:]]
    layer.attributes["pads"] = ir.AttrInt64s("pads", [0] * len(pads))
    if (beside == beside[0]).all():
        padded: ir.Value = op.Pad(value, whole, op.constant(beside[0], op.dtype(value)))
        return padded
    count = len(beside)
    split: dict[str, Any] = {"num_outputs": count} if op.opset >= 18 else {}
    sizes = [[1] * count] if op.opset < 18 else []
    if op.opset < 13:
        split, sizes = {"split": [1] * count}, []
    channels = op.node("Split", [value, *sizes], {"axis": 1, **split}, count)
    dtype = op.dtype(value)
    rims = [op.Pad(c, whole, op.constant(p, dtype)) for c, p in zip(channels, beside, strict=True)]
    joined: ir.Value = op.Concat(*rims, axis=1)
    return joined


def _add_after(model: ir.Model, scope: Scope, layer: ir.Node, bias: ir.Value) -> None:
    result = layer.outputs[0]
    users = list(result.uses())
    added = ir.node("Add", [result, bias])
    added.outputs[0].name = scope.unique_name(f"{result.name}_biased")
    added.outputs[0].type, added.outputs[0].shape = result.type, result.shape
    assert layer.graph is not None
    layer.graph.insert_after(layer, added)
    for user, index in users:
        user.replace_input_with(index, added.outputs[0])
    for index, output in enumerate(model.graph.outputs):
        if output is result:
            name, result.name = str(result.name), f"{result.name}_unbiased"
            added.outputs[0].name = name
            model.graph.outputs[index] = added.outputs[0]


def _constant(value: ir.Value | None) -> Any:
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    if tensor is None:
        raise CannotAbsorb("its weights are computed")
    return tensor.numpy().astype(np.float64)


def _attribute(node: ir.Node, name: str, default: Any) -> Any:
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.value
