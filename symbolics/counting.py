"""Counting values: bincount, histc, one_hot; and choosing among them.

Histograms and counts by comparing every value with every bin.

Math:   what equals a number is counted, or weighed, in one sum.
Source: https://docs.pytorch.org/docs/stable/generated/torch.bincount.html
"""

from itertools import combinations, combinations_with_replacement, pairwise

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.tracing import constant, static_size


def bincount(x: Tensor, weights: Tensor | None, least: int) -> Tensor:
    """Number of times, or weight, of 0, 1, ... up to the greatest value, and of `least` numbers at least."""
    length = torch.cat((x, torch.full_like(x[:1], least - 1), x.new_full((1,), least - 1))).max() + 1
    same: Tensor = torch.arange(length, dtype=x.dtype).unsqueeze(1) == x  # type: ignore[call-overload]
    if weights is None:
        return same.to(torch.int64).sum(1)
    weighed = weights if weights.is_floating_point() else weights.to(torch.float64)
    return (same.to(weighed.dtype) * weighed).sum(1)


def histogram(x: Tensor, bins: int, low: Tensor | float, high: Tensor | float) -> Tensor:
    """Number of values in each of `bins` cells between two bounds, the upper one included."""
    flat = x.reshape(-1)
    cell = torch.floor((flat - low) * bins / (high - low)).clamp(max=bins - 1)
    cell = torch.where((flat >= low) & (flat <= high), cell, torch.full_like(cell, -1))
    return (cell.unsqueeze(-1) == constant(range(bins), x)).to(x.dtype).sum(0)


@decomposition(torch.bincount, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def bincount_of_weights(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Weight of each number's occurrences; stock dynamo's translation takes no weights.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.bincount.html
    """
    if weights is None:
        return NotImplemented
    return bincount(input, weights, minlength)


@decomposition(torch.bincount, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def bincount_to_sum(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Number of times that each number occurs; stock TorchScript has no symbolic for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.bincount.html
    """
    return bincount(input, weights, minlength)


@decomposition(torch.histc, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def histc_of_data(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Histogram between the least and the greatest value, which neither exporter takes.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.histc.html
    """
    if not min == max == 0:
        return NotImplemented
    low, high = input.min(), input.max()
    same = (low == high).to(input.dtype)
    return histogram(input, bins, low - same, high + same)


@decomposition(torch.histc, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def histc_to_counts(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Histogram; stock TorchScript has no symbolic for it.

    Declines: bounds of the data.

    Math: floor((x - min) * bins / (max - min)) is the bin, the last one for max itself; what lies outside is not
          counted.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.histc.html
    """
    x = input.reshape(-1)
    if min == max == 0:
        decline("min and max must be given; histograms between bounds of the data depend on its values")
    cell = torch.floor((x - min) * bins / (max - min)).clamp(max=bins - 1)
    cell = torch.where((x >= min) & (x <= max), cell, torch.full_like(cell, -1))
    return (cell.unsqueeze(-1) == constant(range(bins), input)).to(input.dtype).sum(0)


# TorchScript writes a negative depth; torch.export refuses a size that is read from data.
@decomposition(functional.one_hot, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def one_hot_of_largest(input: Tensor, num_classes: int = -1) -> Tensor:
    """One-hot vectors as long as the largest number needs.

    Math: entry c of the last axis is whether the number is c, for c from 0 to the largest of all.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html
    """
    if num_classes != -1:
        return NotImplemented
    cells = torch.arange(input.max() + 1, device=input.device)  # type: ignore[call-overload]
    ones: Tensor = (input.unsqueeze(-1) == cells).to(torch.int64)
    return ones


@decomposition(torch.combinations, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def combinations_to_gather(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to take r elements; stock TorchScript has none, stock dynamo fails on dynamic sizes.

    Math: the places of r elements in ascending order, strictly unless with_replacement.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.combinations.html
    """
    size = static_size(input, 0)
    if size is not None:
        choose = combinations_with_replacement if with_replacement else combinations
        table = list(choose(range(size), r))
        if not table:
            return input.new_zeros(0, r if r else 0)
        return input[constant(table, input, torch.int64)]
    if r < 2:
        return input.unsqueeze(1) if r else input.new_zeros(0)
    places = torch.meshgrid(*(torch.arange(input.shape[0], device=input.device),) * r, indexing="ij")
    kept = torch.ones_like(places[0], dtype=torch.bool)
    for one, other in pairwise(places):
        kept = kept & ((one <= other) if with_replacement else (one < other))
    return input[torch.stack([place[kept] for place in places], 1)]


@decomposition(torch.cartesian_prod, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def cartesian_prod_to_meshgrid(*tensors: Tensor) -> Tensor:
    """All tuples of the vectors' elements; stock TorchScript has no symbolic for it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.cartesian_prod.html
    """
    if len(tensors) == 1:
        return tensors[0].clone()
    grids = torch.meshgrid(*tensors, indexing="ij")
    return torch.stack([grid.reshape(-1) for grid in grids], 1)
