"""What is tried, in order of cost, until one file is proven.

Each exporter in turn: the model as it is, then with its Python decisions rewritten so that the file takes them. An
exporter whose file holds what the target does not run is tried once more at the end, with the entries that avoid it.

Where all of these fail, the last candidates follow, each of which gives something up: the example's sizes, a trace of a
scripted model, the rewriting of decisions, an entry that failed, the opset that was the target's choice, and at the end
all entries. The proof is the same, or a stricter one.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends import ExportFailed, ExportJob
from torch_onnx_compat.backends.backend import FixedAxis, FrozenDecision, FrozenNumber
from torch_onnx_compat.backends.custom_operators import run_functions
from torch_onnx_compat.catalogue.entry import Exporter
from torch_onnx_compat.check.lint import Unsuitable
from torch_onnx_compat.check.ties import hint_where_longer
from torch_onnx_compat.clock import Clock
from torch_onnx_compat.control_flow import RewrittenJob, UnequalBranches, decides, rewrite_decisions
from torch_onnx_compat.diagnosis import with_hint, with_reasons
from torch_onnx_compat.errors import (
    CompatError,
    EntryFailed,
    InvalidFile,
    UnsupportedError,
    VerificationError,
    with_lines,
)
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.memory import forget_locals
from torch_onnx_compat.observe import Observation, Subject
from torch_onnx_compat.own_entries import notes_on_unused, own_entries, with_applied
from torch_onnx_compat.plan import DECISIONS, Found, Plan, make_plan
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.questions.cost import is_affordable_for
from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.rounding import sides_of
from torch_onnx_compat.questions.run import SymbolicRuns
from torch_onnx_compat.questions.search import Sides, Sizes
from torch_onnx_compat.questions.size_facts import SizeFacts
from torch_onnx_compat.request import Exporters, File, Patch
from torch_onnx_compat.rewrite import rewrite, watched_functions

ATTEMPTS = 3
"""How often decisions are rewritten: the sizes at which a file was wrong show decisions that no others had shown."""

OTHER_SIDES = 6
"""Sizes on the other side of a decision that the model may refuse."""

OTHER_SIZES = 2
"""Sizes at most at which a model is traced again, for each exporter."""


@dataclass(frozen=True)
class Candidate:
    """One way to the file."""

    job: ExportJob
    decisions: RewrittenJob | None = None
    """The Python decisions that are rewritten for it, if any."""
    rejected: Mapping[str, CompatError] = field(default_factory=dict)
    """What the exporters before came to, for the result."""
    given_up: str = ""
    """What it goes without, for the result."""
    is_stock: bool = False
    """Whether no entry is applied: then the file has to be right at extreme values too."""


class Candidates:
    """The candidates of one export; whoever iterates tells with `reject` why one was no good.

    Args:
        prepared: The model as it is exported.
        observation: Eager runs of the original.
        patch: Which entries may be armed.
        file: What the file is to be.
        exporters: Which exporters, in order.
        clock: Times what is done for a candidate before it is exported.
        runs: The original's symbolic runs.
        is_proven: Whether the files are compared with the model.
    """

    def __init__(
        self,
        prepared: Prepared,
        observation: Observation,
        patch: Patch,
        file: File,
        exporters: Exporters,
        clock: Clock,
        runs: SymbolicRuns,
        *,
        is_proven: bool,
    ) -> None:
        self._prepared, self._observation = prepared, observation
        self._patch, self._file, self._exporters, self._clock = patch, file, exporters, clock
        self._runs, self._is_proven = runs, is_proven
        self._inputs = observation.trace_inputs()
        self._facts: dict[tuple[Any, ...], SizeFacts] = {}
        """What is known of sizes, which takes runs of the original, by the functions and the sizes traced at."""
        self._avoid: Found = ()
        self._own = own_entries(patch.registry)
        """The caller's entries for this call, which are never left out."""
        self._errors: dict[str, CompatError] = {}
        self._first: dict[Exporter, tuple[ExportJob, CompatError]] = {}
        """The job of each exporter, and why the model as it is came to nothing."""
        self._last: CompatError = ExportFailed("no exporter was tried.")
        self._is_accepted = self._has_accepted = False
        """Whether the last candidate was good, and any."""

    def __iter__(self) -> Iterator[Candidate]:
        queue = list(self._exporters.order)
        for exporter in queue:
            job = self.job(exporter)
            yield Candidate(job, None, dict(self._errors))
            if self._is_accepted:
                self._is_accepted = False
                continue
            error = self._last
            self._first[exporter] = job, error
            if isinstance(error, Unsuitable):
                if not self._avoid and error.is_avoidable(self._patch.registry):
                    self._avoid = error.operators
                    queue.append(exporter)
            elif DECISIONS in job.plan.armed and not isinstance(error, InvalidFile):
                error = yield from self._with_decisions(job, error)
                if self._is_accepted:
                    self._is_accepted = False
                    continue
            self._errors[exporter] = with_applied(with_reasons(error, job.plan), self._own, job.plan)
        if not self._has_accepted:
            yield from self._last_candidates()

    def _last_candidates(self) -> Iterator[Candidate]:
        """What is worth a trial before an error; none of it is where the reason is another one."""
        yield from self._traced_elsewhere()
        for exporter, (_, error) in self._first.items():
            if exporter == "torchscript" and _is_script(self._prepared):
                kept = "the scripted model's own graph was written; it was not traced."
                yield self._made(exporter, kept, is_script=True)
            if isinstance(error, FrozenDecision) and not error.of_values and self._is_proven:
                kept = "decisions on sizes were left as the example takes them: at no size tried they change the file."
                yield self._made(exporter, kept, leaves_sizes=True)
            yield from self._without_failed(exporter, error)
        yield from self._at_other_opsets()
        yield from self._stock()

    def _traced_elsewhere(self) -> Iterator[Candidate]:
        """Traced at sizes on the other side of a decision of which a branch does not run at the example's.

        Of two branches that add one table of positions as it is, or resized to the picture, both run where the picture
        is as large as the table.
        """
        for exporter in self._first if self._is_proven else ():
            error = self._errors.get(exporter)
            if not isinstance(error, UnequalBranches):
                continue
            for sizes in itertools.islice(self._other_sides(error.place), OTHER_SIZES):
                at = ", ".join(f"{name}={size}" for name, size in sizes.items())
                job = self.job(exporter, inputs=self._observation.fit(self._inputs.at_sizes(sizes)))
                for candidate in self._with_decisions(job, error):
                    kept = (
                        f"the model was traced at {at}: at the example's sizes a branch at {error.place} does not run."
                    )
                    yield replace(candidate, given_up=kept)

    def _other_sides(self, place: str, asked_at: Sizes | None = None) -> Iterator[Sizes]:
        """Sizes at which what a statement asks of the sizes has the answer that it has not at the example's.

        Of several questions, as in ``h != 4 or w != 4``, the last is asked where those before have their other answer.
        """
        at = self._inputs.sizes() if asked_at is None else asked_at
        asked = [
            q for q in self._runs.at(at).questions if q.place == place and q.kind == "condition" and not q.operator
        ]
        for question in asked if asked_at is None else asked[-1:]:
            sides = sides_of(question, at, self._inputs.bounds())
            for sizes in itertools.islice(filter(partial(self._accepts, question), self._across(sides)), 1):
                yield from () if asked_at is not None else self._other_sides(place, sizes)
                yield sizes

    def _across(self, sides: Sides) -> Iterator[Sizes]:
        """Sizes on the other side, and at last those at which other axes have what the model asks for there."""
        others = list(itertools.islice(sides.others(), OTHER_SIDES))
        yield from others
        for sizes in others[:1]:
            yield from sides.past_refusal(sizes, self._runs.at(sizes).questions)

    def _accepts(self, question: Question, sizes: Sizes) -> bool:
        is_affordable = is_affordable_for(question, self._inputs, sizes, self._observation.takes_at_most)
        return is_affordable and self._observation.accepts(self._inputs.at_sizes(sizes))

    @property
    def _sizes_vary(self) -> bool:
        """Whether more than batches vary: entries mend sizes that no case may have, such as a Resize's at one in 20."""
        return any(dim for axes in self._inputs.axes for dim in axes)

    def _without_failed(self, exporter: Exporter, error: CompatError) -> Iterator[Candidate]:
        """Without an entry of the catalogue that failed, then without the next one."""
        if self._sizes_vary:
            return
        failed: list[str] = []
        while isinstance(error, EntryFailed) and error.entry not in (*failed, *self._patch.include):
            if error.entry in {entry.name for entry in self._own}:
                break
            failed.append(error.entry)
            yield self._made(exporter, f"{', '.join(failed)} failed, and was not applied.", without=failed)
            error = self._last

    def _at_other_opsets(self) -> Iterator[Candidate]:
        """The nearest opsets, the later ones first, where the opset was the target's choice and seems to matter."""
        if not self._file.is_opset_free:
            return
        for exporter, (_, error) in self._first.items():
            if isinstance(error, InvalidFile):
                opsets = self._file.later_opsets(error.least_opset)
            elif type(error) in (UnsupportedError, Unsuitable):
                opsets = self._file.other_opsets()
            else:
                continue
            for opset in opsets:
                kept = f"opset {opset} was taken, as no file of opset {self._file.opset} is right."
                yield self._made(exporter, kept, opset=opset)

    def _stock(self) -> Iterator[Candidate]:
        """The file of torch alone, where entries had a part in the failure of ours."""
        if self._sizes_vary:
            return
        for exporter, (job, error) in self._first.items():
            was_patched = any(note.verdict == "applied" for note in job.plan.notes)
            is_hopeless = isinstance(error, (FrozenDecision, Unsuitable)) or not self._is_proven
            if was_patched and not is_hopeless and not (self._patch.include or self._own):
                without = [entry.name for entry in self._patch.registry if entry.name != DECISIONS]
                kept = "no entry was applied: this is torch's own file, checked at extreme values too."
                yield replace(self._made(exporter, kept, without=without), is_stock=True)

    def _made(
        self,
        exporter: Exporter,
        given_up: str,
        *,
        without: Collection[str] = (),
        opset: int | None = None,
        is_script: bool = False,
        leaves_sizes: bool = False,
    ) -> Candidate:
        job = replace(self.job(exporter, without, opset), is_script=is_script, leaves_sizes=leaves_sizes)
        return Candidate(job, None, dict(self._errors), given_up)

    def _with_decisions(self, job: ExportJob, first: CompatError) -> Generator[Candidate, None, CompatError]:
        others = {name: error for name, error in self._errors.items() if name != job.plan.exporter}
        wrong_at: list[Inputs] = []
        error, report = first, first
        for number in range(ATTEMPTS):
            if isinstance(error, (VerificationError, FrozenNumber)) and error.inputs is not None:
                if number and wrong_at and error.inputs.sizes() == job.inputs.sizes():
                    break  # traces at these sizes were made, and have shown all that they show
                if any(inputs.sizes() == error.inputs.sizes() for inputs in wrong_at):
                    break
                wrong_at.append(error.inputs)
            elif wrong_at:
                break  # the file with rewritten decisions was no good for another reason
            with self._clock("control flow"):
                rewritten = rewrite_decisions(job, wrong_at)
            report = rewritten.error_to_report(first)
            if rewritten.job is None:
                break
            yield Candidate(rewritten.job, rewritten, others)
            error = self._last
            report = _with_unsuitable(rewritten.error_to_report(first, error), error, rewritten.decisions)
            if self._is_accepted or not (wrong_at or isinstance(error, (VerificationError, FrozenNumber))):
                break
        return report

    def accept(self) -> None:
        """Says that the candidate that was yielded last is good, and that the next exporter is to be tried, too."""
        self._is_accepted = self._has_accepted = True

    def reject(self, error: CompatError) -> None:
        """Says why the candidate that was yielded last is no good."""
        forget_locals(error)
        if isinstance(error, FixedAxis):
            self._add_place(error)
        self._last = error

    def _add_place(self, error: FixedAxis) -> None:
        """Adds the model's code that asks for the axis' size as a number, which torch.export does not tell."""
        found = self._runs.at({}).questions
        asked = [q for q in found if q.kind == "number" and error.axis in map(str, q.expression.free_symbols)]
        error.args = (f"{error}; {asked[0]}." if asked else f"{error}.",)

    def failure(self, *notes: str) -> CompatError:
        """The one error for all candidates, once none is left.

        Args:
            notes: What is to be said too where a decision is the reason.

        Raises:
            CompatError: The model itself fails on the example, which is what the caller has to know instead.
        """
        try:
            self._observation.check_example(self._inputs)
        except CompatError as error:
            error.args = (f"{error}{hint_where_longer(self._observation, self._inputs)}", *error.args[1:])
            raise
        reasons = self._errors.values()
        unused = notes_on_unused(self._own, [job.plan for job, _ in self._first.values()])
        for reason in reasons:
            if "allow_baked" in str(reason):
                with_lines(reason, notes)
        if len(reasons) == 1:
            return with_lines(with_hint(*reasons), unused)
        text = _one_for_each(self._errors)
        tables = [e.table for e in reasons if isinstance(e, VerificationError)]
        if tables:
            wrong = VerificationError(f"no back end made a right file.{text}", tables[-1])
            return with_lines(with_hint(wrong, *reasons), unused)
        return with_lines(with_hint(ExportFailed(f"no back end exports the model.{text}"), *reasons), unused)

    def job(
        self, exporter: Exporter, without: Collection[str] = (), opset: int | None = None, inputs: Inputs | None = None
    ) -> ExportJob:
        """The model as it is, for an exporter.

        Args:
            exporter: The back end.
            without: Entries that are not armed.
            opset: Another opset than the file's.
            inputs: Others than the example, to trace with.
        """
        opset = self._file.opset if opset is None else opset
        inputs = self._inputs if inputs is None else inputs
        with self._clock("plan"):
            plan = make_plan(
                self._patch.registry,
                exporter=exporter,
                opset=opset,
                target=self._file.target,
                include=self._patch.include,
                exclude=(*self._patch.exclude, *without),
                allow_approximate=self._patch.allow_approximate,
                found=self._avoid,
            )
        with self._clock("rewrite"):
            functions = watched_functions(plan.rewrites())
            key = (*functions, *inputs.sizes().values())
            facts = self._facts.setdefault(key, SizeFacts(self._runs, functions, inputs))
            make_subject = partial(patched_subject, self._prepared, plan, facts)
            subject = make_subject()
        return ExportJob(
            make_subject=make_subject,
            subject=subject,
            inputs=inputs,
            plan=plan,
            opset=opset,
            python_modules=self._prepared.python_modules - {rewrite.body.__module__ for rewrite in plan.rewrites()},
            custom_opsets=self._exporters.custom_opsets,
            allow_baked=self._patch.allow_baked,
            decides=decides if DECISIONS in plan.armed and not self._is_proven else None,
            is_proven=self._is_proven,
            options=self._exporters.options,
            accepts=self._observation.accepts,
            fit=self._observation.fit,
            handlers=self._prepared.reach.handlers,
            caught_errors=self._observation.caught_errors,
            asking_places=None if self._own else self._runs.places,
        )


def _one_for_each(errors: Mapping[str, CompatError]) -> str:
    """A line for each reason, with the exporters that gave it; what explains it is set further in."""
    names: dict[str, list[str]] = {}
    for name, error in errors.items():
        names.setdefault(str(error), []).append(name)
    indented = ((text.replace("\n", "\n  "), by) for text, by in names.items())
    return "".join(f"\n  {' and '.join(by)}: {text}" for text, by in indented)


def _with_unsuitable(report: CompatError, rewritten: CompatError, decisions: Mapping[str, str]) -> CompatError:
    """The report, or what the target does not run of the file with the decisions rewritten.

    That the decisions are frozen is no way out then: the file would be one that takes the example's way.

    Args:
        report: What else would be told.
        rewritten: The error of that file.
        decisions: How each decision was written, by place.
    """
    if not isinstance(rewritten, Unsuitable):
        return report
    operators = {finding.op_type for finding in rewritten.findings}
    places = [place for place, what in decisions.items() if what in operators] or list(decisions)
    if not places:
        return report
    error = Unsuitable(
        f"{rewritten} They are there for decisions that the model takes: {', '.join(places)}. Leave out those that "
        f"are only shortcuts, compute the others with tensors (torch.where, masks), or choose another target.",
        rewritten.findings,
    )
    error.names_remedy = True
    return error


def _is_script(prepared: Prepared) -> bool:
    """Whether the model as a whole is scripted, and takes tensors only."""
    args, kwargs = prepared.inputs.call()
    plain = not kwargs and len(args) == len(prepared.inputs.tensors) and all(isinstance(arg, Tensor) for arg in args)
    return isinstance(prepared.model, torch.jit.ScriptModule) and prepared.boundary is None and plain


def patched_subject(prepared: Prepared, plan: Plan, facts: SizeFacts) -> Subject:
    """A fresh twin with the plan's rewrites carried out on it."""
    subject = rewrite(prepared.twin(), prepared.inputs, plan, facts, prepared.boundary)
    subject.wrap(partial(run_functions, prepared.translated_operators), inside=True)
    return subject
