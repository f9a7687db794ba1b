"""The input and the result of an exporter, the same for both."""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import onnx_ir as ir

from torch_onnx_compat.errors import CompatError, UnsupportedError, causes
from torch_onnx_compat.handlers import CaughtError, CaughtErrors
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import Subject
from torch_onnx_compat.places import plain, user_statement
from torch_onnx_compat.plan import Plan
from torch_onnx_compat.questions.question import Question


class ExportFailed(UnsupportedError):
    """An exporter refused the model, or froze something that should vary."""


class FrozenDecision(ExportFailed):
    """A trace has taken Python decisions once and for all.

    Attributes:
        of_values: Whether values of inputs have a say in one of them; else only sizes.
    """

    def __init__(self, message: str, *, of_values: bool) -> None:
        super().__init__(message)
        self.of_values = of_values


class TooLarge(ExportFailed):
    """What the file computes where a question of the model has another answer is too large to try."""


class FrozenNumber(ExportFailed):
    """A file may hold what Python makes of a size at the example.

    Attributes:
        inputs: Others, at which the number is another one; None where nobody knows such.
    """

    def __init__(self, message: str, inputs: Inputs | None) -> None:
        super().__init__(message)
        self.inputs = inputs


class ScriptedModel(ExportFailed):
    """A model that is scripted, or has a part that is, of which only TorchScript's exporter writes the graph."""

    names_remedy = True


class FixedAxis(ExportFailed):
    """A capture has one size only of an axis that was declared dynamic.

    Attributes:
        axis: Its name.
    """

    def __init__(self, message: str, *, axis: str) -> None:
        super().__init__(message)
        self.axis = axis


@dataclass(frozen=True)
class ExportJob:
    """One export."""

    make_subject: Callable[[], Subject]
    """Makes a patched twin; each trace gets a new one, since forward may fill caches in the model."""
    subject: Subject
    """The twin that is exported."""
    inputs: Inputs
    """The inputs; every dynamic axis is at least 3 long."""
    plan: Plan
    opset: int
    """The wanted opset; the exporter may write another one, which the graph states."""
    python_modules: frozenset[str] = frozenset()
    """Those that the model's code is in, by name."""
    handlers: Sequence[types.FunctionType] = ()
    """The functions of the model's code that have exception handlers."""
    caught_errors: Callable[[Inputs], Collection[CaughtError]] = lambda inputs: ()
    """The errors that the original catches on some inputs."""
    custom_opsets: Mapping[str, int] = field(default_factory=dict)
    allow_baked: Collection[str] = ()
    """Places of decisions that may be frozen."""
    decides: Callable[[ExportJob], bool] | None = None
    """Whether the model takes a Python decision that may vary; costs two traces. None if decisions are rewritten, or if
    the proof tries both sides of every decision."""
    is_proven: bool = True
    """Whether the file is compared with the model."""
    asking_places: Callable[[], frozenset[str] | None] | None = None
    """The original's statements that ask something of a dynamic size; gives None if others may do, too. None if asking
    it would cost more than a trace."""
    accepts: Callable[[Inputs], bool] | None = None
    """Whether the original takes some inputs; None if nobody knows."""
    fit: Callable[[Inputs], Inputs] = lambda inputs: inputs
    """Gives the example at other sizes whole numbers that fit these, if the original refuses its own there."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of torch.onnx.export that only one exporter has."""
    leaves_sizes: bool = False
    """Whether decisions on sizes may stay as the example takes them; the proof has to show that they change nothing."""
    is_script: bool = False
    """Whether a scripted model is written from its own graph, instead of being traced."""


@dataclass
class ExportedGraph:
    """The graph that an exporter wrote, with notes for the user."""

    model: ir.Model
    notes: list[str] = field(default_factory=list)
    renamed_axes: dict[str, str] = field(default_factory=dict)
    """The caller's axis names, by the symbols of the graph."""
    assumed: tuple[Question, ...] = ()
    """What the exporter took for granted about sizes."""
    constant_places: frozenset[str] = frozenset()
    """Places of Python decisions that the file does not take, as no value of an input has a say in them."""
    table_places: frozenset[str] = frozenset()
    """Places where sizes are looked up among numbers: a run without values tells which of these they may be."""
    has_selections: bool = False
    """Whether some of these hang on a tensor of which values may decide the size."""
    left_alone: frozenset[str] = frozenset()
    """Places of decisions on sizes that the file takes as the example does."""
    is_same_at: Callable[[Inputs], bool] | None = None
    """Whether the model is traced to the same graph at other sizes; there if decisions were left alone."""


def frozen_error(places: str, first: str, *, of_values: bool = True, is_copied: bool = False) -> FrozenDecision:
    """The error of Python decisions that a trace has taken once and for all.

    Args:
        places: What is decided on, and where.
        first: The place of the first one, as `allow_baked` takes it.
        of_values: Whether values of inputs have a say in one of them; else only sizes.
        is_copied: Whether the first takes a tensor's values out of torch: the file would compute with the example's.
    """
    remedy = f"Rewrite it with tensor operations such as torch.where, or accept it with allow_baked=[{first!r}]."
    if is_copied:
        remedy = (
            f"Compute with torch what is made of them; if they are always the same, make them a constant in __init__, "
            f"or say so with allow_baked=[{first!r}]."
        )
    frozen = f"TorchScript would freeze a Python decision at its value for the example: {places}."
    return FrozenDecision(f"{frozen} {remedy}", of_values=of_values)


def reject_other_errors(errors: CaughtErrors, job: ExportJob, exporter: str) -> None:
    """Looks for errors that the model has caught in a capture and does not have in eager torch.

    Raises:
        ExportFailed: There is one: the file would go on as after the error.
    """
    known = job.caught_errors(job.inputs) if errors.found else ()
    others = [e for e in errors.found if e not in known and not any(p in job.allow_baked for p in (e.place, e.handler))]
    if others:
        raise ExportFailed(
            f"{exporter} would freeze the way that the model takes after an error, which it catches at "
            f"{others[0].handler} and eager torch does not have: {others[0]}. Let the model decide without this error, "
            f"or accept it with allow_baked=[{others[0].place!r}]."
        )


def refuse(error: Exception, step: str) -> NoReturn:
    """Raises the error that an exporter's error stands for.

    Args:
        error: The exporter's error.
        step: The step of the export that raised it.

    Raises:
        CompatError: The error of an entry or a check, if it is among the causes.
        ExportFailed: Otherwise; it names the step and the essential line of the error.
    """
    for cause in causes(error, contexts=True):
        if isinstance(cause, CompatError):
            raise cause from cause.__cause__
    raise ExportFailed(f"{step}: {readable(error)}") from error


_NOT_CONSTANT = ("because it is not constant", "Unsupported attribute type: '<class 'list'>'")
"""What TorchScript's exporter and onnxscript say where a number is computed."""


def readable(error: BaseException) -> str:
    """The essential line of an exporter's error, without colours and graph dumps."""
    *_, cause = causes(error)
    text = plain(str(cause)).partition(" [Caused by the value")[0]
    if any(sign in text for sign in _NOT_CONSTANT):
        text = (
            "numbers such as the sizes of a window have to be constants in ONNX; here a size decides them. What pools "
            "over a whole axis is x.mean(dim, keepdim=True) or x.amax."
        )
    lines = [line.strip() for line in text.splitlines()]
    text = next((line for line in lines if line and not line.startswith(("#", "graph("))), type(cause).__name__)
    place = user_statement(cause) or user_statement(error)
    return f"{text[:500]}{f' (at {place})' if place else ''}"
