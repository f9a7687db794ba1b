"""torch.onnx.export(dynamo=False): traces, rejects frozen decisions, and lowers with the plan's symbolics."""

from __future__ import annotations

import inspect
import io
import re
import types
import typing
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import onnx
import onnx_ir as ir
import torch
from torch import Tensor, nn
from torch.onnx import symbolic_helper

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.backend import (
    ExportedGraph,
    ExportFailed,
    ExportJob,
    frozen_error,
    refuse,
    reject_other_errors,
)
from torch_onnx_compat.backends.decisions import (
    COPIES,
    ITERATION,
    KEY,
    LAYOUT_READS,
    LEGACY_CONSTRUCTOR,
    Decision,
    DecisionLog,
)
from torch_onnx_compat.backends.quiet import without_graph_dump
from torch_onnx_compat.backends.repairs import repair_trace
from torch_onnx_compat.backends.torchscript_ops import TorchScriptOps
from torch_onnx_compat.backends.wide import wide_sizes
from torch_onnx_compat.caller.undo import is_training
from torch_onnx_compat.catalogue.entry import Declined, Symbolic, decline
from torch_onnx_compat.errors import CompatError, EntryFailed
from torch_onnx_compat.garbage import pause_collection
from torch_onnx_compat.graph.weights import as_onnx
from torch_onnx_compat.handlers import CaughtErrors
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.inputs.probing import differing, distinct_sizes, first_accepted, other_sizes
from torch_onnx_compat.ops import ONNX_TYPES, Number
from torch_onnx_compat.places import is_user_file, module_path, short
from torch_onnx_compat.stack import own_stacks

_jit: Any = torch.jit

_LEAST = 1024
"""Bytes from which a weight is not passed through torch's exporter, which copies it several times."""


def export(job: ExportJob) -> ExportedGraph:
    """Exports through TorchScript.

    If torch has a symbolic only at a later opset than the wanted one, it writes the highest opset; `finish` lowers it.

    Raises:
        ExportFailed: torch refused the model, or the trace froze a decision on the inputs or on a dynamic size.
    """
    highest = internals.max_torchscript_opset()
    opset = min(job.opset, highest)
    try:
        return _export_at(opset, job)
    except ExportFailed as error:
        if "Support for this operator was added in version" not in str(error) or opset == highest:
            raise
        job = replace(job, subject=job.make_subject())
        return _export_at(highest, job)


def _export_at(opset: int, job: ExportJob) -> ExportedGraph:
    log, errors = DecisionLog(len(job.inputs.tensors)), CaughtErrors(job.handlers)
    failures: list[BaseException] = []
    as_function = partial(_symbolic_function, job=job, opset=opset, failures=failures, modules=_module_paths(job))
    functions = {e.op: as_function(e) for e in job.plan.symbolics() if "autograd::" not in e.op}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ExitStack() as stack:
            stack.enter_context(internals.register_symbolics(functions, opset))
            stack.enter_context(_function_symbolics(job, as_function))
            stack.enter_context(without_graph_dump())
            stack.enter_context(own_stacks(job.subject))
            if job.plan.target.computes_double:
                stack.enter_context(internals.keep_double_scalars())
            if not job.is_script:
                repair_trace(job.subject, job.python_modules)
                job.subject.wrap(lambda: errors)
                job.subject.around = log
                if job.plan.target.computes_double:
                    stack.enter_context(wide_sizes())
            try:
                model = _run(job, opset)
            except CompatError:
                raise
            except Exception as error:
                if failures:
                    raise _first_error(failures) from failures[0].__cause__
                refuse(error, "TorchScript exporter")
            finally:
                job.subject.around = None
    left_alone = _reject_frozen(job, log.decisions)
    reject_other_errors(errors, job, "TorchScript")
    return ExportedGraph(
        model,
        notes=_notes(caught),
        constant_places=log.constant_places,
        table_places=frozenset(log.table_places),
        has_selections=log.has_selections or log.data_sizes.has_sources,
        left_alone=left_alone,
        renamed_axes={
            _plain(a.name): a.name for axes in job.inputs.axes for a in axes.values() if _plain(a.name) != a.name
        },
        is_same_at=partial(_is_same_at, job, {}) if left_alone else None,
    )


def _run(job: ExportJob, opset: int) -> ir.Model:
    arguments: dict[str, Any] = {
        "input_names": list(job.inputs.names),
        "dynamic_axes": {
            name: {dim: _plain(axis.name) for dim, axis in axes.items()}
            for name, axes in zip(job.inputs.names, job.inputs.axes, strict=True)
            if axes
        },
        "opset_version": opset,
        "custom_opsets": dict(job.custom_opsets) or None,
        "dynamo": False,
        # EVAL lets torch fold BatchNorm into convolutions; PRESERVE keeps whatever mode the twin is in.
        "training": torch.onnx.TrainingMode.PRESERVE if is_training(job.subject.twin) else torch.onnx.TrainingMode.EVAL,
        **{k: v for k, v in job.options.items() if k in ("do_constant_folding", "autograd_inlining")},
    }
    file: Any = io.BytesIO()
    model, args = (_script(job), job.inputs.call()[0]) if job.is_script else (job.subject, job.inputs.tensors)
    with pause_collection(), internals.without_weights(_is_large) as weights:
        torch.onnx.export(model, args, file, **arguments)
    made = ir.from_proto(onnx.load_model_from_string(file.getvalue()))
    _cast_to_bfloat16(made)
    return _with_weights(made, weights)


def _cast_to_bfloat16(model: ir.Model) -> None:
    """Corrects casts: the exporter gives bfloat16 the number of complex128, which no operator takes."""
    for node in model.graph.all_nodes():
        if node.op_type == "Cast" and node.attributes["to"].as_int() == ir.DataType.COMPLEX128:
            node.attributes["to"] = ir.AttrInt64("to", ir.DataType.BFLOAT16)
            for value in node.outputs:
                value.type = ir.TensorType(ir.DataType.BFLOAT16)


def _plain(name: str) -> str:
    """The name of an axis as torch's exporter accepts it."""
    return re.sub(r"\W+", "_", name)


def _script(job: ExportJob) -> nn.Module:
    """The scripted model itself; what it returns is found by a run of another twin."""
    other = job.make_subject()
    other(*job.inputs.tensors)
    job.subject.outputs = other.outputs
    return job.subject.twin


def _is_large(weight: Tensor) -> bool:
    return weight.dtype in ONNX_TYPES and weight.numel() * weight.element_size() >= _LEAST


def _with_weights(model: ir.Model, weights: dict[str, Tensor]) -> ir.Model:
    """Puts the weights that the exporter left out into the graph; they share the memory of the caller's weights."""
    for name, tensor in weights.items():
        value = model.graph.initializers[name]
        shared = as_onnx(tensor, name)
        value.const_value, value.shape = shared, shared.shape
    return model


# Symbolics


def _symbolic_function(
    entry: Symbolic, job: ExportJob, opset: int, failures: list[BaseException], modules: Collection[str]
) -> Callable[..., Any]:
    """A symbolic as a function that torch calls with a graph and the operator's arguments."""
    signature = inspect.signature(entry.body)
    hints = typing.get_type_hints(entry.body)
    parameters = list(signature.parameters.values())[1:]
    kinds = {p.name: _kind(hints.get(p.name, Any)) for p in parameters}

    def lower(g: Any, *args: Any, **kwargs: Any) -> Any:
        ops = TorchScriptOps(g, opset)
        bound = inspect.Signature(parameters).bind(*args[: len(parameters)], **kwargs)
        values = {name: _read_argument(ops, value, kinds[name]) for name, value in bound.arguments.items()}
        place = _place_of(g, modules)
        built_in = internals.built_in_symbolic(entry.op, opset)
        try:
            result = _run_entry(entry, place, ops, values, kinds)
            if result is NotImplemented and built_in is not None:
                return built_in(g, *args, **kwargs)
            if result is NotImplemented:
                decline("it does not take these arguments, and torch has nothing for the operator")
        except Declined as reason:
            job.plan.declined(entry.name, place, str(reason))
            if built_in is None:
                error = ExportFailed(
                    f"{place or 'the model'}: {entry.op} cannot be exported: {entry.name} declined: {reason}."
                )
                failures.append(error)
                raise error from None
            return built_in(g, *args, **kwargs)
        except CompatError as error:
            failures.append(error)
            raise
        job.plan.applied(entry.name, place)
        return result

    return lower


def _run_entry(
    entry: Symbolic, place: str, ops: TorchScriptOps, values: dict[str, Any], kinds: Mapping[str, str]
) -> Any:
    """What an entry writes.

    Raises:
        Declined: It does; or it fails, and a number that it wants to know is computed in the graph.
    """
    computed = (name for name, value in values.items() if kinds[name] in _NUMBERS and internals.is_graph_value(value))
    unknown = next(computed, None)
    try:
        return entry.run(lambda: place, ops, **values)
    except EntryFailed:
        if unknown is None:
            raise
    decline(f"{unknown} must be known, and is computed in the model")


_NUMBERS = ("i", "b", "f", "s", "is")
"""What `_kind` says of arguments that are plain numbers and texts."""


def _kind(hint: Any) -> str:
    """The letter of torch's argument parser for an annotation: v value, i integer, b boolean, f float, s text, is list.

    A list of Values is vs, which the parser does not know.
    """
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        plain = [a for a in typing.get_args(hint) if a is not type(None)]
        return _kind(plain[0]) if len(plain) == 1 else "number"
    if typing.get_origin(hint) in (list, tuple) or hint in (list, tuple):
        inner = (*typing.get_args(hint), int)[0]
        return {float: "fs", int: "is"}.get(inner, "vs")
    return {int: "i", bool: "b", float: "f", str: "s"}.get(hint, "number" if hint is Number else "v")


def _read_argument(ops: TorchScriptOps, value: Any, kind: str) -> Any:
    if kind == "number":
        number = ops.number(value)
        return value if number is None else number
    if not internals.is_graph_value(value):
        return value
    if value.node().mustBeNone():
        return None
    if kind == "v":
        return value
    if kind == "vs":
        packed = symbolic_helper._is_packed_list(value)
        return [_read_argument(ops, item, "v") for item in symbolic_helper._unpack_list(value)] if packed else [value]
    parsed = symbolic_helper._maybe_get_const(value, kind)  # type: ignore[arg-type]
    return bool(parsed) if kind == "b" else parsed


def _module_paths(job: ExportJob) -> frozenset[str]:
    return frozenset(path for path, _ in job.subject.twin.named_modules())


def _place_of(g: Any, modules: Collection[str]) -> str:
    """Path of the module whose node is being lowered, from its scope ``Class::/Class::twin/Class::conv``."""
    node = getattr(g, "original_node", None)
    scope = node.scopeName() if node is not None else ""
    names = [part.rpartition("::")[2] for part in scope.split("/")]
    within = [name.removeprefix("twin.") for name in names[names.index("twin") + 1 :]] if "twin" in names else names
    return module_path([name for name in within if name], modules)


@contextmanager
def _function_symbolics(job: ExportJob, as_function: Callable[[Symbolic], Callable[..., Any]]) -> Iterator[None]:
    """While active, autograd Functions have the symbolics that the plan has for them."""
    entries = {e.op.removeprefix("autograd::"): e for e in job.plan.symbolics() if e.op.startswith("autograd::")}
    changed: list[tuple[Any, Any]] = []
    try:
        for cls in _subclasses(torch.autograd.Function):
            entry = entries.get(f"{cls.__module__}.{cls.__qualname__}")
            if entry is not None:
                changed.append((cls, vars(cls).get("symbolic")))
                cls.symbolic = staticmethod(as_function(entry))
        yield
    finally:
        for cls, raw in changed:
            if raw is None:
                del cls.symbolic
            else:
                cls.symbolic = raw


def _subclasses(cls: Any) -> Iterator[Any]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


# Frozen decisions


def _reject_frozen(job: ExportJob, decisions: list[Decision]) -> frozenset[str]:
    """Raises if a decision depends on input data or on a dynamic size; lost guards are no error.

    Returns:
        The places of decisions on sizes, where the job leaves these alone.
    """
    # Most axes that are taken apart are fixed, as that of queries, keys and values is. A run without values tells which
    # are; a proof makes one, and it would cost too much without a proof.
    is_told = job.decides is None
    seen = [d for d in decisions if is_told or d.from_data or d.conversion != ITERATION]
    suspects = [d for d in seen if d.place not in job.allow_baked and not d.guard]
    frozen = [d for d in suspects if d.from_data]
    by_size = [d for d in suspects if not d.from_data]
    if by_size and job.inputs.sizes():
        frozen += _select_varying(job, by_size)
    of_values = any(d.from_data for d in frozen)
    is_final = of_values or any(d.conversion == KEY for d in frozen)  # a trace at other sizes finds nothing, either
    if frozen and (is_final or not job.leaves_sizes):
        places = "; ".join(dict.fromkeys(str(d) for d in frozen))
        is_copied = frozen[0].from_data and frozen[0].conversion in COPIES
        raise frozen_error(places, frozen[0].place, of_values=of_values, is_copied=is_copied)
    return frozenset(d.place for d in frozen)


def _select_varying(job: ExportJob, decisions: list[Decision]) -> list[Decision]:
    """The decisions on sizes whose sizes differ in a second trace, with other sizes of the dynamic axes."""

    def decisions_at(inputs: Inputs) -> list[Decision]:
        log = DecisionLog(len(inputs.tensors))
        subject = job.make_subject()
        repair_trace(subject, job.python_modules)
        subject.around = log
        with warnings.catch_warnings(), own_stacks(subject):
            warnings.simplefilter("ignore")
            internals.trace(subject, inputs.tensors)
        return [d for d in log.decisions if not d.from_data]

    if _are_of_fixed_sizes(job, decisions):
        return []
    varying: dict[int, Decision] = {}
    for sizes in (other_sizes, distinct_sizes):
        other = first_accepted(sizes(job.inputs), decisions_at)
        if other is not None:  # where the model accepts no other size, verification reports that
            varying |= {
                id(d): d for d in differing(decisions, other, lambda d: (d.place, d.conversion), lambda d: d.sizes)
            }
    return [decision for decision in decisions if id(decision) in varying]


def _are_of_fixed_sizes(job: ExportJob, decisions: list[Decision]) -> bool:
    """Whether the original asks nothing of its dynamic sizes where these decisions are, which saves the traces.

    What the code of an entry decides, the original does not ask; nor does it ask for a number that C++ takes only here,
    as a legacy constructor does, or that Python makes only here: `math.floor` and `round` leave a symbol a symbol.
    """
    places = None if job.asking_places is None else job.asking_places()
    unasked = [d for d in decisions if d.is_of_entry or d.is_taken or d.conversion in _ONLY_IN_A_TRACE]
    return places is not None and not unasked and not any(d.place in places for d in decisions)


_ONLY_IN_A_TRACE = (LEGACY_CONSTRUCTOR, "float()", "item()", *LAYOUT_READS.values())
"""Conversions of sizes that a run without numbers need not make."""


def _is_same_at(job: ExportJob, graphs: dict[str, str], inputs: Inputs) -> bool:
    """Whether the model is traced to the same graph at some sizes as at the example's; `graphs` keeps the latter."""

    def graph_at(inputs: Inputs) -> str:
        subject = job.make_subject()
        repair_trace(subject, job.python_modules)
        with warnings.catch_warnings(), own_stacks(subject):
            warnings.simplefilter("ignore")
            return internals.text_of_graph(internals.trace(subject, inputs.tensors))

    if "example" not in graphs:
        graphs["example"] = graph_at(job.inputs)
    return graph_at(inputs) == graphs["example"]


# Messages


def _first_error(failures: list[BaseException]) -> CompatError:
    found = failures[0]
    return found if isinstance(found, CompatError) else ExportFailed(str(found))


def _notes(caught: list[warnings.WarningMessage]) -> list[str]:
    """Warnings of the model's own code; the exporter's warnings are about problems that are checked here."""
    own = [w for w in caught if w.category is UserWarning and is_user_file(w.filename)]
    texts = (f"{str(w.message).splitlines()[0]} ({short(w.filename, w.lineno)})" for w in own)
    return list(dict.fromkeys(texts))
