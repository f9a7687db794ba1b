"""Products of float16 in a form in which onnxruntime opens them: another one ends its process.

onnxruntime 1.32 makes one operator of a Transpose of float16 that moves the first axis, and the MatMul with a constant
matrix behind it, perhaps behind a Cast; it has no kernel for that, and dies of a segmentation fault while it opens the
file. A recurrent layer with ``batch_first=True`` and a linear one is written so. Here the product comes first, or the
Transpose is one of float32.
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
    products = [node for node in all_nodes(model.graph) if node.op_type == "MatMul" and _turned(node) is not None]
    if not products:
        return 0
    infer_model(model)  # tells element types
    scope, count = Scope(model), 0
    for node in products:
        turned = _turned(node)
        assert turned is not None
        if _type(turned.inputs[0]) is FLOAT16:
            op = Builder(scope, node, model.opset_imports[""])
            count += replace(node, op, _written(op, node, turned))
    RemoveUnusedNodes()(model)
    return count


def _turned(node: ir.Node) -> ir.Node | None:
    """The Transpose that moves the first axis behind others, and that a product with a constant matrix reads."""
    for value, other in (node.inputs, reversed(node.inputs)):
        constant = constant_tensor(other) if other is not None else None
        producer = value.producer() if value is not None else None
        if producer is not None and producer.op_type == "Cast":
            source = producer.inputs[0]
            producer = source.producer() if source is not None else None
        if constant is None or len(constant.shape) != 2 or producer is None or producer.op_type != "Transpose":
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
