"""What a model keeps from one call to the next: its file starts anew at each run.

The run on the example tells what it changes. Where it changes anything, the same twin is called once more, and has to
compute what a new one does: counters and caches that no result depends on are nobody's concern.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.observe import EXAMPLE, FirstCall, ModelRefused, Observation

NEAR = 1e-5
"""Difference that is nothing, relative to an output's largest value: what is kept may drift slowly, call after call."""

MOST_SECONDS = 1.0
"""How long the original may run at further cases: what a call leaves for the next may matter at some sizes only."""

MOST_NAMED = 4
"""Attributes that a note names."""


def notes_on_state(observation: Observation, cases: Sequence[Case]) -> list[str]:
    """Says if the original computes something else in a call after its first one.

    Args:
        observation: Has run the original on the example.
        cases: What a new twin computes; the second call is made at one of them.
    """
    first = observation.first_call
    if first is None or not cases:
        return []
    if first.note is None:  # other files are tried on the same cases
        first.note = _note(first, cases)
    return [first.note] if first.note else []


def _note(first: FirstCall, cases: Sequence[Case]) -> str:
    example = cases[0]
    if example.reference.draws:
        return ""
    what, at = _difference(example, first.again), f"a call on the example, at {EXAMPLE!r}"
    others = _other_cases(cases) if not what and first.attributes else ()
    for number, case in enumerate(others):
        what = _difference(case, _call(first, case))
        at = f"{'calls on the example and others' if number else 'a call on the example'}, at {case.label!r}"
        if what:
            break
    if not what:
        return ""
    named = [*first.attributes[:MOST_NAMED], *([first.outside] if first.outside else [])]
    more = f" and {len(first.attributes) - MOST_NAMED} more" if len(first.attributes) > MOST_NAMED else ""
    return (
        f"forward changes {', '.join(named)}{more}, and its next call depends on that: after {at} {what}. The file "
        f"starts anew at each run, as a first call does; {remedy(first, first.attributes)}."
    )


def remedy(first: FirstCall, attributes: Sequence[str]) -> str:
    """What to do about attributes that a next call depends on: a part of a sentence."""
    tensors = [path for path in attributes if tree.tensors_in(_value(first.subject.twin, path))]
    if not tensors:
        return "to carry it on, keep it in tensors that are attributes of a module, and name these in state=[...]"
    options = " ".join(f"--state {path}" for path in tensors)
    numbers = [path for path in attributes if path not in tensors]
    more = f", and {', '.join(numbers)} too, once it is a tensor" if numbers else ""
    return (
        f"to carry it on, make it an input and an output: state=[{', '.join(map(repr, tensors))}], on the command line "
        f"{options} (docs/surgery.md){more}"
    )


def _value(model: nn.Module, path: str) -> Any:
    module, _, attribute = path.rpartition(".")
    return getattr(dict(model.named_modules())[module], attribute, None)  # a scripted module has no get_submodule


def _other_cases(cases: Sequence[Case]) -> list[Case]:
    """Cases of other values than the example's: one at least, and as many as take less than MOST_SECONDS together.

    Those of its sizes come first: an average of equal values is one of them.
    """
    sizes = cases[0].inputs.sizes()
    others = [case for case in cases[1:] if not case.is_searched and not case.reference.draws]
    others.sort(key=lambda case: case.inputs.sizes() != sizes)
    seconds = itertools.accumulate(case.reference.seconds for case in others)
    count = sum(so_far < MOST_SECONDS for so_far in seconds)
    return others[: max(count, 1)] or [cases[0]]


def _call(first: FirstCall, case: Case) -> tuple[Tensor, ...] | ModelRefused:
    try:
        results: tuple[Tensor, ...] = first.subject(*[tensor.clone() for tensor in case.inputs.tensors])
        return results
    except MemoryError:
        raise
    except Exception as error:
        return ModelRefused(f"{type(error).__name__}: {error}")


def _difference(case: Case, found: tuple[Tensor, ...] | ModelRefused | None) -> str:
    if found is None:
        return ""
    if isinstance(found, ModelRefused):
        return f"it refuses ({' '.join(str(found).split())[:200]})"
    wanted = case.reference.outputs
    if len(found) != len(wanted):
        return f"it has {len(found)} results for {len(wanted)}"
    texts = (_difference_of(number, *pair) for number, pair in enumerate(zip(found, wanted, strict=True)))
    return next(filter(None, texts), "")


def _difference_of(number: int, found: Tensor, wanted: Tensor) -> str:
    name = f"result {number}"
    if found.shape != wanted.shape:
        return f"{name} has the shape {tuple(found.shape)} for {tuple(wanted.shape)}"
    if not wanted.numel() or torch.equal(found, wanted):
        return ""
    if not wanted.is_floating_point():
        return f"{name} has other values" if wanted.is_complex() or bool((found != wanted).any()) else ""
    if not torch.equal(found.isfinite(), wanted.isfinite()):
        return f"{name} has other NaN or infinities"
    off = (found.double() - wanted.double()).nan_to_num().abs().max()
    largest = wanted.double().nan_to_num(posinf=0.0, neginf=0.0).abs().max()
    return f"{name} is off by {float(off):.3g}" if off > NEAR * largest else ""
