"""Counting values (bincount, histc, one_hot) and listing choices (combinations, cartesian_prod).

Math:   every value is compared with every number or bin, and the equal ones are summed.
"""

from itertools import combinations, combinations_with_replacement, pairwise

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.functional.arithmetic import varies
from torch_onnx_compat.tracing import constant, static_size

# Numbers


def bincount(x: Tensor, weights: Tensor | None, least: int) -> Tensor:
    """Number of times, or weight, of 0, 1, ... up to the greatest value, and of `least` numbers at least."""
    length = torch.cat((x, torch.full_like(x[:1], least - 1), x.new_full((1,), least - 1))).max() + 1
    same = torch.arange(length, dtype=x.dtype).unsqueeze(1) == x  # type: ignore[call-overload]
    if weights is None:
        return same.to(torch.int64).sum(1)
    weights = weights if weights.is_floating_point() else weights.to(torch.float64)
    return (same.to(weights.dtype) * weights).sum(1)


@decomposition(torch.bincount, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def bincount_of_weights(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Sums the weights of each number; stock dynamo's translation takes no weights, and no length that varies."""
    if weights is None and not varies(minlength):
        return NotImplemented
    return bincount(input, weights, minlength)


@decomposition(torch.bincount, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def bincount_to_sum(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Number of times that each number occurs; stock TorchScript has no symbolic for it."""
    return bincount(input, weights, minlength)


# TorchScript writes a negative depth; torch.export refuses a size that is read from data.
@decomposition(functional.one_hot, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def one_hot_of_largest(input: Tensor, num_classes: int = -1) -> Tensor:
    """One-hot vectors as long as the largest number needs.

    Math: entry c of the last axis is whether the number is c, for c from 0 to the largest of all.
    """
    if not isinstance(num_classes, int) or num_classes != -1:
        return NotImplemented
    cells = torch.arange(input.max() + 1, device=input.device)  # type: ignore[call-overload]
    return (input.unsqueeze(-1) == cells).to(torch.int64)


@decomposition(functional.one_hot, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def one_hot_of_number(input: Tensor, num_classes: int = -1) -> Tensor:
    """One-hot vector of a single number; ONNX's OneHot wants an axis."""
    return NotImplemented if input.dim() else functional.one_hot(input.reshape(1), num_classes).reshape(-1)


# Histograms


def histogram(x: Tensor, bins: int, low: Tensor | float, high: Tensor | float) -> Tensor:
    """Number of values in each of `bins` equal bins between two bounds.

    Math: floor((x - low) * bins / (high - low)) is the bin of x, and the last one that of the upper bound. Values
          outside the bounds are not counted.
    """
    x = x.reshape(-1)
    number = torch.floor((x - low) * bins / (high - low)).clamp(max=bins - 1)
    number = torch.where((x >= low) & (x <= high), number, torch.full_like(number, -1))
    return (number.unsqueeze(-1) == constant(range(bins), x)).to(x.dtype).sum(0)


@decomposition(torch.histc, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def histc_of_data(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Histogram between the least and the greatest value, which neither exporter takes."""
    if not min == max == 0:
        return NotImplemented
    low, high = input.min(), input.max()
    same = (low == high).to(input.dtype)  # torch widens bounds that are equal by 1 on each side
    return histogram(input, bins, low - same, high + same)


@decomposition(torch.histc, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def histc_to_counts(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Histogram between given bounds; stock TorchScript has no symbolic for it, stock dynamo misplaces values at edges.

    Declines: bounds of the data.
    """
    if min == max == 0:
        decline("min and max must be given; histograms between bounds of the data depend on its values")
    return histogram(input, bins, min, max)


# Choices


@decomposition(torch.combinations, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def combinations_to_gather(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to take r elements; stock TorchScript has none, stock dynamo fails on dynamic sizes.

    Math: the indices of r elements in ascending order, strictly ascending unless with_replacement.
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
    indices = torch.meshgrid(*(torch.arange(input.shape[0], device=input.device),) * r, indexing="ij")
    ascending = torch.ones_like(indices[0], dtype=torch.bool)
    for one, other in pairwise(indices):
        ascending = ascending & ((one <= other) if with_replacement else (one < other))
    return input[torch.stack([index[ascending] for index in indices], 1)]


@decomposition(torch.cartesian_prod, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def cartesian_prod_to_meshgrid(*tensors: Tensor) -> Tensor:
    """All tuples of the vectors' elements; stock TorchScript has no symbolic for it."""
    if len(tensors) == 1:
        return tensors[0].clone()
    grids = torch.meshgrid(*tensors, indexing="ij")
    return torch.stack([grid.reshape(-1) for grid in grids], 1)
