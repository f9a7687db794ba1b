"""Matches a file's tensors with the model's, and finds where in a graph the right tensors end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from math import prod
from typing import TypeVar

import numpy as np

from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.check.eager_log import Step, difference
from torch_onnx_compat.check.file_log import Value

T = TypeVar("T")

_KINDS = 8
"""Different values in a tensor from which on its equality with another says enough."""

_RESOLUTION = 1e-4
"""Least difference of different values, relative to the largest."""

AHEAD = 8
"""How many tensors after a wrong one are examined."""


class SameShapeSteps:
    """Steps of one shape, which are compared with a tensor all at once."""

    def __init__(self, steps: list[tuple[int, Step]]) -> None:
        self._steps = steps
        self._samples = np.stack([step.sample for _, step in steps])
        self._tolerances = np.array([step.tolerance for _, step in steps])
        self._stride = -(-self._samples.shape[1] // 64)

    def equal_steps(self, sample: Array) -> list[int]:
        """Numbers of the steps that equal a tensor."""
        thin = slice(None, None, self._stride)
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.abs(self._samples[:, thin] - sample[thin]) > self._tolerances[:, None]
        near = np.flatnonzero(~off.any(axis=1))
        return [i for i, step in (self._steps[n] for n in near) if difference(sample, step.sample) <= step.tolerance]


def group_by_shape(steps: list[Step]) -> dict[tuple[int, ...], SameShapeSteps]:
    """The steps that depend on the inputs, by shape without axes of size 1."""
    groups: dict[tuple[int, ...], list[tuple[int, Step]]] = defaultdict(list)
    for index, step in enumerate(steps):
        if step.varies and step.sample.size:
            groups[squeeze_shape(step.shape)].append((index, step))
    return {shape: SameShapeSteps(group) for shape, group in groups.items()}


def squeeze_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without axes of size 1."""
    return tuple(size for size in shape if size != 1)


def distance(step: Step, value: Value) -> float:
    """Largest absolute difference; infinite between tensors of different shapes."""
    return (
        difference(value.sample, step.sample)
        if squeeze_shape(step.shape) == squeeze_shape(value.shape)
        else float("inf")
    )


def counterpart(steps: Sequence[Step], step: Step, value: Value, matched: Set[int]) -> Step:
    """The step that a tensor corresponds to: this one, or one soon after it that is far nearer to the tensor.

    A Conv into which a batch norm was folded corresponds to the norm.

    Args:
        steps: All steps.
        step: A step that matches no tensor of the file.
        value: A tensor of the file that matches no step.
        matched: Numbers of the steps that match a tensor of the file.
    """
    start = steps.index(step)
    reach = {start}
    best, least = step, distance(step, value) / 10
    for index in range(start + 1, min(start + 1 + AHEAD, len(steps))):
        if reach.isdisjoint(steps[index].inputs):
            continue
        reach.add(index)
        apart = distance(steps[index], value)
        if index not in matched and apart < least:
            best, least = steps[index], apart
    return best


def is_evidence(sample: Array) -> bool:
    """Whether equality with these values is evidence: not where all of them, or nearly all, are one of a few.

    A softmax that has saturated is the same whatever it was computed from.
    """
    finite = sample[np.isfinite(sample)]
    scale = float(np.abs(finite).max(initial=0.0))
    if sample.size < 2 or not scale:
        return False
    kinds = np.unique(np.round(finite / (_RESOLUTION * scale))).size
    return bool(kinds >= max(2, min(_KINDS, sample.size // 4)))


def right_items(
    order: Sequence[T],
    matched: Set[T],
    before: Callable[[T], Iterable[T]],
    is_part: Callable[[T], bool],
    shape: Callable[[T], tuple[int, ...]],
) -> set[T]:
    """The matched items, and the items from which a right item is computed.

    An item that is a part of its operand vouches for this part only; all parts together make the operand right.
    """
    right: set[T] = set()
    share: dict[T, float] = defaultdict(float)
    for item in reversed(order):
        if item in matched or share[item] > 0.99:  # the shares of all parts add up to 1 but for rounding
            right.add(item)
            for operand in before(item):
                share[operand] += prod(shape(item)) / max(prod(shape(operand)), 1) if is_part(item) else 1.0
    return right


def closure(start: Iterable[T], before: Callable[[T], Iterable[T]]) -> set[T]:
    """These items, and all items from which they are computed."""
    found: set[T] = set()
    waiting = list(start)
    while waiting:
        item = waiting.pop()
        if item not in found:
            found.add(item)
            waiting.extend(before(item))
    return found


def first_items(order: Iterable[T], bad: Set[T], before: Callable[[T], Iterable[T]]) -> list[T]:
    """The bad items that are computed from no other bad one.

    Args:
        order: All items, each after its operands.
        bad: Some of them.
        before: The operands of an item.
    """
    below: set[T] = set()
    first = []
    for item in order:
        if any(operand in bad or operand in below for operand in before(item)):
            below.add(item)
        elif item in bad:
            first.append(item)
    return first
