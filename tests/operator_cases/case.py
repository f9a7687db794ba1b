"""One operator in one variant, as a model with example inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

EXAMPLE_BATCH, OTHER_BATCH = 2, 5


@dataclass(frozen=True)
class Case:
    """One line of the matrix.

    Args:
        operator: The operator as users know it, e.g. ``interpolate``.
        variant: What is special about this line, e.g. ``bicubic, by scale``.
        call: Module, or function of the inputs; returns a tensor or a tuple of them.
        inputs: The example inputs for a batch size. Axes whose sizes differ from one batch size to another are
            exported as dynamic. Called after the random generator was seeded.
        declined: Text that the refusal contains where refusing is right; empty where the export must succeed.
        naive: The same computation as people commonly write it, for the benchmark.
        options: Further keywords of export_compat, e.g. ``{"allow_approximate": True}``.
    """

    operator: str
    variant: str
    call: Callable[..., Any]
    inputs: Callable[[int], tuple[Tensor, ...]]
    declined: str = ""
    naive: Callable[..., Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Operator and variant."""
        return f"{self.operator}: {self.variant}" if self.variant else self.operator

    def model(self) -> nn.Module:
        """The call as a module in eval mode."""
        return (self.call if isinstance(self.call, nn.Module) else Call(self.call)).eval()

    def example(self) -> tuple[Tensor, ...]:
        """Inputs to export with."""
        return self._inputs(EXAMPLE_BATCH)

    def other(self) -> tuple[Tensor, ...]:
        """Inputs of another batch size, and other values."""
        return self._inputs(OTHER_BATCH)

    def _inputs(self, batch: int) -> tuple[Tensor, ...]:
        torch.manual_seed(batch)
        return self.inputs(batch)

    def dynamic_axes(self) -> dict[str, dict[int, str]]:
        """By input name (input0, input1, ...), the axes that follow the batch size, e.g. ``{"input0": {0: "b2"}}``.

        Axes with the same pair of sizes share a name.
        """
        axes: dict[str, dict[int, str]] = {}
        for i, (a, b) in enumerate(zip(self.example(), self.other(), strict=True)):
            varying = {d: f"b{m}" for d, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)) if m != n}
            if varying:
                axes[f"input{i}"] = varying
        return axes


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)
