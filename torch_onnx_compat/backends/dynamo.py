"""torch.onnx.export(dynamo=True): captures with torch.export, rejects fixed axes, translates with the symbolics."""

from __future__ import annotations

import ast
import inspect
import re
import types
from typing import Any

import torch
from torch import Tensor
from torch.export import Dim

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.autograd_functions import as_custom_operators
from torch_onnx_compat.backends.backend import ExportedGraph, ExportFailed, ExportJob, FixedAxis, refuse
from torch_onnx_compat.backends.capture_log import CaptureLog
from torch_onnx_compat.backends.dynamo_fractions import with_fractions
from torch_onnx_compat.backends.dynamo_symbolics import translation_table
from torch_onnx_compat.backends.internals import expressions, symbolic
from torch_onnx_compat.backends.internals.export_flag import in_onnx_export
from torch_onnx_compat.backends.quiet import quiet_logs, without_partial_program
from torch_onnx_compat.caller.undo import undo_capture
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.graph.names import claim_name
from torch_onnx_compat.observe import Subject
from torch_onnx_compat.questions.question import Question

MIN_OPSET = 18
"""Lowest opset that torch's dynamo exporter writes."""

MAX_OPSET = 23
"""Highest opset that it writes; the graph is converted to later ones afterwards."""


def export(job: ExportJob) -> ExportedGraph:
    """Exports through torch.export.

    Raises:
        ExportFailed: torch refused the model, or the capture fixed or bounded a dynamic axis.
    """
    opset = min(max(job.opset, MIN_OPSET), MAX_OPSET)
    with quiet_logs(), without_partial_program(), as_custom_operators(job, opset) as function_table:
        program, floats = _capture(job)
        axes = _reject_specialised(job, program)
        _reject_frozen(job, floats, axes)
        assumed = _assumptions(job, program)
        if assumed and job.decides is not None and job.decides(job):
            conditions = "; ".join(str(question.expression) for question in assumed)
            raise ExportFailed(
                f"dynamo would freeze a Python decision on a size at its value for the example: {conditions}."
            )
        _drop_assertions(program)
        table = {**translation_table(job, opset), **function_table}
        if job.plan.target.computes_double:
            table = with_fractions(table, opset)
        table |= job.options.get("custom_translation_table") or {}
        try:
            with (
                internals.cache_torchlib(),
                internals.allow_dynamic_composites(),
                internals.decompose_by_node(),
                internals.closing_transforms(),
                undo_capture(job.subject.twin),  # torch 2.6 writes to constants once more
            ):
                converted = torch.onnx.export(
                    program,
                    (),
                    None,
                    dynamo=True,
                    opset_version=opset,
                    custom_translation_table=table or None,
                    optimize=False,
                    verbose=False,
                )
        except Exception as error:
            refuse(error, "dynamo exporter, translation to ONNX")
    assert converted is not None
    for value, name in zip(converted.model.graph.inputs, job.inputs.names, strict=True):
        claim_name(converted.model, value, name)
    has_selections = any(map(expressions.data_symbols, program.range_constraints))
    return ExportedGraph(converted.model, renamed_axes=axes, assumed=assumed, has_selections=has_selections)


def _capture(job: ExportJob) -> tuple[torch.export.ExportedProgram, list[tuple[Any, str]]]:
    """The program, and the numbers made of sizes that it holds as the example's, with the places that ask for them."""
    names = [f"tensor_{index}" for index in range(len(job.inputs.tensors))]
    specs = {n: dict.fromkeys(axes, Dim.DYNAMIC) or None for n, axes in zip(names, job.inputs.axes, strict=True)}
    dynamic = any(specs.values())
    subject = _with_parameters(job.subject, names)
    log = CaptureLog()
    subject.wrap(lambda: log)
    try:
        texts, floats = symbolic.watch_texts(log.note_text), symbolic.watch_floats(log.note_float)
        with internals.rnn_decompositions(dynamic), in_onnx_export(), undo_capture(job.subject.twin), texts, floats:
            program = torch.export.export(
                subject, job.inputs.tensors, dynamic_shapes=specs if dynamic else None, strict=False
            )
    except CompatError:
        raise
    except Exception as error:
        fixed = _fixed_axis_error(job, error)
        if fixed is not None:
            raise fixed from error
        refuse(error, "dynamo exporter, torch.export")
    failing = [place for place in log.failures if place not in job.allow_baked]
    if failing:
        raise ExportFailed(
            f"dynamo would freeze whether a call fails, which values decide, and the model catches the error: "
            f"{', '.join(failing)}. Decide with tensor operations, or accept it with allow_baked=[{failing[0]!r}]."
        )
    frozen = [place for place in log.texts if place not in job.allow_baked]
    if frozen:
        raise ExportFailed(
            f"dynamo would freeze the text of a tensor or a size, of which Python decides: {', '.join(frozen)}. Decide "
            f"with tensor operations such as torch.where, or accept it with allow_baked=[{frozen[0]!r}]."
        )
    return program, list(log.floats)


def _with_parameters(subject: Subject, names: list[str]) -> Subject:
    """Gives forward a parameter for each tensor: torch 2.9 cannot evaluate its own guards on sizes in ``*tensors``."""

    def forward(self: Subject, *tensors: Tensor) -> tuple[Tensor, ...]:
        return Subject.forward(self, *tensors)

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", *names)]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    subject.forward = types.MethodType(forward, subject)  # type: ignore[method-assign]
    return subject


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


def _reject_specialised(job: ExportJob, program: torch.export.ExportedProgram) -> dict[str, str]:
    """Checks every dynamic axis in the captured program; returns the axis names by symbol.

    torch.onnx captures with a flag that allows an axis to be unified with 1: there is no error, the axis' range shrinks
    to [1, 2], and later shapes are fixed. Here every axis is longer, and a bound that was not asked for is an error.
    """
    names: dict[str, str] = {}
    placeholders = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    inputs = [placeholders.get(name) for name in program.graph_signature.user_inputs if isinstance(name, str)]
    bounds = job.inputs.bounds()
    for name, axes, value in zip(job.inputs.names, job.inputs.axes, inputs, strict=True):
        for dim, axis in axes.items():
            size = value.shape[dim] if isinstance(value, Tensor) else None
            if size is None or isinstance(size, int):
                if axis.required:
                    raise FixedAxis(
                        f"axis {dim} ({axis.name!r}) of input {name!r} came out fixed at {size}: the model's code "
                        f"allows no other size there",
                        axis=axis.name,
                    )
                continue
            names[str(size)] = axis.name
            symbol = size.node.expr
            limit = program.range_constraints.get(symbol)
            upper = getattr(limit, "upper", None)
            asked = bounds.get(axis.name, (1, None))[1]
            if asked is None and getattr(upper, "is_Integer", False) and int(upper) < 2**31:
                raise ExportFailed(
                    f"axis {dim} ({axis.name!r}) of input {name!r} was captured for sizes up to {int(upper)} only: a "
                    f"Python decision in the model, or a slice, depends on it. Give an example in which it is longer, "
                    f"or say that it is no longer: dynamic_shapes={{{name!r}: {{{dim}: torch.export.Dim("
                    f"{axis.name!r}, max={int(upper)})}}}}."
                )
    return names


def _reject_frozen(job: ExportJob, floats: list[tuple[Any, str]], axes: dict[str, str]) -> None:
    """Raises for a number made of sizes that the program holds as the example's, an operator's epsilon for one."""
    frozen = [(expression, place) for expression, place in floats if place not in job.allow_baked]
    if frozen:
        expression, place = frozen[0]
        named = expression.xreplace({s: type(s)(axes.get(s.name, s.name)) for s in expression.free_symbols})
        raise ExportFailed(
            f"dynamo would freeze {named} at its value for the example: {place}. Compute with tensors what this number "
            f"is used for, or accept it with allow_baked=[{place!r}]."
        )


def _assumptions(job: ExportJob, program: torch.export.ExportedProgram) -> tuple[Question, ...]:
    """The conditions on sizes that the capture assumed, such as `batch % 2 == 1`, but for those that always hold.

    Many follow from shapes that have to fit; others are a decision of the model. Only a run at sizes at which they do
    not hold tells which.
    """
    found = [_condition(job, text) for text in internals.size_conditions(program)]
    return tuple(
        Question("condition", condition, True, "torch.export")
        for condition in dict.fromkeys(found)
        if condition is not None and condition not in (True, False)
    )


def _drop_assertions(program: torch.export.ExportedProgram) -> None:
    """Drops the assertions about sizes, which ONNX cannot express, and the comparisons that only they read.

    Torch's exporter drops the assertions only, and fails to translate bounds such as 2**64 - 4, which are no int64.
    """
    for node in list(program.graph.nodes):
        if node.target is torch.ops.aten._assert_scalar.default:
            program.graph.erase_node(node)
    for node in reversed(list(program.graph.nodes)):
        if not node.users and getattr(node.target, "__module__", "") == "_operator":
            program.graph.erase_node(node)
    program.graph_module.recompile()


def _condition(job: ExportJob, text: str) -> Any:
    """A condition on sizes, in terms of the axes' names; None where it calls what is not known here."""
    import sympy  # a slow import, which torch.export has made already

    symbol: Any = sympy.Symbol
    sizes: dict[str, Any] = {}

    def name_size(size: re.Match[str]) -> str:
        index, dim = int(size[1]), int(size[2])
        axis = job.inputs.axes[index].get(dim)
        symbols: Any = {r: symbol(r, integer=True, positive=True) for r in axis.roots} if axis else {}
        fixed = job.inputs.tensors[index].shape[dim]
        sizes[f"size_{index}_{dim}"] = axis.size(symbols) if axis else sympy.Integer(fixed)
        return f"size_{index}_{dim}"

    text = re.sub(r"L\['tensor_(\d+)'\]\.size\(\)\[(\d+)\]", name_size, text)
    test = ast.parse(text, mode="eval").body
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _RELATIONS):
        return None
    try:
        left, right = (eval(ast.unparse(side), {"__builtins__": {}}, sizes) for side in (test.left, *test.comparators))
        # The difference: sympy sees that past + new - total is 0, but not that past + new == total.
        return getattr(sympy, _RELATIONS[type(test.ops[0])])(sympy.expand(left - right), 0)
    except Exception:  # the condition calls one of torch's own functions
        return None


_RELATIONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "Eq",
    ast.NotEq: "Ne",
    ast.Lt: "Lt",
    ast.LtE: "Le",
    ast.Gt: "Gt",
    ast.GtE: "Ge",
}
"""sympy's class of each comparison."""
