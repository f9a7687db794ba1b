"""How a model is described, and what the modules of models share."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

MODELS: list[Unseen] = []
"""All models, in the order in which they are measured."""


@dataclass(frozen=True)
class Unseen:
    """A model with its inputs."""

    name: str
    package: str
    """Its distribution's name."""
    make: Callable[[], nn.Module]
    inputs: Callable[..., Any]
    """Arguments of the model for sizes by name: `n`, and those of `sizes`."""
    axes: Sequence[Mapping[int, str]]
    """Dynamic axes of each tensor."""
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Dynamic sizes but the batch: the example's, then those of the judge."""

    def example(self) -> dict[str, int]:
        """The sizes of the example."""
        return {"n": 2} | {name: values[0] for name, values in self.sizes.items()}

    def draw(self, seed: int, **sizes: int) -> tuple[Any, ...]:
        """Arguments of these sizes."""
        torch.manual_seed(seed)
        args = self.inputs(**sizes)
        return args if isinstance(args, tuple) else (args,)


def add(
    package: str,
    name: str,
    make: Callable[[], nn.Module],
    inputs: Callable[..., Any],
    *axes: Mapping[int, str],
    **sizes: Sequence[int],
) -> None:
    """Adds a model; without axes, axis 0 of the one tensor is the batch.

    Raises:
        ValueError: Another model has the name, by which results are kept.
    """
    if any(model.name == name for model in MODELS):
        raise ValueError(f"{package}: another model is called {name!r}, too.")
    MODELS.append(Unseen(name, package, make, inputs, axes or ({0: "n"},), sizes))


class Part(nn.Module):
    """A module of which a method is called, or results or arguments are picked."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module = module
        self.call = call

    def forward(self, *args: Any) -> Any:
        return self.call(self.module, *args)


def image(size: int = 32, channels: int = 3) -> Callable[..., Tensor]:
    """Draws pictures (n, channels, h, w), of a fixed size if none is given."""
    return lambda n, h=size, w=size: torch.randn(n, channels, h, w)


def tokens(vocabulary: int, length: int = 12) -> Callable[..., Tensor]:
    """Draws token numbers (n, t)."""
    return lambda n, t=length: torch.randint(1, vocabulary, (n, t))


def features(width: int, length: int = 12) -> Callable[..., Tensor]:
    """Draws sequences (n, t, width)."""
    return lambda n, t=length: torch.randn(n, t, width)


N, NT, NHW = {0: "n"}, {0: "n", 1: "t"}, {0: "n", 2: "h", 3: "w"}

T12 = (12, 7, 19)

NCT = {0: "n", 2: "t"}
T24 = (24, 17, 33)
WAVES = {"t": (800, 1000, 640)}
NS = {0: "n", 1: "s"}

SIZES: dict[str, Sequence[int]] = {"h": (32, 64, 48), "w": (32, 48, 64)}
"""Of pictures for networks that halve them up to four times."""

EVEN: dict[str, Sequence[int]] = {"h": (64, 96, 128), "w": (64, 128, 96)}
"""Of pictures for those that halve them five times."""


def kept(module: Any) -> nn.Module:
    """The module itself, of a package that says nothing of types."""
    made: nn.Module = module
    return made


def points(n: int) -> Tensor:
    """Draws points (n, 4)."""
    return torch.randn(n, 4)


def channels(width: int, length: int = 24) -> Callable[..., Tensor]:
    """Draws sequences (n, width, t)."""
    return lambda n, t=length: torch.randn(n, width, t)


def waves(*channels: int, length: int = 800) -> Callable[..., Tensor]:
    """Draws sounds (n, channels, t)."""
    return lambda n, t=length: 0.3 * torch.randn(n, *channels, t)


def with_lengths(draw: Callable[..., Tensor], axis: int = 1) -> Callable[..., tuple[Tensor, Tensor]]:
    """Adds numbers of valid steps, the first of them the whole length."""

    def both(**sizes: int) -> tuple[Tensor, Tensor]:
        drawn = draw(**sizes)
        return drawn, drawn.shape[axis] - torch.arange(len(drawn)) * 2

    return both


def small_classifier() -> nn.Module:
    """A network of two layers for pictures."""
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))


def load(name: str) -> types.ModuleType:
    """Imports a module when a model is made, not before."""
    return importlib.import_module(name)


def add_class(
    package: str,
    cls: str,
    options: dict[str, Any],
    inputs: Callable[..., Any],
    *axes: Mapping[int, str],
    module: str = "",
    name: str = "",
    **sizes: Sequence[int],
) -> None:
    """Adds a class that is made from keywords alone."""
    where = module or package.replace("-", "_")
    add(package, name or cls, lambda: getattr(load(where), cls)(**options), inputs, *axes, **sizes)
