"""Slims a graph whose sizes are known in part.

Sizes that are fixed become constants, axis by axis; those that depend on the run are computed once; nodes that do
nothing at any size go; chains of nodes that only move or cut elements become one; what depends on constants alone is
computed. Integers stay the same to the bit, and no arithmetic on floating-point numbers changes but x + 0 and x * 1,
which go. All of it holds for every size of every dynamic axis, 0 and 1 among them.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Scope
from torch_onnx_compat.graph.slim.facts import Facts
from torch_onnx_compat.graph.slim.fold import NODE_BYTES, fold_constants_within
from torch_onnx_compat.graph.slim.rewriting import Walk
from torch_onnx_compat.graph.slim.rules import RULES
from torch_onnx_compat.graph.slim.size import text_of
from torch_onnx_compat.graph.slim.weights import tie_transposed_weights, transpose_weights
from torch_onnx_compat.graph.unused import RemoveUnusedNodes

_SHARE_OF_WEIGHTS = 256
"""Tables may take this share of the weights' bytes, besides the bytes of the nodes that went."""


def slim(model: ir.Model, *, ties: bool = True) -> None:
    """Slims a model in place; its weights must be the ones that it will run with.

    Args:
        model: The model.
        ties: Whether a weight that is stored turned as well is stored once, and read through a Transpose.

    Nodes inside If, Loop and Scan, and those of functions, are rewritten too. What a weight is read through, a
    Transpose, is done to the weight, whose memory it shares. Nodes whose results are constants now may stay, unread.
    """
    before = len(model.graph)
    opset = model.opset_imports[""]
    facts = Facts(opset)
    Walk(facts, Scope(model), RULES).through(model.graph, {}, is_main=True)
    _describe_outputs(model, facts)
    for function in model.functions.values():
        inner = Facts(function.opset_imports.get("", opset))
        Walk(inner, None, RULES).through(function.graph, {}, is_main=False)
    RemoveUnusedNodes()(model)
    transpose_weights(model)
    if ties:
        tie_transposed_weights(model)
    weights = sum(v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None)
    room = (before - len(model.graph)) * NODE_BYTES + weights // _SHARE_OF_WEIGHTS
    fold_constants_within(model, facts, room)


def _describe_outputs(model: ir.Model, facts: Facts) -> None:
    """Gives the outputs' axes the sizes that are known, in terms of the inputs' axes; exporters invent names."""
    for value in model.graph.outputs:
        shape = facts.shape(value)
        if shape is None:
            continue
        old: list[Any] = (
            list(value.shape) if value.shape is not None and len(value.shape) == len(shape) else [None] * len(shape)
        )
        texts = [size if isinstance(size, int) else text_of(size) for size in shape]
        value.shape = ir.Shape([before if text is None else text for text, before in zip(texts, old, strict=True)])
