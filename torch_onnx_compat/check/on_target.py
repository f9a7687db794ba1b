"""Runs a file in the target's own engine against the original model."""

from __future__ import annotations

import os
from collections.abc import Sequence

from torch_onnx_compat.check.cases import Cases
from torch_onnx_compat.check.compare import Array, Comparison, compare
from torch_onnx_compat.engines import ENGINES, EngineProcess
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.targets import Target

_LIMIT = 300.0
_FACTOR = 5
"""How much more a whole model may differ than a single operator."""


def verify_on_target(
    path: str | os.PathLike[str], names: Sequence[str], cases: Cases, target: Target
) -> tuple[Comparison, ...]:
    """Compares a file, run in the target's engine, with the original model on the example.

    Where the engine has no adapter or is not installed, `cases` gets a note and nothing is run.

    Args:
        path: The file.
        names: Its outputs.
        cases: Inputs, and what the original computes.
        target: The engine.

    Returns:
        One row for each output.

    Raises:
        VerificationError: The engine refuses the file, crashes, or a value is off.
    """
    engine = ENGINES.get(target.name)
    if engine is None or engine.interpreter() is None:
        why = "there is no adapter for it" if engine is None else "it is not installed"
        cases.notes.append(f"not run on {target.name}: {why}.")
        return ()
    case = next(iter(cases))
    feeds: dict[str, Array] = {
        name: tensor.detach().cpu().numpy() for name, tensor in zip(case.inputs.names, case.inputs.tensors, strict=True)
    }
    with EngineProcess(engine, _LIMIT) as process:
        outcome = process.run(path, feeds, names)
        label = f"{case.label} on {target.name} {process.version}"
    if outcome.status != "ran":
        row = Comparison(label, "", float("nan"), float("nan"), "", False, f"{outcome.status}: {outcome.error}")
        raise VerificationError(f"{target.name} does not run the file: {outcome.error}", (row,))
    rtol, atol = (_FACTOR * tolerance for tolerance in engine.tolerance)
    wanted = [tensor.detach() for tensor in case.reference.outputs]
    rows = tuple(
        compare(label, name, found.astype(right.numpy().dtype).reshape(_shape(found, right.shape)), right, rtol, atol)
        for name, found, right in zip(names, outcome.outputs, wanted, strict=True)
    )
    bad = [row for row in rows if not row.ok]
    if bad:
        raise VerificationError(f"{target.name} computes something else: {bad[0].output!r}: {bad[0].detail}", rows)
    return rows


def _shape(found: Array, wanted: Sequence[int]) -> Sequence[int]:
    """The wanted shape for single values, which engines without tensors of rank 0 give an axis."""
    return tuple(wanted) if found.size == 1 and all(size == 1 for size in wanted) else found.shape
