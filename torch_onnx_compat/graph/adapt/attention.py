"""Other forms of an attention's products, for targets that run the usual ones slower.

Math:   (s q) k^T = (sqrt(s) q) (sqrt(s) k^T), which is how torch's exporters write the fused function; engines look for
        the one or the other to run an attention as a whole.
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
    """Takes the root of the scale of an attention's queries to its keys."""
    queries, keys = first_input(node), node.inputs[1]
    found = scale_of(queries)
    if found is None or keys is None or scale_of(keys) is not None:
        return None
    x, factor = found
    root = math.sqrt(factor)
    return op.MatMul(op.Mul(x, root), op.Mul(keys, root))
