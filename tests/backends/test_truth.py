"""True and False for numbers, in TorchScript traces."""

import pytest
import torch
from torch import nn

from torch_onnx_compat.testing import assert_same_outputs

X = torch.randn(3, 4)


def written(x):
    mask, y = x > 0, x * 2
    mask[0].fill_(True)
    y.masked_fill_(x > 1, True)
    return mask, y.fill_(False), mask.masked_fill(x < -1, True), torch.full_like(mask, True), mask.new_full((2,), True)


def by_index(x):
    counts = (x > 0).long()
    return counts.scatter(0, counts, True), (x > 0).index_fill(0, counts[0, :1], True)


def computed(x):
    return x + True, x * False, x / True, x.clamp(False), x**True, (x > 0) | True, torch.add(x, True)


def of_masks(x):
    mask = x > 0
    return mask & False, mask ^ True


def compared(x):
    mask = x > 0
    return mask == True, mask != False, x.sum() == True, mask.eq(True), x > True  # noqa: E712


def chosen(x):
    return torch.where(x > 0, True, False), torch.where(x > 0, x > 1, True), torch.where(x > 0, x, False)


def padded(x):
    return nn.functional.pad(x > 0, (1, 1), value=True)


@pytest.mark.parametrize(
    "function",
    [written, by_index, computed, of_masks, compared, chosen, padded],
    ids=lambda function: function.__name__,
)
def test_results_and_their_types(function, exporter):
    assert_same_outputs(function, X, exporter, dynamic="batch")
