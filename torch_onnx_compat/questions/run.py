"""One run of the original without values and without numbers: what it asks of its sizes, whoever asks.

Fake tensors hold no values and symbolic sizes no numbers, so Python, an operator or a library can decide on one of them
only by asking.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch_onnx_compat.backends.custom_operators import run_functions
from torch_onnx_compat.backends.internals import rnn_decompositions, symbolic
from torch_onnx_compat.backends.internals.number_kinds import told_as_numbers
from torch_onnx_compat.backends.internals.number_watchers import watch_divisors, watch_numbers
from torch_onnx_compat.backends.internals.numbers import complete_numbers
from torch_onnx_compat.backends.internals.quotients import exact_divisibility, quick_quotients
from torch_onnx_compat.backends.quiet import quiet_logs
from torch_onnx_compat.backends.subclasses import plain_tensors
from torch_onnx_compat.handlers import CaughtErrors
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import Observation, Subject
from torch_onnx_compat.places import first_line
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.questions.beside import Beside, BesideMeta, LacksValues
from torch_onnx_compat.questions.calls import Calls
from torch_onnx_compat.questions.known_shapes import KnownShapes
from torch_onnx_compat.questions.log import Log, SymbolicRun
from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.reads import Reads
from torch_onnx_compat.questions.steps import Steps, are_same


class SymbolicRuns:
    """The symbolic runs of one original, each made once.

    Args:
        observation: Has the original.
        functions: Functions whose calls are recorded.
    """

    def __init__(self, observation: Observation, functions: Sequence[Any] = ()) -> None:
        self.observation = observation
        self._functions = functions
        self._runs: dict[tuple[int, ...], SymbolicRun] = {}
        self._asks_values = False
        self._known = KnownShapes()
        self._followed: tuple[tuple[int, ...] | None, SymbolicRun | None] = None, None
        """The last run that told what it computes, and its sizes."""

    def at(self, sizes: Mapping[str, int]) -> SymbolicRun:
        """The run at some sizes of the dynamic axes; the others are the example's, long enough to trace."""
        inputs = self.inputs_at(sizes)
        key = tuple(inputs.sizes().values())
        if key not in self._runs:
            self._runs[key] = self.on(self.observation.fit(inputs))
            self._follow(inputs, self._runs[key])
        return self._runs[key]

    def _follow(self, inputs: Inputs, run: SymbolicRun | None) -> None:
        """Keeps the steps of one run, and no other's: they hold its constants."""
        _, before = self._followed
        if before is not None:
            before.steps = None
        self._followed = tuple(inputs.sizes().values()), run

    def inputs_at(self, sizes: Mapping[str, int]) -> Inputs:
        """The inputs of the run at some sizes, before they are made to fit."""
        inputs = self.observation.trace_inputs()
        return inputs.at_sizes(sizes) if sizes else inputs

    def on(self, inputs: Inputs) -> SymbolicRun:
        """A run on other values, which is not kept."""
        run = run_symbolically(
            self.observation, inputs, self._functions, self._known, try_without=not self._asks_values
        )
        self._asks_values |= run.has_values
        return run

    def is_no_matter(self, question: Question, inputs: Inputs) -> bool:
        """Whether the original computes the same on some inputs, however a condition of its Python is answered.

        Args:
            question: The condition.
            inputs: Those that it is asked on.
        """
        if question.kind != "condition" or question.operator:
            return False
        kind = Beside if self._asks_values else BesideMeta
        fitted = self.observation.fit(inputs)
        at, ours = self._followed
        if at != tuple(inputs.sizes().values()):
            ours = _run(self.observation, fitted, (), kind, self._known)
            self._follow(inputs, ours)
        theirs = _run(self.observation, fitted, (), kind, self._known, question)
        if ours is None or theirs is None or ours.steps is None or theirs.steps is None:
            return False
        return theirs.is_answered_otherwise and theirs.asks_no_more_than(ours) and are_same(ours.steps, theirs.steps)

    def places(self) -> frozenset[str] | None:
        """The model's statements that ask something of its sizes at the example; None if more may do.

        Nobody hears what is asked of a plain number that Python made of a size.
        """
        run = self.at({})
        if not run.is_complete or any(question.is_taken for question in run.questions):
            return None
        return frozenset(q.place for q in run.questions if q.is_asked)


def run_symbolically(
    observation: Observation,
    inputs: Inputs,
    functions: Sequence[Any] = (),
    known: KnownShapes | None = None,
    *,
    try_without: bool = True,
) -> SymbolicRun:
    """Runs the original with a symbol for the size of every dynamic axis.

    Args:
        observation: Has the original.
        inputs: Its inputs; the questions are answered as at their sizes.
        functions: Functions whose calls are recorded.
        known: What operators yielded in earlier runs.
        try_without: Whether to try first if it asks for no values.
    """
    start = time.thread_time()  # what is asked next depends on it, and not on other work of the machine
    kinds = (BesideMeta, Beside) if try_without else (Beside,)
    known = KnownShapes() if known is None else known
    run = next(run for kind in kinds if (run := _run(observation, inputs, functions, kind, known)) is not None)
    run.seconds = time.thread_time() - start
    return run


@contextmanager
def _observed(
    prepared: Prepared, symbols: symbolic.Symbols, log: Log, mode: Beside, errors: CaughtErrors
) -> Iterator[None]:
    """Hears, while it is in force, whatever is asked of fakes and of symbolic numbers."""
    scopes = (
        quiet_logs(),
        rnn_decompositions(True),
        plain_tensors(),
        told_as_numbers(prepared.python_modules),
        errors,
        watch_numbers(symbols, log.read),
        watch_divisors(symbols, log.divides),
        Reads(symbols, mode.actual, log, compares_objects=prepared.reach.compares_objects),
        log.found.calls,
        run_functions(prepared.translated_operators),
        symbolic.python_kernels(),
        quick_quotients(),
        exact_divisibility(),
        complete_numbers(),
        mode,
    )
    with ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(scope)
        yield


def _run(
    observation: Observation,
    inputs: Inputs,
    functions: Sequence[Any],
    kind: type[Beside],
    known: KnownShapes,
    otherwise: Question | None = None,
) -> SymbolicRun | None:
    """A run; None if it needs values and has none.

    Args:
        observation: Has the original.
        inputs: Its inputs.
        functions: Functions whose calls are recorded.
        kind: What runs beside the fakes.
        known: What operators yielded in earlier runs.
        otherwise: A condition that gets the other answer.
    """
    found = SymbolicRun(has_values=kind.has_values)
    log = Log(found, otherwise)
    symbols = symbolic.Symbols(log.asked)
    log.value_of = symbols.environment.number
    mode = kind(symbols, log, known)
    found.steps = mode.steps = Steps(symbols.kind)
    found.calls = Calls(functions)
    errors = CaughtErrors(observation.prepared.reach.handlers)
    if errors.may_catch and not mode.has_values:
        return None  # an index past the end is an error of real tensors only
    try:
        subject = Subject(observation.prepared.twin(), inputs, boundary=observation.prepared.boundary)
        fakes = [
            mode.fake_input(tensor.clone(), axes) for tensor, axes in zip(inputs.tensors, inputs.axes, strict=True)
        ]
        log.symbols = mode.symbols_of(inputs)
        known.begin(log.symbols)
        with _observed(observation.prepared, symbols, log, mode, errors):
            result = subject(*fakes)
        mode.end(result)
        if mode.lacks_values or (errors.may_suppress and not mode.has_values):
            return None
        log.note_keys()
        caught = observation.caught_errors(inputs) if errors.found else ()
        found.obstacle = next((f"the model catches an error: {e}" for e in errors.found if e not in caught), "")
    except MemoryError:
        raise
    except LacksValues:
        return None
    except Exception as error:  # torch's own limits: whatever it raises where a kernel wants a number
        if mode.lacks_values:
            return None
        found.obstacle = f"{type(error).__name__}: {first_line(error)}"
    return found
