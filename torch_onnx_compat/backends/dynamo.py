"""torch.onnx.export(dynamo=True): rejects what a capture has fixed, and translates it with the symbolics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.autograd_functions import as_custom_operators
from torch_onnx_compat.backends.backend import ExportedGraph, ExportFailed, ExportJob, FixedAxis, refuse
from torch_onnx_compat.backends.capture import capture
from torch_onnx_compat.backends.dynamo_fractions import with_fractions
from torch_onnx_compat.backends.dynamo_symbolics import translation_table
from torch_onnx_compat.backends.internals import expressions
from torch_onnx_compat.backends.quiet import quiet_logs, without_partial_program
from torch_onnx_compat.caller.undo import undo_capture
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.graph.names import claim_name
from torch_onnx_compat.inputs.inputs import Axis, Inputs, is_within
from torch_onnx_compat.inputs.probing import far_sizes
from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.search import Sides

MIN_OPSET = 18
"""Lowest opset that torch's dynamo exporter writes."""

MAX_OPSET = 23
"""Highest opset that it writes; the graph is converted to later ones afterwards."""


class _Bounded(ExportFailed):
    """A capture that holds for the example and shorter axes only."""


def export(job: ExportJob) -> ExportedGraph:
    """Exports through torch.export.

    Before torch 2.14 a slice that ends beyond the example's axis bounds that axis, or fixes it. So a capture that holds
    for no longer axes is made again of a longer example.

    Raises:
        ExportFailed: torch refused the model, or the capture fixed or bounded a dynamic axis.
    """
    try:
        return _export(job)
    except (_Bounded, FixedAxis):  # perhaps at this size only: x[3:] of four rows has one, which torch takes for fixed
        for longer in _longer_examples(job):
            with suppress(CompatError):  # the model may refuse these sizes; what the caller asked for is reported
                exported = _export(longer)
                if _holds_at(exported.assumed, longer.inputs, job.inputs):
                    return exported
        raise


def _holds_at(assumed: Sequence[Question], captured: Inputs, example: Inputs) -> bool:
    """Whether a capture of a longer example goes the way of the example.

    That a size is not 1 any more is what the longer example is for; another bound on it is a decision of the model's.
    """
    for question in assumed:
        sides = Sides(question, captured.sizes(), captured.bounds())
        if not question.is_equality and sides.is_other(example.sizes()) and not _is_of_one(question, example):
            return False
    return True


def _is_of_one(question: Question, example: Inputs) -> bool:
    """Whether a question is torch's, ``size - 2 >= 0``, and the size is 1 on the example."""
    if type(question.expression).__name__ != "GreaterThan":
        return False
    above = question.expression.lhs - question.expression.rhs
    symbols = sorted(above.free_symbols, key=str)
    sizes = example.sizes()
    return bool(expressions.compile_expression(above, symbols)(*(sizes[str(symbol)] for symbol in symbols)) == -1)


def _longer_examples(job: ExportJob) -> Iterator[ExportJob]:
    """The job with all dynamic axes longer, where their bounds allow it."""
    bounds = job.inputs.bounds()
    for inputs in far_sizes(job.inputs):
        if all(is_within(bounds, name, size) for name, size in inputs.sizes().items()):
            yield replace(job, inputs=inputs, subject=job.make_subject())


def _export(job: ExportJob) -> ExportedGraph:
    opset = min(max(job.opset, MIN_OPSET), MAX_OPSET)
    with quiet_logs(), without_partial_program(), as_custom_operators(job, opset) as function_table:
        captured = capture(job)
        program, floats = captured.program, captured.floats
        axes = _reject_specialised(job, program, captured.notes)
        _reject_frozen(job, floats, axes)
        assumed = captured.assumed
        _reject_constants(job, assumed)
        conditions = [*(str(question.expression) for question in assumed), *captured.opaque_conditions]
        if conditions and job.decides is not None and job.decides(job):
            raise ExportFailed(
                f"dynamo would freeze a Python decision on a size at its value for the example: "
                f"{'; '.join(conditions)}."
            )
        internals.drop_assertions(program)
        internals.match_numbers(program)
        types = internals.output_types(program)
        table = {**translation_table(job, opset), **function_table}
        if job.plan.target.computes_double:
            table = with_fractions(table, opset)
        table |= job.options.get("custom_translation_table") or {}
        try:
            with (
                internals.cache_torchlib(),
                internals.allow_dynamic_composites(),
                internals.decompose_by_node(),
                internals.short_sizes(),  # as they were captured: equal sizes in two forms are different to torch
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
    internals.cast_outputs(converted.model, types)
    has_selections = any(map(expressions.data_symbols, program.range_constraints))
    return ExportedGraph(
        converted.model,
        captured.notes,
        renamed_axes=axes,
        assumed=assumed,
        table_places=captured.table_places,
        has_selections=has_selections,
    )


def _reject_specialised(job: ExportJob, program: torch.export.ExportedProgram, notes: list[str]) -> dict[str, str]:
    """Checks every dynamic axis in the captured program; returns the axis names by symbol. Adds to the notes.

    torch.onnx captures with a flag that allows an axis to be unified with 1: there is no error, the axis' range shrinks
    to [1, 2], and later shapes are fixed. Here every axis is longer, and a bound that was not asked for is an error,
    unless it is the model's own: a table of positions is as long as it is.
    """
    names: dict[str, str] = {}
    inputs = internals.input_values(program)
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
                note = f"axis {axis.name!r} is up to {int(upper)} long: the model itself refuses longer ones."
                if note in notes:  # another input has the axis, too
                    continue
                if _takes_no_more(job, axis, int(upper)):
                    notes.append(note)
                    continue
                raise _Bounded(
                    f"axis {dim} ({axis.name!r}) of input {name!r} was captured for sizes up to {int(upper)} only: a "
                    f"Python decision in the model, or a slice, depends on it. Give an example in which it is longer, "
                    f"or say that it is no longer: dynamic_shapes={{{name!r}: {{{dim}: torch.export.Dim("
                    f"{axis.name!r}, max={int(upper)})}}}}."
                )
    return names


LONGER = (1, 2, 8, 32)
"""By how much an axis is longer than a capture holds for, where the model is asked whether it takes that."""

LARGEST = 2**21
"""Elements of the inputs of such a run at most."""


def _takes_no_more(job: ExportJob, axis: Axis, most: int) -> bool:
    """Whether the model refuses all sizes of an axis above some size that are tried."""
    if job.accepts is None or len(axis.roots) != 1:
        return False
    (name,) = axis.roots
    longer = [job.inputs.at_sizes({name: size}) for size in (*(most + step for step in LONGER), 2 * most)]
    if max(sum(tensor.numel() for tensor in inputs.tensors) for inputs in longer) > LARGEST:
        return False
    return not any(map(job.accepts, longer))


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


def _reject_constants(job: ExportJob, assumed: Sequence[Question]) -> None:
    """Raises for a whole number of Python's that the program holds as the example's, where no proof tries others."""
    sizes, bounds = job.inputs.sizes(), job.inputs.bounds()
    constants = (q for q in assumed if q.kind == "constant" and q.place not in job.allow_baked and not job.is_proven)
    frozen = next((question for question in constants if not Sides(question, sizes, bounds).is_proven), None)
    if frozen is not None:
        raise ExportFailed(
            f"dynamo would freeze {frozen.expression} at its value for the example: {frozen.place}. Compute with "
            f"tensors what this number is used for, or accept it with allow_baked=[{frozen.place!r}]."
        )
