"""Convolution: deformable, with weights computed at run time, and with parametrized weights."""

import torch
import torchvision
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

from operator_cases.case import Case

deform = torchvision.ops.deform_conv2d


def deformable(
    *, offset_groups=1, groups=1, kernel=3, out=(5, 6), mask=False, image=(4, 7, 8), dynamic=False, **options
):
    """A deformable convolution with its weight, and the inputs for it."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(6, image[0] // groups, kernel, kernel, generator=generator)
    bias = torch.randn(6, generator=generator)

    def call(x, offset, *masks):
        return deform(x, offset, weight, bias, mask=masks[0] if masks else None, **options)

    def inputs(n):
        grow = n - 2 if dynamic else 0
        height, width = out[0] + grow, out[1] + grow
        x = torch.randn(n, image[0], image[1] + grow, image[2] + grow)
        offset = torch.randn(n, 2 * offset_groups * kernel**2, height, width) * 1.5
        offset[:, :, 0, 0] = 9.0
        offset[:, :, -1, -1] = torch.round(offset[:, :, -1, -1])
        masks = (torch.rand(n, offset_groups * kernel**2, height, width),) if mask else ()
        return x, offset, *masks

    return call, inputs


class Learned(nn.Module):
    """torchvision's layer with offsets and masks from convolutions, as detectors have it."""

    def __init__(self):
        super().__init__()
        self.offset, self.mask = nn.Conv2d(4, 18, 3, padding=1), nn.Conv2d(4, 9, 3, padding=1)
        self.conv = torchvision.ops.DeformConv2d(4, 6, 3, padding=1)

    def forward(self, x):
        return self.conv(x, self.offset(x), self.mask(x).sigmoid())


class Modulated(nn.Module):
    """StyleGAN2's modulated convolution: the batch is folded into the groups of one convolution."""

    def __init__(self, kernel=3, demodulate=True, up=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, 5, 4, kernel, kernel))
        self.modulation = nn.Linear(3, 4)
        self.demodulate, self.up, self.padding = demodulate, up, kernel // 2

    def forward(self, x, style):
        batch, channels, height, width = x.shape
        weight = self.weight * self.modulation(style).view(batch, 1, channels, 1, 1)
        if self.demodulate:
            weight = weight * torch.rsqrt(weight.pow(2).sum([2, 3, 4]) + 1e-8).view(batch, 5, 1, 1, 1)
        x = x.reshape(1, batch * channels, height, width)
        kernel = self.weight.shape[-1]
        if self.up:
            weight = weight.transpose(1, 2).reshape(batch * channels, 5, kernel, kernel)
            x = F.conv_transpose2d(x, weight, padding=0, stride=2, groups=batch)
        else:
            x = F.conv2d(x, weight.view(batch * 5, channels, kernel, kernel), padding=self.padding, groups=batch)
        return x.view(batch, 5, x.shape[-2], x.shape[-1])


class Correlation(nn.Module):
    """A tracker's depthwise cross-correlation: the kernel is a feature map."""

    def forward(self, search, kernel):
        batch, channels = kernel.shape[:2]
        folded = search.reshape(1, batch * channels, search.shape[2], search.shape[3])
        weight = kernel.reshape(batch * channels, 1, kernel.shape[2], kernel.shape[3])
        found = F.conv2d(folded, weight, groups=batch * channels)
        return found.reshape(batch, channels, found.shape[2], found.shape[3])


class DynamicFilters(nn.Module):
    """One kernel for all, computed from an input."""

    def __init__(self, convolve):
        super().__init__()
        self.convolve = convolve

    def forward(self, x, features):
        return self.convolve(x, torch.tanh(features))


def images(*size):
    return lambda n: (torch.randn(n, *size),)


def styled(n):
    return torch.randn(n, 4, 6, 5), torch.randn(n, 3)


def filters(*size, weight):
    return lambda n: (torch.randn(n, *size), torch.randn(weight))


CASES = [
    *[
        Case("deform_conv2d", variant, *deformable(**options))
        for variant, options in {
            "": {},
            "mask": {"mask": True},
            "offset groups": {"offset_groups": 2, "mask": True},
            "groups": {"groups": 2},
            "groups and offset groups": {"groups": 2, "offset_groups": 4, "mask": True},
            "stride, padding": {"stride": 2, "padding": 1, "out": (4, 4), "mask": True},
            "uneven stride, padding, dilation": {
                "stride": (2, 1),
                "padding": (1, 2),
                "dilation": (1, 2),
                "out": (4, 8),
            },
            "1x1 kernel": {"kernel": 1, "out": (7, 8)},
            "dynamic size": {"mask": True, "padding": 1, "out": (7, 8), "dynamic": True},
            "one row": {"image": (4, 1, 8), "padding": 1, "out": (1, 8), "mask": True},
        }.items()
    ],
    Case("deform_conv2d", "learned offsets", Learned(), images(4, 6, 5)),
    Case(
        "deform_conv2d",
        "learned offsets, dynamic size",
        Learned(),
        lambda n: (torch.randn(n, 4, n + 4, 2 * n + 3),),
    ),
    Case("modulated conv2d", "", Modulated(), styled),
    Case("modulated conv2d", "1x1, not demodulated", Modulated(1, demodulate=False), styled),
    Case("modulated conv2d", "transposed", Modulated(up=True), styled),
    Case(
        "depthwise cross-correlation", "", Correlation(), lambda n: (torch.randn(n, 3, 8, 7), torch.randn(n, 3, 3, 2))
    ),
    Case(
        "conv2d",
        "weight an input",
        DynamicFilters(lambda x, w: F.conv2d(x, w, padding=1)),
        filters(3, 6, 5, weight=(4, 3, 3, 3)),
    ),
    Case(
        "conv2d",
        "weight an input, groups, same",
        DynamicFilters(lambda x, w: F.conv2d(x, w, padding="same", groups=2, dilation=2)),
        filters(4, 6, 5, weight=(4, 2, 3, 2)),
    ),
    Case(
        "conv1d",
        "weight an input",
        DynamicFilters(lambda x, w: F.conv1d(x, w, stride=2)),
        filters(3, 9, weight=(4, 3, 3)),
    ),
    Case("conv3d", "weight an input", DynamicFilters(F.conv3d), filters(2, 4, 5, 3, weight=(3, 2, 2, 3, 1))),
    Case(
        "conv_transpose2d",
        "weight an input",
        DynamicFilters(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)),
        filters(3, 6, 5, weight=(3, 4, 3, 3)),
    ),
    Case(
        "conv_transpose2d",
        "weight an input, groups, dilation",
        DynamicFilters(lambda x, w: F.conv_transpose2d(x, w, groups=2, dilation=2)),
        filters(4, 6, 5, weight=(4, 3, 3, 2)),
    ),
    Case(
        "conv_transpose1d",
        "weight an input",
        DynamicFilters(lambda x, w: F.conv_transpose1d(x, w, stride=3)),
        filters(3, 6, weight=(3, 4, 3)),
    ),
    Case("Conv2d", "reflect padding", nn.Conv2d(3, 4, 3, padding=(1, 2), padding_mode="reflect"), images(3, 6, 5)),
    Case("Conv2d", "circular padding", nn.Conv2d(3, 4, 3, padding=(1, 2), padding_mode="circular"), images(3, 6, 5)),
    Case("Conv2d", "replicate padding", nn.Conv2d(3, 4, 3, padding=1, padding_mode="replicate"), images(3, 6, 5)),
    Case("Conv2d", "same, even kernel", nn.Conv2d(3, 4, (4, 2), padding="same"), images(3, 6, 5)),
    Case("Conv2d", "no batch axis", lambda x: F.conv2d(x[0], torch.ones(4, 3, 3, 3).cumsum(-1)), images(3, 6, 5)),
    Case("ConvTranspose2d", "output_size", nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1), images(3, 4, 5)),
    Case("weight_norm", "old", nn.utils.weight_norm(nn.Conv2d(3, 4, 3)), images(3, 6, 5)),
    Case("weight_norm", "old, dim None", nn.utils.weight_norm(nn.Linear(3, 4), dim=None), images(5, 3)),
    Case("weight_norm", "old, transposed", nn.utils.weight_norm(nn.ConvTranspose1d(3, 4, 3), dim=1), images(3, 6)),
    Case("weight_norm", "parametrized", parametrizations.weight_norm(nn.Conv1d(3, 4, 3)), images(3, 6)),
    Case("weight_norm", "parametrized, dim None", parametrizations.weight_norm(nn.Linear(3, 4), dim=None), images(3)),
    Case("spectral_norm", "old", nn.utils.spectral_norm(nn.Conv2d(3, 4, 3)), images(3, 6, 5)),
    Case("spectral_norm", "parametrized", parametrizations.spectral_norm(nn.Conv2d(3, 4, 3)), images(3, 6, 5)),
    Case("spectral_norm", "parametrized, linear", parametrizations.spectral_norm(nn.Linear(3, 4)), images(3)),
    Case(
        "orthogonal",
        "parametrized",
        parametrizations.orthogonal(nn.Linear(4, 4)),
        images(4),
        options={"allow_approximate": True},
    ),
]
