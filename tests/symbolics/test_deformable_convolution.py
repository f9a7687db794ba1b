"""Deformable convolution, in rows; which operators it becomes by opset, and what is declined."""

import pytest
import torch
import torchvision
from torch import nn

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_same_outputs

deform = torchvision.ops.deform_conv2d
DEFORM_WEIGHT = torch.randn(6, 2, 3, 3)
OFFSETS = (torch.randn(2, 4, 7, 8), torch.randn(2, 36, 4, 8) * 2, torch.rand(2, 18, 4, 8))
ONE_CHANNEL = (torch.randn(1, 1, 5, 5), torch.randn(1, 18, 3, 3))
OPSETS = {"torchscript": 17, "dynamo": 18}
"""Lowest for GridSample, and lowest that dynamo writes."""


class Deformed(nn.Module):
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


class Learned(nn.Module):
    """Offsets of the image itself, whose height and width are dynamic."""

    def __init__(self):
        super().__init__()
        self.offset, self.conv = nn.Conv2d(2, 18, 3, padding=1), torchvision.ops.DeformConv2d(2, 3, 3, padding=1)

    def forward(self, x):
        return self.conv(x, self.offset(x))


def deformed(batch):
    x = torch.randn(batch, 4, 7, 8)
    offset = torch.randn(batch, 36, 7, 8) * 2
    offset[:, :, 0, 0], offset[:, :, 1, 1] = 30.0, 1.0
    return (
        x,
        offset,
        torch.rand(batch, 18, 7, 8),
        torch.randn(batch, 36, 4, 8),
        torch.rand(batch, 18, 4, 8),
        torch.randn(batch, 2, 7, 8),
    )


def deform_both(x, offset, mask):
    options = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}
    bias = torch.arange(6.0)
    return deform(x, offset, DEFORM_WEIGHT, bias, mask=mask, **options), deform(x, offset, DEFORM_WEIGHT, **options)


EXAMPLES = [
    *(
        Example(
            "deform_conv2d",
            Deformed(),
            deformed(2),
            samples=[deformed(3)],
            exporters=(exporter,),
            options={"opset": opset},
        )
        for exporter, opset in OPSETS.items()
    ),
    Example(
        "deform_conv2d",
        Learned(),
        (torch.randn(2, 2, 5, 4),),
        dynamic={"x": {0: "batch", 2: "height", 3: "width"}},
        exporters=("torchscript",),
        options={"opset": 17},
    ),
    Example(
        "deform_conv2d_19",
        deform_both,
        OFFSETS,
        leaves=lambda x, offset, mask: torch.conv2d(x, DEFORM_WEIGHT, groups=2),
        exporters=("torchscript",),
        options={"opset": 20, "exclude": ["deform_conv2d"]},
    ),
]


def test_deformable_convolution_is_a_sampling_and_a_convolution(exporter):
    result = assert_same_outputs(
        Deformed(), deformed(2), exporter, opset=OPSETS[exporter], dynamic="batch", uses=("deform_conv2d",)
    )
    assert result.nodes["GridSample"] == result.nodes["Conv"] == 4
    assert "DeformConv" not in result.nodes


def test_later_opsets_have_the_operator(exporter):
    result = assert_same_outputs(
        lambda x, offset: deform(x, offset, torch.ones(1, 1, 3, 3)), ONE_CHANNEL, exporter, opset=19
    )
    assert "deform_conv2d" not in {note.entry for note in result.applied}
    assert result.nodes["DeformConv"] == 1


def test_operator_takes_every_option(exporter):
    uses = ("deform_conv2d_19",)
    result = assert_same_outputs(deform_both, OFFSETS, exporter, opset=20, dynamic="batch", uses=uses)
    assert result.nodes["DeformConv"] == 2


@pytest.mark.parametrize(
    ("opset", "dynamic", "message"),
    [
        (17, {"x": {0: "batch"}, "offset": {0: "batch"}}, "the channels and the kernel's size must be fixed"),
        (20, {}, "the kernel's size must be fixed"),
    ],
)
def test_deformable_convolution_declines_weights_that_vary(opset, dynamic, message):
    inputs = (*ONE_CHANNEL, torch.randn(1, 1, 3, 3))
    dynamic = {**dynamic, "weight": {2: "rows"}}
    with pytest.raises(CompatError, match=message):
        assert_same_outputs(
            lambda x, offset, weight: deform(x, offset, weight), inputs, "torchscript", opset=opset, dynamic=dynamic
        )
