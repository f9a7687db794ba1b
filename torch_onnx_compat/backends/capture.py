"""The first half of the dynamo exporter: torch.export captures the model, and what it took for granted is told."""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.backend import (
    ExportFailed,
    ExportJob,
    FixedAxis,
    ScriptedModel,
    refuse,
    reject_other_errors,
)
from torch_onnx_compat.backends.capture_log import CaptureLog
from torch_onnx_compat.backends.index_lists import IndexLists
from torch_onnx_compat.backends.internals import derivatives, number_watchers
from torch_onnx_compat.backends.internals.export_flag import in_onnx_export
from torch_onnx_compat.backends.internals.number_kinds import told_as_numbers
from torch_onnx_compat.backends.internals.numbers import complete_numbers, unchecked_powers
from torch_onnx_compat.backends.internals.quotients import exact_divisibility, quick_quotients
from torch_onnx_compat.backends.long_sizes import LongSizes
from torch_onnx_compat.backends.new_tensors import NewTensors
from torch_onnx_compat.backends.promotion import Promotion
from torch_onnx_compat.backends.scalar_tensors import ScalarTensors
from torch_onnx_compat.backends.subclasses import plain_tensors
from torch_onnx_compat.caller.undo import undo_capture
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.handlers import CaughtErrors
from torch_onnx_compat.observe import Subject
from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.search import Sides


@dataclass
class Capture:
    """A captured program."""

    program: torch.export.ExportedProgram
    floats: list[tuple[Any, str]] = field(default_factory=list)
    """Fractions made of sizes that it holds as the example's, with the places that ask for them."""
    table_places: frozenset[str] = frozenset()
    """Those of the model's statements that look a size up where numbers may be found."""
    assumed: tuple[Question, ...] = ()
    opaque_conditions: tuple[str, ...] = ()
    """Conditions on sizes that it assumes, as torch writes them, which are more than arithmetic."""
    notes: list[str] = field(default_factory=list)
    sizes: dict[Any, Any] = field(default_factory=dict)
    """Sizes that symbols stand for which the program does not have: those of a capture below autograd."""


def capture(job: ExportJob) -> Capture:
    """Captures the model of a job with torch.export.

    Raises:
        ExportFailed: torch refused the model, or the capture fixed an axis, or froze what decides.
    """
    log, errors = CaptureLog(), CaughtErrors(job.handlers)
    texts, numbers = number_watchers.watch_texts(log.note_text), number_watchers.watch_plain_numbers(log.note_number)
    keys = number_watchers.hashes(log.key_of)
    kinds = told_as_numbers(job.python_modules)
    lost = number_watchers.watch_lost_values(log.note_lost)
    arithmetic = complete_numbers(), unchecked_powers()
    watchers = texts, numbers, lost, kinds, keys
    try:
        with ExitStack() as stack:
            for scope in (in_onnx_export(), undo_capture(job.subject.twin), *watchers, *arithmetic):
                stack.enter_context(scope)
            made = _run_export(job, log, errors)
    except CompatError:
        raise
    except Exception as error:
        known = _scripted_error(job) or _fixed_axis_error(job, error)
        if known is not None:
            raise known from error
        refuse(error, "dynamo exporter, torch.export")
    reject_other_errors(errors, job, "dynamo")
    failing = [place for place in log.failures if place not in job.allow_baked]
    if failing:
        raise ExportFailed(
            f"dynamo would freeze what values decide, as the model catches the error that a statement raises: "
            f"{', '.join(failing)}. Decide with tensor operations, or accept it with allow_baked=[{failing[0]!r}]."
        )
    frozen = [place for place in log.texts if place not in job.allow_baked]
    if frozen:
        raise ExportFailed(
            f"dynamo would freeze the text of a tensor or a size, of which Python decides: {', '.join(frozen)}. Decide "
            f"with tensor operations such as torch.where, or accept it with allow_baked=[{frozen[0]!r}]."
        )
    lost_at = [place for place in log.lost if place not in job.allow_baked]
    if lost_at:
        raise ExportFailed(
            f"torch.export computes with a value as if it were never NaN or infinite, so v * 0 is 0 and v != v is "
            f"false: {', '.join(lost_at)}. Compute with tensors, such as x.isnan() and torch.where, or accept it with "
            f"allow_baked=[{lost_at[0]!r}]."
        )
    made.floats += log.floats
    assumed, made.opaque_conditions = _assumptions(job, made.program)
    made.assumed += (*assumed, *_constants(job, made, log.whole))
    made.table_places = frozenset(log.table_places)
    return made


def _constants(job: ExportJob, made: Capture, whole: Collection[tuple[Any, Any, str]]) -> Iterator[Question]:
    """The whole numbers made of sizes that the program holds as the example's.

    That such a number is what it was is a condition, too; but code takes each number for another thing, as the index of
    a tuple, so a size or two at which the condition does not hold tell nothing of the others.
    """
    sizes, environment = dict(made.sizes), None
    for value, axes in zip(internals.input_values(made.program), job.inputs.axes, strict=True):
        for dim, axis in axes.items():
            size = value.shape[dim] if isinstance(value, Tensor) else None
            if isinstance(size, torch.SymInt):
                sizes[size.node.expr] = axis.size({root: _symbol(root) for root in axis.roots})
                environment = size.node.shape_env
    for expression, number, place in whole:
        known = expression if environment is None else environment.replace(expression)
        named = known.xreplace(sizes)
        if known.free_symbols <= set(sizes) and named.free_symbols:
            yield Question("constant", named, number, place)


def _run_export(job: ExportJob, log: CaptureLog, errors: CaughtErrors) -> Capture:
    """Runs torch.export: on the model, or on what runs below autograd if the model differentiates."""
    names = [f"tensor_{index}" for index in range(len(job.inputs.tensors))]
    specs = {n: dict.fromkeys(axes, Dim.DYNAMIC) or None for n, axes in zip(names, job.inputs.axes, strict=True)}
    shapes = specs if any(specs.values()) else None
    subject = _with_parameters(job.subject, names)
    subject.wrap(plain_tensors)
    subject.wrap(lambda: log)
    subject.wrap(LongSizes)
    subject.wrap(IndexLists)
    subject.wrap(Promotion)
    subject.wrap(ScalarTensors)
    subject.wrap(NewTensors)
    subject.wrap(lambda: errors)

    def run(model: nn.Module) -> torch.export.ExportedProgram:
        with internals.merging_operands():
            return torch.export.export(model, job.inputs.tensors, dynamic_shapes=shapes, strict=False)

    passes: list[bool] = []
    with ExitStack() as stack:
        stack.enter_context(internals.size_oblivious())
        stack.enter_context(internals.short_sizes())
        stack.enter_context(quick_quotients())
        stack.enter_context(exact_divisibility())
        stack.enter_context(internals.rnn_decompositions(shapes is not None))
        stack.enter_context(internals.capturing_transforms())
        stack.enter_context(derivatives.watch_backward(lambda: passes.append(True)))
        try:
            program = run(subject)
        except Exception:  # torch.export refuses what differentiates; its operators are captured below instead
            if not passes:
                raise
    if not passes:
        return Capture(program)
    return _capture_derivatives(job, subject, run)


def _capture_derivatives(
    job: ExportJob, subject: Subject, run: Callable[[nn.Module], torch.export.ExportedProgram]
) -> Capture:
    with internals.capturing_transforms(), internals.short_sizes():
        found = derivatives.capture(subject, job.inputs.tensors, job.inputs.axes)
    symbols = {root: _symbol(root) for axes in job.inputs.axes for axis in axes.values() for root in axis.roots}
    sizes = {symbol: job.inputs.axes[index][dim].size(symbols) for symbol, (index, dim) in found.sizes.items()}
    assumed = dict.fromkeys(condition.xreplace(sizes) for condition in found.conditions)
    questions = (Question("condition", c, True, "torch.export") for c in assumed if c not in (True, False))
    note = "the model differentiates as it runs; the file holds the operators of the backward pass."
    with internals.short_sizes():
        return Capture(run(found.module), assumed=tuple(questions), notes=[note], sizes=sizes)


def _with_parameters(subject: Subject, names: list[str]) -> Subject:
    """Gives forward a parameter for each tensor: torch 2.9 cannot evaluate its own guards on sizes in ``*tensors``."""

    def forward(self: Subject, *tensors: Tensor) -> tuple[Tensor, ...]:
        return Subject.forward(self, *tensors)

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", *names)]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    subject.forward = types.MethodType(forward, subject)  # type: ignore[method-assign]
    return subject


def _scripted_error(job: ExportJob) -> ScriptedModel | None:
    """The error of a scripted module, where axes are dynamic; None if there is none."""
    paths = [path for path, module in job.subject.twin.named_modules() if internals.has_scripted_forward(module)]
    if not paths or not any(job.inputs.axes):
        return None
    part = f"the module {paths[0]!r}" if paths[0] else "the model"
    return ScriptedModel(
        f"{part} is scripted or traced, and torch.export runs its graph with the numbers of the example's sizes, which "
        f"fails with dynamic axes; exporter='torchscript' writes that graph."
    )


def _fixed_axis_error(job: ExportJob, error: Exception) -> FixedAxis | None:
    """The error for torch.export's "Constraints violated", with the caller's names; None for other errors."""
    place = r"L\['(?:tensor_|args'\]\[0\]\[)(\d+)'?\]\.size\(\)\[(\d+)\]"
    found = re.search(rf"Constraints violated.*?{place}", str(error))
    if found is None:
        return None
    index, dim = int(found[1]), int(found[2])
    reason = next((line.strip(" -") for line in str(error).splitlines() if "inferred" in line or "valid" in line), "")
    reason = re.sub(place, "it", reason)
    axis = job.inputs.axes[index].get(dim)
    name = axis.name if axis else ""
    return FixedAxis(
        f"axis {dim} ({name!r}) of input {job.inputs.names[index]!r} came out fixed at "
        f"{job.inputs.tensors[index].shape[dim]}{f': {reason}' if reason else ''}",
        axis=name,
    )


def _assumptions(job: ExportJob, program: torch.export.ExportedProgram) -> tuple[tuple[Question, ...], tuple[str, ...]]:
    """The conditions on sizes that the capture assumed, such as `batch % 2 == 1`, but for those that always hold.

    Many follow from shapes that have to fit; others are a decision of the model. Only a run at sizes at which they do
    not hold tells which. That an axis is not 1 is none where a file is proven: operators ask for it, and every file is
    tried there.

    Returns:
        The conditions, and the texts of those that are more than arithmetic.
    """
    found: dict[Any, None] = {}
    opaque: list[str] = []
    for text in internals.size_conditions(program):
        condition = _condition(job, text)
        if condition is None:
            opaque.append(_SIZE.sub(lambda size: _name_of(job, size), text))
        elif condition not in (True, False):
            found[condition] = None
    asked = [Question("condition", condition, True, "torch.export") for condition in found]
    if job.is_proven:
        sizes = job.inputs.sizes()
        limits = {name: job.inputs.bounds().get(name, (1, None)) for name in sizes}
        beyond_one = {name: (max(least, 2), most) for name, (least, most) in limits.items()}
        asked = [question for question in asked if not Sides(question, sizes, beyond_one).is_proven]
    return tuple(asked), tuple(opaque)


def _condition(job: ExportJob, text: str) -> Any:
    """A condition on sizes, in terms of the axes' names; None where it calls what is not known here."""
    import sympy  # a slow import, which torch.export has made already

    sizes: dict[str, Any] = {}

    def name_size(size: re.Match[str]) -> str:
        index, dim = int(size[1]), int(size[2])
        axis = job.inputs.axes[index].get(dim)
        symbols: Any = {root: _symbol(root) for root in axis.roots} if axis else {}
        fixed = job.inputs.tensors[index].shape[dim]
        sizes[f"size_{index}_{dim}"] = axis.size(symbols) if axis else sympy.Integer(fixed)
        return f"size_{index}_{dim}"

    text = _SIZE.sub(name_size, text)
    test = ast.parse(text, mode="eval").body
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _RELATIONS):
        return None
    try:
        known = {"__builtins__": {}, "torch": types.SimpleNamespace(sym_max=sympy.Max, sym_min=sympy.Min)}
        left, right = (eval(ast.unparse(side), known, sizes) for side in (test.left, *test.comparators))
        # The difference: sympy sees that past + new - total is 0, but not that past + new == total.
        return getattr(sympy, _RELATIONS[type(test.ops[0])])(sympy.expand(left - right), 0)
    except Exception:  # the condition calls one of torch's own functions
        return None


def _name_of(job: ExportJob, size: re.Match[str]) -> str:
    """A size in torch's text of a condition, as the caller calls it."""
    index, dim = int(size[1]), int(size[2])
    axis = job.inputs.axes[index].get(dim)
    return axis.name if axis else str(job.inputs.tensors[index].shape[dim])


def _symbol(axis: str) -> Any:
    import sympy

    return sympy.Symbol(axis, integer=True, positive=True)


_SIZE = re.compile(r"L\['tensor_(\d+)'\]\.size\(\)\[(\d+)\]")
"""A size of an input, as torch writes it."""

_RELATIONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "Eq",
    ast.NotEq: "Ne",
    ast.Lt: "Lt",
    ast.LtE: "Le",
    ast.Gt: "Gt",
    ast.GtE: "Ge",
}
"""sympy's class of each comparison."""
