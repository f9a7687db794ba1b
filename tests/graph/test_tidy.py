"""What tidying has to mend of onnxscript's rules."""

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import onnxruntime
import torch

from torch_onnx_compat.graph.tidy.tidy import tidy
from torch_onnx_compat.testing import assert_same_outputs


def test_a_value_that_is_clipped_twice_keeps_both_pairs_of_bounds():
    """Onnxscript's rule calls both lower bounds by one name."""

    def clipped(x):
        return x.clamp(-1, 1), x.clamp(-2, 3).sin(), x.clamp(0, 2) * 2

    result = assert_same_outputs(clipped, (torch.linspace(-4, 4, 12),), "dynamo")
    assert result.nodes["Clip"] == 3
    (found, _, _) = result.session().run(None, {"x": np.array([-9, 0, 9] * 4, np.float32)})
    np.testing.assert_array_equal(found[:3], [-1, 0, 1])


def test_whole_folds_what_follows_from_constants_alone():
    """A position embedding: made from ones of a known shape, larger than what is folded otherwise."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,64,16,16] x) => (float[1,64,16,16] y) <int64[4] shape = {1, 64, 16, 16}> {
        ones = ConstantOfShape(shape)
        waves = Sin(ones)
        y = Add(x, waves)
    }"""
    for whole, nodes in ((False, ["ConstantOfShape", "Sin", "Add"]), (True, ["Add"])):
        model = ir.from_onnx_text(text)
        tidy(model, fold=True, whole=whole)
        assert [node.op_type for node in model.graph] == nodes


def test_a_list_that_a_loop_makes_has_no_declared_length():
    """TorchScript declares the empty list's; onnxruntime warns at each round, and a fold could take it for true."""

    def rows(x):
        return torch.stack([row.sum(0) * i for i, row in enumerate(x)])

    result = assert_same_outputs(rows, (torch.randn(2, 3, 9),), "torchscript", dynamic={"x": {0: "batch"}})
    graph = ir.from_proto(onnx.load_from_string(result.model_bytes)).graph
    bodies = [node.attributes["body"].as_graph() for node in graph if node.op_type == "Loop"]
    assert bodies
    assert all(body.inputs[2].shape[0].value is None for body in bodies)


def test_bodies_that_give_one_outer_value_keep_their_identities():
    """Without them the value is an output of two graphs, and of neither body."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x, bool c) => (float[2] y) {
        z = Sin(x)
        y = If (c) <
            then_branch = t () => (float[2] a) {
                a = If (c) <then_branch = u () => (float[2] b) { b = Identity(z) },
                            else_branch = v () => (float[2] d) { d = Identity(z) }> },
            else_branch = e () => (float[2] f) { f = Identity(z) }>
    }"""
    proto = onnx.parser.parse_model(text)
    model = ir.from_proto(proto)
    tidy(model, fold=True)
    x = np.array([1, 2], np.float32)
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    for c in (True, False):
        np.testing.assert_allclose(session.run(None, {"x": x, "c": np.array(c)})[0], np.sin(x), rtol=1e-6)
