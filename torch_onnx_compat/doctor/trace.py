"""Obstacles that one TorchScript trace shows: operators without translation, frozen decisions, custom code."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.backend import ExportJob, readable
from torch_onnx_compat.backends.decisions import COPIES, Decision, DecisionLog
from torch_onnx_compat.backends.internals.modes import DispatchMode
from torch_onnx_compat.backends.repairs import repair_trace
from torch_onnx_compat.catalogue.entry import Operator
from torch_onnx_compat.control_flow import rewrite_decisions
from torch_onnx_compat.control_flow.run.refusal import RefusedDecision
from torch_onnx_compat.diagnosis import hint
from torch_onnx_compat.doctor.model import Symptom
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.inputs.probing import differing, first_accepted, other_sizes
from torch_onnx_compat.observe import Subject
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.plan import DECISIONS, Plan

_jit: Any = torch.jit

_ONNX = {
    "grid_sampler": "GridSample",
    "affine_grid_generator": "AffineGrid",
    "col2im": "Col2Im",
    "cumsum": "CumSum",
    "einsum": "Einsum",
    "fmod": "Mod",
    "remainder": "Mod",
    "nonzero": "NonZero",
    "scatter": "ScatterElements",
    "scatter_add": "ScatterElements",
    "index_put": "ScatterND",
    "stft": "STFT",
    "topk": "TopK",
    "unique": "Unique",
    "_unique2": "Unique",
    "nms": "NonMaxSuppression",
    "roi_align": "RoiAlign",
    "deform_conv2d": "DeformConv",
    "group_norm": "GroupNormalization",
    "layer_norm": "LayerNormalization",
    "instance_norm": "InstanceNormalization",
    "lstm": "LSTM",
    "gru": "GRU",
    "tril": "Trilu",
    "triu": "Trilu",
    "bitwise_and": "BitwiseAnd",
    "gelu": "Gelu",
}
"""The ONNX operator that an operator of torch becomes, where not all engines have it."""

_OPTIONAL = {"GroupNormalization", "LayerNormalization", "Gelu", "Einsum", "STFT"}
"""Operators that the exporters write only where the opset has them; otherwise they write several plainer ones."""

_HANDLED = {"copy", "fill", "zero", "detach", "lift", "lift_fresh", "ScalarImplicit", "IntImplicit", "FloatImplicit"}
"""Operators that the TorchScript exporter removes before it looks for symbolics."""


def examine_trace(make: Callable[[], Subject], inputs: Inputs, plan: Plan, exporter: str) -> Iterator[Symptom]:
    """Traces a model and examines the trace.

    Args:
        make: Makes the patched twin.
        inputs: The inputs to trace it on.
        plan: The entries that are applied.
        exporter: The back end, or auto.
    """
    try:
        graph, decisions = _trace(make(), inputs)
    except Exception as error:
        text = readable(error)
        yield Symptom("warning", "", f"TorchScript cannot trace the model: {text}", hint(text).rstrip("."))
        return
    if exporter != "dynamo" or any(d.from_data for d in decisions):
        yield from _examine_decisions(decisions, make, inputs)
    if any(d.from_data and not d.guard for d in decisions) and DECISIONS in plan.armed:
        yield from _examine_rewriting(make, inputs, plan)
    yield from _examine_operators(graph, make, inputs, plan, exporter)


def _trace(subject: Subject, inputs: Inputs) -> tuple[Any, list[Decision]]:
    log = DecisionLog(len(inputs.tensors))
    repair_trace(subject)
    subject.around = log
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = internals.trace(subject, inputs.tensors)
    return graph, log.decisions


def _examine_decisions(decisions: list[Decision], make: Callable[[], Subject], inputs: Inputs) -> Iterator[Symptom]:
    by_size = [d for d in decisions if not d.from_data]
    by_size = _decisions_by_size(by_size, make, inputs) if by_size and inputs.sizes() else []
    for decision in dict.fromkeys((*(d for d in decisions if d.from_data), *by_size)):
        if decision.guard:
            continue
        what = "the values of the inputs" if decision.from_data else "a size that is to vary"
        action = f"the export rewrites what it can; else use torch.where or allow_baked=[{decision.place!r}]"
        if decision.conversion in COPIES:
            action = "compute with torch what is made of them; if they are always the same, do this in __init__"
        yield Symptom(
            "error" if decision.conversion in COPIES else "warning",
            decision.place,
            f"Python takes {decision.conversion} of {what}",
            action,
        )


def _examine_rewriting(make: Callable[[], Subject], inputs: Inputs, plan: Plan) -> Iterator[Symptom]:
    """Tells which decision on values the export refuses to rewrite."""
    try:
        with plan.mute():
            rewritten = rewrite_decisions(ExportJob(make, make(), inputs, plan, plan.opset))
            if rewritten.job is not None:
                _trace(rewritten.job.subject, inputs)
    except RefusedDecision as refusal:
        place, _, reason = str(refusal).partition(": ")
        yield Symptom("error", place, f"this decision cannot be rewritten: {reason}", "")
    except MemoryError:
        raise
    except Exception:  # of any kind, as the model's code is run; it is no refusal, and the export meets and tells it
        return


def _decisions_by_size(decisions: list[Decision], make: Callable[[], Subject], inputs: Inputs) -> list[Decision]:
    others = first_accepted(other_sizes(inputs), lambda longer: _trace(make(), longer)[1])
    if others is None:
        return []
    return differing(decisions, others, lambda d: (d.place, d.conversion), lambda d: d.sizes)


def _examine_operators(
    graph: Any, make: Callable[[], Subject], inputs: Inputs, plan: Plan, exporter: str
) -> Iterator[Symptom]:
    written = {entry.op for entry in plan.symbolics()}
    untranslated: dict[str, str] = {}
    for node in _nodes(graph):
        kind, place = node.kind(), _place(node)
        if kind not in written:
            yield from _examine_target(kind, place, plan)
            if not _has_symbolic(kind):
                untranslated.setdefault(kind, place)
    if untranslated or exporter == "dynamo":
        yield from _examine_untranslated(untranslated, make, inputs, plan, exporter)


def _examine_untranslated(
    untranslated: dict[str, str], make: Callable[[], Subject], inputs: Inputs, plan: Plan, exporter: str
) -> Iterator[Symptom]:
    lacking = {} if exporter == "torchscript" else _find_dynamo_gaps(make(), inputs, plan)
    if exporter != "torchscript" and not lacking:
        return
    names = lacking if exporter == "dynamo" else untranslated
    who = {"auto": "no exporter translates", "dynamo": "dynamo does not translate"}.get(exporter, "TorchScript lacks")
    for name, place in names.items():
        custom = name.partition("::")[0] not in ("aten", "prim", "torchvision", "quantized")
        action = (
            f"declare it with @symbolic({name!r}) and pass symbolics=[it]"
            if custom
            else ("give a symbolic or a rewrite for it, or compute it otherwise")
        )
        yield Symptom("error", place, f"{who} {name}", action)


def _find_dynamo_gaps(subject: Subject, inputs: Inputs, plan: Plan) -> dict[str, str]:
    """Operators that eager torch calls, and that dynamo neither translates nor decomposes."""
    log = _OverloadLog()
    with log:
        subject(*[tensor.clone() for tensor in inputs.tensors])
    written = {entry.op for entry in plan.symbolics()}
    decomposed = torch.export.default_decompositions()
    with internals.cache_torchlib():
        internals.build_torchlib()
        return {
            overload._schema.name: ""
            for overload in log.overloads
            if overload._schema.name not in written
            and overload not in decomposed
            and not any(internals.torchlib_function(o) for o in internals.overloads(overload._schema.name.rstrip("_")))
            and overload._schema.name.rpartition("::")[2].strip("_") not in _EAGER
        }


_EAGER = {"native_batch_norm", "empty", "lift_fresh", "detach", "copy", "set", "resize", "unsafe_view", "to_copy"}
"""Operators of eager torch that a captured program does not contain."""


class _OverloadLog(DispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self.overloads: dict[Any, None] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.overloads[func] = None
        return func(*args, **(kwargs or {}))


def _examine_target(kind: str, place: str, plan: Plan) -> Iterator[Symptom]:
    operator = _ONNX.get(kind.rpartition("::")[2].rstrip("_"))
    if operator is None or operator in _OPTIONAL:
        return
    objection = plan.target.avoids(Operator(operator), plan.opset)
    if objection:
        yield Symptom(
            "error",
            place,
            f"target {plan.target.name!r}: {operator} {objection}",
            "include= an entry that avoids it (torch-onnx-compat catalogue), or take another opset",
        )


def _has_symbolic(kind: str) -> bool:
    namespace, _, name = kind.partition("::")
    bare = name.rstrip("_")
    if namespace in ("prim", "onnx") or bare in _HANDLED:
        return True
    opset = internals.max_torchscript_opset()
    return any(internals.built_in_symbolic(f"{namespace}::{n}", opset) is not None for n in (name, bare))


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _place(node: Any) -> str:
    """The statement, else the module, that a node comes from."""
    found = re.findall(r"(\S+\.py)\((\d+)\)", node.sourceRange()) or re.findall(r"(\S+\.py):(\d+)", node.sourceRange())
    own = [short(file, int(line)) for file, line in found if is_user_file(file)]
    names = [part.rpartition("::")[2] for part in node.scopeName().split("/")]
    module = ".".join(name for name in names if name and name != "twin")
    return own[0] if own else module
