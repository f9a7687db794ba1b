import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional import conv
from torch_onnx_compat.testing import assert_same_outputs

USES = ("conv_transpose_by_group",)
DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}, "w": {0: "batch"}}
X, W = torch.randn(2, 4, 6, 5), torch.randn(2, 4, 3, 3, 2)


def folded(x):
    return x.reshape(1, x.shape[0] * x.shape[1], *x.shape[2:])


def many(x, w):
    """Images (N, 4, H, W) with kernels of their own (N, ...), one batch for all of them or one group for a channel."""
    batch = x.shape[0]
    kernels = w.reshape(-1, *w.shape[2:])
    image = folded(x)
    return (
        F.conv_transpose2d(image, kernels, groups=batch),
        F.conv_transpose2d(image, kernels, stride=(2, 3), padding=1, output_padding=(1, 2), groups=batch),
        F.conv_transpose2d(image, kernels, kernels[:, 0, 0, 0].reshape(batch, 4)[:, :3].flatten(), 2, groups=batch),
        F.conv_transpose1d(image[:, :, 0], kernels[:, :, 0], dilation=2, groups=batch),
        F.conv_transpose3d(image[:, :, None], kernels[:, :, None], groups=batch),
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(0, 2))
def test_eager_is_torchs(groups, stride, dilation, padding):
    x, w, bias = torch.randn(1, 4 * groups, 4, 5), torch.randn(4 * groups, 3, 3, 2), torch.randn(3 * groups)
    wanted = F.conv_transpose2d(x, w, bias, stride, padding % 2, stride - 1, groups, dilation)
    found = conv.conv_transpose_by_group(x, w, bias, stride, padding % 2, stride - 1, groups, dilation)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def test_matches(exporter):
    assert_same_outputs(many, (X, W), exporter, dynamic=DYNAMIC, uses=USES)


def test_applied(exporter):
    result = assert_same_outputs(many, (X, W), exporter, dynamic=DYNAMIC, uses=USES)
    assert {"MatMul", "ConvTranspose"} <= set(result.nodes)
    assert not {"Loop", "Scan", "If"} & set(result.nodes)


def test_a_fixed_batch_is_left_alone(exporter):
    result = assert_same_outputs(many, (X, W), exporter)
    assert not result.applied


def test_declines_a_kernel_of_varying_size():
    with pytest.raises(CompatError, match="the weight's sizes but the first must be fixed"):
        assert_same_outputs(many, (X, W), "torchscript", dynamic={**DYNAMIC, "w": {0: "batch", 3: "side"}})


def test_sentinel():
    @rewrite(
        (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d),
        name="conv_transpose_by_group",
        needed_on=EXPORTERS,
        registry=None,
    )
    def broken(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        return 2 * conv.conv_transpose_by_group(input, weight, bias, stride, padding, output_padding, groups, dilation)

    with pytest.raises(VerificationError):
        assert_same_outputs(many, (X, W), "torchscript", dynamic=DYNAMIC, rewrites=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError):
        assert_same_outputs(many, (X, W), exporter, dynamic=DYNAMIC, exclude=USES)
