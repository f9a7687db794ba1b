"""What a program written by hand is given: its inputs, in a line of text, and draws of other values and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fuzz.programs import WithInputs

Draw = Callable[[Tensor, torch.Generator], Tensor]


def _sparse(x: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(x.shape, generator=generator) * 4 * (torch.rand(x.shape, generator=generator) < 0.1)


FLOATS: dict[str, Draw] = {
    "normal": lambda x, g: torch.randn(x.shape, generator=g),
    "large": lambda x, g: torch.randn(x.shape, generator=g) * 1000,
    "negative": lambda x, g: -torch.randn(x.shape, generator=g).abs() - 0.1,
    "positive": lambda x, g: torch.rand(x.shape, generator=g) * 10 + 0.5,
    "zeros": lambda x, g: torch.zeros(x.shape),
    "ones": lambda x, g: torch.ones(x.shape),
    "halves": lambda x, g: torch.randint(-6, 7, x.shape, generator=g) / 2,
    "tiny": lambda x, g: torch.randn(x.shape, generator=g) * 1e-6,
    "sparse": _sparse,
    "unit": lambda x, g: torch.rand(x.shape, generator=g),
    "rising": lambda x, g: torch.linspace(-4, 9, x.numel()).reshape(x.shape),
    "falling": lambda x, g: torch.linspace(9, -4, x.numel()).reshape(x.shape),
}
"""Other values of an input of floats."""

UNITS: dict[str, Draw] = {
    "unit": lambda x, g: torch.rand(x.shape, generator=g),
    "high": lambda x, g: 0.9 + torch.rand(x.shape, generator=g) / 10,
    "low": lambda x, g: torch.rand(x.shape, generator=g) / 10,
    "zeros": lambda x, g: torch.zeros(x.shape),
    "ones": lambda x, g: torch.ones(x.shape),
    "sparse": lambda x, g: (torch.rand(x.shape, generator=g) < 0.15) * torch.rand(x.shape, generator=g),
    "rising": lambda x, g: torch.linspace(0, 1, x.numel()).reshape(x.shape),
}
"""Other values of an input of numbers from 0 to 1."""

MASKS: dict[str, Draw] = {
    "random": lambda x, g: torch.rand(x.shape, generator=g) < 0.5,
    "none": lambda x, g: torch.zeros(x.shape, dtype=torch.bool),
    "all": lambda x, g: torch.ones(x.shape, dtype=torch.bool),
    "rare": lambda x, g: torch.rand(x.shape, generator=g) < 0.1,
    "first": lambda x, g: torch.arange(x.numel()).reshape(x.shape) < max(1, x.numel() // 3),
}
"""Other values of a mask."""


def _integers(most: int) -> dict[str, Draw]:
    return {
        "random": lambda x, g: torch.randint(0, most, x.shape, generator=g),
        "zeros": lambda x, g: torch.zeros(x.shape, dtype=torch.int64),
        "highest": lambda x, g: torch.full(x.shape, most - 1),
        "few": lambda x, g: torch.randint(0, min(3, most), x.shape, generator=g),
        "rising": lambda x, g: torch.arange(x.numel()).reshape(x.shape) % most,
    }


@dataclass(frozen=True)
class Input:
    """One input of a program.

    Attributes:
        name: The parameter of forward.
        kind: float, unit (0 to 1), mask, or a number: integers below it.
        shape: The example's.
        dynamic: The name of each axis that varies.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    dynamic: Mapping[int, str]

    @property
    def draws(self) -> dict[str, Draw]:
        """Other values, by name; the first one is the example's."""
        return {"float": FLOATS, "unit": UNITS, "mask": MASKS}.get(self.kind) or _integers(int(self.kind))


@dataclass(frozen=True)
class Written(WithInputs):
    """A program: a class of modules, and what its forward takes."""

    kind: type[nn.Module]
    inputs: tuple[Input, ...]

    def make(self) -> nn.Module:
        """The model, with the same weights each time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.kind().eval()

    def draw(self, seed: int = 0, sizes: Mapping[str, int] | None = None, values: str = "") -> tuple[Tensor, ...]:
        """Inputs at some sizes, the example's without them.

        Args:
            seed: Of the values.
            sizes: By axis name.
            values: The name of a draw, for the inputs that have it; the others are drawn as the example is.
        """
        chosen = self.sizes | dict(sizes or {})
        generator = torch.Generator().manual_seed(seed)
        drawn = []
        for one in self.inputs:
            shape = [chosen.get(one.dynamic.get(axis, ""), size) for axis, size in enumerate(one.shape)]
            draw = one.draws.get(values) or next(iter(one.draws.values()))
            drawn.append(draw(torch.empty(shape), generator))
        return tuple(drawn)


def read_input(name: str, text: str) -> Input:
    """An input from a line such as ``float batch=2 3 width=32``: what it is made of, then a size for each axis."""
    kind, *axes = text.split()
    parts = [axis.rpartition("=") for axis in axes]
    return Input(name, kind, tuple(int(p[2]) for p in parts), {i: p[0] for i, p in enumerate(parts) if p[0]})


def collector() -> tuple[list[Written], Callable[..., Any]]:
    """A list of programs, and the decorator that adds a class to it."""
    programs: list[Written] = []

    def program(**inputs: str) -> Callable[[type[nn.Module]], type[nn.Module]]:
        def add(kind: type[nn.Module]) -> type[nn.Module]:
            programs.append(Written(kind, tuple(read_input(name, text) for name, text in inputs.items())))
            return kind

        return add

    return programs, program
