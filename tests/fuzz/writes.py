"""Random programs that write in place: to tensors, to views, to views of views, whose owners have names or none."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

INPUT = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(0))
OTHER_INPUT = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(1))


class WriteProgram(nn.Module):
    """Some random operations on a list of tensors, from which tensors are dropped too.

    Args:
        seed: What gives the operations. With some seeds, an operation does not take its tensor.
        returns_copies: Whether the results are copies, and never views of one another.
    """

    def __init__(self, seed: int, *, returns_copies: bool = True) -> None:
        super().__init__()
        self.seed = seed
        self.returns_copies = returns_copies

    def runs(self) -> bool:
        """Whether every operation takes its tensor."""
        try:
            self(INPUT.clone())
        except (RuntimeError, IndexError):
            return False
        return True

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        draw = random.Random(self.seed)
        tensors = [x * 1.5]
        for _ in range(draw.randint(3, 9)):
            made = _step(draw, draw.choice(tensors), draw.choice(tensors) * 0.5)
            if made is not None:
                tensors.append(made)
            elif len(tensors) > 1 and draw.random() < 0.15:
                tensors.pop(draw.randrange(len(tensors)))
        return tuple(t.clone() for t in tensors) if self.returns_copies else tuple(tensors)


def _step(draw: random.Random, one: Tensor, other: Tensor) -> Tensor | None:
    kind = draw.choice(("view", "view", "view of a view", "write", "write", "write", "new"))
    if kind == "new":
        return draw.choice(_NEW)(one)
    if kind == "view":
        return draw.choice(_VIEWS)(one)
    if kind == "view of a view":
        return draw.choice(_VIEWS)(draw.choice(_VIEWS)(draw.choice(_NEW)(one) if draw.random() < 0.3 else one))
    draw.choice(_WRITES[: None if one.shape == other.shape else -4])(one, other)
    return None


_NEW: list[Callable[[Tensor], Tensor]] = [
    lambda t: torch.relu(t),
    lambda t: t + 1,
    lambda t: t.contiguous(),
    lambda t: t.clone(),
    lambda t: t.flip(0),
]

_VIEWS: list[Callable[[Tensor], Tensor]] = [
    lambda t: t[:, 1:] if t.dim() > 1 else t,
    lambda t: t[0],
    lambda t: t[..., ::2],
    lambda t: t.transpose(0, -1),
    lambda t: t[:, -1] if t.dim() > 1 else t[:1],
    lambda t: t.flatten(1) if t.dim() > 1 else t.reshape(-1, 1),
    lambda t: t.detach(),
    lambda t: t.unsqueeze(0),
    lambda t: t.chunk(2, -1)[0],
    lambda t: t.split(1, 0)[-1],
    lambda t: t.unbind(-1)[-1],
    lambda t: t.narrow(0, 0, 1),
    lambda t: t.diagonal(0, 0, -1) if t.dim() > 1 else t,
    lambda t: t.view(-1),
    lambda t: t.squeeze(0),
    lambda t: t[None, ..., 1:],
    lambda t: t.mT if t.dim() > 1 else t,
    lambda t: t.expand(1, *t.shape),
    lambda t: t.view_as(t),
    lambda t: t.to(torch.float32),
]


def _set_part(one: Tensor, other: Tensor) -> None:
    one[..., 0] = 4.0


def _set_first(one: Tensor, other: Tensor) -> None:
    one[0] = one[-1] * 2


def _add_to_part(one: Tensor, other: Tensor) -> None:
    one[..., 1:] += one.mean()


def _set_all(one: Tensor, other: Tensor) -> None:
    one[...] = other * 2


def _double(one: Tensor, other: Tensor) -> None:
    one *= 2


def _write_to_columns(one: Tensor, other: Tensor) -> None:
    for column in one.unbind(-1)[:2]:
        column.mul_(2)


def _write_to_pieces(one: Tensor, other: Tensor) -> None:
    pieces = one.split(2, -1)
    pieces[0].add_(1)
    pieces[-1].mul_(pieces[0].mean())


_WRITES: list[Callable[[Tensor, Tensor], object]] = [
    lambda one, other: one.relu_(),
    lambda one, other: one.fill_(2.0),
    lambda one, other: one.mul_(3),
    lambda one, other: one.copy_(one + 1),
    lambda one, other: one.masked_fill_(one > 1, 0.5),
    lambda one, other: one.ge_(1),
    lambda one, other: one.zero_().add_(0.3),
    lambda one, other: torch.relu_(one),
    _double,
    _set_part,
    _set_first,
    _add_to_part,
    _write_to_columns,
    _write_to_pieces,
    lambda one, other: one.add_(other),
    lambda one, other: one.copy_(other),
    lambda one, other: one.lerp_(other, 0.25),
    _set_all,
]
