"""The second export of a model whose first one failed, with the model's decisions rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch_onnx_compat.backends.backend import ExportFailed, ExportJob, TooLarge
from torch_onnx_compat.caller.undo import reach_of
from torch_onnx_compat.control_flow.run.lists import RowStacker
from torch_onnx_compat.control_flow.run.refusal import RefusedDecision
from torch_onnx_compat.control_flow.run.session import Session, activate
from torch_onnx_compat.control_flow.survey import Survey, survey
from torch_onnx_compat.control_flow.values import ValueDecisions
from torch_onnx_compat.errors import CompatError, UnsupportedError, VerificationError
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import Subject
from torch_onnx_compat.plan import DECISIONS, Plan


@dataclass(frozen=True)
class RewrittenJob:
    """An export job whose model is rewritten so that the file takes its decisions."""

    job: ExportJob | None
    """The job; None if the model has no decision that can be rewritten."""
    survey: Survey
    sessions: list[Session]

    @property
    def decisions(self) -> dict[str, str]:
        """How each decision was written, by place: masked, If, Loop …; complete once the job has run."""
        return {place: what for session in self.sessions for place, what in session.done.items()}

    @property
    def on_values(self) -> ValueDecisions:
        """The decisions on values that the file takes; complete once the job has run."""
        written = self.decisions
        found = self.survey
        return ValueDecisions(
            sites=found.value_sites,
            loops=found.loop_sites,
            in_file=frozenset(place for place, what in written.items() if what == "Loop"),
            rewriting=found.rewriting,
        )

    def report(self, plan: Plan) -> None:
        """Notes in the plan how each decision was written."""
        for place, what in self.decisions.items():
            plan.applied(DECISIONS, place, what)

    @property
    def notes(self) -> list[str]:
        """One sentence for each check of the model that the file does not make."""
        dropped = dict.fromkeys(place for session in self.sessions for place in session.dropped)
        return [f"{place}: this check depends on the inputs and is not made in the file." for place in dropped]

    @property
    def source(self) -> str:
        """The rewriting of the model's functions, as a unified diff."""
        return self.survey.rewriting.diff()

    def error_to_report(self, first: CompatError, second: CompatError | None = None) -> CompatError:
        """Chooses the error to report: that of the second export if it says more about decisions than the first one's.

        Args:
            first: The error of the model as it is.
            second: The error of the rewritten model; None if it was not exported.
        """
        better = isinstance(second, (RefusedDecision, VerificationError, TooLarge)) or "would freeze" in str(second)
        error = second if second is not None and better else first
        reasons = [f"{place}: {why}" for place, why in self.survey.rewriting.obstacles.items()]
        if not reasons or not isinstance(error, UnsupportedError):
            return error
        return ExportFailed(f"{error} It cannot be rewritten automatically: {'; '.join(reasons[:3])}.")


def rewrite_decisions(job: ExportJob, wrong_at: Sequence[Inputs] = ()) -> RewrittenJob:
    """Prepares the job for another export with its decisions rewritten.

    Args:
        job: A job that an exporter refused, or whose file was wrong.
        wrong_at: Inputs at which files were wrong: there the model may decide otherwise than at the example.
    """
    found = survey(job, wrong_at)
    if not found.rewriting:
        return RewrittenJob(None, found, [])
    sessions: list[Session] = []
    make = partial(_subject, job.make_subject, job, found, sessions)
    return RewrittenJob(replace(job, make_subject=make, subject=make(), decides=None), found, sessions)


def explain(job: ExportJob) -> None:
    """Notes in the job's plan which decisions an export would rewrite, and the rewritten source."""
    with job.plan.mute():  # the search runs the entries again, and their notes are in the plan already
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
        others=[*found.sizes, *found.own_sizes],  # the example's, too: the exporter traces at other sizes
        conflicts=dict(found.conflicts),
        alternatives=found.alternatives,
        open_calls=found.rewriting.open_calls,
        peeled=found.peeled,
        ragged=found.ragged,
        reach=reach_of(subject.twin),
        computes_wide=job.plan.target.computes_double,
    )
    sessions.append(session)
    subject.wrap(RowStacker, inside=True)
    subject.wrap(partial(_scope, subject, session, found))
    return subject


@contextmanager
def _scope(subject: Any, session: Session, found: Survey) -> Iterator[None]:
    session.log = subject.around
    with found.rewriting.apply(), activate(session) as check, subject.check_results(check):
        yield
