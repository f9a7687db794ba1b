"""RemoveUnusedNodes: what a removed If captured goes with it."""

import onnx
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from torch_onnx_compat.graph.unused import RemoveUnusedNodes, drop_unread_regions

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


@pytest.mark.parametrize(("outputs", "read"), [("a, h, c", "h"), ("a, h, c", "a"), ('"", h', "h")])
def test_outputs_of_a_recurrent_operator_keep_their_names(outputs, read):
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[5, 1, 4] x, float[1, 16, 4] w, float[1, 16, 4] r) => (float[N, M, K] y)
    {{ {outputs} = LSTM<hidden_size = 4>(x, w, r)  y = Squeeze({read}) }}"""
    model = onnx.parser.parse_model(text)
    wanted = list(model.graph.node[0].output)
    made = ir.from_proto(model)
    RemoveUnusedNodes()(made)
    assert list(ir.to_proto(made).graph.node[0].output) == wanted


def test_a_region_that_no_coordinate_reads_goes():
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y)
    <float[8] roi = {0, 0, 0, 0, 1, 1, 1, 1}, float[4] s = {1, 1, 2, 2}>
    { y = Resize<MODE mode = "nearest">(x, roi, s) }"""
    for mode, kept in (("", ""), ('coordinate_transformation_mode = "tf_crop_and_resize",', "roi")):
        model = ir.from_proto(onnx.parser.parse_model(text.replace("MODE", mode)))
        drop_unread_regions(model)
        assert ir.to_proto(model).graph.node[0].input[1] == kept
