"""Other values like the example: of its distribution and range, without ties where it has none, sorted where it is."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

LARGEST_MATRIX = 512
"""Rows of a symmetric matrix up to which its draw is symmetric too."""


def draw_like(examples: Sequence[Tensor], shapes: Sequence[Sequence[int]], seed: int) -> tuple[Tensor, ...]:
    """Draws tensors with other values of the examples' distributions.

    * Floating-point values are drawn between the example's own; no two are equal where the example's are all different.
    * Whole numbers, booleans and floating-point values of few kinds, such as masks and token ids, are drawn from the
      example's values. Whole numbers that differ within each row, such as indices, differ in the draw's rows too, and
      a permutation of 0 to n - 1 becomes one of 0 to m - 1.
    * Columns, along the last axis, that hold whole numbers beside others that do not, such as the number of the image
      that each box is in, are drawn from the column's own values.
    * Rows, along the last axis, that are sorted in the example are sorted in the draw.
    * A symmetric matrix (..., n, n) stays symmetric, and positive definite if it is.
    * A constant tensor of real numbers, which says nothing about a distribution, gets standard normal noise on top.

    Args:
        examples: Tensors of any shape and type.
        shapes: The draws' shapes; each has as many axes as the example.
        seed: Of the draws.

    Returns:
        One tensor for each, of its element type and on its device.
    """
    generator = torch.Generator().manual_seed(seed)
    return tuple(_draw(example, tuple(shape), generator) for example, shape in zip(examples, shapes, strict=True))


def _draw(example: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    if not example.numel() or 0 in shape:
        return example.new_zeros(shape)
    values = example.detach().cpu()
    if not values.is_floating_point():
        drawn = _draw_integers(values.to(torch.int64), shape, generator)
    elif bool((values == values.reshape(-1)[0]).all()):
        noise = torch.randn(shape, generator=generator, dtype=torch.float32)
        drawn = values.reshape(-1)[0] + noise.to(values.dtype)
    elif _is_symmetric(values) and shape[-1] == shape[-2]:
        drawn = _draw_symmetric(values.double(), shape, generator)
    else:
        drawn = sort_like(values, _draw_columns(values.double(), shape, generator))
    return drawn.to(device=example.device, dtype=example.dtype)


def sort_like(example: Tensor, drawn: Tensor) -> Tensor:
    """The draw, its rows sorted where all of the example's are."""
    if not example.dim() or example.shape[-1] < 2:
        return drawn
    before, after = example[..., :-1], example[..., 1:]
    if bool((before <= after).all()):
        return drawn.sort(-1).values
    return drawn.sort(-1, descending=True).values if bool((before >= after).all()) else drawn


def _pick(values: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Values drawn with replacement."""
    flat = values.reshape(-1)
    return flat[torch.randint(len(flat), shape, generator=generator)]


# Real numbers


def _draw_numbers(values: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    ordered = values.reshape(-1).sort().values
    kinds = 1 + int((ordered[1:] != ordered[:-1]).sum())
    if not bool(ordered.isfinite().all()) or 2 * kinds <= len(ordered):
        return _pick(values, shape, generator)
    place = torch.rand(shape, generator=generator, dtype=torch.float64) * (len(ordered) - 1)
    low = place.long()
    drawn = torch.lerp(ordered[low], ordered[(low + 1).clamp(max=len(ordered) - 1)], place - low)
    return drawn if kinds < len(ordered) else _without_ties(drawn)


def _draw_columns(values: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Columns of whole numbers beside others, such as the image of each box, from their own values."""
    length = values.shape[-1] if values.dim() > 1 else 0
    is_whole = (values == values.round()).reshape(-1, length).all(0) if length else torch.zeros(0)
    whole, others = is_whole.nonzero().flatten(), (is_whole == 0).nonzero().flatten()
    if shape[-1:] != (length,) or not len(whole) or not len(others):
        return _draw_numbers(values, shape, generator)
    drawn = values.new_empty(shape)
    drawn[..., others] = _draw_numbers(values[..., others], (*shape[:-1], len(others)), generator).double()
    for column in whole.tolist():
        drawn[..., column] = _pick(values[..., column], shape[:-1], generator)
    return drawn


def _without_ties(drawn: Tensor) -> Tensor:
    """The draw in float32, equal values moved to the next free ones."""
    ordered, order = drawn.float().reshape(-1).sort()
    places = torch.arange(len(ordered))
    # Numbers of float32 in their order; each is at least one above the one before it.
    numbers = (_number_of(ordered) - places).cummax(0).values + places
    return torch.empty_like(ordered).scatter_(0, order, _value_of(numbers)).reshape(drawn.shape)


def _number_of(values: Tensor) -> Tensor:
    """The place of each float32 among all, counted from 0.0: its bits, and below 0 the negative of the rest of them."""
    bits = values.view(torch.int32).long()
    return torch.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))


def _value_of(numbers: Tensor) -> Tensor:
    bits = torch.where(numbers >= 0, numbers, -numbers)
    values = bits.clamp(max=0x7F7FFFFF).int().view(torch.float32)
    return torch.where(numbers >= 0, values, -values)


# Whole numbers


def _draw_integers(values: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    drawn = _draw_distinct(values, shape, generator) if _differ_in_rows(values) else None
    return sort_like(values, _pick(values, shape, generator) if drawn is None else drawn)


def _differ_in_rows(values: Tensor) -> bool:
    if not values.dim() or values.shape[-1] < 2:
        return False
    ordered = values.sort(-1).values
    return bool((ordered[..., 1:] != ordered[..., :-1]).all())


def is_one_number(example: Tensor) -> bool:
    """Whether an example holds whole numbers or booleans, and one of them only."""
    is_real = example.is_floating_point() or example.is_complex()
    return bool(example.numel()) and not is_real and bool((example == example.reshape(-1)[0]).all())


def draw_beside(example: Tensor, seed: int, *, has_zero: bool = True) -> Tensor:
    """Draws other whole numbers or booleans than those of an example that has one value only.

    Numbers below it, 0, 1 and its neighbour among them; 1 beside an example of zeros. Rows begin with the example's
    number and are sorted, as masks of what is padded, segments, offsets and lengths are.

    Args:
        example: Whole numbers or booleans, all of them equal.
        seed: Of the draws.
        has_zero: Whether 0 is among the numbers that are drawn.
    """
    generator = torch.Generator().manual_seed(seed)
    value = int(example.reshape(-1)[0])
    if value == 0:
        kinds = [1]
    elif value > 0:
        kinds = sorted({number for number in (0, 1, value - 1) if number < value and (number or has_zero)})
    else:
        kinds = [value - 1, value + 1] if value > torch.iinfo(example.dtype).min else [value + 1]
    if not kinds:
        return example
    if not example.dim() or example.numel() == 1:
        return torch.full_like(example, kinds[-1])
    is_longer = example.shape[-1] > 1
    drawn = _pick(torch.tensor([value, *kinds]), tuple(example.shape), generator)
    if is_longer:
        drawn[..., 0], drawn[..., -1] = value, kinds[0]
        drawn = drawn.sort(-1, descending=value > 0).values
    return drawn.to(example)


def _draw_distinct(values: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor | None:
    """Rows without equal values; None where the example has not enough values, nor room between them."""
    kinds, length = values.unique(), shape[-1]
    size = values.shape[-1]
    if len(kinds) == size and int(kinds[0]) == 0 and int(kinds[-1]) == size - 1:
        kinds = torch.arange(length)
    if len(kinds) < length:
        low, high = int(kinds[0]), int(kinds[-1])
        if high - low + 1 < length or high - low > 2**20:
            return None
        kinds = torch.arange(low, high + 1)
    rows = torch.Size(shape[:-1]).numel()
    if rows * len(kinds) > 2**24:  # a key for each kind in each row would take too much memory
        return None
    order = torch.rand((rows, len(kinds)), generator=generator).argsort(-1)[:, :length]
    rows_of_kinds: Tensor = kinds[order]
    return rows_of_kinds.reshape(shape)


# Symmetric matrices


def _is_symmetric(values: Tensor) -> bool:
    if values.dim() < 2 or values.shape[-1] != values.shape[-2] or not 2 <= values.shape[-1] <= LARGEST_MATRIX:
        return False
    return bool((values == values.mT).all()) and bool(values.isfinite().all())


def _draw_symmetric(values: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """A congruent matrix, D P A P^T D, of the same inertia: rows and columns exchanged, and scaled a little."""
    size, other = values.shape[-1], shape[-1]
    grown = values
    for axis, length in enumerate(shape):
        grown = grown.index_select(axis, torch.arange(length) % values.shape[axis])
    if other > size:  # repeated rows are singular
        grown = grown + torch.diag_embed(values.diagonal(dim1=-2, dim2=-1).abs().mean().expand(shape[:-1]))
    order = torch.randperm(other, generator=generator)
    grown = grown[..., order, :][..., order]
    if bool((values == values.round()).all()):
        return grown
    scale = 0.75 + 0.5 * torch.rand(shape[:-1], generator=generator, dtype=torch.float64)
    drawn = scale[..., None] * grown * scale[..., None, :]
    return (drawn + drawn.mT) / 2
