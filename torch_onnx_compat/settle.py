"""Axes as the model itself has them: those that only vary together get one name, those that it fixes are fixed.

torch's ``dynamic_axes`` gives every axis a name of its own, and says nothing of which ones belong together. The model
does: it refuses every size of one of them alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations

import torch

from torch_onnx_compat.inputs.inputs import Axis, Inputs, is_within
from torch_onnx_compat.observe import ModelRefused, Observation
from torch_onnx_compat.prepare import Prepared

STEPS = (1, 2, 32, -1)
"""By how much axes are lengthened; shortened where values, such as sorted lengths, allow no longer ones."""


def settle_axes(prepared: Prepared) -> Prepared | None:
    """The model with axes of one name that have to vary together, and without those that it fixes, with notes.

    Args:
        prepared: The model, with the axes that the caller declared.

    Returns:
        None where the model accepts other sizes of every axis alone, or an axis that the caller insists on is fixed.
    """
    trial = _Trial(prepared)
    declared = [name for name in prepared.inputs.sizes() if not trial.is_free([name])]
    lengths = {name: position for name in declared for position in trial.find_lengths(name)}
    stuck = [name for name in declared if name not in lengths]
    groups = list(_groups(trial, stuck))
    tied = {name for group in groups for name in group}
    fixed = [name for name in stuck if name not in tied]
    insisted = {name for axes in prepared.inputs.axes for axis in axes.values() if axis.is_firm for name in axis.roots}
    if not declared or insisted & set(fixed):
        return None
    sizes, names = prepared.inputs.sizes(), {name: group[0] for group in groups for name in group}
    notes = [f"axes {', '.join(g[:-1])} and {g[-1]} vary together: they are one axis, {g[0]}." for g in groups]
    notes += [
        f"axis {name} is fixed at {sizes[name]}: the model itself refused other sizes ({trial.reason[name]})"
        for name in fixed
    ]
    notes += [
        f"the largest value of {prepared.inputs.names[position]} is the size of axis {name}, with which it varies."
        for name, position in lengths.items()
    ]
    inputs = replace(_rename(prepared.inputs, names, fixed), lengths=tuple((p, n) for n, p in lengths.items()))
    return replace(prepared, inputs=inputs, notes=(*prepared.notes, *notes))


MOST_OTHERS = 5
"""Axes of one size of which every group is tried."""


class _Trial:
    """Asks the original which sizes it accepts."""

    def __init__(self, prepared: Prepared) -> None:
        self._inputs = prepared.inputs
        self._observation = Observation(prepared)
        self.sizes = prepared.inputs.sizes()
        self.reason: dict[str, str] = {}
        """Why the model refused another size of an axis."""

    def is_free(self, names: Sequence[str]) -> bool:
        """Whether the model accepts other sizes of these axes, of which all have the same size in the example."""
        size = self.sizes[names[0]]
        others = [*(size + step for step in STEPS), 2 * size, size // 2]  # powers of two, halves that are added up
        return any(self._accepts(dict.fromkeys(names, other)) for other in others if other > 0)

    def find_lengths(self, name: str) -> Iterable[int]:
        """The position of a tensor of lengths, with which the model accepts other sizes of an axis; none, or one."""
        size, before = self.sizes[name], self._inputs
        for position, tensor in enumerate(before.tensors):
            if tensor.dtype in (torch.int32, torch.int64) and tensor.numel() and int(tensor.max()) == size:
                self._inputs = replace(before, lengths=((position, name),))
                is_free = self.is_free([name])
                self._inputs = before
                if is_free:
                    return (position,)
        return ()

    def _accepts(self, sizes: Mapping[str, int]) -> bool:
        bounds = self._inputs.bounds()
        if not all(is_within(bounds, name, size) for name, size in sizes.items()):
            return False
        try:
            self._observation.run_within(nullcontext(), self._inputs.at_sizes(sizes))
        except ModelRefused as refusal:
            for name in sizes:
                self.reason.setdefault(name, str(refusal))
            return False
        return True


def _groups(trial: _Trial, stuck: Sequence[str]) -> Iterable[list[str]]:
    """The axes that the model accepts other sizes of together, in groups that are as small as can be."""
    left = list(stuck)
    while left:
        first, *others = [name for name in left if trial.sizes[name] == trial.sizes[left[0]]]
        group = next((g for g in _combinations(first, others) if trial.is_free(g)), None) if others else None
        if group is not None:
            yield group
        left = [name for name in left if name not in (group or [first])]


def _combinations(first: str, others: Sequence[str]) -> Iterable[list[str]]:
    """Groups of an axis and some others, the smallest first; of many others, all together only."""
    for count in range(1, len(others) + 1) if len(others) <= MOST_OTHERS else (len(others),):
        for some in combinations(others, count):
            yield [first, *some]


def _rename(inputs: Inputs, names: Mapping[str, str], fixed: Collection[str]) -> Inputs:
    def rename(axis: Axis) -> Axis:
        terms = tuple((names.get(name, name), factor) for name, factor in axis.terms)
        name = names.get(axis.name, axis.name)
        together = [a for axes in inputs.axes for a in axes.values() if names.get(a.name, a.name) == name]
        limits = [a.max for a in together if a.max is not None]
        least, most = max(a.min for a in together), min(limits) if limits else None
        return replace(axis, name=name, terms=terms, min=least, max=most)

    axes = tuple(
        {dim: rename(axis) for dim, axis in axes.items() if not set(axis.roots) & set(fixed)} for axes in inputs.axes
    )
    return replace(inputs, axes=axes)
