"""Takes a decision during an export: runs one branch if it cannot vary, else both, joined by a mask or an ONNX If."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor

from torch_onnx_compat.control_flow.find.calls import find_call_site
from torch_onnx_compat.control_flow.run.aliases import copy_of, effect
from torch_onnx_compat.control_flow.run.belongings import (
    State,
    bind_attributes,
    name_alias,
    sort_attributes,
    take_state,
)
from torch_onnx_compat.control_flow.run.branch import Branch, NoConditional, flatten
from torch_onnx_compat.control_flow.run.conditional import make_if
from torch_onnx_compat.control_flow.run.either import Either, make_either
from torch_onnx_compat.control_flow.run.guard import Guard, Outcome, attempt, separate_results, tensors_written_by
from torch_onnx_compat.control_flow.run.join import Mismatch, join, join_what_fits
from torch_onnx_compat.control_flow.run.raising import raises_on_purpose
from torch_onnx_compat.control_flow.run.refusal import EndlessRecursion, RefusedDecision, UnequalBranches, here, refusal
from torch_onnx_compat.control_flow.run.session import Key, Session, current
from torch_onnx_compat.places import first_line
from torch_onnx_compat.tracing import is_tracing, without_tracing
from torch_onnx_compat.watch import Numbering, numbers_of_branches

DEPTH = 40
"""How often a line may decide within its own branches, where both branches of one of these decisions are run."""

DEPTH_OF_BOTH = 32
"""How often both branches of a line may be run within its own branches: each level is watched by all around it."""

CLOSE = 1e-4
"""Tolerance between two branches that compute the same, relative to the largest value."""


@dataclass(frozen=True)
class Statement:
    """What is known of the statement that takes a decision."""

    obstacle: str = ""
    """The side effect that forbids running both branches; empty if there is none."""
    grows: bool = False
    """Whether lists of different lengths become one whose length values decide."""
    returns: bool = False
    """Whether the function that takes the decision returns the value."""


def decide(session: Session, test: Any, then: Branch, otherwise: Branch, statement: Statement = Statement()) -> Any:
    """Returns the value of one branch, or of both joined.

    Args:
        session: Of the run.
        test: The condition.
        then: The branch to take if the condition holds.
        otherwise: The branch to take if it does not.
        statement: What is known of the statement.

    Raises:
        RefusedDecision: The condition may vary and the branches have no equivalent; says where and why.
    """
    with numbers_of_branches() as taken:
        return _decide(session, test, then, otherwise, statement, taken)


def _decide(
    session: Session, test: Any, then: Branch, otherwise: Branch, statement: Statement, taken: Numbering
) -> Any:
    session.check_choices()
    key = session.key()
    for part, branch in enumerate((otherwise, then)):
        branch.nesting = branch.nesting or partial(session.within, key, part)
    condition = session.condition(test, key)
    if isinstance(condition, bool):
        then.numbering = otherwise.numbering = taken
        with session.nest(session.depths, key, DEPTH):
            return then() if condition else otherwise()
    (then if truth_now(condition) else otherwise).numbering = taken
    if key in session.alternatives:
        session.mark("one way for every size")
        return then() if session.alternatives[key] else otherwise()
    if statement.obstacle:
        return _example_or_refuse(session, condition, then, otherwise, statement.obstacle)
    if key in session.conflicts:
        return _decide_by_if(session, condition, then, otherwise, session.conflicts[key], statement)
    with session.nest(session.depths_of_both, key, DEPTH_OF_BOTH):
        return _decide_by_both(session, key, condition, then, otherwise, statement)


def _decide_by_both(
    session: Session, key: Key, condition: Tensor, then: Branch, otherwise: Branch, statement: Statement
) -> Any:
    by_size = not session.from_data(condition)
    # Where values decide, too, the model may run at sizes at which the branch that it does not take would not.
    state = take_state((then, otherwise), session.reach)
    yes = _attempt(session, then, state)
    if isinstance(yes.error, RefusedDecision) and session.depths_of_both[key[:2]] > 1:
        raise yes.error  # each level would try its other branch too
    outcomes = yes, _attempt(session, otherwise, state)
    if why := _find_obstacle(then, otherwise, outcomes):
        return _example_or_refuse(session, condition, then, otherwise, why)
    kept, lost = sort_attributes(condition, [outcome.bound for outcome in outcomes if outcome.error is None])
    for outcome in outcomes:
        outcome.value = outcome.value, tuple(outcome.bound.get(attribute, attribute.value) for attribute in kept)
    separate_results(*outcomes)
    if session.surveying and by_size:
        _compare(session, key, *outcomes)
    try:
        with session.choices.among({id(content.holder) for _, content in state.contents}):
            value, bound = _decide_by_mask(session, condition, *outcomes, statement)
    except Mismatch as mismatch:
        if not session.surveying:
            _refuse_failed(outcomes, mismatch)
            return _decide_by_if(session, condition, then, otherwise, str(mismatch), statement)
        _note_conflict(session, key, condition, outcomes, mismatch)
        if _fails_elsewhere(condition, outcomes) and _is_of_open_call(session, statement):
            return _postpone(session, condition, then, otherwise)
        value, bound = _value_for_example(condition, *outcomes, grows=statement.grows)
    bind_attributes(session, kept, bound, lost)
    return value


def _example_or_refuse(session: Session, condition: Tensor, then: Branch, otherwise: Branch, why: str) -> Any:
    """The value of the example's branch in a search, where something forbids running both.

    Raises:
        RefusedDecision: It is no search.
    """
    if session.surveying:
        return (then if truth_now(condition) else otherwise)()
    raise refusal(f"a decision depends on the inputs, and {why}; move that out of the branch.")


def _attempt(session: Session, branch: Branch, state: State) -> Outcome:
    """Runs a branch; the log hears if it raises on purpose, for which it is left out of the file.

    Raises:
        EndlessRecursion: From within the branch.
    """
    before = len(session.log.decisions) if session.log is not None else 0
    outcome = attempt(branch, Guard(sizes_vary=session.sizes_vary), state=state)
    if isinstance(outcome.error, EndlessRecursion):
        raise outcome.error
    if session.log is not None and outcome.error is not None and raises_on_purpose(outcome.error):
        session.log.end_raised(before)
    return outcome


def _note_conflict(
    session: Session, key: Key, condition: Tensor, outcomes: tuple[Outcome, Outcome], mismatch: Mismatch
) -> None:
    """Notes in a search why a mask cannot join two branches, and what may help."""
    session.conflicts[key] = str(mismatch)
    if any(outcome.error is not None for outcome in outcomes):
        session.peel(condition)
    if mismatch.of_kinds:
        session.split.add(key[:2])


def _refuse_failed(outcomes: tuple[Outcome, Outcome], mismatch: Mismatch) -> None:
    """Raises if a branch failed: the nodes that a failed operation leaves in the trace would break the graph."""
    if any(outcome.error is not None for outcome in outcomes):
        raise refusal(f"a decision depends on the inputs, and {mismatch}.") from mismatch


def _find_obstacle(then: Branch, otherwise: Branch, outcomes: tuple[Outcome, Outcome]) -> str:
    """What a branch changes that is no result of it; empty if there is nothing."""
    changed = next((outcome.changed for outcome in outcomes if outcome.changed), "")
    return f"{changed} is changed" if changed else name_alias(then) or name_alias(otherwise)


def _compare(session: Session, key: Key, yes: Outcome, no: Outcome) -> None:
    """Notes whether both branches compute the same, or only one of them runs at these sizes."""
    errors = [outcome.error for outcome in (yes, no) if outcome.error is not None]
    if not errors:
        session.equal[key] = not (yes.writes or no.writes) and _are_close(yes.value, no.value)
    elif len(errors) == 1 and not raises_on_purpose(errors[0]):
        session.lone[key] = yes.error is None


def _are_close(a: Any, b: Any) -> bool:
    ours: list[Tensor] = []
    theirs: list[Tensor] = []
    with without_tracing():
        try:
            if flatten(a, ours) != flatten(b, theirs) or not ours:
                return False
        except NoConditional:
            return False
        return any(map(_is_informative, ours)) and all(_are_near(x, y) for x, y in zip(ours, theirs, strict=True))


def _is_informative(x: Tensor) -> bool:
    """Whether that another tensor has the same values says that it is computed alike: two answers agree by chance."""
    return x.is_floating_point() and x.numel() > 1 and bool((x != x.flatten()[0]).any())


def _are_near(x: Tensor, y: Tensor) -> bool:
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    x, y = x.detach().double(), y.detach().double()
    return not x.numel() or float((x - y).abs().max()) <= CLOSE * float(x.abs().max())


def _decide_by_mask(session: Session, condition: Tensor, yes: Outcome, no: Outcome, statement: Statement) -> Any:
    failed = [outcome for outcome in (yes, no) if outcome.error is not None]
    for outcome in failed:
        if isinstance(outcome.error, RefusedDecision):
            raise outcome.error
    if len(failed) == 2:
        return _value_for_example(condition, yes, no, grows=statement.grows)
    if failed:
        assert failed[0].error is not None
        if not raises_on_purpose(failed[0].error):
            raise Mismatch(f"a branch does not run on the example: {first_line(failed[0].error)}")
        session.drop_check(failed[0].error)
        survivor = no if failed[0] is yes else yes
        with effect(survivor.marks):
            for tensor, value in survivor.writes.values():
                tensor.copy_(value)
        return survivor.value
    with effect(yes.marks, no.marks):
        value = _join(session, condition, yes.value, no.value, statement)
        for identity, tensor in tensors_written_by((yes, no)).items():
            values = [o.writes[identity][1] if identity in o.writes else copy_of(tensor) for o in (yes, no)]
            tensor.copy_(join(condition, values[0], values[1]))
    session.mark("masked")
    return value


def _join(session: Session, condition: Tensor, a: Any, b: Any, statement: Statement) -> Any:
    """Joins what two branches return, and the attributes that they bind.

    Where a function returns values of two kinds, its caller is to go on with each of them in a branch.
    """
    try:
        return join(condition, a, b, grows=statement.grows)
    except Mismatch as mismatch:
        site = find_call_site() if statement.returns and mismatch.of_kinds else None
        if site is None:
            raise
        if site not in session.open_calls:
            session.calls_to_open.add(site)
            raise
    value, bound = make_either(condition, a[0], b[0]), join(condition, a[1], b[1], grows=statement.grows)
    session.note_departure(value, (a[0], b[0]))
    return value, bound


def _value_for_example(condition: Tensor, yes: Outcome, no: Outcome, *, grows: bool) -> Any:
    """The value of the branch that the example takes; raises the branch's error if it has one."""
    outcome = yes if truth_now(condition) else no
    if outcome.error is not None:
        raise outcome.error
    other = no if outcome is yes else yes
    if other.error is not None:
        return outcome.value
    return join_what_fits(condition, outcome.value, other.value, grows=grows)


def _fails_elsewhere(condition: Tensor, outcomes: tuple[Outcome, Outcome]) -> bool:
    """Whether the branch that the example does not take is the one that fails."""
    example, other = outcomes if truth_now(condition) else outcomes[::-1]
    return example.error is None and other.error is not None


def _is_of_open_call(session: Session, statement: Statement) -> bool:
    """Whether the caller of the function goes on in two branches with what the function returns."""
    return statement.returns and find_call_site() in session.open_calls


def _postpone(session: Session, condition: Tensor, then: Branch, otherwise: Branch) -> Either:
    """Leaves it to the caller to run the branches, each in the branch that goes on with its value."""
    then.numbering = otherwise.numbering = nullcontext
    value = Either(condition, then, otherwise, is_postponed=True)
    session.note_departure(value, ())
    return value


def _decide_by_if(
    session: Session, condition: Tensor, then: Branch, otherwise: Branch, why: str, statement: Statement
) -> Any:
    try:
        value = make_if(session, condition, then, otherwise)
    except NoConditional as obstacle:
        if _is_of_open_call(session, statement):
            return _postpone(session, condition, then, otherwise)
        raise refusal(
            f"a decision depends on the inputs and cannot be masked: {why}. An ONNX If is no way out: {obstacle}. Let "
            f"both branches make tensors of one shape and dtype.",
            kind=UnequalBranches,
        ) from obstacle
    session.mark("If")
    return value


def join_or_refuse(condition: Tensor, a: Any, b: Any) -> Any:
    """Joins two values that a loop may be left with; lists of different lengths become one.

    Raises:
        RefusedDecision: They differ in type, shape or dtype.
    """
    session = current()
    try:
        return join(condition, a, b, grows=True)
    except Mismatch as mismatch:
        if session is not None and session.surveying:
            session.unbounded.add(here())  # where it runs in the file, the exits need not be joined
            return join_what_fits(condition, a, b, grows=True)
        raise refusal(f"a loop is left by a decision that depends on the inputs, and {mismatch}.") from mismatch


def truth_now(condition: Tensor | bool) -> bool:
    """The condition's value for the example; True under torch.export, where a tensor has none."""
    if isinstance(condition, bool):
        return condition
    if not is_tracing():
        return True
    with without_tracing():
        return bool(condition)
