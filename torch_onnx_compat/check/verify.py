"""Compares a file in onnxruntime with the original model."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from torch_onnx_compat.check.between_calls import notes_on_state
from torch_onnx_compat.check.cases import Case, Cases
from torch_onnx_compat.check.chain import Chain
from torch_onnx_compat.check.compare import Array, Comparison
from torch_onnx_compat.check.inference import Inference
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.check.random_numbers import RandomNumbers
from torch_onnx_compat.check.rounding import compare_outputs
from torch_onnx_compat.check.special import Findings, check_special
from torch_onnx_compat.errors import InvalidFile, VerificationError
from torch_onnx_compat.graph.rendering import holds_bfloat16, render
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.memory import trim
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.publish.publish import draft, external_data_path, is_large
from torch_onnx_compat.session import open_session, options_of_few_runs, reason_of, run_within

if TYPE_CHECKING:
    from torch_onnx_compat.surgery.on_graph.stage import Stage

FOLDING_LIMIT = 1_000_000_000
"""Bytes of a file up to which onnxruntime folds its constants when it is opened for verification."""

MOST_SECONDS = 600.0
"""Seconds that a run of a file may take where nobody knows how long the model takes."""

FLOOR_S, SLOWEST = 60.0, 100.0
"""Seconds that a run of the file may always take, and runs of the model that it may take else: its loop may not end."""


def verify(
    path: str | os.PathLike[str] | None,
    names: Sequence[str],
    cases: Cases,
    how: Verify,
    before: Sequence[Stage] = (),
    after: Sequence[Stage] = (),
) -> tuple[Comparison, ...]:
    """Compares a file with the original model on every case.

    Args:
        path: The file; None where there are stages only.
        names: Its outputs, or those of the last stages.
        cases: Inputs, and what the original computes.
        how: Tolerances.
        before: Stages that run before the file.
        after: Stages that run after the file.

    Returns:
        The table, one row for each case and output.

    Raises:
        VerificationError: onnxruntime refuses the file, or fails on a case, or a value is off; holds the table so far.
        RandomModel: Random numbers decide what the original computes.
    """
    rows: list[Comparison] = []
    start = time.perf_counter()
    try:
        session = _open_all(path, names, before, after)
    except Exception as error:
        if path is None or before or after or not holds_bfloat16(path):
            raise VerificationError(f"onnxruntime does not load the file: {reason_of(error)}") from error
        session = _open_rendering(path)
        cases.notes.append(
            f"onnxruntime's CPU does not run the file's bfloat16, so a float32 rendering of it was compared, with a "
            f"rounding to bfloat16 behind every node ({reason_of(error)[:120]})."
        )
    inference = Inference(names, how, cases.observation)
    trim()  # onnxruntime has copied the weights into another layout
    random_numbers = RandomNumbers(names, how, cases.observation)
    for case in cases:
        random_numbers.check(case)
        found, failure = _compare(session, names, case, how, cases.observation)
        bad = next((row for row in found if not row.ok), None)
        excuse = cases.excuse(case, bad.detail) if bad is not None else ""
        if excuse:
            cases.notes.append(excuse)
            cases.so_far.pop()  # whoever runs the cases once more leaves it out
            continue
        rows += found
        if bad is not None:
            raise VerificationError(_message(rows, case), tuple(rows), case.inputs) from failure
        inference.compare(case)
    cases.notes += [*_uncompared(names, cases.so_far), *notes_on_state(cases.observation, cases.so_far)]
    inference.compare_extremes()
    cases.notes += filter(None, (inference.note, inference.compare_gradients(cases.so_far[0])))
    special = check_special(
        lambda inputs, seconds: run_session(session, inputs, seconds=seconds),
        names,
        cases.observation,
        cases.observation.prepared.inputs,
        how,
        time.perf_counter() - start,
        random_numbers,
        is_strict=cases.is_strict,
        excuse=cases.baked.excuse,
    )
    rows += special.rows
    cases.notes += [*random_numbers.notes, *special.notes]
    _reject_special(special, rows, is_strict=cases.is_strict)
    return tuple(rows)


def _compare(
    session: Any, names: Sequence[str], case: Case, how: Verify, observation: Observation
) -> tuple[list[Comparison], Exception | None]:
    """The rows of a case, and the error with which the file failed there."""
    try:
        found = run_session(session, case.inputs, seconds=max(FLOOR_S, SLOWEST * case.reference.seconds))
    except Exception as error:
        detail = f"fails: {reason_of(error)}"
        return [Comparison(case.label, "", float("nan"), float("nan"), "", False, detail)], error
    return list(compare_outputs(names, found, case, how, observation)), None


def _uncompared(names: Sequence[str], cases: Sequence[Case]) -> list[str]:
    """Notes on outputs that had no value to compare in any case: a detector found nothing, or a mask left nothing."""
    notes = []
    for name, values in zip(names, zip(*(case.reference.outputs for case in cases), strict=False), strict=False):
        what = ""
        if not any(value.numel() for value in values):
            what = "is empty"
        elif not any(bool(value.isfinite().any()) for value in values if not value.is_complex()):
            what = "has no number but NaN and infinities" if values[0].is_floating_point() else ""
        if what:
            notes.append(
                f"output {name!r} {what} in all {len(values)} cases, so nothing of it was compared: give samples= "
                f"at which it has values."
            )
    return notes


def _reject_special(special: Findings, rows: Sequence[Comparison], *, is_strict: bool) -> None:
    if is_strict and special.notes:
        raise VerificationError(f"{special.notes[0]} No entry was applied to mend that.", tuple(rows))
    if special.failed is not None:
        raise VerificationError(_message(rows), tuple(rows), special.failed)


def _open_all(
    path: str | os.PathLike[str] | None, names: Sequence[str], before: Sequence[Stage], after: Sequence[Stage]
) -> Any:
    opened: list[Any] = [] if path is None else [(open_to_verify(path), {})]
    if path is not None and not before and not after:
        return opened[0][0]
    first, last = (
        [(s.session(sess_options=options_of_few_runs()), s.feeds) for s in stages] for stages in (before, after)
    )
    return Chain([*first, *opened, *last], names)


BFLOAT16_OPSET = 22
"""From it on convolutions, pooling and others take bfloat16."""


def _open_rendering(path: str | os.PathLike[str]) -> onnxruntime.InferenceSession:
    """Opens a float32 rendering of a file.

    Raises:
        InvalidFile: The file is no valid ONNX, such as one with an operator that has no bfloat16 at its opset.
    """
    try:
        onnx.checker.check_model(os.fspath(path), full_check=True)
    except Exception as error:
        text = f"many operators have bfloat16 from opset {BFLOAT16_OPSET} on: pass opset_version={BFLOAT16_OPSET}."
        raise InvalidFile(f"the file is not valid: {reason_of(error)}; {text}", BFLOAT16_OPSET) from error
    rendering = render(ir.load(path))
    with draft(rendering, None, is_large(rendering)) as written:
        return open_session(written.path, sess_options=options_of_few_runs())


def open_to_verify(path: str | os.PathLike[str]) -> onnxruntime.InferenceSession:
    """Opens a session for a few runs.

    Constants of a large file are not folded. onnxruntime holds every intermediate result until all folds are done; for
    weights that are standardised in the graph these take four times the weights' size. The runs compute these nodes
    instead.

    Args:
        path: The file.
    """
    files = (Path(path), external_data_path(Path(path)))
    is_large = sum(file.stat().st_size for file in files if file.exists()) > FOLDING_LIMIT
    return open_session(
        path, sess_options=options_of_few_runs(), disabled_optimizers=["ConstantFolding"] if is_large else None
    )


def run_session(
    session: onnxruntime.InferenceSession,
    inputs: Inputs,
    outputs: Sequence[str] | None = None,
    seconds: float = MOST_SECONDS,
) -> list[Array]:
    """Runs a session; returns these outputs, or all in order, as numpy arrays. bfloat16 is widened to float32.

    Real numbers are given in the type that the session takes: a file may take narrower ones than the model, and its
    rendering wider ones.

    Raises:
        TimeoutError: onnxruntime took longer than `seconds`.
    """
    accepted = {value.name: _REAL_TYPES.get(value.type) for value in session.get_inputs()}
    feeds = {
        n: _value(t if accepted[n] is None or not t.is_floating_point() else t.to(accepted[n]))
        for n, t in zip(inputs.names, inputs.tensors, strict=True)
        if n in accepted
    }
    names = [o.name for o in session.get_outputs()] if outputs is None else list(outputs)
    if isinstance(session, onnxruntime.InferenceSession):
        return [_numpy(v) for v in run_within(session, names, feeds, seconds)]
    return [_numpy(v) for v in session.run_with_ort_values(names, feeds)]


_REAL_TYPES = {
    "tensor(float)": torch.float32,
    "tensor(double)": torch.float64,
    "tensor(float16)": torch.float16,
    "tensor(bfloat16)": torch.bfloat16,
}


def _value(tensor: Tensor) -> Any:
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype is torch.bfloat16:
        bits = tensor.view(torch.int16).numpy().view(np.uint16)
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)  # TensorProto.BFLOAT16
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return onnxruntime.OrtValue.ortvalue_from_numpy(tensor.numpy())


def _numpy(value: Any) -> Array:
    if value.data_type() == "tensor(bfloat16)":
        widened: Array = from_dlpack(value._ortvalue).float().numpy()
        return widened
    array: Array = value.numpy()
    return array


def _message(rows: Sequence[Comparison], case: Case | None = None) -> str:
    bad = [row for row in rows if not row.ok]
    first = bad[0]
    output = f", output {first.output!r}" if first.output else ""
    more = f" ({len(bad) - 1} more)" if len(bad) > 1 else ""
    question = case.question if case is not None else None
    asked = f". {question}, and {question.consequence}" if question is not None else ""
    asked += f". {case.remedy}" if case is not None and case.remedy else ""
    return (
        f"the file does not compute what the model computes: case {first.case!r}{output}: {first.detail}{more}{asked}"
    )
