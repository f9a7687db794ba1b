"""What a report tells, as plain data: the same for every form."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.check.compatibility import Group
from torch_onnx_compat.check.localisation import Localisation
from torch_onnx_compat.diagnosis import explain_error
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.plan import DECISIONS, Note
from torch_onnx_compat.precision.int8.verdict import Quantized, table_of, trials_of
from torch_onnx_compat.report.picture import parts_that_differ
from torch_onnx_compat.report.snippets import language, snippet
from torch_onnx_compat.report.stock import Before
from torch_onnx_compat.report.whole import whole_graph
from torch_onnx_compat.result import ExportResult
from torch_onnx_compat.targets import Target, load_target

Facts = dict[str, Any]

_DECISION = "A decision that Python took -> one that the file takes."


def of_result(
    result: ExportResult,
    comparison: Localisation | None = None,
    without: Before | None = None,
    modules: Collection[str] = (),
) -> Facts:
    """Tells of an export that succeeded; the changes are drawn where the paths of the model's modules are given."""
    proto = _graph(result)
    cases = len({row.case for row in result.table})
    verdict = f"Verified on {cases} inputs" if result.table else "Not verified"
    differs = comparison is not None and comparison.found
    return {
        "title": result.path.name if result.path else "model in memory",
        "ok": bool(result.table) and not differs,
        "verdict": f"{verdict}; differs from the model that this report was given" if differs else verdict,
        "summary": {
            "target": result.target,
            "exporter": result.exporter,
            "opset": str(result.opset),
            "nodes": str(sum(result.nodes.values())),
            "size": _size(_bytes(result)),
            "time": f"{sum(result.seconds.values()):.1f} s",
            "torch": torch.__version__,
            "onnx": onnx.__version__,
        },
        "message": "",
        "diagnoses": [],
        "inputs": [_value(v) for v in proto.graph.input] if proto else [],
        "outputs": [_value(v) for v in proto.graph.output] if proto else [],
        "applied": [_entry(note) for note in result.applied],
        "declined": [_entry(note) for note in result.declined],
        "unused": list(result.unused),
        "rejected": dict(result.rejected),
        "notes": [*map(str, result.axes), *result.notes, *_precision_notes(result)],
        "table": [row.to_dict() for row in result.table],
        **_precision(result),
        "operators": _operators(result, without),
        "stock": _stock(without),
        "changes": _changes(result, proto, without, modules),
        "source": result.source,
        "seconds": {step: round(spent, 3) for step, spent in result.seconds.items()},
        "snippet": snippet(result.target, result.path.name if result.path else "model.onnx", proto, result.shapes),
        "language": language(result.target),
        "whole": proto
        and whole_graph(proto, result.target, modules, changed=_places(result), wrong=_wrong(comparison)),
        "file": "",
        **_layers(comparison),
    }


def of_failure(error: CompatError, comparison: Localisation | None = None) -> Facts:
    """Tells of an export that failed."""
    rows = error.table if isinstance(error, VerificationError) else ()
    place = comparison or (error.place if isinstance(error, VerificationError) else None)
    return {
        **_BLANK,
        "title": "failed export",
        "ok": False,
        "verdict": "The file computes something else" if rows else "No file was made",
        "summary": {"kind": type(error).__name__, "torch": torch.__version__, "onnx": onnx.__version__},
        "message": str(error),
        "diagnoses": _diagnoses(error),
        "table": [row.to_dict() for row in rows],
        **_layers(place),
    }


def of_file(
    path: Path, model: onnx.ModelProto, target: Target, groups: Sequence[Group], comparison: Localisation | None
) -> Facts:
    """Tells of a file that is there, made by whatever tool.

    Args:
        path: The file.
        model: Its graph; the weights may be missing.
        target: The engine that is to run it.
        groups: What the target's profile says of its operators.
        comparison: Where it differs from a model, if there is one to compare it with.
    """
    verdict = "Not compared with a model"
    if comparison is not None:
        verdict = "Differs from the model" if comparison.found else "No layer differs from the model"
    opsets = [f"{entry.domain} {entry.version}".strip() for entry in model.opset_import]
    return {
        **_BLANK,
        "title": path.name,
        "ok": comparison is not None and not comparison.found,
        "verdict": verdict,
        "summary": {
            "target": target.name,
            "made by": f"{model.producer_name} {model.producer_version}".strip() or "unknown",
            "opset": ", ".join(opsets),
            "nodes": str(sum(len(group.places) for group in groups)),
            "size": _size(path.stat().st_size),
        },
        "inputs": [_value(value) for value in model.graph.input],
        "outputs": [_value(value) for value in model.graph.output],
        "notes": [f"{entry.key}: {entry.value}" for entry in model.metadata_props],
        "operators": [
            {"operator": g.operator, "count": len(g.places), "before": None, "verdict": g.reason or g.verdict}
            for g in groups
        ],
        "snippet": snippet(target.name, path.name, model),
        "language": language(target.name),
        "whole": whole_graph(model, target, wrong=_wrong(comparison)),
        **_layers(comparison),
    }


_BLANK: Facts = {
    "message": "",
    "diagnoses": [],
    "inputs": [],
    "outputs": [],
    "applied": [],
    "declined": [],
    "unused": [],
    "rejected": {},
    "notes": [],
    "table": [],
    "kept": [],
    "errors": [],
    "trials": [],
    "quantized": [],
    "operators": [],
    "stock": "",
    "changes": [],
    "source": "",
    "seconds": {},
    "snippet": "",
    "language": "",
    "whole": None,
    "file": "",
}
"""What there is nothing to tell of."""


def _precision(result: ExportResult) -> Facts:
    """What stayed in float32 in a file of a narrower format, and the errors, as texts; empty for other files."""
    told = result.precision
    blank: Facts = {"kept": [], "errors": [], "trials": [], "quantized": []}
    if told is None:
        return blank
    if isinstance(told, Quantized):
        return {**blank, "trials": trials_of(told), "quantized": table_of(told.layers)}
    kept = [(r.place, r.op_type, r.why, *(f"{n:.2g}" if n else "" for n in (r.loss, r.largest))) for r in told.kept]
    errors = [
        (
            row.case,
            row.output,
            *("" if e is None else f"{e.worst:.2g}" for e in (row.file, row.rendering, row.float32, row.eager)),
            "ok" if row.ok else "wrong",
        )
        for row in told.errors
    ]
    return {**blank, "kept": kept, "errors": errors}


def _precision_notes(result: ExportResult) -> list[str]:
    told = result.precision
    return [] if told is None else [str(told).partition("\n")[0], *told.notes]


def _diagnoses(error: CompatError) -> list[Facts]:
    """The causes; none of them after the causes that the message names already."""
    told = [d.to_dict() for d in explain_error(error)]
    named = [d for d in told if d["cause"] in str(error)]
    return named or told


def _places(result: ExportResult) -> set[str]:
    """Paths of the modules that entries changed."""
    return {place for note in result.applied for place in note.places if place}


def _wrong(comparison: Localisation | None) -> list[str]:
    layers = comparison.layers if comparison else ()
    return [layer.module for layer in layers if layer.error > layer.tolerance]


def _layers(comparison: Localisation | None) -> Facts:
    if comparison is None:
        return {"difference": "", "layers": []}
    return {
        "difference": str(comparison) if comparison.found else "",
        "layers": [vars(layer) for layer in comparison.layers],
    }


def _graph(result: ExportResult) -> onnx.ModelProto | None:
    """The file without its weights; None where it was written to a file object."""
    if result.path is not None:
        return onnx.load(result.path, load_external_data=False)
    return onnx.load_model_from_string(result.model_bytes) if result.model_bytes is not None else None


def _bytes(result: ExportResult) -> int:
    if result.path is None:
        return len(result.model_bytes or b"")
    weights = result.path.with_name(f"{result.path.name}.data")
    return result.path.stat().st_size + (weights.stat().st_size if weights.exists() else 0)


def _size(count: int) -> str:
    return f"{count / 1e6:.2f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


def _value(value: onnx.ValueInfoProto) -> Facts:
    kind = value.type.tensor_type
    shape = [dim.dim_param or (dim.dim_value if dim.HasField("dim_value") else "?") for dim in kind.shape.dim]
    return {"name": value.name, "type": onnx.TensorProto.DataType.Name(kind.elem_type).lower(), "shape": shape}


def _entry(note: Note) -> Facts:
    entries = {entry.name: entry for entry in catalogue()}
    entry = entries.get(note.entry)
    doc = (sys.modules[entry.owner].__doc__ or "") if entry and entry.owner in sys.modules else ""
    return {
        "entry": note.entry,
        "places": [place or "the model" for place in note.places],
        "reason": note.reason,
        "what": _DECISION if note.entry == DECISIONS else inspect.cleandoc(doc).partition("\n")[0],
        "exactness": entry.exactness.value if entry else "",
        "source": entry.source if entry else "",
    }


def _stock(without: Before | None) -> str:
    """What torch's own export came to, in words; empty where it was not tried."""
    if without is None:
        return ""
    if without.graph is None:
        return f"torch.onnx.export refuses the model: {without.refusal}"
    return f"torch.onnx.export makes {sum(_counts(without.graph).values())} nodes of the model."


def _counts(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def _changes(
    result: ExportResult, proto: onnx.ModelProto | None, without: Before | None, modules: Collection[str]
) -> list[Facts]:
    """For each entry its code, and the graph around its first place where no earlier entry's picture shows that."""
    entries = {entry.name: entry for entry in catalogue()}
    changes, drawn = [], set[str]()
    for note in result.applied:
        entry = entries.get(note.entry)
        if note.entry == DECISIONS:  # the rewritten source shows those
            continue
        places = note.places or ("",)
        place = next((place for place in places if place not in drawn), places[0])
        change: Facts = {"entry": note.entry, "place": place or "the model", "seen": place in drawn}
        if proto is not None and modules and place not in drawn:
            drawn.add(place)
            found = parts_that_differ(without.graph if without else None, proto, place, modules)
            change |= dict(zip(("before", "after"), found, strict=True)) if found else {}
        change["code"] = inspect.getsource(entry.body) if entry else ""
        changes.append(change)
    return changes


def _operators(result: ExportResult, without: Before | None) -> list[Facts]:
    try:
        target: Target | None = load_target(result.target)
    except CompatError:  # a profile that was given by its path
        target = None
    stock = _counts(without.graph) if without is not None and without.graph is not None else None
    nodes = {**dict.fromkeys(stock or (), 0), **result.nodes}
    rows = []
    for name, count in sorted(nodes.items(), key=lambda item: (-item[1], item[0])):
        objection = target.objection(name, result.opset) if target and "::" not in name else None
        verdict = "custom" if "::" in name else objection or ("runs" if target else "unknown")
        rows.append({"operator": name, "count": count, "before": stock and stock.get(name, 0), "verdict": verdict})
    return rows
