"""Pooling and unpooling."""

import torch
from torch import nn
from torch.nn import functional as F

from operator_cases import naive
from operator_cases.case import Case


def image(*size: int):
    return lambda n: (torch.randn(n, *size),)


def growing(*size: int):
    """Every axis after the channels grows with the batch."""
    return lambda n: (torch.randn(n, size[0], *(s + n for s in size[1:])),)


def distinct(*size: int):
    """Values that differ, so that every maximum has one place."""
    return lambda n: (torch.randperm(n * torch.Size(size).numel()).reshape(n, *size).float() - 40,)


def ties(*size: int):
    return lambda n: (torch.randint(-2, 2, (n, *size)).float(),)


class Unpool(nn.Module):
    """Encoder and decoder of SegNet."""

    def __init__(self, dims: int, *args, sized: bool = False, **kwargs):
        super().__init__()
        self.pool = getattr(nn, f"MaxPool{dims}d")(*args, **kwargs, return_indices=True)
        self.unpool = getattr(nn, f"MaxUnpool{dims}d")(*args, **kwargs)
        self.sized = sized

    def forward(self, x):
        y, indices = self.pool(x)
        return self.unpool(y * 2 - 1, indices, output_size=x.shape if self.sized else None)


MANY = {
    "divisor": lambda pool: lambda x: pool(x, 3, 2, 1, divisor_override=2),
    "padding": lambda pool: lambda x: pool(x, 3, 2, 1),
    "padding not counted": lambda pool: lambda x: pool(x, 3, 2, 1, count_include_pad=False),
    "ceil_mode": lambda pool: lambda x: pool(x, 3, 2, ceil_mode=True),
    "ceil_mode, padding": lambda pool: lambda x: pool(x, 3, 2, 1, ceil_mode=True),
    "ceil_mode, padding not counted": lambda pool: lambda x: pool(x, 3, 2, 1, True, False),
    "ceil_mode, last window beyond": lambda pool: lambda x: pool(x, 2, 3, 1, ceil_mode=True),
}

CASES = [
    Case("adaptive_avg_pool1d", "8 to 3", lambda x: F.adaptive_avg_pool1d(x, 3), image(3, 8)),
    Case("adaptive_avg_pool1d", "dynamic length", lambda x: F.adaptive_avg_pool1d(x, 3), growing(3, 5)),
    Case(
        "adaptive_avg_pool2d",
        "7x5 to 3x2",
        lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
        image(3, 7, 5),
        naive=naive.adaptive_avg_pool_by_cell,
    ),
    Case("adaptive_avg_pool2d", "6x4 to 3x2", lambda x: F.adaptive_avg_pool2d(x, (3, 2)), image(3, 6, 4)),
    Case("adaptive_avg_pool2d", "None and 3", nn.AdaptiveAvgPool2d((None, 3)), image(3, 7, 5)),
    Case("adaptive_avg_pool2d", "dynamic size", nn.AdaptiveAvgPool2d((3, 4)), growing(3, 4, 6)),
    Case("adaptive_avg_pool2d", "unbatched", lambda x: F.adaptive_avg_pool2d(x, 3), image(5, 7)),
    Case("adaptive_avg_pool3d", "5x7x6 to 2x3x4", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), image(3, 5, 7, 6)),
    Case("adaptive_avg_pool3d", "dynamic size", nn.AdaptiveAvgPool3d((2, 3, 1)), growing(2, 3, 4, 5)),
    Case("adaptive_max_pool1d", "8 to 3", lambda x: F.adaptive_max_pool1d(x, 3), image(3, 8)),
    Case("adaptive_max_pool1d", "8 to 4", nn.AdaptiveMaxPool1d(4), image(3, 8)),
    Case("adaptive_max_pool1d", "with indices", lambda x: F.adaptive_max_pool1d(x, 3, True), ties(3, 8)),
    Case("adaptive_max_pool1d", "dynamic length", lambda x: F.adaptive_max_pool1d(x, 3), growing(3, 5)),
    Case("adaptive_max_pool2d", "7x5 to 3x2", lambda x: F.adaptive_max_pool2d(x, (3, 2)), image(3, 7, 5)),
    Case("adaptive_max_pool2d", "3x2 to 5x7", lambda x: F.adaptive_max_pool2d(x, (5, 7)), image(3, 3, 2)),
    Case("adaptive_max_pool2d", "6x4 to 3x2", nn.AdaptiveMaxPool2d((3, 2)), image(3, 6, 4)),
    Case("adaptive_max_pool2d", "to 1", nn.AdaptiveMaxPool2d(1), image(3, 6, 5)),
    Case("adaptive_max_pool2d", "to 1, dynamic size", nn.AdaptiveMaxPool2d(1), growing(3, 6, 5)),
    Case("adaptive_max_pool2d", "None and 3", nn.AdaptiveMaxPool2d((None, 3)), image(3, 7, 5)),
    Case("adaptive_max_pool2d", "dynamic size", nn.AdaptiveMaxPool2d((3, 4)), growing(3, 4, 6)),
    Case("adaptive_max_pool2d", "dynamic size, dividing", nn.AdaptiveMaxPool2d((3, 4)), growing(3, 4, 10)),
    Case("adaptive_max_pool2d", "unbatched", lambda x: F.adaptive_max_pool2d(x, 3), image(5, 7)),
    Case("adaptive_max_pool2d", "indices, 7x5", lambda x: F.adaptive_max_pool2d(x, (3, 2), True), ties(3, 7, 5)),
    Case("adaptive_max_pool2d", "indices, 6x4", lambda x: F.adaptive_max_pool2d(x, (3, 2), True), ties(3, 6, 4)),
    Case("adaptive_max_pool2d", "indices, to 1", nn.AdaptiveMaxPool2d(1, return_indices=True), ties(3, 6, 4)),
    Case("adaptive_max_pool2d", "indices, dynamic size", nn.AdaptiveMaxPool2d((3, 2), True), growing(3, 6, 4)),
    Case("adaptive_max_pool3d", "5x7x6 to 2x3x4", lambda x: F.adaptive_max_pool3d(x, (2, 3, 4)), image(3, 5, 7, 6)),
    Case("adaptive_max_pool3d", "4x6x8 to 2x3x4", nn.AdaptiveMaxPool3d((2, 3, 4)), image(3, 4, 6, 8)),
    Case("adaptive_max_pool3d", "dynamic size", nn.AdaptiveMaxPool3d((2, 3, 1)), growing(2, 3, 4, 5)),
    Case("adaptive_max_pool3d", "with indices", nn.AdaptiveMaxPool3d((2, 3, 2), True), ties(2, 5, 4, 3)),
    *(Case("avg_pool1d", v, make(F.avg_pool1d), image(3, 11)) for v, make in MANY.items() if v != "divisor"),
    *(Case("avg_pool2d", v, make(F.avg_pool2d), image(3, 10, 7)) for v, make in MANY.items()),
    *(Case("avg_pool3d", v, make(F.avg_pool3d), image(2, 6, 7, 9)) for v, make in MANY.items()),
    Case("avg_pool2d", "uneven kernel", nn.AvgPool2d((3, 2), (2, 1), (1, 0)), image(3, 10, 7)),
    Case("avg_pool2d", "ceil_mode, dynamic size", nn.AvgPool2d(3, 2, 1, ceil_mode=True), growing(3, 8, 7)),
    Case("avg_pool2d", "divisor, dynamic size", nn.AvgPool2d(3, 2, 1, divisor_override=5), growing(3, 8, 7)),
    Case("avg_pool2d", "unbatched", lambda x: F.avg_pool2d(x, 2), image(6, 8)),
    Case(
        "avg_pool2d",
        "float64",
        lambda x: F.avg_pool2d(x.double(), 3, 2, 1),
        image(3, 7, 8),
        "not find an implementation for AveragePool",
    ),
    Case("max_pool1d", "padding, dilation", lambda x: F.max_pool1d(x, 3, 2, 1, 2), image(3, 11)),
    Case("max_pool1d", "ceil_mode", nn.MaxPool1d(3, 2, ceil_mode=True), image(3, 12)),
    Case("max_pool1d", "dynamic length", lambda x: F.max_pool1d(x, 3, 2, 1), growing(3, 5)),
    Case("max_pool1d", "dynamic length, ceil_mode", nn.MaxPool1d(3, 2, ceil_mode=True), growing(3, 5)),
    Case("max_pool1d", "with indices", lambda x: F.max_pool1d(x, 3, 2, 1, return_indices=True), ties(3, 11)),
    Case("max_pool2d", "padding, dilation", lambda x: F.max_pool2d(x, 3, 2, 1, 2), image(3, 11, 9)),
    Case("max_pool2d", "ceil_mode", nn.MaxPool2d(3, 2, 1, ceil_mode=True), image(3, 12, 10)),
    Case("max_pool2d", "ceil_mode, last window beyond", nn.MaxPool2d(2, 3, 1, ceil_mode=True), image(3, 10, 12)),
    Case("max_pool2d", "unbatched", lambda x: F.max_pool2d(x, 2), image(6, 8)),
    Case("max_pool2d", "with indices", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), ties(3, 9, 8)),
    Case("max_pool2d", "indices, dilation", lambda x: F.max_pool2d(x, 3, 2, 1, 2, False, True), ties(3, 9, 8)),
    Case("max_pool2d", "indices, ceil_mode", lambda x: F.max_pool2d(x, 3, 2, 1, 1, True, True), ties(3, 10, 8)),
    Case("max_pool2d", "indices, dynamic size", nn.MaxPool2d(2, return_indices=True), growing(3, 4, 5)),
    Case("max_pool2d", "indices, unbatched", lambda x: F.max_pool2d(x, 2, return_indices=True), ties(6, 8)),
    Case(
        "max_pool2d",
        "int64",
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda n: (torch.randint(-9, 9, (n, 2, 7, 8)),),
        declined="convert to float32",
    ),
    Case("max_pool2d", "float64", lambda x: F.max_pool2d(x.double(), 3, 2, 1), image(3, 7, 8)),
    Case("max_pool3d", "padding, dilation", lambda x: F.max_pool3d(x, 3, 2, 1, 2), image(2, 7, 8, 9)),
    Case("max_pool3d", "ceil_mode", nn.MaxPool3d(3, 2, 1, ceil_mode=True), image(2, 8, 7, 6)),
    Case("max_pool3d", "with indices", lambda x: F.max_pool3d(x, 3, 2, 1, return_indices=True), ties(2, 6, 5, 7)),
    Case("max_unpool1d", "", Unpool(1, 2), distinct(3, 8)),
    Case("max_unpool1d", "overlapping", Unpool(1, 3, 2), distinct(3, 11)),
    Case("max_unpool1d", "output_size", Unpool(1, 2, sized=True), distinct(3, 9)),
    Case("max_unpool2d", "", Unpool(2, 2), distinct(3, 8, 6)),
    Case("max_unpool2d", "3x2", Unpool(2, (3, 2)), distinct(3, 9, 6)),
    Case("max_unpool2d", "overlapping", Unpool(2, 3, 2), distinct(3, 9, 7)),
    Case("max_unpool2d", "overlapping, padding", Unpool(2, 3, 2, 1), distinct(3, 9, 7)),
    Case("max_unpool2d", "output_size", Unpool(2, 2, sized=True), distinct(3, 9, 7)),
    Case("max_unpool2d", "dynamic size", Unpool(2, 2), lambda n: distinct(3, 4 * n, 2 * n)(n)),
    Case("max_unpool2d", "dynamic size, output_size", Unpool(2, 2, sized=True), growing(3, 4, 5)),
    Case(
        "max_unpool2d",
        "indices as input",
        lambda x, i: F.max_unpool2d(x, i, 2, 2),
        lambda n: (torch.randn(n, 3, 4, 5), F.max_pool2d(distinct(3, 8, 10)(n)[0], 2, return_indices=True)[1]),
    ),
    Case(
        "max_unpool2d", "unbatched", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), ties(6, 8)
    ),
    Case("max_unpool3d", "", Unpool(3, 2), distinct(2, 4, 6, 8)),
    Case("max_unpool3d", "overlapping", Unpool(3, 3, 2), distinct(2, 5, 7, 5)),
    Case("lp_pool1d", "2", lambda x: F.lp_pool1d(x, 2, 3, 2), image(3, 9)),
    Case("lp_pool1d", "3, positive", lambda x: F.lp_pool1d(x.abs(), 3, 2), image(3, 9)),
    Case("lp_pool1d", "ceil_mode", lambda x: F.lp_pool1d(x, 2, 3, 2, True), image(3, 10)),
    Case("lp_pool2d", "2", nn.LPPool2d(2, 3, 2), image(3, 9, 7)),
    Case("lp_pool2d", "1", lambda x: F.lp_pool2d(x, 1, 2), image(3, 9, 7)),
    Case("lp_pool2d", "3, negative sums are NaN", lambda x: F.lp_pool2d(x, 3, 2), image(3, 9, 7)),
    Case("lp_pool2d", "1.5, uneven kernel", lambda x: F.lp_pool2d(x.abs(), 1.5, (3, 2)), image(3, 9, 7)),
    Case("lp_pool2d", "inf", lambda x: F.lp_pool2d(x, float("inf"), 2), image(3, 9, 7)),
    Case("lp_pool2d", "ceil_mode", nn.LPPool2d(2, 3, 2, ceil_mode=True), image(3, 10, 7)),
    Case("lp_pool2d", "dynamic size", nn.LPPool2d(4, 3, 2), growing(3, 8, 7)),
    Case("lp_pool3d", "2", lambda x: F.lp_pool3d(x, 2, 2), image(2, 4, 6, 8)),
    Case("lp_pool3d", "ceil_mode", lambda x: F.lp_pool3d(x, 2, 3, 2, True), image(2, 6, 7, 8)),
    Case(
        "fractional_max_pool2d",
        "samples given",
        lambda x, u: F.fractional_max_pool2d(x, 2, (4, 3), _random_samples=u),
        lambda n: (torch.randn(n, 3, 9, 7), torch.rand(n, 3, 2)),
    ),
    Case(
        "fractional_max_pool2d",
        "random",
        lambda x: F.fractional_max_pool2d(x, 2, (4, 3)),
        image(3, 9, 7),
        "fractional_max_pool2d",
    ),
]
