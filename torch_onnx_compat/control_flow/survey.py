"""Searches a model for decisions: traces it, rewrites the functions that take decisions, and traces it again.

A rewritten decision runs both of its branches, and a branch may hold further decisions. The search ends when a trace
shows no new one. Traces at two different sizes separate decisions on dynamic sizes from decisions on fixed ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.backend import ExportJob
from torch_onnx_compat.backends.repairs import repair_trace
from torch_onnx_compat.caller.undo import reach_of
from torch_onnx_compat.control_flow.find.sites import Event, SiteLog
from torch_onnx_compat.control_flow.find.users import PauseInCalls
from torch_onnx_compat.control_flow.large_rounds import LargeRounds
from torch_onnx_compat.control_flow.lower.rewriting import Rewriting
from torch_onnx_compat.control_flow.run.answers import Site
from torch_onnx_compat.control_flow.run.lists import RowStacker
from torch_onnx_compat.control_flow.run.session import Key, Session, activate
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.inputs.probing import differing, distinct_sizes, other_sizes
from torch_onnx_compat.stack import own_stacks

T = TypeVar("T")
Sizes = dict[Key, tuple[int, ...]]

FAR = 5
"""Cells by which every dynamic axis is longer in the last trace than in the example."""

PARTS = (2, 4, 8)
"""Divisors of the sizes, in the search for sizes at which both branches of a decision run."""

SMALLEST = 4
"""Shortest axis in that search."""

ROUNDS = 12
"""Traces at most; the exporter refuses decisions that are nested deeper."""


@dataclass
class Survey:
    """The result of a search.

    Attributes:
        rewriting: The rewritten functions.
        sizes: The sizes that each decision was computed from, in traces at other sizes than the example's: padding to
            whole windows makes equal sizes of many, so one trace is not enough.
        own_sizes: The same in a trace at the example's sizes.
        conflicts: Decisions whose branches cannot be joined by a mask, and the reason.
        places: Where decisions were seen.
        alternatives: Decisions between two ways to compute the same values; True if the first way works at every size,
            False if the second does.
        different: Decisions between two ways that were seen to compute different values, at any sizes.
        trace_sizes: The sizes of the traces that decisions were found in.
        equal_at: Sizes at which both ways were compared, where they could not be compared at the example's.
        peeled: File and line of each loop in the file whose first round is written for itself.
        ragged: By loop and list: the axis on which what its rounds append differs in size.
        value_sites: Where rewritten code takes decisions on values, with the place in the model's code.
        loop_sites: Where it has loops whose rounds values decide, likewise.
    """

    rewriting: Rewriting
    sizes: list[Sizes] = field(default_factory=list)
    own_sizes: list[Sizes] = field(default_factory=list)
    conflicts: dict[Key, str] = field(default_factory=dict)
    places: dict[str, None] = field(default_factory=dict)
    alternatives: dict[Key, bool] = field(default_factory=dict)
    different: set[Key] = field(default_factory=set)
    trace_sizes: list[dict[str, int]] = field(default_factory=list)
    equal_at: dict[str, int] = field(default_factory=dict)
    peeled: set[tuple[str, int]] = field(default_factory=set)
    ragged: dict[tuple[Site, str], int] = field(default_factory=dict)
    value_sites: dict[Site, str] = field(default_factory=dict)
    loop_sites: dict[Site, str] = field(default_factory=dict)
    _known_ragged: int = 0

    def note(self, made: _Round, allow_baked: Collection[str]) -> bool:
        """Takes over what the traces of a round found.

        Args:
            made: The traces.
            allow_baked: Places of decisions that the caller accepts as they are.

        Returns:
            Whether anything is new, so that another round is needed.
        """
        events = [event for event in made.varying() if event.place not in allow_baked]
        self.places.update(dict.fromkeys(event.place for event in events))
        self.trace_sizes = [run.sizes for run in made.all]
        sessions = [run.session for run in made.all]
        # At sizes of which the same number follows, such as 2 x 8 for 4 x 4, one round alone compares the ways.
        self.different |= {key for session in sessions for key, same in session.equal.items() if not same}
        self.value_sites = {site: place for session in sessions for site, place in session.value_sites.items()}
        self.loop_sites = {site: place for session in sessions for site, place in session.loop_sites.items()}
        main = [run.session for run in made.main]
        peeled, ragged = len(self.peeled), self._known_ragged
        self.peeled |= _union(session.to_peel for session in main)
        self._known_ragged = len(self.ragged)  # the traces themselves fill it
        is_new = [
            self.rewriting.extend(events),
            self.rewriting.extend_to([code for session in main for code in session.users.codes]),
            self.rewriting.mark_loops(_union(session.unbounded for session in main)),
            self.rewriting.mark_calls(_union(session.calls_to_open for session in main)),
            self.rewriting.mark_splits(_union(session.split for session in main)),
            len(self.peeled) > peeled,
            self._known_ragged > ragged,
        ]
        known = (self.own_sizes, self.sizes, self.conflicts)
        self.own_sizes = [made.example.session.sizes]
        self.sizes = (
            [] if made.other is None else [run.session.sizes for run in (made.other, *made.wrong, *made.further)]
        )
        self.conflicts = {key: why for session in reversed(main) for key, why in session.conflicts.items()}
        return any(is_new) or known != (self.own_sizes, self.sizes, self.conflicts)

    def obstacle_at(self, place: str) -> str:
        """Why the decision at a place cannot be rewritten; empty if it can."""
        return self.rewriting.obstacles.get(place, "")


def survey(job: ExportJob, wrong_at: Sequence[Inputs] = ()) -> Survey:
    """Searches a model for decisions that may vary.

    The search ends when two successive traces agree: then the export takes the same decisions in the same order as the
    last trace.

    Args:
        job: What is exported.
        wrong_at: Inputs at which the model decides otherwise than at the example.
    """
    sizes = job.inputs.sizes()
    found = Survey(Rewriting())
    traces = _Traces(job, [inputs for inputs in wrong_at if inputs.sizes() != sizes])
    for _ in range(ROUNDS):
        made = traces.make(found)
        if made.example.session.is_endless:
            return found  # the export meets the same, and says so
        is_new = found.note(made, job.allow_baked)
        if not is_new and not _find_alternatives(job, found, made):
            break
    if found.rewriting and sizes:
        # Shapes may agree by chance at two sizes; at a third one that is unlikely.
        third = job.inputs.at_sizes({name: size + FAR for name, size in sizes.items()})
        last = _trace(job, third, found, found.own_sizes, notes_users=False)
        found.conflicts = {**last.session.conflicts, **found.conflicts}
    return found


def _find_alternatives(job: ExportJob, found: Survey, made: _Round) -> bool:
    """Searches for decisions with a branch that works at every size and a branch that computes the same where it runs.

    Example: attention over the whole picture if it is one window, else over the windows that it is cut into. The two
    branches can only be compared at sizes at which both run.

    Args:
        job: What is exported.
        found: What is known so far.
        made: The traces of this round, which are not made again.

    Returns:
        Whether it found a new one.
    """
    runs = made.all
    asked = {key for run in made.main for key in (*run.session.lone, *run.session.equal)}
    asked -= {*found.alternatives, *found.different}
    sizes = job.inputs.sizes()
    for part in PARTS:
        new = {key for key in asked if _branch_for_every_size(key, runs)}
        smaller = {name: size // part for name, size in sizes.items() if size // part >= SMALLEST}
        if not smaller or len(new) == len(asked):
            break
        if not any(run.sizes == {**sizes, **smaller} for run in made.further):
            there = job.fit(job.inputs.at_sizes(smaller))
            runs.append(_trace(job, there, found, found.own_sizes, notes_users=False))
        if {key for key in asked if _branch_for_every_size(key, runs)} - new:
            found.equal_at = {**sizes, **smaller}
    alternatives = {key: first for key in asked for first in _branch_for_every_size(key, runs)}
    found.alternatives.update(alternatives)
    return bool(alternatives)


def _branch_for_every_size(key: Key, runs: Sequence[_Run]) -> set[bool]:
    """Holds True if the first branch works at every size, False if the second does; empty if neither is known to."""
    equal = [run.session.equal[key] for run in runs if key in run.session.equal]
    lone = {run.session.lone[key] for run in runs if key in run.session.lone}
    return lone if len(lone) == 1 and equal and all(equal) else set()


def decides(job: ExportJob) -> bool:
    """Whether a model takes a decision that may vary."""
    none = Survey(Rewriting())
    return bool(_select_varying(_trace(job, job.inputs, none, ()), _first_run(job, _other_sizes(job), none, ())))


@dataclass
class _Run:
    sizes: dict[str, int]
    events: list[Event]
    session: Session
    complete: bool


@dataclass
class _Round:
    """The traces of one round of a search.

    Attributes:
        example: At the example's sizes.
        other: At the first other sizes that the model accepts; None where no axis is dynamic.
        wrong: At further sizes at which files were wrong.
        further: At further sizes, of a model that decides by sizes.
    """

    example: _Run
    other: _Run | None
    wrong: list[_Run]
    further: list[_Run]

    @property
    def main(self) -> list[_Run]:
        """The traces at the example's sizes, at the first other ones, and where files were wrong."""
        return [*([self.example] if self.other is None else [self.example, self.other]), *self.wrong]

    @property
    def all(self) -> list[_Run]:
        """All traces."""
        return [*self.main, *self.further]

    def varying(self) -> list[Event]:
        """The decisions that differ between two of the traces, or that depend on data."""
        others = (self.other, *self.wrong, *self.further)
        return list(dict.fromkeys(event for run in others for event in _select_varying(self.example, run)))


class _Traces:
    """Makes the traces of a search, at the same sizes in each round.

    Args:
        job: What is exported.
        elsewhere: Inputs of other sizes at which the model is known to decide otherwise than at the example.
    """

    def __init__(self, job: ExportJob, elsewhere: Sequence[Inputs]) -> None:
        self._job = job
        self._others = [*elsewhere[:1], *_other_sizes(job)]
        self._wrong = elsewhere[1:]
        self._further = [*(_other_sizes(job)[:1] if elsewhere else ()), *_half(job)]
        self._asks_sizes = False
        """Whether a trace at the example's sizes took a decision by sizes, in this round or before."""

    def make(self, found: Survey) -> _Round:
        """Makes the traces of a round; that at the example's sizes alone where it does not come to an end."""
        theirs, mine = found.sizes, found.own_sizes
        example = _trace(self._job, self._job.inputs, found, theirs)
        if example.session.is_endless:
            return _Round(example, None, [], [])
        other = _first_run(self._job, self._others, found, mine)
        self._asks_sizes = self._asks_sizes or not all(event.from_data for event in example.events)
        if not self._asks_sizes:
            return _Round(example, other, [], [])
        return _Round(example, other, self._complete(self._wrong, found), self._complete(self._further, found))

    def _complete(self, at: Sequence[Inputs], found: Survey) -> list[_Run]:
        runs = [_trace(self._job, inputs, found, found.own_sizes, notes_users=False) for inputs in at]
        return [run for run in runs if run.complete]


def _other_sizes(job: ExportJob) -> list[Inputs]:
    """The example at other sizes, the first of which differ after strides too."""
    return [*distinct_sizes(job.inputs), *other_sizes(job.inputs)]


def _half(job: ExportJob) -> list[Inputs]:
    """The example with axes of half the size, at which a trace costs little."""
    smaller = {name: size // 2 for name, size in job.inputs.sizes().items() if size // 2 >= SMALLEST}
    return [job.fit(job.inputs.at_sizes(smaller))] if smaller else []


def _first_run(job: ExportJob, candidates: list[Inputs], found: Survey, known: Sequence[Sizes]) -> _Run | None:
    """A trace at the first sizes that the model accepts; `candidates` then holds these alone."""
    run = None
    for inputs in candidates:
        run = _trace(job, inputs, found, known)
        if run.complete:
            candidates[:] = [inputs]
            return run
        if run.session.unbounded:
            return run  # it ended at a loop, where it would end at other sizes too
    return run


def _trace(job: ExportJob, inputs: Inputs, found: Survey, known: Sequence[Sizes], *, notes_users: bool = True) -> _Run:
    """Runs the model with its decisions rewritten so far, and notes those that it takes.

    Args:
        job: What is exported.
        inputs: What to run it on.
        found: What is known so far.
        known: The sizes that decisions were computed from in other traces.
        notes_users: Whether the functions are noted that see numbers, which takes time at every call.
    """
    log = SiteLog(len(inputs.tensors))
    subject = job.make_subject()
    session = Session(
        exporter="torchscript",
        inputs=len(inputs.tensors),
        sizes_vary=bool(inputs.sizes()),
        surveying=True,
        log=log,
        others=known,
        alternatives=found.alternatives,
        open_calls=found.rewriting.open_calls,
        peeled=found.peeled,
        ragged=found.ragged,
        reach=reach_of(subject.twin),
    )
    repair_trace(subject, job.python_modules)
    subject.around = log
    subject.wrap(RowStacker, inside=True)
    subject.wrap(partial(LargeRounds, session), inside=True)
    if notes_users:
        subject.wrap(partial(PauseInCalls, session.users), inside=True)
    subject.wrap(_abandon_trace)
    complete = False
    try:
        with warnings.catch_warnings(), ExitStack() as stack:
            users = session.users.watch() if notes_users else nullcontext()
            for scope in (found.rewriting.apply(), activate(session), users, own_stacks(subject)):
                stack.enter_context(scope)
            warnings.simplefilter("ignore")
            internals.trace(subject, inputs.tensors)
    except _TraceComplete:
        complete = True
    except Exception as error:  # the decisions up to the error count; the export itself reports the error
        session.note_failed_rounds()
        log.note_refused(error)
    return _Run(inputs.sizes(), log.events, session, complete)


def _union(sets: Iterable[set[T]]) -> set[T]:
    return set().union(*sets)


class _TraceComplete(Exception):
    """Ends a trace at the end of forward: torch cannot finish the graph of a trace in which a branch failed."""


@contextmanager
def _abandon_trace() -> Iterator[None]:
    yield
    raise _TraceComplete


def _select_varying(one: _Run, other: _Run | None) -> list[Event]:
    """The decisions on data, and the decisions on sizes that differ between the two traces."""
    by_data = [e for e in one.events if e.from_data]
    if other is None:
        return by_data
    sizes = differing(one.events, other.events, lambda e: (e.filename, e.line, e.conversion), lambda e: e.sizes)
    return [*by_data, *(e for e in sizes if not e.from_data), *(e for e in other.events if e.from_data)]
