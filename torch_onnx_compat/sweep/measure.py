"""One job, done in this process: load, export, judge."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.backends.backend import readable
from torch_onnx_compat.errors import CompatError, causes
from torch_onnx_compat.export import export_compat
from torch_onnx_compat.finish import node_counts
from torch_onnx_compat.prepare import prepare
from torch_onnx_compat.sweep.job import Job
from torch_onnx_compat.sweep.judge import judge
from torch_onnx_compat.sweep.stock import export_stock
from torch_onnx_compat.zoo import Sample, load

REASON = 400
"""Characters of a reason."""


def measure(job: Job, folder: Path, step: Callable[[str], None]) -> dict[str, Any]:
    """Loads a model, exports it, and judges the file.

    Args:
        job: What to do.
        folder: Where the file may lie.
        step: Called with the name of each step as it begins.

    Returns:
        The fields of the row that are known here.
    """
    step("load")
    start = time.perf_counter()
    try:
        sample = load(job.spec, job.size).validate(job.spec)
        loaded = time.perf_counter() - start
    except Exception as error:  # whatever the zoo's code raises
        return _failure("not built", error)
    path = folder / "model.onnx"
    step("export")
    start = time.perf_counter()
    try:
        about = _ours(job, sample, path, step) if job.by == "ours" else _stock(job, sample, path)
    except Exception as error:  # torch raises anything; what is not a CompatError of ours is a bug of ours
        verdict = "refused" if job.by != "ours" or isinstance(error, CompatError) else "crashed"
        return {**_failure(verdict, error), "load_s": round(loaded, 2), "export_s": _since(start)}
    step("check")
    start = time.perf_counter()
    model = ir.load(path)
    about |= {"nodes": sum(node_counts(model).values()), "opset": model.opset_imports[""]}
    wrong = judge(path, _prepare(sample), sample.verify)
    about["check_s"] = round(about.get("check_s", 0.0) + time.perf_counter() - start, 2)
    return {**about, "verdict": "wrong" if wrong else "verified", "reason": tidy(wrong), "load_s": round(loaded, 2)}


def _ours(job: Job, sample: Sample, path: Path, step: Callable[[str], None]) -> dict[str, Any]:
    how = replace(sample.verify, on_target=job.target != "onnxruntime")
    result = export_compat(
        sample.model,
        sample.args,
        path,
        kwargs=sample.kwargs,
        target=job.target,
        opset_version=job.opset,
        dynamic=sample.dynamic or None,
        verify=how,
        progress=step,
    )
    validate = result.seconds.get("check", 0.0)
    export_s = round(sum(result.seconds.values()) - validate, 2)
    return {"exporter": result.exporter, "export_s": export_s, "check_s": validate}


def _stock(job: Job, sample: Sample, path: Path) -> dict[str, Any]:
    prepared = _prepare(sample)
    start = time.perf_counter()
    exporter = export_stock(job, prepared, path)
    return {"exporter": exporter, "export_s": _since(start)}


def _prepare(sample: Sample) -> Any:
    return prepare(sample.model, sample.args, kwargs=sample.kwargs, dynamic=sample.dynamic or None)


def _failure(verdict: str, error: Exception) -> dict[str, Any]:
    if any(_is_of_memory(cause) for cause in causes(error)):
        verdict = "out of memory"
    text = str(error) if isinstance(error, CompatError) else f"{type(error).__name__}: {readable(error)}"
    return {"verdict": verdict, "reason": tidy(text)}


def _is_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "not enough memory" in str(error)


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 2)


def tidy(text: str) -> str:
    """A reason on one line, without the folders that code lies in on this machine and without addresses."""
    text = re.sub(r"(?:/[^\s:'\"/]+)*/site-packages/", "", " ".join(text.split()))
    text = re.sub(r"(?:/[^\s:'\"/]+){2,}/([^\s:'\"/]+)", r"\1", text)
    return re.sub(r"0x[0-9a-f]{6,}", "0x…", text)[:REASON]
