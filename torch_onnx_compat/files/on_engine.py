"""Runs a new file in the engine that it was made for, on the cases that it was proven on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

from torch_onnx_compat.check.compare import Comparison, compare
from torch_onnx_compat.engines import ENGINES, Engine, EngineProcess
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.files.cases import FileCase
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.runner import Array
from torch_onnx_compat.files.values import is_plain
from torch_onnx_compat.targets import Target

LIMIT = 300.0
"""Seconds that one run may take."""

FACTOR = 5
"""Tolerance of a whole file, as a multiple of the engine's tolerance for a single operator."""


def verify_in_engine(path: Path, proof: Proof, target: Target) -> tuple[Comparison, ...]:
    """Compares a file in its target's engine with the original on every case; none where that is not installed.

    Args:
        path: The file.
        proof: The original, and the cases; gets a note on what was not run.
        target: The engine.

    Raises:
        VerificationError: The engine refuses the file, crashes, or a value is off; holds the table so far.
    """
    engine = ENGINES.get(target.name)
    if target.name == "onnxruntime":
        return ()
    if engine is None or engine.interpreter() is None:
        why = "there is no adapter for it" if engine is None else "it is not installed"
        proof.notes.append(f"not run on {target.name}: {why}.")
        return ()
    rows: list[Comparison] = []
    names, declared = proof.names, proof.file.proto.graph.output
    with EngineProcess(engine, LIMIT) as process:
        for case in proof.cases:
            reason = obstacle(case)
            if reason:
                proof.notes.append(f"case {case.label!r} was not run on {target.name}: {reason}.")
                continue
            label = f"{case.label} on {target.name} {process.version}"
            outcome = process.run(path, dict(case.feeds), names)
            if outcome.status != "ran":
                row = Comparison(label, "", float("nan"), float("nan"), "", False, f"fails: {outcome.error}")
                raise VerificationError(
                    f"{target.name} does not run the new file, case {case.label!r}: {outcome.error}", (*rows, row)
                )
            found = [cast_output(a, value) for a, value in zip(outcome.outputs, declared, strict=True)]
            rows += _compare(label, names, found, case, proof, engine)
            bad = [row for row in rows if not row.ok]
            if bad:
                raise VerificationError(
                    f"{target.name} computes something else than the original, case {case.label!r}, output "
                    f"{bad[0].output!r}: {bad[0].detail}",
                    tuple(rows),
                )
    return tuple(rows)


def cast_output(found: Array, declared: onnx.ValueInfoProto) -> Array:
    """An output in the type and rank that the file declares: some engines lack int64 or scalars."""
    tensor = declared.type.tensor_type
    if tensor.elem_type:
        found = found.astype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    is_number = tensor.HasField("shape") and not tensor.shape.dim
    return np.ascontiguousarray(found.reshape(()) if is_number and found.size == 1 else found)


def obstacle(case: FileCase) -> str:
    """Why a case says nothing about an engine; empty if it does."""
    values: list[Any] = [*case.feeds.values(), *case.outputs]
    if not all(isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and is_plain(value) for value in values):
        return "not all values are plain tensors"
    if not all(np.isfinite(value).all() for value in case.outputs if value.dtype.kind == "f"):
        return "the original's outputs are not all finite"
    return ""


def _compare(
    label: str, names: Sequence[str], found: Sequence[Array], case: FileCase, proof: Proof, engine: Engine
) -> list[Comparison]:
    rtol, atol = (FACTOR * tolerance for tolerance in engine.tolerance)
    rows = [
        compare(label, name, array, torch.from_numpy(np.array(wanted)), rtol, atol)
        for name, array, wanted in zip(names, found, case.outputs, strict=True)
        if name not in proof.random_outputs
    ]
    if all(row.ok for row in rows) or engine.computes_in != "float32":
        return rows
    others = {row.output: row for row in proof.compare_outputs(case, found)}  # rounding excuses the same as elsewhere
    return [row if row.ok else replace(others[row.output], case=label) for row in rows]
