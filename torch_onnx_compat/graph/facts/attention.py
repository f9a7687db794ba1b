"""Facts of the operators of an attention.

* queries, of a Softmax: one or more, the number of queries, where it is of an attention's scores (H queries by keys,
  between two MatMul); else none;
* scaled, of the MatMul that makes an attention's scores from queries and transposed keys (N, H, ...) without a mask:
  queries, keys, both or no, the operands that a positive constant multiplies before; other where there is a single
  query, and of any other MatMul;
* mask, of an Attention: the element type of its mask, or absent;
* values, of an Attention: like keys where they have as many channels as these, else other;
* grouped, of an Attention: yes where several heads of queries share a head of keys, else no.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor

_FAR = 12
"""Nodes between an attention's scores and its Softmax, at most."""
_TURNED = [0, 1, 3, 2]


def scale_of(value: ir.Value | None) -> tuple[ir.Value, float] | None:
    """The value that is scaled, and its factor, where `value` is its product with one positive constant; else None."""
    producer = value.producer() if value is not None else None
    if producer is None or producer.domain or producer.op_type not in ("Mul", "Div"):
        return None
    for index in (1, 0) if producer.op_type == "Mul" else (1,):
        x, tensor = producer.inputs[1 - index], constant_tensor(producer.inputs[index])
        if x is None or tensor is None or tensor.size != 1 or constant_tensor(x) is not None:
            continue
        factor = float(tensor.numpy().reshape(()))
        if factor > 0:
            return x, factor if producer.op_type == "Mul" else 1 / factor
    return None


def _operand_scales(node: ir.Node) -> dict[str, Any]:
    scores = node.outputs[0]
    softmax = _only_reader(scores, "Softmax")
    mixed = _only_reader(softmax.outputs[0], "MatMul") if softmax is not None else None
    if softmax is None or mixed is None or mixed.inputs[0] is not softmax.outputs[0]:
        return {"scaled": "other"}
    shape = scores.shape
    if shape is not None and len(shape) > 1 and shape[-2] == 1:
        return {"scaled": "other"}
    axis = softmax.attributes["axis"].as_int() if "axis" in softmax.attributes else -1
    scales = [scale_of(value) for value in node.inputs]
    keys = scales[1][0] if scales[1] is not None else node.inputs[1]
    turn = keys.producer() if keys is not None else None
    is_turned = turn is not None and turn.op_type == "Transpose" and "perm" in turn.attributes
    if axis not in (-1, 3) or turn is None or not is_turned or list(turn.attributes["perm"].as_ints()) != _TURNED:
        return {"scaled": "other"}
    words = {(True, True): "both", (True, False): "queries", (False, True): "keys", (False, False): "no"}
    return {"scaled": words[scales[0] is not None, scales[1] is not None]}


def _only_reader(value: ir.Value, op_type: str) -> ir.Node | None:
    readers = [use.node for use in value.uses()]
    alone = len(readers) == 1 and not value.is_graph_output() and readers[0].op_type == op_type
    return readers[0] if alone else None


def _queries(node: ir.Node) -> dict[str, Any]:
    value, steps = node.inputs[0], 0
    while value is not None and steps < _FAR and (producer := value.producer()) is not None:
        if producer.op_type == "MatMul":
            shape = node.inputs[0].shape if node.inputs[0] is not None else None
            read = any(use.node.op_type == "MatMul" for use in node.outputs[0].uses())
            if not read or shape is None or len(shape) < 3:
                break
            return {"queries": "one" if shape[-2] == 1 else "more"}
        if producer.op_type not in ("Add", "Div", "Mul", "Sub"):
            break
        value, steps = producer.inputs[0], steps + 1
    return {"queries": "none"}


def _attention(node: ir.Node) -> dict[str, Any]:
    heads: list[Any] = []
    for name, value in zip(("q_num_heads", "kv_num_heads"), node.inputs[:2], strict=False):
        if name in node.attributes:
            heads.append(node.attributes[name].as_int())
        elif value is not None and value.shape is not None and len(value.shape) == 4:
            heads.append(value.shape[1])
    grouped = {"grouped": "no" if heads[0] == heads[1] else "yes"} if len(heads) == 2 else {}
    shapes = [value.shape for value in node.inputs[1:3] if value is not None and value.shape is not None]
    values = {"values": "like keys" if shapes[0][-1] == shapes[1][-1] else "other"} if len(shapes) == 2 else {}
    return {**grouped, **values, **_mask(node)}


def _mask(node: ir.Node) -> dict[str, Any]:
    mask = node.inputs[3] if len(node.inputs) > 3 else None
    if mask is None:
        return {"mask": "absent"}
    return {} if mask.dtype is None else {"mask": mask.dtype.name.lower()}


ATTENTION_FACTS: Mapping[str, Callable[[ir.Node], dict[str, Any]]] = {
    "Attention": _attention,
    "MatMul": _operand_scales,
    "Softmax": _queries,
}
"""The function that finds an operator's facts, by operator."""
