"""The table of the cases, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

CASES: dict[str, Callable[[], Case]] = {}
"""What makes each case, by name."""


@dataclass(frozen=True)
class Case:
    """A model with its inputs."""

    model: Any
    args: tuple[Any, ...]
    axes: Mapping[int, Mapping[int, str]]
    """Names of dynamic axes, by argument and axis."""
    others: Sequence[tuple[Any, ...]] = ()
    """Further arguments to judge a file on."""
    options: Mapping[str, Any] | None = None
    """Further keywords of torch.onnx.export."""


torch.manual_seed(0)  # for the layers' weights


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def add(
    name: str,
    model: Callable[..., Any],
    args: tuple[Any, ...],
    axes: Mapping[int, Mapping[int, str]] | None = None,
    others: Sequence[tuple[Any, ...]] = (),
    **options: Any,
) -> None:
    """Adds the case of a module or a plain function."""
    whole = model if isinstance(model, nn.Module) else Function(model)
    CASES[name] = lambda: Case(whole.eval(), args, axes or {}, others, options)


def rand(*sizes: int, seed: int = 0) -> Tensor:
    """Normal numbers that depend on sizes and seed only."""
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed + sum(sizes)))


B = {0: {0: "b"}}
X, Y = rand(3, 4), rand(5, 4, seed=1)
HW = {0: {0: "b", 2: "h", 3: "w"}}
PICTURE = rand(1, 3, 16, 16)
