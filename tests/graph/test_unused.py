"""RemoveUnusedNodes: what a removed If captured goes with it."""

import onnx
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from torch_onnx_compat.graph.unused import RemoveUnusedNodes

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[4] x, bool c) => (float[4] y) {
    k = Exp(x)
    h = If (c) <then_branch = t () => (float[4] a) {
                    a = If (c) <then_branch = tt () => (float[4] p) { p = Neg(k) },
                                else_branch = te () => (float[4] q) { q = Abs(k) }> },
                else_branch = e () => (float[4] b) { b = Relu(k) }>
    y = Sqrt(x)
}"""


def test_a_branch_that_is_gone_keeps_nothing():
    model = ir.from_proto(onnx.parser.parse_model(TEXT))
    assert RemoveUnusedNodes()(model).modified
    assert [node.op_type for node in model.graph] == ["Sqrt"]
    assert not RemoveUnusedNodes()(model).modified


def test_a_branch_that_is_read_stays():
    model = ir.from_proto(onnx.parser.parse_model(TEXT.replace("y = Sqrt(x)", "y = Sqrt(h)")))
    before = ir.to_proto(model).SerializeToString()
    assert not RemoveUnusedNodes()(model).modified
    assert ir.to_proto(model).SerializeToString() == before


def test_onnx_ir_still_leaves_it():
    """Once it does not, the pass of this package goes."""
    model = ir.from_proto(onnx.parser.parse_model(TEXT))
    RemoveUnusedNodesPass()(model)
    with pytest.raises(AssertionError):
        assert [node.op_type for node in model.graph] == ["Sqrt"]
