"""What a sweep calls wrong: not what nobody can tell, since eager torch is as far from float64 as the file."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.prepare import prepare
from torch_onnx_compat.sweep.judge import judge

X = torch.rand(2, 5000) + 0.5


class Cancelling(nn.Module):
    """A sum of 5,000 numbers, of which all that is left is the rounding."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((5000, 1), 0.1))

    def forward(self, x):
        return x @ self.weight - x.double().sum(1, keepdim=True).mul(self.weight[0].double()).to(x.dtype)


def test_what_nobody_can_tell_is_refused_and_not_called_wrong(tmp_path):
    path, model = tmp_path / "model.onnx", Cancelling()
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        export_compat(model, X, path, exporter="torchscript")
    export_compat(model, X, path, exporter="torchscript", verify=False)
    assert judge(path, prepare(model, X), Verify()) == ""


def test_another_model_is_wrong(tmp_path):
    path = tmp_path / "model.onnx"
    export_compat(nn.Softmax(1), X, path)
    assert "is off at the example" in judge(path, prepare(nn.Softmin(1), X), Verify())
