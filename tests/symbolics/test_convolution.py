"""Convolutions, in rows; against eager torch at many strides and dilations; node counts; what is declined."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch_onnx_compat.symbolics.convolution import convolve_by_group, convolve_same, convolve_transposed_by_group

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_same_outputs

IMAGES = {0: "batch", 2: "height", 3: "width"}
BY_GROUP = {"x": IMAGES, "w": {0: "batch"}}
X = torch.randn(2, 4, 6, 5)
TAPS = torch.tensor([[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]) / 16
KERNELS, TRANSPOSED_KERNELS = torch.randn(2, 3, 4, 3, 2), torch.randn(2, 4, 3, 3, 2)
SAME, WEIGHT = torch.randn(2, 4, 9, 8), torch.randn(6, 2, 3, 2)
LARGE = torch.randn(2, 3, 12, 15)
LARGE_WEIGHT = torch.randn(3, 3, 3, 3)
CROPPED = torch.randn(2, 4, 5)


def folded(x, w):
    """Images (N, C, H, W) with kernels of their own (N, ...): the batch as groups, and how many there are."""
    return x.reshape(1, x.shape[0] * x.shape[1], *x.shape[2:]), w.reshape(-1, *w.shape[2:]), x.shape[0]


def convolve(x, w):
    image, kernels, batch = folded(x, w)
    return (
        F.conv2d(image, kernels, padding=1, groups=batch),
        F.conv2d(image, kernels, kernels[:, 0, 0, 0], stride=(2, 1), padding="valid", dilation=(1, 2), groups=batch),
        F.conv2d(image, kernels, padding="same", groups=batch),
        F.conv1d(image[:, :, 0], kernels[:, :, 0], groups=batch),
        F.conv3d(image[:, :, None], kernels[:, :, None], groups=batch),
        F.conv2d(image, kernels.reshape(batch * 4, 3, 3, 2)[:, :1], groups=batch * 4),
    )


def convolve_transposed(x, w):
    image, kernels, batch = folded(x, w)
    bias = kernels[:, 0, 0, 0].reshape(batch, 4)[:, :3].flatten()
    return (
        F.conv_transpose2d(image, kernels, groups=batch),
        F.conv_transpose2d(image, kernels, stride=(2, 3), padding=1, output_padding=(1, 2), groups=batch),
        F.conv_transpose2d(image, kernels, bias, 2, groups=batch),
        F.conv_transpose1d(image[:, :, 0], kernels[:, :, 0], dilation=2, groups=batch),
        F.conv_transpose3d(image[:, :, None], kernels[:, :, None], groups=batch),
    )


def blur(x):
    channels = x.shape[1]
    taps = TAPS.repeat(2 * channels, 1, 1, 1) * torch.arange(2 * channels).reshape(-1, 1, 1, 1)
    return (
        F.conv2d(x, TAPS.expand(channels, 1, 3, 3), padding=1, groups=channels),
        F.conv2d(x, taps, taps[:, 0, 0, 0], stride=2, padding=2, dilation=2, groups=channels),
        F.conv1d(x[..., 0], taps[..., 0, :], padding="same", groups=channels),
        F.conv3d(x[:, :, None], taps[:, :, None], groups=channels),
        F.conv2d(x[0], taps, groups=channels),
    )


def blur_transposed(x):
    channels = x.shape[1]
    taps = TAPS.repeat(channels, 2, 1, 1) * torch.arange(channels).reshape(-1, 1, 1, 1)
    return (
        F.conv_transpose2d(x, TAPS.expand(channels, 1, 3, 3), stride=2, groups=channels),
        F.conv_transpose2d(x, taps, taps[:, 0, 0].reshape(-1)[: 2 * channels], padding=1, dilation=2, groups=channels),
        F.conv_transpose1d(x[..., 0], taps[..., 0, :], groups=channels),
        F.conv_transpose3d(x[:, :, None], taps[:, :, None], groups=channels),
        F.conv_transpose2d(x[0], taps, groups=channels),
    )


BY_GROUP_MODELS = pytest.mark.parametrize(
    ("name", "model", "kernels", "operator"),
    [
        ("conv_by_group", convolve, KERNELS, "Conv"),
        ("conv_transpose_by_group", convolve_transposed, TRANSPOSED_KERNELS, "ConvTranspose"),
    ],
)


class UpAgain(nn.Module):
    """A convolution and its transpose, back to the size of the image."""

    def __init__(self, stride=2, dilation=1):
        super().__init__()
        torch.manual_seed(0)
        self.down = nn.Conv2d(3, 4, 3, stride, dilation, dilation)
        self.up = nn.ConvTranspose2d(4, 3, 3, stride, dilation, dilation=dilation)

    def forward(self, x):
        return self.up(self.down(x), output_size=x.shape[-2:])


class Twice(nn.Module):
    """To twice the height, which varies, and to a width that does not."""

    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(3, 3, 3, 2, 1)

    def forward(self, x):
        return self.up(x, output_size=(2 * x.shape[2], 29))


def pad_crops(x):
    return F.pad(x, (-1, 2), "circular"), F.pad(x[:, None], (2, -1, -1, -1), "circular")


def pad_before_crop(input, pad, mode="constant", value=None):
    """Circular padding with what negative padding takes away, as stock TorchScript has it."""
    return F.pad(F.pad(input, [max(width, 0) for width in pad], mode), [min(width, 0) for width in pad])


def pad_by_sizes(x):
    """By all of an axis, by another axis' size, by fixed numbers too, less by a size."""
    height, width = x.shape[2:]
    return (
        F.pad(x[..., 0], (height, height), "circular"),
        F.pad(x, (0, width // 2, height // 2, 1), "circular"),
        F.pad(x, (2, 0, -(height // 3), height // 2), "circular"),
        F.pad(x[:, :, None], (width, 1, 0, 0, 1, 0), "circular"),
    )


EXAMPLES = [
    Example(
        "conv_of_computed_kernel",
        lambda x: (
            F.conv2d(x, TAPS.repeat(x.shape[1], 1, 1, 1), groups=x.shape[1]),
            F.conv2d(x, torch.ones(x.shape[1], x.shape[1], 2, 3), padding="same"),
            F.conv1d(x[..., 0], TAPS[0, :, :1].expand(x.shape[1], 1, 3) / x.shape[0], stride=2, groups=4),
        ),
        (X,),
        dynamic={"x": IMAGES},
        leaves=lambda x: F.conv2d(x, (TAPS * 2).repeat(4, 1, 1, 1), groups=4),
    ),
    Example(
        "conv_transpose_of_computed_kernel",
        lambda x: (
            F.conv_transpose2d(x, TAPS.repeat(x.shape[1], 1, 1, 1), stride=2, groups=x.shape[1]),
            F.conv_transpose1d(x[..., 0], TAPS[0, :, :1].expand(x.shape[1], 1, 3) / x.shape[0], groups=4),
        ),
        (X,),
        dynamic={"x": IMAGES},
        leaves=lambda x: F.conv_transpose2d(x, (TAPS * 2).repeat(4, 1, 1, 1), groups=4),
    ),
    Example("conv_by_group", convolve, (X, KERNELS), dynamic=BY_GROUP),
    Example(
        "conv_of_varying_steps",
        lambda x: (
            F.conv2d(x, WEIGHT, stride=(x.shape[2] // 4 + 1, 2), groups=2),
            F.conv2d(x, WEIGHT, torch.ones(6), padding=(x.shape[2] // 2, 1), groups=2),
            F.conv2d(x, WEIGHT, None, x.shape[3] // 3 + 1, 2, (x.shape[2] // 5 + 1, 1), 2),
            F.conv2d(x, WEIGHT, padding="same", groups=2, dilation=x.shape[2] // 3 + 1),
            F.conv1d(x[0, :, 0], WEIGHT[..., 0, :], padding=x.shape[3], dilation=x.shape[3] // 4 + 1, groups=2),
            F.conv3d(x[:, None], WEIGHT[:, :1, None], padding=(0, x.shape[2] // 2, 1)),
        ),
        (SAME,),
        dynamic={"x": IMAGES},
        leaves=lambda x: F.conv2d(x, WEIGHT, stride=2, padding=1, groups=2),
    ),
    Example(
        "conv_same_to_pad",
        lambda x: (
            F.conv2d(x, WEIGHT, padding="same", groups=2, dilation=2),
            F.conv2d(x, WEIGHT, torch.ones(6), padding="same", groups=2, dilation=(1, 3)),
            F.conv1d(x[:, :, 0], WEIGHT[..., 0, :].repeat(1, 2, 1), padding="same", dilation=(3,)),
            F.conv3d(x[:, None], WEIGHT[:, :1, None], padding="same", dilation=2),
        ),
        (SAME,),
        dynamic={"x": IMAGES},
        leaves=lambda x: F.conv2d(x, WEIGHT, padding="same", groups=2),
    ),
    Example("conv_transpose_by_group", convolve_transposed, (X, TRANSPOSED_KERNELS), dynamic=BY_GROUP),
    *(
        Example(
            "conv_transpose_to_size",
            UpAgain(stride, dilation).eval(),
            (LARGE,),
            broken=lambda input, weight, bias, stride, padding, output_padding, groups, dilation: F.conv_transpose2d(
                input, weight, bias, stride, padding, 1, groups, dilation
            ),
            dynamic={"x": IMAGES},
            samples=[(torch.randn(1, 3, 13, 16),), (torch.randn(3, 3, 14, 9),)],
            leaves=lambda x: F.conv_transpose2d(x, LARGE_WEIGHT, None, 2, 1, 1),
            exporters=exporters,
        )
        for stride, dilation, exporters in (
            (2, 1, ("torchscript", "dynamo")),
            (3, 1, ("torchscript",)),
            (2, 3, ("torchscript",)),
        )
    ),
    Example(
        "circular_pad_of_crop",
        pad_crops,
        (CROPPED,),
        broken=pad_before_crop,
        leaves=lambda x: F.pad(x, (1, 2), "circular"),
    ),
    Example(
        "circular_pad_of_varying_width",
        pad_by_sizes,
        (torch.randn(2, 3, 6, 5),),
        broken=lambda input, pad, mode="constant", value=None: F.pad(input, pad, "replicate"),
        dynamic={"x": IMAGES},
        samples=[(torch.randn(1, 3, 5, 9),), (torch.randn(3, 3, 4, 7),)],
        leaves=lambda x: (F.pad(x, (1, 2, 0, 3), "circular"), F.pad(x, (x.shape[2] - 1, 0))),
    ),
]


# A number of groups that varies


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(0, 2))
def test_by_group_equals_eager(batch, groups, stride, dilation, padding):
    x, w, bias = torch.randn(batch, 4 * groups, 7, 9), torch.randn(3 * groups, 4, 3, 2), torch.randn(3 * groups)
    args = (bias, stride, padding, dilation, groups)
    torch.testing.assert_close(convolve_by_group(x, w, *args), F.conv2d(x, w, *args), rtol=1e-4, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(0, 1))
def test_transposed_by_group_equals_eager(batch, groups, stride, dilation, padding):
    x, w, bias = torch.randn(batch, 4 * groups, 4, 5), torch.randn(4 * groups, 3, 3, 2), torch.randn(3 * groups)
    args = (bias, stride, padding, stride - 1, groups, dilation)
    wanted = F.conv_transpose2d(x, w, *args)
    torch.testing.assert_close(convolve_transposed_by_group(x, w, *args), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.one_exporter
@pytest.mark.parametrize(("name", "model"), [("conv_by_group", blur), ("conv_transpose_by_group", blur_transposed)])
def test_channels_that_vary_in_a_batch(exporter, name, model):
    """Each channel is blurred on its own, in a batch of any size, and without one."""
    axes = {"x": {0: "batch", 1: "channels", 2: "height", 3: "width"}}
    samples = [(torch.randn(*sizes),) for sizes in ((1, 5, 7, 9), (4, 1, 6, 8), (3, 2, 9, 7))]
    assert_same_outputs(model, X, exporter, dynamic=axes, uses=(name,), samples=samples)


@pytest.mark.one_exporter
@BY_GROUP_MODELS
def test_groups_are_products(exporter, name, model, kernels, operator):
    result = assert_same_outputs(model, (X, kernels), exporter, dynamic=BY_GROUP, uses=(name,))
    assert {"MatMul", operator} <= set(result.nodes)
    assert not {"Loop", "Scan", "If"} & set(result.nodes)


@BY_GROUP_MODELS
def test_a_fixed_batch_is_left_alone(exporter, name, model, kernels, operator):
    assert not assert_same_outputs(model, (X, kernels), exporter).applied


@BY_GROUP_MODELS
def test_by_group_declines_a_kernel_of_varying_size(name, model, kernels, operator):
    dynamic = {**BY_GROUP, "w": {0: "batch", 3: "side"}}
    with pytest.raises(CompatError, match="the weight's sizes but the first must be fixed"):
        assert_same_outputs(model, (X, kernels), "torchscript", dynamic=dynamic)


# Padding


@settings(max_examples=30, deadline=None)
@given(st.tuples(st.integers(1, 4), st.integers(1, 4)), st.tuples(st.integers(1, 3), st.integers(1, 3)))
def test_same_equals_eager(kernel, dilation):
    weight = torch.randn(6, 2, *kernel)
    wanted = F.conv2d(SAME, weight, padding="same", groups=2, dilation=dilation)
    torch.testing.assert_close(convolve_same(SAME, weight, None, kernel, dilation, 2), wanted)


def test_same_takes_one_node_where_the_kernel_is_odd():
    model = lambda x: F.conv2d(x, WEIGHT[..., :1], padding="same", groups=2, dilation=2)  # noqa: E731
    result = assert_same_outputs(model, SAME, "torchscript", uses=("conv_same_to_pad",))
    assert set(result.nodes) - {"Constant"} == {"Conv"}


def test_same_declines_a_kernel_of_varying_size():
    model = lambda x, w: F.conv2d(x, w, padding="same", groups=2, dilation=2)  # noqa: E731
    with pytest.raises(CompatError, match="the kernel's size must be fixed"):
        assert_same_outputs(model, (SAME, WEIGHT), "torchscript", dynamic={"w": {2: "height"}})


def test_one_axis_of_the_size_may_be_fixed():
    dynamic = {"x": {0: "batch", 2: "height"}}
    assert_same_outputs(Twice().eval(), LARGE, "torchscript", dynamic=dynamic, uses=("conv_transpose_to_size",))


def test_circular_padding_takes_no_condition(exporter):
    result = assert_same_outputs(pad_crops, CROPPED, exporter, dynamic="batch")
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


def test_a_stride_of_a_transpose_that_varies_is_refused_in_words():
    def enlarge(x):
        return F.conv_transpose2d(x, WEIGHT, stride=x.shape[2] // 5 + 1, groups=2)

    with pytest.raises(CompatError, match="have to be constants in ONNX; here a size decides them") as error:
        export_compat(enlarge, torch.randn(2, 6, 9, 7), dynamic={"x": {2: "height"}}, exporter="dynamo")
    assert "container" not in str(error.value)
