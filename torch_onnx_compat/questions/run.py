"""One run of the original without values and without numbers: what it asks of its sizes, whoever asks.

Fake tensors hold no values and symbolic sizes no numbers, so Python, an operator or a library can decide on one of them
only by asking.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from torch_onnx_compat.backends.custom_operators import run_functions
from torch_onnx_compat.backends.internals import rnn_decompositions, symbolic
from torch_onnx_compat.backends.internals.number_kinds import told_as_numbers
from torch_onnx_compat.backends.internals.number_watchers import watch_numbers
from torch_onnx_compat.backends.internals.numbers import complete_numbers
from torch_onnx_compat.backends.internals.quotients import quick_quotients
from torch_onnx_compat.backends.quiet import quiet_logs
from torch_onnx_compat.handlers import CaughtErrors
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import Observation, Subject
from torch_onnx_compat.places import first_line
from torch_onnx_compat.questions.beside import Beside, BesideMeta, LacksValues
from torch_onnx_compat.questions.calls import Calls
from torch_onnx_compat.questions.log import Log, SymbolicRun
from torch_onnx_compat.questions.reads import Reads


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

    def at(self, sizes: Mapping[str, int]) -> SymbolicRun:
        """The run at some sizes of the dynamic axes; the others are the example's, long enough to trace."""
        inputs = self.observation.trace_inputs()
        inputs = inputs.at_sizes(sizes) if sizes else inputs
        key = tuple(inputs.sizes().values())
        if key not in self._runs:
            self._runs[key] = self.on(self.observation.fit(inputs))
        return self._runs[key]

    def on(self, inputs: Inputs) -> SymbolicRun:
        """A run on other values, which is not kept."""
        run = run_symbolically(self.observation, inputs, self._functions, try_without=not self._asks_values)
        self._asks_values |= run.has_values
        return run

    def places(self) -> frozenset[str] | None:
        """The model's statements that ask something of its sizes at the example; None if more may do.

        Nobody hears what is asked of a plain number that Python made of a size.
        """
        run = self.at({})
        if not run.is_complete or any(question.is_taken for question in run.questions):
            return None
        return frozenset(q.place for q in run.questions if q.is_asked)


def run_symbolically(
    observation: Observation, inputs: Inputs, functions: Sequence[Any] = (), *, try_without: bool = True
) -> SymbolicRun:
    """Runs the original with a symbol for the size of every dynamic axis.

    Args:
        observation: Has the original.
        inputs: Its inputs; the questions are answered as at their sizes.
        functions: Functions whose calls are recorded.
        try_without: Whether to try first if it asks for no values.
    """
    start = time.thread_time()  # what is asked next depends on it, and not on other work of the machine
    kinds = (BesideMeta, Beside) if try_without else (Beside,)
    run = next(run for kind in kinds if (run := _run(observation, inputs, functions, kind)) is not None)
    run.seconds = time.thread_time() - start
    return run


def _run(observation: Observation, inputs: Inputs, functions: Sequence[Any], kind: type[Beside]) -> SymbolicRun | None:
    """A run; None if it needs values and has none."""
    found = SymbolicRun(has_values=kind.has_values)
    log = Log(found)
    symbols = symbolic.Symbols(log.asked)
    log.value_of = symbols.environment.number
    mode = kind(symbols, log)
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
        with ExitStack() as stack:
            for scope in (quiet_logs(), rnn_decompositions(True), told_as_numbers(observation.prepared.python_modules)):
                stack.enter_context(scope)
            stack.enter_context(errors)
            stack.enter_context(watch_numbers(symbols, log.read))
            stack.enter_context(Reads(symbols, mode.actual, log))
            stack.enter_context(found.calls)
            stack.enter_context(run_functions(observation.prepared.translated_operators))
            stack.enter_context(symbolic.python_kernels())
            stack.enter_context(quick_quotients())
            stack.enter_context(complete_numbers())
            stack.enter_context(mode)
            subject(*fakes)
        if mode.lacks_values or (errors.may_suppress and not mode.has_values):
            return None
        log.note_keys()
        known = observation.caught_errors(inputs) if errors.found else ()
        found.obstacle = next((f"the model catches an error: {e}" for e in errors.found if e not in known), "")
    except MemoryError:
        raise
    except LacksValues:
        return None
    except Exception as error:  # torch's own limits: whatever it raises where a kernel wants a number
        if mode.lacks_values:
            return None
        found.obstacle = f"{type(error).__name__}: {first_line(error)}"
    return found
