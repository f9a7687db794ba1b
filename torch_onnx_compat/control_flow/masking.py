"""Where the export and the masking of decisions meet: a second try for a model that an exporter refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch_onnx_compat.backends.backend import ExportFailed, ExportJob
from torch_onnx_compat.control_flow.run.iterables import RowStacker
from torch_onnx_compat.control_flow.run.session import RefusedDecision, Session, activate
from torch_onnx_compat.control_flow.survey import Survey, survey
from torch_onnx_compat.errors import CompatError, UnsupportedError, VerificationError
from torch_onnx_compat.observe import Subject
from torch_onnx_compat.plan import DECISIONS, Plan


@dataclass(frozen=True)
class RewrittenJob:
    """A job whose subjects take their decisions in the file, and what is known about them."""

    job: ExportJob | None
    """None if the model takes no decision that can be rewritten."""
    survey: Survey
    sessions: list[Session]

    @property
    def decisions(self) -> dict[str, str]:
        """What became of each place, once the job has run: masked or If."""
        return {place: what for session in self.sessions for place, what in session.done.items()}

    def report(self, plan: Plan) -> None:
        """Notes in the plan what became of each decision."""
        for place, what in self.decisions.items():
            plan.applied(DECISIONS, place, what)

    @property
    def notes(self) -> list[str]:
        """Checks of the model that the file does not make."""
        dropped = dict.fromkeys(place for session in self.sessions for place in session.dropped)
        return [f"{place}: this check depends on the inputs and is not made in the file." for place in dropped]

    @property
    def source(self) -> str:
        """What is rewritten in the model's own functions, as a unified diff."""
        return self.survey.rewriting.diff()

    def error_to_report(self, first: CompatError, second: CompatError | None = None) -> CompatError:
        """The error to report: what the second try met if it says more about decisions than the first.

        Args:
            first: Of the model as it is.
            second: Of the model with its decisions masked; None if there was no second try.
        """
        better = isinstance(second, (RefusedDecision, VerificationError)) or "would freeze" in str(second)
        error = second if second is not None and better else first
        reasons = [f"{place}: {why}" for place, why in self.survey.rewriting.obstacles.items()]
        if not reasons or not isinstance(error, UnsupportedError):
            return error
        return ExportFailed(f"{error} It cannot be rewritten automatically: {'; '.join(reasons[:3])}.")


def rewrite_decisions(job: ExportJob) -> RewrittenJob:
    """The job once more with its decisions masked.

    Args:
        job: A job that an exporter refused, or whose file was wrong.
    """
    found = survey(job)
    if not found.rewriting:
        return RewrittenJob(None, found, [])
    sessions: list[Session] = []
    make = partial(_subject, job.make_subject, job, found, sessions)
    return RewrittenJob(replace(job, make_subject=make, subject=make(), decides=None), found, sessions)


def explain(job: ExportJob) -> None:
    """Notes in the job's plan which decisions an export would mask, and what that does to the source."""
    with job.plan.muted():  # what the rewrites do in the search was noted already
        found = survey(job)
    for place in found.places:
        job.plan.applied(DECISIONS, place, found.obstacle_at(place) or "depends on the inputs")
    job.plan.source = found.rewriting.diff()


def _subject(make: Callable[[], Subject], job: ExportJob, found: Survey, sessions: list[Session]) -> Subject:
    subject = make()
    session = Session(
        exporter=job.plan.exporter,
        inputs=len(job.inputs.tensors),
        sizes_vary=bool(job.inputs.sizes()),
        other=found.sizes,
        conflicts=dict(found.conflicts),
        alternatives=found.alternatives,
    )
    sessions.append(session)
    subject.wrap(RowStacker, inside=True)
    subject.wrap(partial(_scope, subject, session, found))
    return subject


@contextmanager
def _scope(subject: Any, session: Session, found: Survey) -> Iterator[None]:
    session.log = subject.around
    with found.rewriting.apply(), activate(session):
        yield
