import pytest
import torch
import torchvision

from torch_onnx_compat import symbolic
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "deform_conv2d_19"
deform = torchvision.ops.deform_conv2d
WEIGHT = torch.randn(6, 2, 3, 3)
X, OFFSET, MASK = torch.randn(2, 4, 7, 8), torch.randn(2, 36, 4, 8) * 2, torch.rand(2, 18, 4, 8)


def model(x, offset, mask):
    options = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}
    return deform(x, offset, WEIGHT, torch.arange(6.0), mask=mask, **options), deform(x, offset, WEIGHT, **options)


def test_matches_and_applied(exporter):
    dynamic = {name: {0: "batch"} for name in ("x", "offset", "mask")}
    result = assert_same_outputs(model, (X, OFFSET, MASK), exporter, opset=20, dynamic=dynamic, uses=(NAME,))
    assert result.nodes["DeformConv"] == 2


def test_plain_convolution_is_left_alone():
    result = assert_same_outputs(lambda x: torch.conv2d(x, WEIGHT, groups=2), X, "torchscript", opset=20)
    assert not result.applied


def test_declines_weights_that_vary():
    with pytest.raises(CompatError, match="the kernel's size must be fixed"):
        assert_same_outputs(
            lambda x, offset, weight: deform(x, offset, weight),
            (torch.randn(1, 1, 5, 5), torch.randn(1, 18, 3, 3), torch.randn(1, 1, 3, 3)),
            "torchscript",
            opset=20,
            dynamic={"weight": {2: "rows"}},
        )


def test_sentinel():
    @symbolic("torchvision::deform_conv2d", name=NAME, needed_on=("torchscript",), registry=None)
    def broken(
        op, input, weight, offset, mask, bias, sh, sw, ph, pw, dh, dw, groups: int, offset_groups: int, use_mask
    ):
        return op.DeformConv(input, weight, offset, bias, group=groups, offset_group=offset_groups, pads=[1, 2, 1, 2])

    with pytest.raises(VerificationError):
        assert_same_outputs(model, (X, OFFSET, MASK), "torchscript", opset=20, symbolics=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="torchvision::deform_conv2d"):
        assert_same_outputs(model, (X, OFFSET, MASK), "torchscript", opset=20, exclude=[NAME, "deform_conv2d"])
