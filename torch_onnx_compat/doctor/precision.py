"""What a model would lose in half the width, operator by operator: overflows, and roundings that cost too much.

Every operator of the run has a shadow, the same operator on rounded operands. An export measures the same on the
finished graph, with islands and loops, and keeps in float32 what has to stay there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from torch_onnx_compat.check.compare import as_array
from torch_onnx_compat.check.eager_log import OperatorLog, log_run
from torch_onnx_compat.doctor.model import Symptom
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.judge import errors_of, run_in
from torch_onnx_compat.precision.plan import HEADROOM
from torch_onnx_compat.prepare import Prepared

SHOWN = 10
"""Operators that are told, of the worst."""

_MEANS = ("aten.mean", "aten.adaptive_avg_pool2d", "aten._adaptive_avg_pool2d", "aten.var", "aten.std")
"""Operators that add up all their terms, and divide then."""


def examine_precision(
    prepared: Prepared, observation: Observation, half: Half, samples: list[Inputs]
) -> Iterator[Symptom]:
    """Examines one run of the model for each of the inputs.

    Args:
        prepared: The model, in float32.
        observation: Runs it.
        half: The format, and the limit of a file in it.
        samples: Further inputs.
    """
    if half.bound < half.unit / 2:
        yield Symptom("warning", "", *half.too_strict)
        return
    worst: dict[tuple[str, str, str], _Loss] = {}
    for inputs in (prepared.inputs, *samples):
        shadows = _Shadows(half)
        log_run(prepared, inputs, shadows)
        for number, loss in shadows.losses.items():
            step = shadows.log.steps[number]
            key = (step.module, step.statement, step.operator)
            worst[key] = worst[key].larger(loss) if key in worst else loss
    found = {key: loss for key, loss in worst.items() if loss.text(half)}
    for module, statement, operator in sorted(found, key=lambda key: -found[key].rank(half))[:SHOWN]:
        where = " at ".join(filter(None, (module, statement)))
        yield Symptom("info", where, f"{operator} {found[module, statement, operator].text(half)}", "")
    if found:
        more = f"{len(found) - SHOWN} more operators need float32" if len(found) > SHOWN else "these need float32"
        yield Symptom("info", "", more, f"an export with precision={half.name!r} measures that, and keeps it")
    yield from _examine_outputs(observation, half)


def _examine_outputs(observation: Observation, half: Half) -> Iterator[Symptom]:
    """Says how far the model itself is off where all of it runs in the format."""
    inputs = observation.prepared.inputs
    exact = run_in(observation, "example", inputs, torch.float64) or observation.reference("example", inputs).outputs
    eager = run_in(observation, "example", inputs, half.torch_type)
    if eager is None:
        yield Symptom("info", "", f"eager torch does not run it in {half.name}", "")
        return
    errors = [errors_of(as_array(one), as_array(other)).worst for one, other in zip(eager, exact, strict=True)]
    off = max(errors, default=0.0)
    if off > half.bound:
        told = "not finite" if off == float("inf") else f"off by {off:.2g}, of {half.bound:.2g} at most"
        yield Symptom("info", "", f"all in {half.name}, as .to(torch.{half.name}) makes it, it is {told}", "")


@dataclass(frozen=True)
class _Loss:
    """What one operator loses by itself, its largest value, and its largest sum."""

    loss: float
    peak: float
    total: float

    def larger(self, other: _Loss) -> _Loss:
        return _Loss(max(self.loss, other.loss), max(self.peak, other.peak), max(self.total, other.total))

    def rank(self, half: Half) -> float:
        """What is told first: overflows, then the largest loss."""
        return float("inf") if max(self.peak, self.total) > half.largest else self.loss

    def text(self, half: Half) -> str:
        """What it does in the format; nothing where that is no matter."""
        if self.peak > half.largest / HEADROOM:
            return f"has values up to {self.peak:.2g}, {half.reach(self.peak)}"
        if self.total > half.largest / HEADROOM:
            return f"adds up to {self.total:.2g}, {half.reach(self.total)}"
        if self.loss > half.bound / 2:
            return half.loss_text(self.loss, self.peak)
        return ""


class _Shadows(OperatorLog):
    """Runs every operator a second time, on rounded operands."""

    def __init__(self, half: Half) -> None:
        super().__init__()
        self._half = half
        self.losses: dict[int, _Loss] = {}
        """By the number of the step."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        rounded = tree_map(self._rounded, (args, kwargs or {}))  # before func writes to its operands
        operands = [leaf for leaf in tree_leaves((args, kwargs)) if _is_float(leaf)]
        first = len(self.log.steps)
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if operands and torch.Tag.nondeterministic_seeded not in func.tags and not func.is_view:
            shadow = func(*rounded[0], **rounded[1])
            pairs = zip(_tensors(result), _tensors(shadow), strict=True)
            for number, (exact, found) in enumerate(pairs, first):
                if _is_float(exact) and exact.numel():
                    self.losses[number] = self._loss(str(func.overloadpacket), operands[0], exact, found)
        return result

    def _rounded(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if value.dtype is not torch.float32:
            return value.clone()
        largest = self._half.largest
        return value.clamp(-largest, largest).to(self._half.torch_type).float()

    def _loss(self, operator: str, operand: Tensor, exact: Tensor, found: Tensor) -> _Loss:
        magnitude = exact.abs()
        peak = float(magnitude.nan_to_num(0.0, 0.0, 0.0).max())
        scale = magnitude.maximum(magnitude.nan_to_num(0.0, 0.0, 0.0).mean()).clamp(min=1e-30)
        counts = exact.isfinite() & (magnitude <= self._half.largest)
        off = ((self._rounded(found) - exact).abs() / scale)[counts]
        worst = float(off.nan_to_num(float("inf")).max()) if off.numel() else 0.0
        is_mean = operator in _MEANS
        total = float(operand.abs().max()) * operand.numel() / exact.numel() if is_mean else 0.0
        return _Loss(worst, peak, total)


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype is torch.float32


def _tensors(result: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
