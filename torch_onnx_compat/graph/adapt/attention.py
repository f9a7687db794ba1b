"""Alternatives for the products of an attention, for targets that run the usual form slower.

Math:   (s q) k^T = (sqrt(s) q) (sqrt(s) k^T). torch's exporters write the fused function in the second form. An engine
        looks for one of the two forms to run an attention as a whole.
Source: https://onnx.ai/onnx/operators/
"""

from __future__ import annotations

import math

import onnx_ir as ir

from torch_onnx_compat.graph.adapt.alternatives import alternative
from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.facts.attention import scale_of
from torch_onnx_compat.graph.opset.lowering import Outputs, first_input


@alternative("MatMul")
def scale_on_both(op: Builder, node: ir.Node) -> Outputs:
    """Replaces the scale of an attention's queries by its square root on both queries and keys."""
    queries, keys = first_input(node), node.inputs[1]
    found = scale_of(queries)
    if found is None or keys is None or scale_of(keys) is not None:
        return None
    x, factor = found
    root = math.sqrt(factor)
    return op.MatMul(op.Mul(x, root), op.Mul(keys, root))
