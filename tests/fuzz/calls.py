"""Random calls of torch's operators: the tensors that they take, at ordinary and at special values.

A call follows from its seed alone. `call_table` has the arguments of each function, `call_judge` compares the file of a
call with eager torch.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

VARYING = 6
"""A size that stands for the axis that may vary: no other axis of an input has it."""
SIZES = (1, 2, 3, 4, 5, 7)
OTHER_SIZES = (1, 3, 9, 40)
INTEGERS = (torch.int64, torch.int32, torch.uint8, torch.int16, torch.int8)
FLOATS = (torch.float32, torch.float64, torch.float16)
SPECIAL = (0.0, -0.0, math.nan, math.inf, -math.inf, 1e30, -1e30, 1e-40, 0.5, -2.5, 1.0, -3.0)


@dataclass(frozen=True)
class Input:
    """A tensor that a call takes.

    Attributes:
        shape: Its sizes; VARYING where the axis may vary.
        dtype: Its element type.
        kind: What its values are like: one of `KINDS`.
        limit: Of indices, one more than the greatest; VARYING stands for the size of the axis that varies.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    kind: str = "normal"
    limit: int = 0

    def draw(self, generator: torch.Generator, size: int = VARYING) -> Tensor:
        """Ordinary values, with axes that vary of that size."""
        shape = self._shape(size)
        if self.kind in ("index", "offset"):
            return self._indices(shape, generator, size)
        if self.dtype == torch.bool:
            return torch.rand(shape, generator=generator) > 0.5
        if self.kind == "distinct":
            order = torch.randperm(math.prod(shape), generator=generator).reshape(shape)
            return (order - math.prod(shape) // 3).to(self.dtype)
        if not self.dtype.is_floating_point:
            return self._integers(shape, generator)
        values = torch.rand(shape, generator=generator, dtype=torch.float64)
        return KINDS[self.kind](values).to(self.dtype)

    def draw_special(self, generator: torch.Generator, way: int) -> Tensor:
        """Zeros, infinities, NaN, denormal and large numbers, repeated or sorted values; ordinary ones of indices."""
        ordinary = self.draw(generator)
        if self.kind in ("index", "offset") or self.dtype == torch.bool or not ordinary.numel():
            return ordinary
        if way == 0:
            return torch.zeros_like(ordinary)
        if way == 1:  # repeated and sorted
            flat = ordinary.flatten().sort().values
            return flat[torch.arange(flat.numel()) // 2].reshape(ordinary.shape)
        choice = torch.randint(0, 2**31, ordinary.shape, generator=generator)
        if self.dtype.is_floating_point:
            table = torch.tensor(SPECIAL, dtype=torch.float64).to(self.dtype)
        else:
            limits = torch.iinfo(self.dtype)
            table = torch.tensor([0, 1, limits.max, limits.min, limits.max - 1, limits.max // 2, 7], dtype=self.dtype)
        special = table[choice % len(table)]
        return special if way == 2 else torch.where(choice % 5 == 0, special, ordinary)

    def draw_wide(self, generator: torch.Generator) -> Tensor:
        """Whole numbers of the type's width, but for the highest bits; ordinary values where that is not wanted."""
        ordinary = self.draw(generator)
        if self.dtype.is_floating_point or self.dtype == torch.bool or self.kind != "normal":
            return ordinary
        limits = torch.iinfo(self.dtype)
        return torch.randint(limits.min // 4, limits.max // 4, ordinary.shape, generator=generator).to(self.dtype)

    def _shape(self, size: int) -> tuple[int, ...]:
        return tuple(size if s == VARYING else s for s in self.shape)

    def _integers(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        low = 0 if self.dtype == torch.uint8 or self.kind in ("positive", "unit", "above_one") else -20
        if self.kind in ("nonzero", "above_one", "positive"):
            values = torch.randint(1, 20, shape, generator=generator)
            return (values * (1 if low == 0 else -1) ** torch.arange(values.numel()).reshape(shape)).to(self.dtype)
        if self.kind == "count":
            return torch.randint(0, 7, shape, generator=generator).to(self.dtype)
        return torch.randint(low, 20, shape, generator=generator).to(self.dtype)

    def _indices(self, shape: tuple[int, ...], generator: torch.Generator, size: int) -> Tensor:
        limit = size if self.limit == VARYING else self.limit
        values = torch.randint(0, max(limit, 1), shape, generator=generator)
        if self.kind == "offset":
            values = values.sort().values
            values[..., :1] = 0
        return values.to(self.dtype)


KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "normal": lambda u: (u - 0.5) * 8,
    "small": lambda u: u - 0.5,
    "positive": lambda u: u * 4 + 0.1,
    "nonzero": lambda u: (u * 4 + 0.1) * torch.where((u * 100).floor() % 2 == 0, 1, -1),
    "unit": lambda u: (u - 0.5) * 1.96,
    "probability": lambda u: 0.02 + 0.96 * u,
    "above_one": lambda u: 1.01 + u * 5,
    "count": lambda u: (u * 7).floor(),
}
"""Numbers of a kind, made of numbers between 0 and 1."""


@dataclass(frozen=True)
class FromSize:
    """A whole number that the model computes from the size of the axis that varies: `n + difference`."""

    difference: int

    def __repr__(self) -> str:
        return f"n{self.difference:+d}"


@dataclass(frozen=True)
class Call:
    """A function and its arguments, in which Inputs stand for tensors."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def inputs(self) -> list[Input]:
        """The tensors that it takes, in order."""
        return [leaf for leaf in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Input)]

    @property
    def varies(self) -> bool:
        """Whether an axis of an input may vary."""
        return any(VARYING in x.shape for x in self.inputs)

    def axes(self) -> dict[str, dict[int, str]] | None:
        """The axes that may vary, as export_compat takes them."""
        axes = {f"x{i}": {a: "n" for a, s in enumerate(x.shape) if s == VARYING} for i, x in enumerate(self.inputs)}
        return {name: these for name, these in axes.items() if these} or None

    def __str__(self) -> str:
        def told(leaf: Any) -> str:
            if isinstance(leaf, Input):
                limit = f" < {leaf.limit}" if leaf.limit else ""
                return f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)} {leaf.kind}{limit}"
            return f"constant {list(leaf.shape)}" if isinstance(leaf, Tensor) else repr(leaf)

        args = [str(pytree.tree_map(told, a)).replace("'", "") for a in self.args]
        return (
            f"{self.name}({', '.join([*args, *(f'{k}={pytree.tree_map(told, v)}' for k, v in self.kwargs.items())])})"
        )


def compute_a_number(call: Call, draw: Draw) -> Call:
    """The call, sometimes with a number that follows from the size of the axis that varies: the same at VARYING."""
    leaves, structure = pytree.tree_flatten((call.args, call.kwargs))
    numbers = [i for i, leaf in enumerate(leaves) if type(leaf) is int]
    if not (numbers and call.varies and draw.chance(0.3)):
        return call
    chosen = draw.pick(*numbers)
    leaves[chosen] = FromSize(leaves[chosen] - VARYING)
    return Call(call.name, call.function, *pytree.tree_unflatten(leaves, structure))


def beside(one: Call, other: Call) -> Call:
    """Two calls in one model: they share the constants of a trace, and the names in a file."""

    def both(first: Any, second: Any) -> tuple[Any, Any]:
        (args, kwargs), (others, more) = first, second
        return one.function(*args, **kwargs), other.function(*others, **more)

    return Call(f"{one.name} beside {other.name}", both, ((one.args, one.kwargs), (other.args, other.kwargs)), {})


def read_axes(x: Tensor) -> tuple[Tensor, ...]:
    """Operators that read the numbers which calls have for axes, from -3 to 2."""
    counted = torch.stack((x, -x), -1), x.softmax(-2), x.sum(-3), x.unsqueeze(-2)
    return *counted, x.sum(0), x.softmax(1), torch.stack((x, -x), 2)


WITNESS = Call("read_axes", read_axes, (Input((2, 3, 5), torch.float32),), {})
"""Comes out otherwise where a call beside it has changed a constant of the trace."""


class Model(nn.Module):
    """The call as a model of its inputs."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.function, self.name = call.function, call.name
        self.leaves, self.structure = pytree.tree_flatten((call.args, call.kwargs))
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, Input)]

    def forward(self, *tensors: Tensor) -> Any:
        """The result of the call."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            if VARYING in leaves[place].shape:
                size = tensor.shape[leaves[place].shape.index(VARYING)]
            leaves[place] = tensor
        leaves = [size + leaf.difference if isinstance(leaf, FromSize) else leaf for leaf in leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return self.function(*args, **kwargs)


class Draw:
    """The choices of one call.

    Args:
        seed: What they follow from.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._generator = torch.Generator().manual_seed(seed)
        self._may_vary = self._random.random() < 0.6

    def pick(self, *options: Any) -> Any:
        """One of them."""
        return self._random.choice(options)

    def chance(self, probability: float = 0.5) -> bool:
        """True so often."""
        return self._random.random() < probability

    def number(self, low: float, high: float) -> float:
        """A number between the two, of few digits."""
        return round(self._random.uniform(low, high), 2)

    def whole(self, low: int, high: int) -> int:
        """A whole number from low to high."""
        return self._random.randint(low, high)

    def shape(self, least: int = 0, most: int = 4) -> list[int]:
        """Sizes of that many axes; of one call, one axis varies at most."""
        shape = [self.pick(*SIZES) for _ in range(self.whole(least, most))]
        if shape and self._may_vary:
            self._may_vary = False
            shape[self.whole(0, len(shape) - 1)] = VARYING
        return shape

    def batch(self, otherwise: int = 0) -> int:
        """The size of the axis that varies, once in a call; else the other one, or one to three."""
        if self._may_vary:
            self._may_vary = False
            return VARYING
        return otherwise or self.whole(1, 3)

    def shuffled(self, items: Sequence[int]) -> list[int]:
        """The same in another order."""
        return self._random.sample(list(items), len(items))

    def dtype(self, *kinds: str) -> torch.dtype:
        """A dtype; float32 mostly, where that is among the kinds."""
        kinds = kinds or ("float", "int", "bool")
        if "float" in kinds and self.chance(0.65):
            return torch.float32
        kind = self.pick(*kinds)
        if kind == "bool":
            return torch.bool
        return self.pick(*FLOATS) if kind == "float" else self.pick(torch.int64, *INTEGERS)

    def tensor(
        self, shape: Sequence[int], dtype: torch.dtype = torch.float32, kind: str = "normal", limit: int = 0
    ) -> Input:
        """A tensor of the call."""
        return Input(tuple(shape), dtype, kind, limit)

    def any(self, least: int = 0, most: int = 4, kind: str = "normal", kinds: Sequence[str] = ()) -> Input:
        """A tensor of any shape, and of a dtype among the kinds."""
        return self.tensor(self.shape(least, most), self.dtype(*kinds), kind)

    def like(self, x: Input, kind: str = "") -> Input:
        """Another of its shape and dtype."""
        return Input(x.shape, x.dtype, kind or x.kind, x.limit)

    def broadcast(self, shape: Sequence[int]) -> list[int]:
        """A shape that broadcasts with it: axes of 1, or fewer axes."""
        return [1 if self.chance(0.25) else s for s in shape][self.whole(0, len(shape)) if self.chance(0.3) else 0 :]

    def constant(self, shape: Sequence[int], dtype: torch.dtype = torch.float32, kind: str = "normal") -> Tensor:
        """A tensor that is no input but a weight of the model; its sizes do not vary."""
        return Input(tuple(shape), dtype, kind).draw(self._generator, VARYING)

    def weight(self, shape: Sequence[int], dtype: torch.dtype = torch.float32, kind: str = "small") -> Any:
        """A weight: a constant mostly, an input sometimes."""
        if VARYING in shape or self.chance(0.2):
            return self.tensor(shape, dtype, kind)
        return self.constant(shape, dtype, kind)

    def dim(self, x: Input) -> int:
        """An axis of it, from either end."""
        rank = max(len(x.shape), 1)
        return self.whole(-rank, rank - 1)

    def dims(self, x: Input) -> Any:
        """One axis, or several different ones."""
        if len(x.shape) < 2 or self.chance(0.4):
            return self.dim(x)
        axes = self._random.sample(range(len(x.shape)), self.whole(1, len(x.shape)))
        return tuple(axis - (len(x.shape) if self.chance(0.4) else 0) for axis in axes)

    def size(self, x: Input, dim: int) -> int:
        """Size of an axis of it; 1 of a tensor without axes."""
        return x.shape[dim] if x.shape else 1
