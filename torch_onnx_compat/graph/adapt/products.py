"""Alternatives of products with constants: a copy of a weight that is read two ways, a plain product for an Einsum."""

from __future__ import annotations

import onnx_ir as ir

from torch_onnx_compat.graph.adapt.alternatives import alternative
from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.facts.weights import WEIGHTED, constant_numbers, weight_fact, weight_input
from torch_onnx_compat.graph.opset.lowering import Outputs, attribute


@alternative(*sorted(WEIGHTED))
def copy_the_weight(op: Builder, node: ir.Node) -> Outputs:
    """Gives it a copy of a weight that another node reads the other way round."""
    if weight_fact(node)["weight"] != "turned":
        return None
    index = weight_input(node)
    assert index is not None
    weight = node.inputs[index]
    assert weight is not None
    numbers, straight = constant_numbers(weight), {}
    if node.op_type == "Gemm" and attribute(node, "transB", 0):
        numbers, straight = numbers.swapaxes(0, 1), {"transB": 0}
    copied = op.constant(numbers, op.dtype(weight))
    return op.clone(node, [*node.inputs[:index], copied, *node.inputs[index + 1 :]], **straight)


@alternative("Einsum")
def product_with_a_matrix(op: Builder, node: ir.Node) -> Outputs:
    """Writes "...i,io->...o" and "...i,oi->...o", in any letters, as a MatMul."""
    left, _, result = attribute(node, "equation").replace(" ", "").partition("->")
    rows, _, matrix = left.partition(",")
    if len(matrix) != 2 or len(node.inputs) != 2 or "." in left or not rows:
        return None
    kept, summed = rows[:-1], rows[-1]
    other = matrix.replace(summed, "")
    if len(set(rows)) != len(rows) or len(other) != 1 or other in rows or result != kept + other:
        return None
    x, y = node.inputs
    assert y is not None
    return op.MatMul(x, op.Transpose(y, perm=[1, 0]) if matrix[1] == summed else y)
