"""The inputs that a graph is measured on, and the special values that a file of half the width is judged on besides."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.check.cases import Case, Cases
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.check.special import special_inputs
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused, Observation

HEAVY_SECONDS = 0.03
"""Seconds of an eager run from which on the graph is measured on the example and the samples only.

Other values and sizes are then measured where the judge finds the file wrong at them."""

MOST_ELEMENTS = 2**24
"""Elements of a table of distances between all parts of the input, up to which a lengthened input is measured on."""

SEED = 20

SPREAD = "spread values"

FEW_VALUES = 16
"""A smaller tensor holds scales or sizes rather than data, and is left as it is."""


def inputs_to_measure(observation: Observation, cases: Cases | None, samples: Sequence[Any]) -> list[Inputs]:
    """The example, the caller's samples, and of a light model other values, at larger sizes of the dynamic axes.

    Args:
        observation: Runs the original.
        cases: The cases that were compared; None where none were.
        samples: Further inputs of the caller's.
    """
    example = observation.prepared.inputs
    known = Cases(observation, Verify(), samples) if cases is None else cases
    inputs = [example, *known.samples()]
    if not observation.takes_at_most(HEAVY_SECONDS):
        return inputs
    tried = [] if cases is None else cases.inputs_so_far
    limit = 4 * _elements(example)
    others = [other for other in tried if other.sizes() != example.sizes() and _elements(other) <= limit]
    return [*inputs, max(others, key=_elements, default=None) or example.redrawn(SEED)]


@dataclass(frozen=True)
class LongExample:
    """The example with one axis lengthened, towards the largest size that the caller allows.

    Attributes:
        inputs: The inputs.
        growth: The size over the example's.
        reach: The largest size over this one.
    """

    inputs: Inputs
    growth: float
    reach: float


def long_examples(observation: Observation) -> list[LongExample]:
    """For each axis with a declared largest size, the example with that axis as long as can be afforded.

    Lengths are multiples of the example's, which a model is likely to take. What grows with the square of the length
    has to fit into memory, too.
    """
    example = observation.prepared.inputs
    if not observation.takes_at_most(HEAVY_SECONDS):
        return []
    found = []
    most = max((MOST_ELEMENTS / max(_elements(example), 1)) ** 0.5, 1.0)
    for name, size in example.sizes().items():
        largest = example.bounds().get(name, (1, None))[1]
        if largest is None or not 0 < size < largest:
            continue
        factor = int(min(largest / size, most))
        if factor > 1:
            longer = example.at_sizes({name: factor * size})
            found.append(LongExample(longer, factor, largest / (factor * size)))
    return found


def ordinary_cases(observation: Observation, proven_at: Collection[str]) -> list[Case]:
    """The example with spread values, then with zeros, equal and sorted ones, where the original stays finite.

    Args:
        observation: Runs the original.
        proven_at: Labels of the cases on which the float32 graph was right.
    """
    tried = [(SPREAD, _spread(observation.prepared.inputs))]
    for special in special_inputs(observation.prepared.inputs):
        if special.is_ordinary and special.label in proven_at:
            tried.append((special.label, special.inputs))
    found = []
    for label, inputs in tried:
        try:
            reference = observation.reference(label, inputs)
        except ModelRefused:
            continue
        if all(bool(output.isfinite().all()) for output in reference.outputs if output.is_floating_point()):
            found.append(Case(label, inputs, reference))
    return found


def _spread(inputs: Inputs) -> Inputs:
    """Values drawn evenly between the example's least and largest: a normal example has few of the large ones."""
    generator = torch.Generator().manual_seed(SEED)

    def draw(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point() or tensor.numel() < FEW_VALUES or not bool(tensor.isfinite().all()):
            return tensor
        low, high = tensor.double().aminmax()
        places = torch.rand(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.device)
        return (low + (high - low) * places).to(tensor.dtype)

    return replace(inputs, tensors=tuple(map(draw, inputs.tensors)))


def _elements(inputs: Inputs) -> int:
    return sum(tensor.numel() for tensor in inputs.tensors)
