import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "conv_transpose_to_size"
IMAGE = torch.randn(2, 3, 12, 15)
DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}
SAMPLES = [(torch.randn(1, 3, 13, 16),), (torch.randn(3, 3, 14, 9),)]


class UpAgain(nn.Module):
    def __init__(self, stride: int = 2, dilation: int = 1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.down = nn.Conv2d(3, 4, 3, stride, dilation, dilation)
        self.up = nn.ConvTranspose2d(4, 3, 3, stride, dilation, dilation=dilation)

    def forward(self, x):
        return self.up(self.down(x), output_size=x.shape[-2:])


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_matches(exporter):
    assert_entry(NAME, UpAgain().eval(), (IMAGE,), exporter, dynamic=DYNAMIC, samples=SAMPLES)


@pytest.mark.parametrize(("stride", "dilation"), [(3, 1), (2, 3)])
def test_matches_other_strides(stride, dilation):
    model = UpAgain(stride, dilation).eval()
    assert_same_outputs(model, (IMAGE,), "torchscript", dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(3, 3, 3, 2, 1)

    def forward(self, x):
        return self.up(x, output_size=(2 * x.shape[2], 29))


def test_one_axis_may_be_fixed():
    assert_same_outputs(Twice().eval(), (IMAGE,), "torchscript", dynamic={"x": {0: "batch", 2: "height"}}, uses=(NAME,))


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_numbers_are_left_alone(exporter):
    layer = nn.ConvTranspose2d(3, 3, 3, 2, 1, output_padding=1).eval()
    assert not assert_same_outputs(layer, (IMAGE,), exporter, dynamic={"input": DYNAMIC["x"]}).applied


def test_sentinel():
    @rewrite(F.conv_transpose2d, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        return F.conv_transpose2d(input, weight, bias, stride, padding, 1, groups, dilation)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(UpAgain().eval(), (IMAGE,), "torchscript", dynamic=DYNAMIC, rewrites=[broken])


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_still_needed(exporter):
    assert_still_needed(NAME, UpAgain().eval(), (IMAGE,), exporter, dynamic=DYNAMIC, samples=SAMPLES)
