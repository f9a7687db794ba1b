import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.conv import convolve_same
from torch_onnx_compat.testing import assert_same_outputs

USES = ("conv_same_to_pad",)
X = torch.randn(2, 4, 9, 8)
WEIGHT = torch.randn(6, 2, 3, 2)


def many(x):
    return (
        F.conv2d(x, WEIGHT, padding="same", groups=2, dilation=2),
        F.conv2d(x, WEIGHT, torch.ones(6), padding="same", groups=2, dilation=(1, 3)),
        F.conv1d(x[:, :, 0], WEIGHT[..., 0, :].repeat(1, 2, 1), padding="same", dilation=(3,)),
        F.conv3d(x[:, None], WEIGHT[:, :1, None], padding="same", dilation=2),
    )


@settings(max_examples=30, deadline=None)
@given(st.tuples(st.integers(1, 4), st.integers(1, 4)), st.tuples(st.integers(1, 3), st.integers(1, 3)))
def test_eager_is_torchs(kernel, dilation):
    weight = torch.randn(6, 2, *kernel)
    wanted = F.conv2d(X, weight, padding="same", groups=2, dilation=dilation)
    torch.testing.assert_close(convolve_same(X, weight, None, kernel, dilation, 2), wanted)


def test_matches(exporter):
    uses = USES if exporter == "torchscript" else ()
    assert_same_outputs(many, X, exporter, dynamic={"x": {0: "batch", 2: "height", 3: "width"}}, uses=uses)


def test_takes_one_node_where_the_kernel_is_odd():
    result = assert_same_outputs(
        lambda x: F.conv2d(x, WEIGHT[..., :1], padding="same", groups=2, dilation=2), X, "torchscript", uses=USES
    )
    assert set(result.nodes) - {"Constant"} == {"Conv"}


def test_no_dilation_is_left_alone():
    result = assert_same_outputs(lambda x: F.conv2d(x, WEIGHT, padding="same", groups=2), X, "torchscript")
    assert not result.applied


def test_declines_a_kernel_of_varying_size():
    dynamic = {"w": {2: "height"}}
    with pytest.raises(CompatError, match="the kernel's size must be fixed"):
        assert_same_outputs(
            lambda x, w: F.conv2d(x, w, padding="same", groups=2, dilation=2),
            (X, WEIGHT),
            "torchscript",
            dynamic=dynamic,
        )


def test_sentinel():
    @rewrite(
        (torch.conv1d, torch.conv2d, torch.conv3d), name="conv_same_to_pad", needed_on=("torchscript",), registry=None
    )
    def broken(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        return F.conv2d(input, weight, bias, 1, 1, 1, groups)[..., :-1].repeat(1, 1, 1, 2)[..., :8]

    with pytest.raises(VerificationError):
        assert_same_outputs(
            lambda x: F.conv2d(x, WEIGHT[..., :1], padding="same", groups=2, dilation=2),
            X,
            "torchscript",
            rewrites=[broken],
        )


def test_still_needed():
    with pytest.raises(VerificationError):
        assert_same_outputs(many, X, "torchscript", exclude=USES)
