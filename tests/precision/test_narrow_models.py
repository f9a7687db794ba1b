"""Models that come in float16, in bfloat16 or with autocast inside."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.backends import dynamo_ops


class Net(nn.Module):
    def __init__(self, autocast=None):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 5)
        self.autocast = autocast

    def forward(self, image):
        with torch.autocast("cpu", dtype=self.autocast or torch.bfloat16, enabled=self.autocast is not None):
            return self.head(self.norm(self.conv(image)).relu().mean((2, 3))).softmax(-1)


IMAGE = torch.rand(2, 3, 12, 12)


def test_a_model_in_float16(exporter):
    result = export_compat(Net().eval().half(), IMAGE.half(), dynamic="batch", exporter=exporter)
    assert result.table


def test_a_model_in_bfloat16_is_judged_by_a_rendering(exporter):
    result = export_compat(Net().eval().bfloat16(), IMAGE.bfloat16(), dynamic="batch", exporter=exporter)
    assert result.opset == 22
    assert result.table
    assert any("a float32 rendering of it was compared" in note for note in result.notes)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_inside(exporter, dtype):
    result = export_compat(Net(dtype).eval(), IMAGE, dynamic="batch", exporter=exporter, opset_version=22)
    assert result.table


def test_bfloat16_at_an_opset_that_lacks_it_says_which_has_it():
    with pytest.raises(Exception, match="opset_version=22"):
        export_compat(Net().eval().bfloat16(), IMAGE.bfloat16(), opset_version=17, exporter="torchscript")


def test_a_constant_of_bfloat16_in_an_entry_for_dynamo(monkeypatch):
    monkeypatch.setattr(dynamo_ops.internals, "record_node", lambda node: None)
    value = dynamo_ops.DynamoOps(22).constant([0.5, -2.0], torch.bfloat16)
    assert value.dtype.name == "BFLOAT16"
    assert value.const_value.numpy().astype(float).tolist() == [0.5, -2.0]
