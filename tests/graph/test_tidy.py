"""What tidying has to mend of onnxscript's rules."""

import numpy as np
import onnx_ir as ir
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
