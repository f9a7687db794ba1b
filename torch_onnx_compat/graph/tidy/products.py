"""Products behind a Transpose in a form that onnxruntime computes: it merges the two, and merges some of them wrongly.

onnxruntime 1.32 makes one operator of a Transpose of float16 that moves the first axis, and the MatMul with a constant
matrix behind it, perhaps behind a Cast; it has no kernel for that, and dies of a segmentation fault while it opens the
file. A recurrent layer with ``batch_first=True`` and a linear one is written so. Here the product comes first, or the
Transpose is one of float32.

Of a matrix that is turned over, times a vector, it computes other numbers. Here the vector comes first, and the matrix
stays as it is: it is the same product.
"""

from __future__ import annotations

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder, Scope
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.replacement import replace
from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.graph.unused import RemoveUnusedNodes
from torch_onnx_compat.graph.walk import all_nodes

FLOAT16, FLOAT32 = ir.DataType.FLOAT16, ir.DataType.FLOAT


def turn_products(model: ir.Model) -> int:
    """Writes such products otherwise, in place, and returns how many there were; results differ by rounding at most."""
    products = [node for node in all_nodes(model.graph) if node.op_type == "MatMul"]
    products = [node for node in products if _turned(node) is not None or _may_have_vector(node)]
    if not products:
        return 0
    infer_model(model)  # tells element types and ranks
    scope, count = Scope(model), 0
    for node in products:
        turned = _turned(node)
        op = Builder(scope, node, model.opset_imports[""])
        if turned is not None and _type(turned.inputs[0]) is FLOAT16:
            count += replace(node, op, _written(op, node, turned))
        else:
            count += replace(node, op, _with_vector_first(op, node))
    RemoveUnusedNodes()(model)
    return count


def _transpose_before(value: ir.Value | None) -> ir.Node | None:
    """The Transpose that yields a value, perhaps through a Cast."""
    producer = value.producer() if value is not None else None
    if producer is not None and producer.op_type == "Cast":
        source = producer.inputs[0]
        producer = source.producer() if source is not None else None
    return producer if producer is not None and producer.op_type == "Transpose" else None


def _may_have_vector(node: ir.Node) -> bool:
    """Whether a product may be ``a.mT @ v``, as far as the shapes are known."""
    left, right = node.inputs
    transpose = _transpose_before(left)
    if transpose is None or right is None or (right.shape is not None and len(right.shape) != 1):
        return False
    perm = _perm(transpose)
    rank = len(perm)
    return not perm or perm == [*range(rank - 2), rank - 1, rank - 2]


def _with_vector_first(op: Builder, node: ir.Node) -> ir.Value | None:
    """``v @ a`` in place of ``a.mT @ v``; None for any other product."""
    left, vector = node.inputs
    transpose = _transpose_before(left)
    if not _may_have_vector(node) or transpose is None or left is None or vector is None or vector.shape is None:
        return None
    matrix = transpose.inputs[0]
    if not _perm(transpose) and (matrix is None or matrix.shape is None or len(matrix.shape) != 2):
        return None  # it turns all axes over
    cast = left.producer()
    if cast is not None and cast is not transpose:
        matrix = op.Cast(matrix, to=cast.attributes["to"].as_int())
    return op.MatMul(vector, matrix)


def _turned(node: ir.Node) -> ir.Node | None:
    """The Transpose that moves the first axis behind others, and that a product with a constant matrix reads."""
    for value, other in (node.inputs, reversed(node.inputs)):
        constant = constant_tensor(other) if other is not None else None
        producer = _transpose_before(value)
        if constant is None or len(constant.shape) != 2 or producer is None:
            continue
        perm = _perm(producer)
        rank = len(perm)
        if rank > 2 and perm in ([*range(1, rank - 1), 0, rank - 1], [*range(1, rank), 0]):
            return producer
    return None


def _perm(transpose: ir.Node) -> list[int]:
    return list(transpose.attributes["perm"].as_ints()) if "perm" in transpose.attributes else []


def _type(value: ir.Value | None) -> ir.DataType | None:
    return value.dtype if value is not None else None


def _written(op: Builder, node: ir.Node, turned: ir.Node) -> ir.Value:
    x, perm = turned.inputs[0], _perm(turned)
    left, right = node.inputs
    assert x is not None
    if left is turned.outputs[0] and perm[-1] == len(perm) - 1:
        return op.Transpose(op.MatMul(x, right), perm=perm)
    is_left = constant_tensor(right) is not None if right is not None else False
    wide = op.Transpose(op.Cast(x, to=FLOAT32.value), perm=perm)
    matrix = right if is_left else left
    if _type(matrix) is not FLOAT32:
        matrix = op.Cast(matrix, to=FLOAT32.value)
    product = op.MatMul(wide, matrix) if is_left else op.MatMul(matrix, wide)
    wanted = _type(node.outputs[0])
    return product if wanted in (FLOAT32, None) else op.Cast(product, to=wanted.value)
