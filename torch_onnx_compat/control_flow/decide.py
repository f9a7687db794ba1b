"""Takes one decision of an export: one branch where it cannot vary, else both, joined by a mask or an ONNX If."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torch_onnx_compat.control_flow.conditional import NoConditional, Piece, conditional
from torch_onnx_compat.control_flow.guard import Outcome, attempt, written
from torch_onnx_compat.control_flow.join import Mismatch, join
from torch_onnx_compat.control_flow.raising import raises_on_purpose
from torch_onnx_compat.control_flow.session import Key, Refused, Session, current, refused
from torch_onnx_compat.places import first_line


def decide(session: Session, test: Any, then: Piece, otherwise: Piece, why: str = "") -> Any:
    """The value of one branch, or of both joined.

    Raises:
        Refused: The condition may vary and the branches have no equivalent; says where and why.
    """
    key = session.key()
    condition = session.condition(test, key)
    if isinstance(condition, bool):
        return then() if condition else otherwise()
    if why:
        if session.surveying:
            return then() if _now(condition) else otherwise()
        raise refused(f"a decision depends on the inputs, and {why}; move that out of the branch.")
    by_size = not session.from_data(condition)
    outcomes = attempt(session, then, by_size), attempt(session, otherwise, by_size)
    try:
        return _masked(session, key, condition, *outcomes)
    except Mismatch as mismatch:
        session.conflicts.setdefault(key, str(mismatch))
        if session.surveying:
            return outcomes[0 if _now(condition) else 1].value
        return _conditional(session, condition, then, otherwise, outcomes, mismatch)


def _masked(session: Session, key: Key, condition: Tensor, yes: Outcome, no: Outcome) -> Any:
    failed = [outcome for outcome in (yes, no) if outcome.error is not None]
    for outcome in failed:
        if isinstance(outcome.error, Refused):
            raise outcome.error
    if len(failed) == 2:
        error = no.error if session.surveying and not _now(condition) else yes.error
        assert error is not None
        raise error
    if failed:
        kept = no if failed[0] is yes else yes
        error = failed[0].error
        assert error is not None
        if not raises_on_purpose(error) and not session.surveying:
            raise Mismatch(f"a branch does not run on the example: {first_line(error)}")
        if not session.surveying:
            session.drop_check()
        for tensor, value in kept.writes.values():
            tensor.copy_(value)
        return kept.value
    if key in session.conflicts:
        raise Mismatch(session.conflicts[key])
    value = join(condition, yes.value, no.value)
    for identity, tensor in written((yes, no)).items():
        values = [o.writes[identity][1] if identity in o.writes else tensor.clone() for o in (yes, no)]
        tensor.copy_(join(condition, *values))
    session.mark("masked")
    return value


def _conditional(
    session: Session, condition: Tensor, then: Piece, otherwise: Piece, outcomes: tuple[Outcome, Outcome], why: Mismatch
) -> Any:
    if written(outcomes):
        raise refused(f"a decision depends on the inputs, its branches write in place, and {why}.")
    try:
        value = conditional(session, condition, then, otherwise)
    except NoConditional as obstacle:
        raise refused(
            f"a decision depends on the inputs and cannot be masked: {why}. An ONNX If is no way out: {obstacle}. Let "
            f"both branches make tensors of one shape and dtype."
        ) from obstacle
    session.mark("If")
    return value


def joined_or_refused(condition: Tensor, a: Any, b: Any) -> Any:
    """Joins two values.

    Raises:
        Refused: They differ in type, shape or dtype.
    """
    session = current()
    try:
        return join(condition, a, b)
    except Mismatch as mismatch:
        if session is not None and session.surveying:
            return a
        raise refused(f"a loop is left by a decision that depends on the inputs, and {mismatch}.") from mismatch


def _now(condition: Tensor) -> bool:
    """The condition's value for the example, in a survey."""
    from torch_onnx_compat.tracing import untraced

    with untraced():
        return bool(condition)
