"""A verification that fails says where; a run that onnxruntime refuses says why and what would work."""

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, Exactness, export_compat, symbolic
from torch_onnx_compat.check.run_failure import explain_run
from torch_onnx_compat.errors import VerificationError


class Inner(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.inner = Inner()
        self.last = nn.Linear(4, 4)

    def forward(self, x):
        return self.last(self.inner(self.first(x)))


@symbolic("aten::relu", opset=(11, 99), exactness=Exactness.BITWISE, always=True, registry=None)
def wrong_relu(op, self):
    """Another function than relu."""
    return op.Abs(self)


def test_a_wrong_symbolic_is_named(exporter):
    with pytest.raises(VerificationError, match="does not compute what the model computes") as caught:
        export_compat(Model(), torch.randn(3, 4), exporter=exporter, symbolics=[wrong_relu])
    assert "\n  first difference at inner (Inner), check/test_blame.py:" in str(caught.value)
    assert "aten.relu in the model, Abs" in str(caught.value)
    assert caught.value.place.module == "inner"


@pytest.fixture(scope="module")
def result():
    return export_compat(Model(), torch.randn(3, 4), dynamic="batch", exporter="torchscript", verify=False)


def test_a_wrong_shape_is_explained(result):
    with pytest.raises(CompatError) as caught:
        result(torch.randn(3, 5))
    text = str(caught.value)
    assert "input 'x' has 5 on axis 1, which is fixed at 4" in text
    assert "given 'x' (3, 5) for (batch (dynamic), 4)" in text
    assert "it runs on 'x' (3, 4)" in text
    assert "diagnosis: the input has another size or rank" in text


def test_a_wrong_type_is_explained(result):
    with pytest.raises(CompatError, match=r"input 'x' is float64, wanted float32"):
        result(torch.randn(3, 4, dtype=torch.float64))


def test_a_wrong_number_of_tensors_is_refused(result):
    with pytest.raises(CompatError, match=r"2 positional arguments were given; forward takes 1: x\."):
        result(torch.randn(3, 4), torch.randn(3, 4))


def test_a_missing_and_an_unknown_input_are_named(result):
    found = explain_run(result.model_bytes, {"y": np.zeros((3, 4), np.float32)})
    assert found.problems == ("the file has no input 'y'; it has 'x'", "input 'x' is missing")
    assert found.works == {"x": (1, 4)}


def test_a_file_that_runs_needs_no_explanation(result):
    assert explain_run(result.model_bytes, {"x": np.zeros((3, 4), np.float32)}) is None


def test_the_node_its_module_and_inputs_that_work_are_named():
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[batch,4] x) => (float[n,m] y) '
        "{ shape = Constant<value_ints=[2,4]>() y = Reshape(x, shape) }"
    )
    model.graph.node[1].name = "/head/head.0/Reshape"
    found = explain_run(model.SerializeToString(), {"x": np.zeros((3, 4), np.float32)})
    assert (found.operator, found.node, found.module) == ("Reshape", "/head/head.0/Reshape", "head.0")
    assert found.axes == {"x": ("batch", 4)}
    assert found.works == {"x": (2, 4)}
    assert found.advice.startswith("a view holds a size of the example")
    assert "Reshape node '/head/head.0/Reshape' of module 'head.0' failed" in str(found)
