"""Other inputs like the example, at which a model may decide otherwise: scaled, shifted, equal, sparse, and more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from torch_onnx_compat.inputs.draws import sort_like
from torch_onnx_compat.inputs.inputs import Inputs

MOST_NUMBERS = 8
"""Numbers of the model's comparisons that inputs are made of, at most."""

LARGEST_POWER = 10
"""Of 2, by which numbers are multiplied to be of all magnitudes."""

Change = Callable[[Tensor, torch.Generator], Tensor]


def variations(inputs: Inputs, numbers: Sequence[float], seed: int) -> Iterator[Inputs]:
    """Other values of the same shapes: all inputs changed alike, then one input after the other.

    Args:
        inputs: What is varied.
        numbers: Those that the model compares something with.
        seed: Of what is drawn.
    """
    near = [float(number) for number in numbers][:MOST_NUMBERS]
    generator = torch.Generator().manual_seed(seed)
    kinds = [_kind_of(tensor) for tensor in inputs.tensors]
    changes = {kind: _changes(kind, near) for kind in dict.fromkeys(kinds)}
    most = max(map(len, changes.values()))
    for number in range(most):
        yield _changed(inputs, [changes[kind][number % len(changes[kind])] for kind in kinds], generator)
    if len(inputs.tensors) > 1:
        yield from _equal_inputs(inputs)
        for number in range(most):
            for position, kind in enumerate(kinds):
                if number < len(changes[kind]):
                    some: list[Change | None] = [None] * len(kinds)
                    some[position] = changes[kind][number]
                    yield _changed(inputs, some, generator)
    for draw in range(4):
        yield inputs.redrawn(seed + draw)


def of_all_magnitudes(inputs: Inputs, seed: int) -> Inputs:
    """Each real number times a power of 2 of its own, up to 2**LARGEST_POWER: thresholds have values on both sides."""
    generator = torch.Generator().manual_seed(seed)
    changes = [_magnified if tensor.is_floating_point() else None for tensor in inputs.tensors]
    return _changed(inputs, changes, generator)


def between(one: Inputs, other: Inputs, part: float) -> Inputs:
    """The inputs at a part of the way from one to another, at the sizes of the first; whole numbers are rounded."""
    pairs = zip(one.tensors, _at_sizes_of(one, other).tensors, strict=True)
    return replace(one, tensors=tuple(_tensor_between(x, y, part) for x, y in pairs))


def led_back(inputs: Inputs, to: Inputs, position: int, part: float) -> Inputs:
    """The inputs, one of them at a part of the way from that of others."""
    tensors = list(inputs.tensors)
    tensors[position] = _tensor_between(_at_sizes_of(inputs, to).tensors[position], tensors[position], part)
    return replace(inputs, tensors=tuple(tensors))


def _at_sizes_of(one: Inputs, other: Inputs) -> Inputs:
    """Other inputs, at the sizes of some; a case may have been at any."""
    return other if one.sizes() == other.sizes() else other.at_sizes(one.sizes())


def _tensor_between(one: Tensor, other: Tensor, part: float) -> Tensor:
    if one.dtype is torch.bool:
        return one if part < 0.5 else other
    found = torch.lerp(one.double(), other.double(), part)
    return (found if one.is_floating_point() else found.round()).to(one.dtype)


def moved(inputs: Inputs, steps: Sequence[Tensor | float | None]) -> Inputs:
    """The inputs with something added to each; None leaves one as it is."""
    tensors = tuple(
        tensor if step is None else (tensor.double() + step).to(tensor.dtype)
        for tensor, step in zip(inputs.tensors, steps, strict=True)
    )
    return replace(inputs, tensors=tensors)


def filled(inputs: Inputs, position: int, value: int) -> Inputs:
    """The inputs, one of them filled with a whole number that its element type holds."""
    tensors = list(inputs.tensors)
    tensors[position] = torch.full_like(tensors[position], value)
    return replace(inputs, tensors=tuple(tensors))


def drawn_between(inputs: Inputs, position: int, least: int, most: int, seed: int) -> Inputs:
    """The inputs, one of them drawn from a range of whole numbers."""
    generator = torch.Generator().manual_seed(seed)
    tensors = list(inputs.tensors)
    old = tensors[position]
    tensors[position] = torch.randint(least, most + 1, old.shape, generator=generator).to(old)
    return replace(inputs, tensors=tuple(tensors))


def _changed(inputs: Inputs, changes: Sequence[Change | None], generator: torch.Generator) -> Inputs:
    tensors = []
    for tensor, change in zip(inputs.tensors, changes, strict=True):
        if change is None or not tensor.numel():
            tensors.append(tensor)
            continue
        try:
            new = change(tensor.detach(), generator)
        except (RuntimeError, OverflowError, ValueError):  # a number that the type does not hold
            new = tensor
        new = new.to(device=tensor.device, dtype=tensor.dtype).reshape(tensor.shape)
        if tensor.is_floating_point():
            new = torch.where(tensor.isfinite(), sort_like(tensor, new), tensor)
        tensors.append(new)
    return replace(inputs, tensors=tuple(tensors))


def _equal_inputs(inputs: Inputs) -> Iterator[Inputs]:
    """Each pair of inputs of one form with equal values."""
    for first, one in enumerate(inputs.tensors):
        for second, other in enumerate(inputs.tensors[first + 1 :], first + 1):
            if one.shape == other.shape and one.dtype == other.dtype:
                tensors = list(inputs.tensors)
                tensors[second] = one.clone()
                yield replace(inputs, tensors=tuple(tensors))


def _kind_of(tensor: Tensor) -> str:
    if tensor.dtype is torch.bool:
        return "truths"
    return "reals" if tensor.is_floating_point() else "wholes"


def _changes(kind: str, near: Sequence[float]) -> list[Change]:
    if kind == "truths":
        return [*_TRUTHS]
    if kind == "reals":
        return [
            *_REALS[:4],
            *(change for number in near for change in _about(number)),
            *_REALS[4:],
        ]
    return [*_WHOLES[:3], *(change for number in near for change in _about_whole(round(number))), *_WHOLES[3:]]


def _scaled(factor: float) -> Change:
    return lambda t, g: t * factor


def _shifted(step: float) -> Change:
    return lambda t, g: t + step


def _filled(value: float) -> Change:
    return lambda t, g: torch.full_like(t, value)


def _about(number: float) -> Iterator[Change]:
    """Values about a number that the model compares something with."""
    magnitude = max(abs(number), 1.0)
    yield _shifted(1.5 * number)
    yield _shifted(-1.5 * number)
    yield lambda t, g: number + magnitude * torch.randn(t.shape, generator=g).to(t)
    yield _filled(number)
    yield _filled(number + 0.5 * magnitude)
    yield _filled(number - 0.5 * magnitude)
    yield _beginning(number + magnitude)
    yield _beginning(number - magnitude)


def _beginning(value: float) -> Change:
    return lambda t, g: _first(t, value)


def _first(tensor: Tensor, value: float) -> Tensor:
    """The tensor with another value in its first cell."""
    changed = tensor.clone().reshape(-1)
    changed[:1] = value
    return changed


def _one_hot(place: float, value: float) -> Change:
    def change(tensor: Tensor, generator: torch.Generator) -> Tensor:
        changed = torch.zeros_like(tensor).reshape(-1)
        changed[int(place * (len(changed) - 1))] = value
        return changed

    return change


def _magnified(tensor: Tensor, generator: torch.Generator) -> Tensor:
    powers = torch.randint(LARGEST_POWER + 1, tensor.shape, generator=generator)
    return torch.ldexp(tensor, powers.to(tensor.device))


def _sparse(tensor: Tensor, generator: torch.Generator) -> Tensor:
    kept: Tensor = tensor * (torch.rand(tensor.shape, generator=generator).to(tensor.device) < 0.1)
    return kept


def _sorted(*, descending: bool) -> Change:
    return lambda t, g: t.reshape(-1).sort(descending=descending).values


def _with_part(value: float, part: float) -> Change:
    """Some of the values are replaced by one."""

    def change(tensor: Tensor, generator: torch.Generator) -> Tensor:
        where = (torch.rand(tensor.shape, generator=generator) < part).to(tensor.device)
        return torch.where(where, torch.full_like(tensor, value), tensor)

    return change


def _halves(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """The values, those of the second half with the other sign."""
    changed = tensor.clone().reshape(-1)
    changed[len(changed) // 2 :] *= -1
    return changed


_REALS: tuple[Change, ...] = (
    _scaled(-1),
    _scaled(20),
    _scaled(0.02),
    lambda t, g: torch.zeros_like(t),
    lambda t, g: t.abs() + 0.1,
    lambda t, g: -t.abs() - 0.1,
    _scaled(3),
    _scaled(300),
    _filled(1.0),
    _filled(-1.0),
    _sparse,
    lambda t, g: t.round(),
    _one_hot(0.0, 1.0),
    _one_hot(1.0, 1.0),
    _one_hot(0.5, -1.0),
    _one_hot(0.3, 100.0),
    _shifted(1.0),
    _shifted(-1.0),
    _shifted(10.0),
    _shifted(-10.0),
    _shifted(100.0),
    _shifted(-100.0),
    _sorted(descending=False),
    _sorted(descending=True),
    _halves,
    lambda t, g: t.reshape(-1).flip(0),
    lambda t, g: torch.randn(t.shape, generator=g),
    lambda t, g: torch.rand(t.shape, generator=g),
    lambda t, g: 5 * torch.randn(t.shape, generator=g),
    lambda t, g: (3 * torch.randn(t.shape, generator=g)).round(),
    _scaled(1000),
    _scaled(1e-4),
)


def _about_whole(number: int) -> Iterator[Change]:
    """Whole numbers about one that the model compares something with."""
    for value in (number, number + 1, number - 1):
        yield _beginning(value)
        yield _filled(value)
    yield _with_part(number, 0.5)
    yield lambda t, g: torch.where(t == number, number + 1, t)


def _drawn(low: float, high: float) -> Change:
    """Whole numbers from a range about the tensor's own, in parts of its length."""

    def change(tensor: Tensor, generator: torch.Generator) -> Tensor:
        least, most = int(tensor.min()), int(tensor.max())
        length = max(most - least, 1)
        bounds = torch.iinfo(tensor.dtype)
        start, end = least + int(low * length), least + int(high * length) + 1
        start, end = max(start, bounds.min), min(max(end, start + 1), bounds.max)
        return torch.randint(start, end, tensor.shape, generator=generator)

    return change


_WHOLES: tuple[Change, ...] = (
    _drawn(0, 1),
    lambda t, g: torch.zeros_like(t),
    lambda t, g: torch.full_like(t, int(t.max())),
    lambda t, g: torch.full_like(t, int(t.min())),
    _filled(1),
    lambda t, g: t.reshape(-1).flip(0),
    lambda t, g: t.reshape(-1)[torch.randperm(t.numel(), generator=g)],
    _sorted(descending=False),
    _sorted(descending=True),
    _drawn(0, 0.3),
    _drawn(0.7, 1),
    lambda t, g: _first(t, 0),
    lambda t, g: _first(t, int(t.max())),
    lambda t, g: t + 1,
    lambda t, g: t - 1,
    _drawn(0, 3),
    _drawn(-1, 1),
    lambda t, g: -t,
    lambda t, g: t * 2,
    lambda t, g: t * 10,
    _drawn(-10, 10),
    lambda t, g: torch.arange(t.numel()),
)

_TRUTHS: tuple[Change, ...] = (
    lambda t, g: torch.ones_like(t),
    lambda t, g: torch.zeros_like(t),
    lambda t, g: ~t,
    lambda t, g: torch.rand(t.shape, generator=g) < 0.5,
    lambda t, g: torch.arange(t.numel()) == 0,
    lambda t, g: torch.arange(t.numel()) == t.numel() - 1,
    lambda t, g: torch.arange(t.numel()) != 0,
    lambda t, g: torch.rand(t.shape, generator=g) < 0.1,
    lambda t, g: torch.rand(t.shape, generator=g) < 0.9,
    lambda t, g: torch.arange(t.numel()) < t.numel() // 2,
)
