"""Padding that sizes decide: to whole windows, which makes sizes equal at several scales; and to a least length.

Where there is nothing to pad, the size of the padding is negative.
"""

import itertools

import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.candidates import Candidates


class Scales(nn.Module):
    """The shorter of two axes is one window at some scales; the example and a longer picture have two windows each."""

    def shift(self, x, stride):
        cells = x[::stride, ::stride]
        below, right = ((7 - size % 7) % 7 for size in cells.shape)
        height, width = nn.functional.pad(cells, (0, right, 0, below)).shape
        if height <= 7:
            x = x * 2
        if width <= 7:
            x = x - stride
        return x

    def forward(self, x):
        for stride in (4, 8, 16):
            x = self.shift(x, stride)
        return x


SIZES = [(112, 128), (112, 4), (4, 128), (112, 64), (60, 128), (177, 193), (16, 16), (300, 20)]


@pytest.mark.parametrize("sizes", [(112, 128), (128, 112), (193, 64)])
def test_each_decision_is_in_the_first_file_of_both(sizes, monkeypatch):
    rejected = []
    reject = Candidates.reject
    monkeypatch.setattr(Candidates, "reject", lambda self, error: rejected.append(type(error)) or reject(self, error))
    dynamic = {"x": {0: "height", 1: "width"}}
    result = export_compat(Scales(), torch.rand(sizes), exporter="torchscript", dynamic=dynamic)
    assert len(rejected) == 1  # the file with nothing rewritten
    for other in SIZES:
        x = torch.rand(other)
        torch.testing.assert_close(result(x)[0], Scales()(x))


LEAST = 8


def repeated(x):
    if x.shape[1] < LEAST:
        x = torch.cat([x[:, :1].repeat(1, LEAST - x.shape[1], 1), x], 1)
    return x[:, -LEAST:].mean(1)


def zeros_behind(x):
    if x.shape[1] < LEAST:
        x = torch.cat([x, torch.zeros(x.shape[0], LEAST - x.shape[1], x.shape[2])], 1)
    return x * 2


def new_zeros_before(x):
    if x.shape[1] < LEAST:
        x = torch.cat([x.new_zeros((x.shape[0], LEAST - x.shape[1], x.shape[2])), x], 1)
    return x.flatten(1)[:, : 2 * LEAST]


def expanded(x):
    if x.shape[1] < LEAST:
        x = torch.cat([x, x[:, -1:].expand(-1, LEAST - x.shape[1], -1)], 1)
    return x + 1


def filled_with_a_mean(x):
    missing = LEAST - x.size(1)
    if missing > 0:
        x = torch.cat([x, torch.ones((x.size(0), missing, x.size(2))) * x.mean()], dim=1)
    return x


def filled_or_cut(x):
    missing = LEAST - x.size(1)
    if missing > 0:
        x = torch.cat([x, torch.full(size=(x.size(0), missing, x.size(2)), fill_value=-3.0)], dim=1)
    else:
        x = x[:, :LEAST]
    return x.reshape(x.shape[0], -1)


def padded_or_cut(x):
    missing = LEAST - x.size(1)
    if missing > 0:
        x = nn.functional.pad(x, (0, 0, 0, missing))
    elif missing < 0:
        x = x[:, :LEAST]
    return x


OF_ONE_LENGTH = (filled_or_cut, padded_or_cut)
TO_A_LEAST_LENGTH = (repeated, zeros_behind, new_zeros_before, expanded, filled_with_a_mean, *OF_ONE_LENGTH)
CASES = set(itertools.product(TO_A_LEAST_LENGTH, (5, 12), ("torchscript", "dynamo")))
CASES -= {(model, 5, "dynamo") for model in OF_ONE_LENGTH}  # torch.export captures the shorter lengths only


@pytest.mark.parametrize(("model", "length", "exporter"), sorted(CASES, key=lambda case: (case[0].__name__, *case[1:])))
def test_to_a_least_length(model, length, exporter):
    example = torch.randn(3, length, 2)
    result = export_compat(model, example, exporter=exporter, dynamic={"x": {0: "batch", 1: "length"}})
    for other in (1, 3, 7, 8, 9, 12, 25):
        x = torch.randn(2, other, 2)
        torch.testing.assert_close(result(x)[0], model(x), rtol=1e-5, atol=1e-5)


def caught_where_there_is_nothing_to_pad(x):
    total = x.sum(1)
    if x.mean() > 0:
        try:
            more = torch.zeros(LEAST - x.shape[1]).sum() + 1
        except RuntimeError:
            more = torch.ones(1).sum() * 5
        total = total + more
    return total


@pytest.mark.parametrize("length", [5, 12])
def test_a_caught_error_of_a_negative_size_is_no_padding(length, exporter):
    dynamic = {"x": {0: "batch", 1: "length"}}
    with pytest.raises(CompatError):
        export_compat(caught_where_there_is_nothing_to_pad, torch.randn(3, length), exporter=exporter, dynamic=dynamic)


def to_whole_windows(x):
    if x.shape[-1] % 4:
        x = nn.functional.pad(x, (0, 4 - x.shape[-1] % 4))
    if x.shape[-2] % 6 != 0:
        x = nn.functional.pad(x, (0, 0, 6 - x.shape[-2] % 6, 0), value=2.0)
    return x.unflatten(-1, (-1, 4)).sum(-1)


def to_whole_windows_and_back(x):
    height, width = x.shape[-2:]
    rest = width % 8
    if rest != 0:
        x = nn.functional.pad(x, (0, 8 - rest))
    return x.unflatten(-1, (-1, 8)).flip(-1).flatten(-2)[..., :width] + height


@pytest.mark.parametrize("size", [(12, 8), (7, 9)])
@pytest.mark.parametrize("model", [to_whole_windows, to_whole_windows_and_back])
def test_a_branch_that_pads_to_whole_windows(model, size, exporter):
    """What a branch pads has the size of whole windows; so have its strides, in whatever form they are computed."""
    result = export_compat(model, (torch.randn(2, *size),), dynamic={"x": [0, 1, 2]}, exporter=exporter)
    for other in ((1, 1), (6, 4), (12, 8), (7, 9), (13, 16), (24, 15)):
        x = torch.randn(3, *other)
        torch.testing.assert_close(result(x)[0], model(x))


class MaskedWindows(nn.Module):
    """The mask has the rows of the picture; that both have as many shows behind the padding only."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x, kept):
        height = x.shape[-2]
        if height % 6:
            x = nn.functional.pad(x, (0, 0, 0, 6 - height % 6))
        y = self.convolution(x).unflatten(-2, (-1, 6)).mean(-2).flatten(2)
        return y.mean(-1)[kept].mean(0), (y.amax(-1)[kept] > 0.5).any(0)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("size", [(2, 3, 12, 10), (3, 3, 13, 7)])
def test_sizes_that_are_found_equal_behind_a_branch(size, exporter):
    torch.manual_seed(0)
    model = MaskedWindows().eval()
    dynamic = {"x": {0: "batch", 2: "height", 3: "width"}, "kept": {0: "batch"}}
    inputs = torch.randn(size), torch.arange(size[0]) % 2 == 0
    result = export_compat(model, inputs, dynamic=dynamic, exporter=exporter)
    for batch, height, width in ((1, 6, 5), (3, 7, 9), (2, 24, 8), (4, 1, 1)):
        x, kept = torch.randn(batch, 3, height, width), torch.arange(batch) % 3 == 1
        torch.testing.assert_close(tuple(result(x, kept)), model(x, kept), rtol=1e-4, atol=1e-5, equal_nan=True)
