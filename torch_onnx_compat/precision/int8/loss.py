"""How much the outputs of a file differ from those that are wanted, as one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.check.compare import relative_distance as distance_of_output
from torch_onnx_compat.errors import ArgumentError
from torch_onnx_compat.precision.int8.request import TOP1, Request

Outputs = Sequence[Sequence[Array]]
"""The outputs of several inputs."""


def relative_distance(found: Outputs, wanted: Outputs) -> float:
    """The distance of the output that is off most; d is a signal-to-noise ratio of -20 log10(d) dB."""
    worst = 0.0
    for index in range(len(wanted[0])):
        pairs = [(f[index], w[index]) for f, w in zip(found, wanted, strict=True)]
        worst = max(worst, distance_of_output(pairs))
    return worst


def disagreement(found: Outputs, wanted: Outputs) -> float:
    """The share of rows of the first output whose largest value along axis 1 is in another place."""
    if any(f[0].shape != w[0].shape for f, w in zip(found, wanted, strict=True)):
        return float("inf")
    differ: list[Array] = [_places(f[0]) != _places(w[0]) for f, w in zip(found, wanted, strict=True)]
    changed = sum(int(d.sum()) for d in differ)
    return changed / max(sum(d.size for d in differ), 1)


def _places(scores: Array) -> Array:
    """(N, C, ...) -> (N, ...)."""
    places: Array = scores.argmax(axis=1)
    return places


def has_classes(wanted: Outputs) -> bool:
    """Whether the first output may be scores of classes: float32 (N, C), C at least 2."""
    first = wanted[0][0]
    return first.ndim == 2 and first.shape[1] >= 2 and first.dtype.kind == "f"


def loss_of(request: Request) -> Callable[[Outputs, Outputs], float]:
    """The loss that a caller asked for.

    Raises:
        CompatError: When it is called: the caller's metric raises, or gives no number.
    """
    metric = request.metric
    if metric is None:
        return relative_distance
    if metric == TOP1:
        return _checked_disagreement
    kind = type(request).__name__
    assert callable(metric)

    def average(found: Outputs, wanted: Outputs) -> float:
        losses = []
        for number, (f, w) in enumerate(zip(found, wanted, strict=True)):
            try:
                loss = float(metric(_tensors(f), _tensors(w)))
            except Exception as error:
                raise ArgumentError(
                    f"{kind}(metric=…) fails on held-out input {number}: {type(error).__name__}: {error}; it is called "
                    f"with two tuples of tensors, and has to return a number from 0."
                ) from error
            losses.append(float("inf") if np.isnan(loss) else loss)
        return sum(losses) / len(losses)

    return average


def _checked_disagreement(found: Outputs, wanted: Outputs) -> float:
    first = wanted[0][0]
    if first.ndim < 2 or first.dtype.kind != "f":
        raise ArgumentError(
            f"metric='top1': the first output is {first.dtype} {first.shape}; wanted scores of classes, float32 "
            f"(N, C, …). Pass a metric of your own, or None."
        )
    return disagreement(found, wanted)


def _tensors(outputs: Sequence[Array]) -> tuple[Tensor, ...]:
    return tuple(torch.from_numpy(np.ascontiguousarray(output)) for output in outputs)
