"""What a program written by hand is given: its inputs, in a line of text, and draws of other values and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """Whole numbers from 0 up to one, such as token ids."""
    return {
        "random": lambda x, g: torch.randint(0, most, x.shape, generator=g),
        "zeros": lambda x, g: torch.zeros(x.shape, dtype=torch.int64),
        "highest": lambda x, g: torch.full(x.shape, most - 1),
        "few": lambda x, g: torch.randint(0, min(3, most), x.shape, generator=g),
        "rising": lambda x, g: torch.arange(x.numel()).reshape(x.shape) % most,
    }


def _whole(dtype: torch.dtype) -> dict[str, Draw]:
    """Whole numbers of a type: the example's are small and not negative, the others go to the ends of the type."""
    info = torch.iinfo(dtype)

    def between(low: int, high: int) -> Draw:
        return lambda x, g: torch.randint(max(low, info.min), min(high, info.max), x.shape, generator=g).to(dtype)

    ends = torch.tensor([info.min, info.min + 1, -1 if info.min else 1, 0, 1, 2, info.max - 1, info.max], dtype=dtype)
    return {
        "few": between(1, 9),
        "signed": between(-9, 10),
        "wide": between(-1000, 1001),
        "widest": between(info.min, info.max),
        "ends": lambda x, g: ends[torch.randint(len(ends), x.shape, generator=g)],
        "zeros": lambda x, g: torch.zeros(x.shape, dtype=dtype),
        "rising": lambda x, g: (torch.arange(x.numel()).reshape(x.shape) - x.numel() // 2).to(dtype),
        "past2^53": lambda x, g: (torch.randint(-9, 9, x.shape, generator=g) + 2**53 + 2**40).to(dtype),
    }


WHOLE: dict[str, dict[str, Draw]] = {
    "int8": _whole(torch.int8),
    "uint8": _whole(torch.uint8),
    "int16": _whole(torch.int16),
    "int32": _whole(torch.int32),
    "int64": _whole(torch.int64),
}
"""Other values of an input of whole numbers of a type."""

DOUBLES: dict[str, Draw] = {name: (lambda x, g, d=draw: d(x, g).double()) for name, draw in FLOATS.items()}
HALVES: dict[str, Draw] = {name: (lambda x, g, d=draw: d(x, g).half()) for name, draw in FLOATS.items()}


def _near_tenths(x: Tensor, generator: torch.Generator) -> Tensor:
    """The floats next to tenths."""
    tenths = _tenths(x, generator)
    return torch.nextafter(tenths, tenths + torch.randint(-1, 2, x.shape, generator=generator))


def _tenths(x: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randint(-12, 13, x.shape, generator=generator) / 10


TENTHS: dict[str, Draw] = {
    "some": lambda x, g: torch.tensor([0.3, 0.2, -0.5, 0.1])[torch.arange(x.numel()) % 4].reshape(x.shape),
    "tenths": _tenths,
    "near": _near_tenths,
    **{f"all {n / 10}": (lambda x, g, n=n: torch.full(x.shape, n / 10)) for n in (1, 2, 3, 5, 7, -1, -7)},
    **{f"at most {n / 10}": (lambda x, g, n=n: _tenths(x, g).clamp(max=n / 10)) for n in (1, 3, 7)},
    "bytes": lambda x, g: torch.randint(-300, 300, x.shape, generator=g).float(),
    "huge": lambda x, g: (torch.randint(-9, 9, x.shape, generator=g) + 2.0**24) / 10,
    "zeros": lambda x, g: torch.zeros(x.shape),
}
"""Other values of an input whose numbers a program compares with tenths, none of which is a float32."""

NUMBERS: dict[str, Draw] = {
    **FLOATS,
    "nan": lambda x, g: torch.where(
        torch.rand(x.shape, generator=g) < 0.3, torch.nan, torch.randn(x.shape, generator=g)
    ),
    "all nan": lambda x, g: torch.full(x.shape, torch.nan),
    "infinite": lambda x, g: torch.tensor([torch.inf, -torch.inf, 1.0, -2.0])[torch.randint(4, x.shape, generator=g)],
    "negative zeros": lambda x, g: -torch.zeros(x.shape),
}
"""Other values of an input of floats of a program that says what becomes of NaN and infinities."""

KINDS: dict[str, dict[str, Draw]] = {
    "float": FLOATS,
    "unit": UNITS,
    "mask": MASKS,
    "double": DOUBLES,
    "half": HALVES,
    "number": NUMBERS,
    "tenth": TENTHS,
    "tenth_half": {name: (lambda x, g, d=draw: d(x, g).half()) for name, draw in TENTHS.items()},
    **WHOLE,
}


@dataclass(frozen=True)
class Input:
    """One input of a program.

    Attributes:
        name: The parameter of forward.
        kind: float, unit (0 to 1), mask, double, half, number (floats, NaN and infinities), tenth, tenth_half, a type
            of whole numbers, or a number: whole numbers below it.
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
        return KINDS.get(self.kind) or _integers(int(self.kind))


@dataclass(frozen=True)
class Written(WithInputs):
    """A program: a class of modules, and what its forward takes.

    Attributes:
        kind: The class. Where it has a static method ``arrange``, this makes forward's arguments, a tuple or a dict of
            keywords, of the tensors.
        inputs: The tensors.
        options: Further arguments of export_compat; a function is called for them.
        limits: The largest size of an axis, by name; 8 times the ladder's otherwise.
        values: The draw of the example, for the inputs that have it; each input's first otherwise.
    """

    kind: type[nn.Module]
    inputs: tuple[Input, ...]
    options: Mapping[str, Any] | Callable[[], Mapping[str, Any]] = field(default_factory=dict)
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    values: str = ""

    def arrange(self, tensors: Sequence[Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Forward's arguments and keywords."""
        make = getattr(self.kind, "arrange", None)
        made = make(*tensors) if make else tuple(tensors)
        return ((), dict(made)) if isinstance(made, dict) else (tuple(made), {})

    def keywords(self) -> dict[str, Any]:
        """Further arguments of export_compat, the axes among them."""
        given = self.options() if callable(self.options) else self.options
        bounded = {
            name: {axis: (one, *self.limits[one]) if one in self.limits else one for axis, one in axes.items()}
            for name, axes in self.dynamic.items()
        }
        return {"dynamic": bounded or None, **given}

    def make(self) -> nn.Module:
        """The model, with the same weights each time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.kind().eval()

    def at(self, sizes: Mapping[str, int], values: str = "") -> Written:
        """The same program with another example.

        Args:
            sizes: By axis name.
            values: The name of a draw.
        """
        inputs = []
        for one in self.inputs:
            shape = tuple(sizes.get(one.dynamic.get(axis, ""), size) for axis, size in enumerate(one.shape))
            inputs.append(replace(one, shape=shape))
        return replace(self, inputs=tuple(inputs), values=values)

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
            draw = one.draws.get(values or self.values) or next(iter(one.draws.values()))
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

    def program(
        options: Any = None, limits: Mapping[str, tuple[int, int]] | None = None, /, **inputs: str
    ) -> Callable[[type[nn.Module]], type[nn.Module]]:
        def add(kind: type[nn.Module]) -> type[nn.Module]:
            made = tuple(read_input(name, text) for name, text in inputs.items())
            programs.append(Written(kind, made, options or {}, limits or {}))
            return kind

        return add

    return programs, program
