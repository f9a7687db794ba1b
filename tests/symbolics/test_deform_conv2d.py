import pytest
import torch
import torchvision
from torch import nn

from torch_onnx_compat import symbolic
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "deform_conv2d"
OPSETS = {"torchscript": 17, "dynamo": 18}
deform = torchvision.ops.deform_conv2d


class Many(nn.Module):
    """Masks, groups, strides, paddings, dilations and a one-cell kernel, all over one image (N, 4, 7, 8)."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([torch.randn(6, 4, 3, 3), torch.randn(6, 2, 3, 3), torch.randn(6, 4, 1, 1)])

    def forward(self, x, offset, mask, stride_offset, stride_mask, plain):
        whole, grouped, single = self.weights
        return (
            deform(x, offset, whole, padding=1, mask=mask),
            deform(x, offset[:, :18], grouped, bias=torch.arange(6.0), padding=1),
            deform(x, stride_offset, grouped, stride=(2, 1), padding=(1, 2), dilation=(1, 2), mask=stride_mask),
            deform(x, plain, single),
        )


def inputs(batch=2):
    x = torch.randn(batch, 4, 7, 8)
    offset = torch.randn(batch, 36, 7, 8) * 2
    offset[:, :, 0, 0], offset[:, :, 1, 1] = 30.0, 1.0
    return (
        *(x, offset, torch.rand(batch, 18, 7, 8)),
        *(torch.randn(batch, 36, 4, 8), torch.rand(batch, 18, 4, 8), torch.randn(batch, 2, 7, 8)),
    )


def dynamic():
    names = ("x", "offset", "mask", "stride_offset", "stride_mask", "plain")
    return {name: {0: "batch"} for name in names}


def test_matches(exporter):
    result = assert_same_outputs(
        Many(), inputs(), exporter, opset=OPSETS[exporter], dynamic=dynamic(), samples=[inputs(3)], uses=(NAME,)
    )
    assert result.nodes["GridSample"] == result.nodes["Conv"] == 4
    assert "DeformConv" not in result.nodes


class Learned(nn.Module):
    """Offsets of the image itself, whose height and width are dynamic."""

    def __init__(self):
        super().__init__()
        self.offset, self.conv = nn.Conv2d(2, 18, 3, padding=1), torchvision.ops.DeformConv2d(2, 3, 3, padding=1)

    def forward(self, x):
        return self.conv(x, self.offset(x))


def test_matches_dynamic_sizes():
    axes = {"x": {0: "batch", 2: "height", 3: "width"}}
    assert_same_outputs(Learned(), (torch.randn(2, 2, 5, 4),), "torchscript", opset=17, dynamic=axes, uses=(NAME,))


def simple(x, offset):
    return deform(x, offset, torch.ones(1, 1, 3, 3))


EXAMPLE = (torch.randn(1, 1, 5, 5), torch.randn(1, 18, 3, 3))


def test_later_opsets_have_the_operator(exporter):
    result = assert_same_outputs(simple, EXAMPLE, exporter, opset=19)
    assert NAME not in {note.entry for note in result.applied}
    assert result.nodes["DeformConv"] == 1


def test_declines_weights_that_vary():
    with pytest.raises(CompatError, match="the channels and the kernel's size must be fixed"):
        assert_same_outputs(
            lambda x, offset, weight: deform(x, offset, weight),
            (*EXAMPLE, torch.randn(1, 1, 3, 3)),
            "torchscript",
            opset=17,
            dynamic={"x": {0: "batch"}, "offset": {0: "batch"}, "weight": {2: "rows"}},
        )


def test_sentinel(exporter):
    @symbolic("torchvision::deform_conv2d", name=NAME, needed_on=("torchscript", "dynamo"), registry=None)
    def broken(op, input, weight, offset, mask, bias, sh, sw, ph, pw, dh, dw, groups, offset_groups, use_mask):
        return op.Conv(input, weight, bias)

    with pytest.raises(VerificationError):
        assert_same_outputs(simple, EXAMPLE, exporter, opset=18, symbolics=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError, match=r"deform_conv2d|DeformConv"):
        assert_same_outputs(simple, EXAMPLE, exporter, opset=OPSETS[exporter], exclude=[NAME])
