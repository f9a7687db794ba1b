"""Chooses how far each tensor's steps reach: the methods' proposals, compared by what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.precision.int8.loss import relative_distance
from torch_onnx_compat.precision.int8.pair_model import Feeds, PairModel
from torch_onnx_compat.precision.int8.writer import METHODS, Range, Ranges

PER_TENSOR = "the least rounding of each tensor"

CHOOSING = 4
"""Calibration inputs at most on which methods and layers are compared."""


@dataclass(frozen=True)
class ChosenRanges:
    """The ranges that a file gets.

    Attributes:
        ranges: By tensor.
        methods: By tensor, the method that found its range.
        name: The method of all, or that it is chosen tensor by tensor.
        rounding: By tensor or weight, what its pair changes, relative to it; roots of the mean square.
    """

    ranges: Ranges
    methods: Mapping[str, str]
    name: str
    rounding: Mapping[str, float]


def choose_ranges(
    model: PairModel,
    proposals: Mapping[str, Mapping[str, Range]],
    feeds: Sequence[Feeds],
    exact: Sequence[Sequence[Array]],
) -> ChosenRanges:
    """Compares each method for all tensors, and the best method of each tensor, by how far the outputs are off.

    Args:
        model: Runs the graph with all pairs.
        proposals: By method, the range of each tensor.
        feeds: Calibration inputs.
        exact: The outputs in float32 for them.
    """
    feeds, exact = feeds[:CHOOSING], exact[:CHOOSING]
    rounding = {}
    for method in METHODS:
        model.use(proposals[method])
        rounding[method] = _rounding(model, feeds)
    best = {
        tensor: min(METHODS, key=lambda method: rounding[method].get(tensor, 0.0)) for tensor in proposals[METHODS[0]]
    }
    candidates: dict[str, Mapping[str, Range]] = {
        PER_TENSOR: {t: proposals[m][t] for t, m in best.items()},
        **proposals,
    }
    losses = {}
    for name, ranges in candidates.items():
        model.use(ranges)
        losses[name] = relative_distance([model.run_all(feed) for feed in feeds], exact)
    name = min(losses, key=lambda name: losses[name])
    model.use(candidates[name])
    methods = best if name == PER_TENSOR else dict.fromkeys(best, name)
    chosen = {tensor: rounding[methods.get(tensor, METHODS[0])][tensor] for tensor in rounding[METHODS[0]]}
    return ChosenRanges(candidates[name], methods, name, chosen)


def _rounding(model: PairModel, feeds: Sequence[Feeds]) -> dict[str, float]:
    sums: dict[str, tuple[float, float]] = {}
    for feed in feeds:
        for tensor, (noise, signal) in model.errors(feed).items():
            before = sums.get(tensor, (0.0, 0.0))
            sums[tensor] = (before[0] + noise, before[1] + signal)
    return {tensor: _root(noise, signal) for tensor, (noise, signal) in sums.items()}


def _root(noise: float, signal: float) -> float:
    if not np.isfinite(noise):
        return float("inf")
    return math.sqrt(noise / signal) if signal > 0 else 0.0
