"""Tries a file on special values: zeros, equal values, sorted ones; NaN, infinities, the largest and the smallest.

And on masks that select nothing, or everything.

At ordinary special values a file must be right as anywhere. At NaN and infinities onnxruntime's kernels, not the file,
are often what differs: that is a note. Inputs that the original refuses are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.check.cases import Case
from torch_onnx_compat.check.compare import Array, Comparison, as_array, is_close
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.check.perturb import BreakTies
from torch_onnx_compat.check.perturbed_runs import runs_rounded_otherwise
from torch_onnx_compat.check.random_numbers import RandomNumbers
from torch_onnx_compat.check.rounding import BUDGET_S, SHARE, compare_outputs
from torch_onnx_compat.inputs.draws import sort_like
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused, Observation
from torch_onnx_compat.session import reason_of
from torch_onnx_compat.time_limit import TimeLimit, TooLong

PART_OF_PROOF = 0.1
"""Largest part of the time that the proof took before."""

FLOOR_S = 0.2
"""Seconds that are always allowed."""

ALIKE = 5e-4
"""Largest difference at equal values that is a note, relative to an output's largest value.

Roundings of a sum of equal numbers are all alike, and do not cancel each other: a kernel that adds up one after the
other, as onnxruntime's InstanceNormalization does, is then off by as many roundings as there are numbers.
"""

FILE_FLOOR_S = 2.0
"""Seconds that the file may always take at such values: a loop that ends in eager torch may not end there."""

FAINT = 0.05
"""Largest difference that is nothing beside what the original makes of inputs that are off by a rounding."""

SLOWEST = 20.0
"""Largest time of an eager run on special values, in runs on the example: a loop may not end at NaN."""


@dataclass(frozen=True)
class Special:
    """The example with special values in place of its real numbers, or of its booleans."""

    label: str
    inputs: Inputs
    is_ordinary: bool
    """Whether a difference there is the file's fault, where the original's outputs are finite; else it is a note."""


@dataclass
class Findings:
    """What the special values showed."""

    rows: list[Comparison] = field(default_factory=list)
    """Comparisons at ordinary special values."""
    notes: list[str] = field(default_factory=list)
    failed: Inputs | None = None
    """Inputs at which a row failed."""


def special_inputs(inputs: Inputs) -> Iterator[Special]:
    """The example with special values, the ordinary ones first; none where no input holds real numbers or booleans.

    Args:
        inputs: The example.
    """
    for changes, concerns, is_ordinary in (
        (_ORDINARY, torch.is_floating_point, True),
        (_MASKS, _is_boolean, True),
        (_EXTREME, torch.is_floating_point, False),
    ):
        concerned = [bool(tensor.numel()) and concerns(tensor) for tensor in inputs.tensors]
        for label, change in changes if any(concerned) else ():
            tensors = tuple(
                _changed(tensor, change, is_ordinary) if is_concerned else tensor
                for tensor, is_concerned in zip(inputs.tensors, concerned, strict=True)
            )
            yield Special(label, replace(inputs, tensors=tensors), is_ordinary)


def _is_boolean(tensor: Tensor) -> bool:
    return tensor.dtype == torch.bool


def _changed(tensor: Tensor, change: Callable[[Tensor], Tensor], is_ordinary: bool) -> Tensor:
    """A tensor with special values; at ordinary ones, what has to be sorted, such as bounds, stays so."""
    return sort_like(tensor, change(tensor)) if is_ordinary else change(tensor)


def check_special(
    run: Callable[[Inputs, float], Sequence[Array]],
    names: Sequence[str],
    observation: Observation,
    inputs: Inputs,
    how: Verify,
    seconds: float,
    random_numbers: RandomNumbers,
    *,
    is_strict: bool = False,
    excuse: Callable[[str, Inputs, str], str] = lambda label, inputs, detail: "",
) -> Findings:
    """Compares a file with the original at special values, as far as a tenth of the proof's time allows.

    Args:
        run: Runs the file for some seconds at most; raises what onnxruntime raises.
        names: Names of the outputs.
        observation: Runs the original.
        inputs: The example.
        how: Tolerances; without random inputs nothing is tried, as only the caller's values make sense.
        seconds: What the proof took so far.
        random_numbers: Looks whether they decide something.
        is_strict: Whether a note refuses the file.
        excuse: Says why the file may differ at some inputs, given their label and what differs; nothing if it may not.

    Returns:
        Rows up to the first that fails, and notes: where the file differs at extreme values, and what was not tried.
    """
    findings = Findings()
    if not how.random:
        return findings
    usual = observation.reference("example", observation.prepared.inputs).seconds
    start, budget = time.perf_counter(), max(FLOOR_S, PART_OF_PROOF * seconds)
    specials = list(special_inputs(inputs))
    for number, special in enumerate(specials):
        left = budget - (time.perf_counter() - start)
        is_slow = 2 * usual > left and not observation.takes_at_most(left / 2)
        limits = _Limits(max(1.0, SLOWEST * usual), torchs_own_only=not special.is_ordinary)
        try:
            case = None if is_slow else _case(special, observation, limits)
        except TooLong as limit:
            findings.notes.append(f"not tried at {special.label}: the model {limit} there.")
            start += limits.seconds  # which leaves the others their time
            continue
        if is_slow or limits.foreign:  # all that follow are extreme, too
            why = "too slow" if is_slow else f"{limits.foreign} is not torch's own, and may not stand such values"
            findings.notes.append(f"not tried at {', '.join(s.label for s in specials[number:])}: {why}.")
            break
        if case is not None:
            if random_numbers.what_they_decide(case):
                findings.notes.append(
                    f"at {special.label} random numbers decide what the model computes, so nothing was compared."
                )
                continue
            usual = min(usual, case.reference.seconds)
            matters = special.is_ordinary or is_strict  # what is only noted is not worth many runs
            rows = _compare(run, names, case, how, observation, BUDGET_S if matters else 0.0)
            _judge(findings, special, case, rows, names, observation, excuse)
        if findings.failed is not None:
            break
    return findings


def _judge(
    findings: Findings,
    special: Special,
    case: Case,
    rows: list[Comparison],
    names: Sequence[str],
    observation: Observation,
    excuse: Callable[[str, Inputs, str], str],
) -> None:
    """Takes the rows of a case into the findings, or a note of them."""
    bad = [row for row in rows if not row.ok]
    consent = excuse(special.label, special.inputs, bad[0].detail) if bad else ""
    if consent:
        findings.notes.append(consent)
        return
    is_of_sums = special.label == EQUAL and all(row.max_rel <= ALIKE for row in bad)
    counts = special.is_ordinary and case.is_finite and not (bad and is_of_sums)
    decided = _what_decides(bad, names, case, observation) if bad and counts else ""
    if counts and not decided:
        findings.rows += rows
        findings.failed = special.inputs if bad else None
    elif bad:
        findings.notes.append(_note(special, bad, decided))


def _what_decides(bad: Sequence[Comparison], names: Sequence[str], case: Case, observation: Observation) -> str:
    """What nobody promises, and what would have the original come to something else, too; empty if nothing would."""
    if not any(row.output for row in bad):
        return "the order of equal values decides whether the model runs" if _fails_by_ties(case, observation) else ""
    undecided = _is_undecided(bad, names, case, observation) or _is_faint(bad, names, case, observation)
    return "rounding decides what the model computes" if undecided else ""


def _fails_by_ties(case: Case, observation: Observation) -> bool:
    """Whether the original refuses the inputs where its operations sort equal values in another order."""
    for lowest_first in (True, False):
        mode = BreakTies(lowest_first=lowest_first)
        try:
            observation.reference(f"{case.label}, sorted otherwise", case.inputs, within=mode)
        except ModelRefused:
            return mode.has_ties
    return False


def _note(special: Special, bad: Sequence[Comparison], decided: str) -> str:
    outputs = "; ".join(f"output {row.output!r}: {row.detail}" if row.output else row.detail for row in bad)
    if decided:
        return f"at {special.label} {decided}, so nothing was compared ({outputs})."
    return f"at {special.label} the file differs from eager torch: {outputs}."


def _case(special: Special, observation: Observation, limits: _Limits) -> Case | None:
    """The original's run; None where it refuses the values, or calls what may not stand them."""
    try:
        reference = observation.reference(special.label, special.inputs, within=limits)
    except ModelRefused:
        return None
    return Case(special.label, special.inputs, reference)


def _compare(
    run: Callable[[Inputs, float], Sequence[Array]],
    names: Sequence[str],
    case: Case,
    how: Verify,
    observation: Observation,
    budget: float,
) -> list[Comparison]:
    try:
        found = run(case.inputs, max(FILE_FLOOR_S, 5 * SLOWEST * case.reference.seconds))
    except Exception as error:  # whatever onnxruntime raises is a verdict on the file
        detail = f"fails: {reason_of(error)}"
        return [Comparison(case.label, "", float("nan"), float("nan"), "", False, detail)]
    return compare_outputs(names, found, case, how, observation, budget=budget)


def _is_undecided(
    bad: Sequence[Comparison], names: Sequence[str], case: Case, observation: Observation, count: int = 3
) -> bool:
    """Whether the original's own outputs that failed change widely when its operations round otherwise.

    On a black image all scores are equal but for rounding: which of them are the best, nothing but rounding tells.
    """
    failed = [list(names).index(row.output) for row in bad if row.output in names]
    for other in runs_rounded_otherwise(case, observation, 4.0, count, first=1000):
        for i in failed:
            wanted, value = as_array(case.reference.outputs[i]), as_array(other.reference.outputs[i])
            if value.shape != wanted.shape or (~is_close(value, wanted)).sum() > SHARE / 2 * value.size:
                return True
    return False


def _is_faint(
    bad: Sequence[Comparison], names: Sequence[str], case: Case, observation: Observation, count: int = 3
) -> bool:
    """Whether the outputs are off by little beside their change where the inputs are off by a rounding.

    Of zeros no operation rounds anything: a normalisation of what is nothing but rounding is as large as that of a
    picture, and each one after it larger still.
    """
    failed = {list(names).index(row.output): row for row in bad if row.output in names}
    changes = dict.fromkeys(failed, 0.0)
    for other in _runs_nearby(case, observation, count):
        for i in failed:
            wanted, value = as_array(case.reference.outputs[i]), as_array(other.reference.outputs[i])
            if value.shape != wanted.shape or wanted.dtype.kind != "f":
                return False  # a wrong index is no small difference
            changes[i] = max(changes[i], float(abs(value.astype("float64") - wanted.astype("float64")).max()))
    return bool(failed) and all(row.max_abs <= FAINT * changes[i] for i, row in failed.items())


def _runs_nearby(case: Case, observation: Observation, count: int) -> Iterator[Case]:
    """Runs on inputs that are off by a rounding of the example's."""
    example = observation.prepared.inputs
    for number in range(count):
        generator = torch.Generator().manual_seed(number)
        tensors = tuple(
            _moved(tensor, usual, generator) for tensor, usual in zip(case.inputs.tensors, example.tensors, strict=True)
        )
        label = f"{case.label}, moved {number}"
        inputs = replace(case.inputs, tensors=tensors)
        with suppress(ModelRefused):
            yield Case(label, inputs, observation.reference(label, inputs))


def _moved(tensor: Tensor, usual: Tensor, generator: torch.Generator) -> Tensor:
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor
    rounding = torch.finfo(tensor.dtype).eps * usual.abs().max().double()
    noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
    return (tensor.cpu().double() + noise * rounding.cpu()).to(tensor)


class _Limits(TimeLimit):
    """Ends a run that takes too long, or calls what may not stand the values, at its next operation.

    Args:
        seconds: The most that it may take.
        torchs_own_only: Whether operators that are not torch's own end it: at offsets of NaN, torchvision's
            deform_conv2d reads memory that is not its own, and the process ends.
    """

    def __init__(self, seconds: float, *, torchs_own_only: bool) -> None:
        super().__init__(seconds)
        self._torchs_own_only = torchs_own_only
        self.foreign = ""
        """The operator that ended the run as it is not torch's own."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._torchs_own_only and getattr(func, "namespace", "") not in ("aten", "prim", "prims"):
            self.foreign = str(func)
            raise NotImplementedError(f"{func} is not tried on such values")
        return super().__torch_dispatch__(func, types, args, kwargs)


def _with_places(value: float, *more: float, first: int = 0) -> Callable[[Tensor], Tensor]:
    """A change that puts values at a few places, one in seven of them and at least one, from this one on."""

    def change(tensor: Tensor) -> Tensor:
        changed = tensor.detach().clone().reshape(-1)
        for number, item in enumerate((value, *more)):
            changed[min(2 * number + first, len(changed) - 1) :: 7 * len((value, *more))] = item
        return changed.reshape(tensor.shape)

    return change


def _alternate(tensor: Tensor, magnitude: float) -> Tensor:
    signs = 1 - 2 * (torch.arange(tensor.numel(), device=tensor.device) % 2)
    return (signs * torch.full_like(signs, 1, dtype=torch.float64) * magnitude).to(tensor.dtype).reshape(tensor.shape)


def _equal(tensor: Tensor) -> Tensor:
    finite = tensor[tensor.isfinite()]
    return torch.full_like(tensor, float(finite.float().median()) if finite.numel() else 1.0)


def _sorted(tensor: Tensor) -> Tensor:
    return tensor.detach().sort(-1).values if tensor.dim() else tensor


EQUAL = "equal values"
_INFINITY = float("inf")
_Changes = tuple[tuple[str, Callable[[Tensor], Tensor]], ...]
"""Labels, and what becomes of a tensor."""

_ORDINARY: _Changes = (
    ("zeros", torch.zeros_like),
    ("a few zeros", _with_places(0.0)),
    (EQUAL, _equal),
    ("sorted values", _sorted),
)
"""Real numbers at which a file must be right."""

_MASKS: _Changes = (("booleans all False", torch.zeros_like), ("booleans all True", torch.ones_like))
"""Booleans at which a file must be right; draws hold some of both."""

_EXTREME: _Changes = (
    ("negative zeros", lambda t: -torch.zeros_like(t)),
    ("NaN inputs", _with_places(float("nan"), first=1)),  # onnxruntime's ReduceMax takes one that is the first
    ("infinite inputs", _with_places(_INFINITY, -_INFINITY)),
    ("the largest inputs", lambda t: _alternate(t, torch.finfo(t.dtype).max)),
    ("the smallest inputs", lambda t: _alternate(t, torch.finfo(t.dtype).smallest_normal)),
)
"""Real numbers at which a difference is a note."""
