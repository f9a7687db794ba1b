"""Obstacles to an export that a model's weights and a forward pass show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from torch_onnx_compat.check.between_calls import notes_on_state, remedy
from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.observe import EXAMPLE, ModelRefused, Observation
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.publish.publish import INLINE_LIMIT

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Symptom:
    """One obstacle, or possible obstacle, to an export.

    Attributes:
        severity: error, warning or info.
        place: Module path or ``file.py:line``; empty for the model itself.
        what: The finding.
        action: The remedy; empty where `what` states it.
    """

    severity: Severity
    place: str
    what: str
    action: str

    def __str__(self) -> str:
        action = f"; {self.action}" if self.action else ""
        return f"{self.severity}: {self.place or 'the model'}: {self.what.rstrip('.')}{action}."


def examine_weights(model: nn.Module) -> Iterator[Symptom]:
    """Examines parameters and buffers."""
    tensors = {n: t for n, t in (*model.named_parameters(), *model.named_buffers()) if not is_lazy(t)}
    kinds: dict[torch.dtype, str] = {}
    for name, tensor in tensors.items():
        if tensor.is_floating_point():
            kinds.setdefault(tensor.dtype, name)
        if tensor.is_meta or tensor.is_quantized or _byte_size({name: tensor}) > INLINE_LIMIT:
            continue
        if tensor.is_floating_point() and bool(tensor.isnan().any()):
            yield Symptom("error", name, "holds NaN", "load a checkpoint that is whole")
    if len(kinds) > 1:
        found = ", ".join(f"{name!r} is {_dtype_name(dtype)}" for dtype, name in kinds.items())
        yield Symptom("warning", "", f"tensors of several types: {found}", "convert the model with .float()")
    elif torch.float64 in kinds:
        yield Symptom("warning", "", "double precision, which many engines lack", "convert the model with .float()")
    if _byte_size(tensors) > INLINE_LIMIT:
        yield Symptom(
            "info",
            "",
            f"{_byte_size(tensors) / 1e9:.1f} GB of weights lie in a file beside the model",
            "move both together",
        )
    yield from _examine_shared_parameters(model)


def _examine_shared_parameters(model: nn.Module) -> Iterator[Symptom]:
    names: dict[int, list[str]] = defaultdict(list)
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names[id(parameter)].append(name)
    for shared in names.values():
        if len(shared) > 1:
            yield Symptom("info", shared[0], f"the same parameter as {', '.join(shared[1:])}, held once", "")


def _byte_size(tensors: dict[str, Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def examine_forward(prepared: Prepared, observation: Observation) -> Iterator[Symptom]:
    """Examines runs of the model."""
    try:
        reference = observation.reference(EXAMPLE, prepared.inputs)
    except ModelRefused as refusal:
        yield Symptom("error", "", f"the model itself fails on the example: {refusal}", "mend the model or the example")
        return
    for note in reference.dropped:
        yield Symptom("warning", "", note, "return tensors only")
    if not reference.outputs:
        yield Symptom("error", "", "the model returns no tensor", "return what the engine is to compute")
    for index, output in enumerate(reference.outputs):
        if output.is_floating_point() and bool(output.isnan().any()):
            yield Symptom("warning", "", f"output {index} holds NaN on the example", "give an example from real data")
        if output.is_complex():
            yield Symptom("warning", "", f"output {index} is complex; the file returns pairs of real numbers", "")
    again = observation.reference("example, once more", prepared.inputs)
    if any(not _is_same(a, b) for a, b in zip(reference.outputs, again.outputs, strict=True)):
        yield Symptom("error", "", "two runs give two results", "take random numbers as an input, or fix them")
    yield from _examine_state(prepared, observation)


def _is_same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True)


def _examine_state(prepared: Prepared, observation: Observation) -> Iterator[Symptom]:
    """Finds what a call changes and the next one depends on."""
    first = observation.first_call
    if first is None:
        return
    drawn = prepared.inputs.redrawn(0)
    cases = [Case(EXAMPLE, prepared.inputs, observation.reference(EXAMPLE, prepared.inputs))]
    with suppress(ModelRefused):
        cases.append(Case("other values", drawn, observation.reference("other values", drawn)))
    if notes_on_state(observation, cases):
        what = "forward changes it, and its next call depends on that; the file starts anew at each run"
        for path in first.attributes or (first.outside,):
            yield Symptom("warning", path, what, remedy(first, [path] if first.attributes else []))
