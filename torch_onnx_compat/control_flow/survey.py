"""Searches a model for decisions: traces it, rewrites the functions that take decisions, and traces it again.

A rewritten decision runs both of its branches, and a branch may hold further decisions. The search ends when a trace
shows no new one. Traces at two different sizes separate decisions on dynamic sizes from decisions on fixed ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial

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
        ragged: By file and line of a loop, and list: the axis on which what its rounds append differs in size.
        value_sites: Where rewritten code takes decisions on values, with the place in the model's code.
        loop_sites: Where it has loops whose rounds values decide, likewise.
        sizes_are_numbers: Whether code that asks what kind of value a size is hears what Python would say.
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
    ragged: dict[tuple[tuple[str, int], str], int] = field(default_factory=dict)
    value_sites: dict[Site, str] = field(default_factory=dict)
    loop_sites: dict[Site, str] = field(default_factory=dict)
    sizes_are_numbers: bool = False

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
    # Code that asks often does so to spare a trace its checks. So a size is what the trace has, unless a file was wrong
    # or nobody would see that it is.
    is_unproven = job.decides is not None
    found = Survey(Rewriting(), sizes_are_numbers=bool(sizes) and (is_unproven or bool(wrong_at)))
    elsewhere = [inputs for inputs in wrong_at if inputs.sizes() != sizes]
    others = [*elsewhere[:1], *_other_sizes(job)]
    further = [*elsewhere[1:], *(_other_sizes(job)[:1] if elsewhere else ()), *_half(job)]
    asks_sizes = False
    for _ in range(ROUNDS):
        theirs, mine = found.sizes, found.own_sizes
        known = len(found.ragged)
        one = _trace(job, job.inputs, found, theirs)
        if one.session.is_endless:
            return found  # the export meets the same, and says so
        other = _first_run(job, others, found, mine)
        asks_sizes = asks_sizes or not all(event.from_data for event in one.events)
        runs = [_trace(job, inputs, found, mine, notes_users=False) for inputs in further if asks_sizes]
        runs = [run for run in runs if run.complete]
        varying = [*_select_varying(one, other), *(e for run in runs for e in _select_varying(one, run))]
        events = [e for e in dict.fromkeys(varying) if e.place not in job.allow_baked]
        found.places.update(dict.fromkeys(e.place for e in events))
        found.trace_sizes = [run.sizes for run in (one, other, *runs) if run is not None]
        met = [run.session for run in (one, other, *runs) if run is not None]
        # At sizes of which the same number follows, such as 2 x 8 for 4 x 4, one round alone compares the ways.
        found.different |= {key for session in met for key, same in session.equal.items() if not same}
        found.value_sites = {site: place for session in met for site, place in session.value_sites.items()}
        found.loop_sites = {site: place for session in met for site, place in session.loop_sites.items()}
        new = found.rewriting.extend(events)
        new |= found.rewriting.extend_to([*one.session.users.codes, *(other.session.users.codes if other else ())])
        unbounded = one.session.unbounded | (other.session.unbounded if other else set())
        new |= found.rewriting.mark_loops(unbounded)
        peeled = one.session.to_peel | (other.session.to_peel if other else set())
        new |= not peeled <= found.peeled or len(found.ragged) > known
        found.peeled |= peeled
        new |= found.rewriting.mark_calls(one.session.calls_to_open | (other.session.calls_to_open if other else set()))
        new |= found.rewriting.mark_splits(one.session.split | (other.session.split if other else set()))
        found.own_sizes = [one.session.sizes]
        found.sizes = [run.session.sizes for run in (other, *runs) if other is not None and run is not None]
        conflicts = {**(other.session.conflicts if other else {}), **one.session.conflicts}
        sizes_known = (mine, theirs) == (found.own_sizes, found.sizes)
        settled = not new and sizes_known and conflicts == found.conflicts
        found.conflicts = conflicts
        if settled and not _find_alternatives(job, found, [run for run in (one, other) if run is not None], runs):
            break
    if found.rewriting and job.inputs.sizes():
        # Shapes may agree by chance at two sizes; at a third one that is unlikely.
        third = job.inputs.at_sizes({name: size + FAR for name, size in job.inputs.sizes().items()})
        last = _trace(job, third, found, found.own_sizes, notes_users=False)
        found.conflicts = {**last.session.conflicts, **found.conflicts}
    return found


def _find_alternatives(job: ExportJob, found: Survey, runs: list[_Run], further: Sequence[_Run]) -> bool:
    """Searches for decisions with a branch that works at every size and a branch that computes the same where it runs.

    Example: attention over the whole picture if it is one window, else over the windows that it is cut into. The two
    branches can only be compared at sizes at which both run.

    Args:
        job: What is exported.
        found: What is known so far.
        runs: Traces at the example's sizes and at other ones.
        further: Traces at further sizes, which are not made again.

    Returns:
        Whether it found a new one.
    """
    asked = {key for run in runs for key in (*run.session.lone, *run.session.equal)}
    asked -= {*found.alternatives, *found.different}
    sizes = job.inputs.sizes()
    for part in PARTS:
        new = {key: first for key in asked for first in _branch_for_every_size(key, [*runs, *further])}
        smaller = {name: size // part for name, size in sizes.items() if size // part >= SMALLEST}
        if not smaller or len(new) == len(asked):
            break
        made = next((run for run in further if run.sizes == {**sizes, **smaller}), None)
        runs.append(made or _trace(job, job.inputs.at_sizes(smaller), found, found.own_sizes, notes_users=False))
        if {key for key in asked for _ in _branch_for_every_size(key, [*runs, *further])} - set(new):
            found.equal_at = {**sizes, **smaller}
    new = {key: first for key in asked for first in _branch_for_every_size(key, [*runs, *further])}
    found.alternatives.update(new)
    return bool(new)


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


def _other_sizes(job: ExportJob) -> list[Inputs]:
    """The example at other sizes, the first of which differ after strides too."""
    return [*distinct_sizes(job.inputs), *other_sizes(job.inputs)]


def _half(job: ExportJob) -> list[Inputs]:
    """The example with axes of half the size, at which a trace costs little."""
    smaller = {name: size // 2 for name, size in job.inputs.sizes().items() if size // 2 >= SMALLEST}
    return [job.inputs.at_sizes(smaller)] if smaller else []


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
        sizes_are_numbers=found.sizes_are_numbers,
        reach=reach_of(subject.twin),
    )
    repair_trace(subject)
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
            if found.sizes_are_numbers:
                session.users.begin()  # a trace has a tensor for each size
            internals.trace(subject, inputs.tensors)
    except _TraceComplete:
        complete = True
    except Exception as error:  # the decisions up to the error count; the export itself reports the error
        session.note_failed_rounds()
        log.note_refused(error)
    return _Run(inputs.sizes(), log.events, session, complete)


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
