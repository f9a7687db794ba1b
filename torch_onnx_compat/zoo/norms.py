"""Batch norms of an untrained model: scales and offsets at random, statistics from the example.

Statistics of four pictures fit these four better than any other: in a deep net without skips, each norm makes the next
picture's features larger than it made theirs, and what grows so for a hundred layers amplifies a rounding until it
decides the output. No trained model is like that. Such a model is built again, calmly: mean and scale come from
different pictures, and offsets grow until most units keep to one side of their activation's kink, where they are
linear. Larger offsets than these make outputs that hardly depend on the picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only
from torch.utils.hooks import RemovableHandle


@dataclass(frozen=True)
class NormInit:
    """How batch norms get their numbers."""

    offset: float = 0.1
    """Standard deviation of the offsets; scales are about 1."""
    held_out: bool = False
    """Whether the scale comes from other pictures than the mean."""


MANNERS = (NormInit(), *(NormInit(offset, held_out=True) for offset in (0.1, 0.5, 1.0)))
"""In the order in which they are tried."""

CHANGE = 2.0**-18
"""Relative change of the pictures that a model is tried with: a few roundings of float32."""
AMPLIFIED = 20_000.0
"""How many times larger such a change may be at a batch norm: 8 % of its input's spread."""
GROWN = 300.0
"""How many times larger what a batch norm makes may be than of the pictures it was measured on."""
_NOTED = 2**16
"""Values of a norm's input that are compared, at most."""

_STATISTICS = ("running_mean", "running_var")


def norms(model: nn.Module) -> list[nn.Module]:
    """The batch norms, frozen ones and those of other libraries too."""
    return [m for m in model.modules() if all(isinstance(getattr(m, n, None), Tensor) for n in _STATISTICS)]


def draw(norm: nn.Module, manner: NormInit) -> None:
    """Draws the scale and offset of a batch norm; a frozen one holds them as buffers, a last one may start at zero."""
    if isinstance(norm.weight, Tensor):
        norm.weight.uniform_(0.5, 1.5)
    if isinstance(norm.bias, Tensor):
        norm.bias.normal_(0.0, manner.offset)


def measuring(norm: nn.Module, manner: NormInit) -> RemovableHandle:
    """Makes the next run set a batch norm's statistics to those of its input, a little off as a trained one's are."""
    handle: RemovableHandle = norm.register_forward_pre_hook(lambda _, args: _measure(norm, args[0], manner))
    return handle


def _measure(norm: nn.Module, features: Tensor, manner: NormInit) -> None:
    mean, var = norm.running_mean, norm.running_var
    assert isinstance(mean, Tensor)
    assert isinstance(var, Tensor)
    half = len(features) // 2 if manner.held_out else 0
    values = _by_channel(features[half:], len(mean))
    if values.shape[1] < 2:
        return
    # About zero, not about the mean, and half-way to the other channels: what this one picture hardly moves must not
    # blow up on the next one.
    measured = values.square().mean(dim=1)
    variance = (measured + measured.mean()) / 2 + 1e-6
    centre = values.mean(dim=1)
    mean.normal_(0.0, 0.1).mul_(variance.sqrt()).add_(centre)
    if half:  # one number for all channels: of so few pictures, one for each would fit them again
        variance *= _spread(_by_channel(features[:half], len(mean)), centre, variance) / _spread(
            values, centre, variance
        )
    var.uniform_(0.5, 1.5).mul_(variance)


def _by_channel(features: Tensor, channels: int) -> Tensor:
    values = features.transpose(0, 1).flatten(1)
    if values.shape[1] < 2:  # a pooled picture: one value per channel; none: a detector that found nothing
        values = values.flatten().expand(channels, -1)
    return values


def _spread(values: Tensor, centre: Tensor, variance: Tensor) -> Tensor:
    return ((values - centre[:, None]).square() / variance[:, None]).mean().clamp(min=1e-6)


def amplification(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> float:
    """How far from a trained model one is, above 1 too far: small changes, or new pictures' features, grow in it.

    Args:
        model: In eval mode.
        args: Example inputs, which the model is not tried with: their mirrored negatives are new to it.
        kwargs: Example keyword inputs.
    """
    if not norms(model):
        return 0.0
    if len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
        args = (args[0][:2],)
    negatives = tree_map_only(Tensor, _negative, (args, dict(kwargs)))
    generator = torch.Generator().manual_seed(0)

    def mirror(tensor: Tensor) -> Tensor:
        noise = torch.randn(tensor.shape, generator=generator).to(tensor)
        return tensor * (1 + CHANGE * noise) if _is_picture(tensor) else tensor

    before, sizes = _inputs_of_norms(model, *negatives)
    after, _ = _inputs_of_norms(model, *tree_map_only(Tensor, mirror, negatives))
    grown = [_growth(a, b) for a, b in zip(before, after, strict=False) if a.shape == b.shape and a.numel() > 1]
    return max(max(grown, default=0.0) / CHANGE / AMPLIFIED, max(sizes, default=0.0) / GROWN)


def _negative(tensor: Tensor) -> Tensor:
    """Of a picture its mirrored negative, in the same range."""
    if not _is_picture(tensor) or not tensor.numel():
        return tensor
    return (tensor.max() + tensor.min() - tensor).flip(-1)


def _is_picture(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.ndim >= 3


def _inputs_of_norms(
    model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Tensor], list[float]]:
    """Some values of each norm's input, and its size once normalised, about 1 for the pictures that it measured."""
    found: list[Tensor] = []
    sizes: list[float] = []
    pictures: list[int] = []

    def note(norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        pictures.append(len(inputs[0]))
        if pictures[-1] != pictures[0] or not inputs[0].numel():
            return  # of what was selected, another selection tells nothing
        values = inputs[0].flatten()
        found.append(values[:: 1 + len(values) // _NOTED].clone())
        assert isinstance(norm.running_mean, Tensor)
        assert isinstance(norm.running_var, Tensor)
        by_channel = inputs[0].transpose(0, 1).flatten(1)
        sizes.append(float(_spread(by_channel, norm.running_mean, norm.running_var).sqrt()))

    handles = [norm.register_forward_pre_hook(note) for norm in norms(model)]
    torch.manual_seed(0)  # a model that draws numbers draws the same ones twice
    model(*args, **kwargs)
    for handle in handles:
        handle.remove()
    return found, sizes


def _growth(before: Tensor, after: Tensor) -> float:
    spread = float(before.std())
    return float((after - before).square().mean().sqrt()) / spread if spread else 0.0
