"""Rearranging cells: shuffles, windows, repetitions, splits."""

import torch
from torch import nn
from torch.nn import functional as F

from operator_cases.case import Case


def image(*size: int):
    return lambda n: (torch.randn(n, *size),)


def growing(*size: int):
    """Every axis after the channels grows with the batch."""
    return lambda n: (torch.randn(n, size[0], *(s + n for s in size[1:])),)


def counted(*size: int):
    """A tensor and how often each entry of its second axis is repeated; the sum does not depend on the batch."""
    return lambda n: (torch.randn(n, *size), torch.tensor([2, 0, 3, 1]).roll(n))


def columns(n):
    return (torch.randn(n, 3 * 6, 5 * 4),)


CASES = [
    Case("pixel_shuffle", "by 2", lambda x: F.pixel_shuffle(x, 2), image(12, 3, 5)),
    Case("pixel_shuffle", "by 3, dynamic size", nn.PixelShuffle(3), growing(18, 3, 5)),
    Case("pixel_shuffle", "3-D", lambda x: F.pixel_shuffle(x, 2), lambda n: (torch.randn(8, 2 + n, 3),)),
    Case("pixel_shuffle", "5-D", lambda x: F.pixel_shuffle(x, 2), image(2, 8, 3, 5)),
    Case("pixel_unshuffle", "by 2", lambda x: F.pixel_unshuffle(x, 2), image(3, 6, 4)),
    Case("pixel_unshuffle", "by 3, dynamic size", nn.PixelUnshuffle(3), lambda n: (torch.randn(n, 2, 3 * n, 6 * n),)),
    Case("pixel_unshuffle", "3-D", lambda x: F.pixel_unshuffle(x, 2), lambda n: (torch.randn(3, 2 * n, 6),)),
    Case("pixel_unshuffle", "5-D", lambda x: F.pixel_unshuffle(x, 2), image(2, 3, 6, 4)),
    Case("channel_shuffle", "3 groups", lambda x: torch.channel_shuffle(x, 3), image(12, 3, 5)),
    Case("channel_shuffle", "2 groups, dynamic size", nn.ChannelShuffle(2), growing(6, 3, 5)),
    Case("channel_shuffle", "3-D", lambda x: F.channel_shuffle(x, 2), image(6, 5)),
    Case("channel_shuffle", "5-D", lambda x: F.channel_shuffle(x, 2), image(6, 2, 3, 2)),
    Case("F.unfold", "3", lambda x: F.unfold(x, 3), image(3, 7, 6)),
    Case("F.unfold", "stride, padding, dilation", nn.Unfold((3, 2), (2, 1), (1, 2), (2, 3)), image(3, 9, 11)),
    Case("F.unfold", "dynamic size", lambda x: F.unfold(x, 2, stride=2), growing(3, 6, 5)),
    Case("F.unfold", "unbatched", lambda x: F.unfold(x, 3, padding=1), lambda n: (torch.randn(3, 5, 6),)),
    Case("F.fold", "3x2 blocks", lambda x: F.fold(x, (7, 5), (3, 2)), columns),
    Case("F.fold", "stride", nn.Fold((11, 9), (3, 2), stride=2), lambda n: (torch.randn(n, 18, 20),)),
    Case("F.fold", "all", nn.Fold((10, 7), (2, 3), (2, 1), (1, 2), (2, 1)), lambda n: (torch.randn(n, 12, 45),)),
    Case("F.fold", "one window", nn.Fold((3, 2), (3, 2)), lambda n: (torch.randn(n, 18, 1),)),
    Case(
        "F.fold",
        "size of another",
        lambda x: F.fold(F.unfold(x, 3, padding=1), x.shape[2:], 3, padding=1),
        image(2, 5, 6),
    ),
    Case(
        "F.fold",
        "dynamic size",
        lambda x: F.fold(F.unfold(x, 3, padding=1, stride=2), x.shape[2:], 3, padding=1, stride=2),
        growing(2, 5, 6),
    ),
    Case("F.fold", "unbatched", lambda x: F.fold(x, (7, 5), (3, 2)), lambda n: (torch.randn(18, 20),)),
    Case("Tensor.unfold", "last axis", lambda x: x.unfold(-1, 3, 2), image(3, 11)),
    Case("Tensor.unfold", "middle axis", lambda x: x.unfold(1, 4, 1), image(7, 5)),
    Case("Tensor.unfold", "both axes of an image", lambda x: x.unfold(2, 2, 2).unfold(3, 3, 3), image(3, 6, 9)),
    Case("Tensor.unfold", "beyond the size of the step", lambda x: x.unfold(1, 2, 3), image(9, 2)),
    Case("Tensor.unfold", "dynamic axis", lambda x: x.unfold(-1, 4, 2), growing(3, 9)),
    Case("Tensor.unfold", "batch axis", lambda x: x.unfold(0, 2, 1), image(3, 4)),
    Case("Tensor.unfold", "integers", lambda x: (x * 9).long().unfold(1, 3, 2), image(8, 2)),
    Case("Tensor.unfold", "whole axis", lambda x: x.unfold(1, 5, 1), image(5, 2)),
    Case("Tensor.unfold", "size 1", lambda x: x.unfold(1, 1, 2), image(5, 2)),
    Case("roll", "one axis", lambda x: x.roll(2, 1), image(5, 3)),
    Case("roll", "two axes, dynamic", lambda x: torch.roll(x, (1, -2), (2, 3)), growing(2, 4, 5)),
    Case("roll", "flattened", lambda x: x.roll(3), image(5, 3)),
    Case("rot90", "once", lambda x: torch.rot90(x, 1, (1, 2)), image(3, 5)),
    Case("rot90", "three times", lambda x: x.rot90(3, (-1, -2)), image(2, 3, 5)),
    Case("rot90", "twice", lambda x: x.rot90(2, (2, 3)), growing(2, 3, 5)),
    Case("rot90", "backwards, and not at all", lambda x: (x.rot90(-1, (2, 3)), x.rot90(4, (1, 2))), growing(2, 3, 5)),
    Case("rot90", "batch axis", lambda x: x.rot90(), image(3, 2)),
    Case("flip", "two axes", lambda x: x.flip(1, -1), growing(2, 3, 5)),
    Case("flip", "batch axis", lambda x: torch.flip(x, (0,)), image(3, 2)),
    Case("flip", "booleans", lambda x: (x > 0).flip(1), image(5, 2)),
    Case("flip", "left, right, up, down", lambda x: (torch.fliplr(x), torch.flipud(x)), image(3, 4)),
    Case("tile", "more axes", lambda x: x.tile(2, 1, 3, 1), image(3, 2)),
    Case("tile", "fewer axes", lambda x: torch.tile(x, (2,)), image(3, 2)),
    Case(
        "tile", "dynamic times", lambda x, y: x[0].tile(y.shape[0], 1), lambda n: (torch.randn(2, 3), torch.randn(n, 1))
    ),
    Case("repeat", "more axes", lambda x: x.repeat(2, 1, 3, 2), image(3, 2)),
    Case("repeat", "dynamic times", lambda x: x[:1].repeat(x.shape[0], 1, 2), image(3, 2)),
    Case("repeat", "no times", lambda x: x.repeat(1, 0, 2), image(3, 2)),
    Case("repeat_interleave", "2, axis 1", lambda x: x.repeat_interleave(2, 1), image(4, 3)),
    Case("repeat_interleave", "3, last axis", lambda x: torch.repeat_interleave(x, 3, dim=-1), growing(2, 4)),
    Case("repeat_interleave", "batch axis", lambda x: x.repeat_interleave(3, 0), image(4)),
    Case("repeat_interleave", "flattened", lambda x: x.repeat_interleave(2), image(4, 3)),
    Case(
        "repeat_interleave", "1 and 0 times", lambda x: (x.repeat_interleave(1, 1), x.repeat_interleave(0, 1)), image(4)
    ),
    Case("repeat_interleave", "times from a size", lambda x: x[:, :2].repeat_interleave(x.shape[0], 1), image(4, 3)),
    Case("repeat_interleave", "tensor, axis 1", lambda x, t: x.repeat_interleave(t, 1), counted(4, 3)),
    Case("repeat_interleave", "tensor, last axis", lambda x, t: x.repeat_interleave(t, -1), counted(2, 4)),
    Case(
        "repeat_interleave",
        "tensor, output_size",
        lambda x, t: torch.repeat_interleave(x, t, 1, output_size=6),
        counted(4, 3),
    ),
    Case("repeat_interleave", "tensor of one", lambda x: x.repeat_interleave(torch.tensor([2]), 1), image(4, 3)),
    Case(
        "repeat_interleave", "tensor constant", lambda x: x.repeat_interleave(torch.tensor([2, 0, 1]), 1), image(3, 2)
    ),
    Case("repeat_interleave", "times only", lambda t: torch.repeat_interleave(t), lambda n: (torch.arange(n + 1),)),
    Case(
        "repeat_interleave",
        "tensor, dynamic axis",
        lambda x, t: x.repeat_interleave(t, 0),
        lambda n: (torch.randn(n, 3), torch.arange(n) % 3),
    ),
    Case(
        "repeat_interleave",
        "tensor, flattened",
        lambda x, t: x.repeat_interleave(t),
        lambda n: (torch.randn(3, 2), torch.tensor([2, 0, 1, 3, 1, 0]).roll(n)),
    ),
    Case("movedim", "several", lambda x: (x.movedim((0, 1), (2, 0)), torch.moveaxis(x, -1, 0)), growing(2, 3, 4)),
    Case("swapaxes", "", lambda x: (x.swapaxes(1, -1), torch.swapdims(x, 0, 1), x.mT, x.adjoint()), image(3, 4)),
    Case("unflatten", "with -1", lambda x: x.unflatten(1, (-1, 3)), image(6, 2)),
    Case("unflatten", "batch axis", lambda x: x.unflatten(0, (-1, 1)), image(6, 2)),
    Case("unflatten", "module, last axis", nn.Unflatten(-1, (2, 3)), image(4, 6)),
    Case("narrow", "", lambda x: (x.narrow(1, 2, 3), x.narrow(-1, 1, 1), torch.narrow(x, 1, -2, 2)), image(6, 2)),
    Case("narrow", "by a fixed size", lambda x: x.narrow(1, 1, x.shape[1] - 2), image(6, 2)),
    Case("narrow", "dynamic axis", lambda x: x.narrow(2, x.shape[2] // 2, 2), growing(2, 5)),
    Case("chunk", "even", lambda x: x.chunk(3, 1), image(6, 2)),
    Case("chunk", "uneven", lambda x: torch.chunk(x, 3, -1), image(2, 7)),
    Case("chunk", "fewer than asked", lambda x: x.chunk(4, 1), image(6, 2)),
    Case("chunk", "fewer cells than asked", lambda x: x.chunk(8, 1), image(6, 2)),
    Case("split", "size", lambda x: x.split(2, 1), image(5, 2)),
    Case("split", "sizes", lambda x: torch.split(x, [1, 3, 2], dim=-1), image(2, 6)),
    Case("split", "sizes of zero", lambda x: x.split([0, 5], 1), image(5, 2)),
    Case("split", "sizes from a size", lambda x: x.split([2, x.shape[2] - 2], 2), growing(2, 5)),
    Case("tensor_split", "sections", lambda x: x.tensor_split(3, 1), image(7, 2)),
    Case("tensor_split", "places", lambda x: torch.tensor_split(x, (1, 4), dim=-1), image(2, 7)),
    Case("tensor_split", "places out of order and beyond", lambda x: x.tensor_split((3, -2, 9), 1), image(7, 2)),
    Case("tensor_split", "dynamic axis", lambda x: x.tensor_split((1, -2), 2), growing(2, 5)),
    Case("tensor_split", "sections of a dynamic axis", lambda x: x.tensor_split(3, 2), growing(2, 5)),
    Case("tensor_split", "place from a size", lambda x: x.tensor_split((x.shape[2] // 2,), 2), growing(2, 5)),
    Case("hsplit", "", lambda x: (*x.hsplit(3), *torch.hsplit(x, (2, 5))), image(6, 2)),
    Case("vsplit", "places", lambda x: x.vsplit((1,)), image(3, 2)),
    Case("dsplit", "", lambda x: (*x.dsplit(2), *torch.dsplit(x, (1, 3))), image(3, 4)),
    Case("unsafe_split", "", lambda x: (*x.unsafe_split(2, 1), *x.unsafe_chunk(2, 1)), image(5, 2)),
    Case("unbind", "", lambda x: x.unbind(1), image(3, 2)),
]
