"""Runs a file in onnxruntime against the original model."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from torch_onnx_compat.check.cases import Case, Cases, Verify
from torch_onnx_compat.check.compare import Array, Comparison, compare, within_noise
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused, Observation


def verify(path: str | os.PathLike[str], names: Sequence[str], cases: Cases, how: Verify) -> tuple[Comparison, ...]:
    """Compares a file with the original model on every case.

    Args:
        path: The file.
        names: Its outputs.
        cases: Inputs, and what the original computes.
        how: Tolerances.

    Returns:
        The table, one row for each case and output.

    Raises:
        VerificationError: onnxruntime refuses the file, or fails on a case, or a value is off; holds the table so far.
    """
    rows: list[Comparison] = []
    try:
        session = open_session(path, sess_options=_patient())
    except Exception as error:
        raise VerificationError(f"onnxruntime does not load the file: {_reason(error)}") from error
    for case in cases:
        try:
            found = run_session(session, case.inputs)
        except Exception as error:
            rows.append(Comparison(case.label, "", float("nan"), float("nan"), "", False, f"fails: {_reason(error)}"))
            raise VerificationError(_message(rows), tuple(rows), case.inputs) from error
        rows += judged(found, names, case, cases.observation, how)
        if not all(row.ok for row in rows):
            raise VerificationError(_message(rows), tuple(rows), case.inputs)
    return tuple(rows)


def judged(
    found: Sequence[Array], names: Sequence[str], case: Case, observation: Observation, how: Verify
) -> Iterator[Comparison]:
    """Compares what a file computed on one case, output by output.

    Args:
        found: The file's outputs.
        names: Their names.
        case: The inputs, and what the original computed.
        observation: Runs the original in float64 where a value is off.
        how: Tolerances.
    """
    for index, (name, array, wanted) in enumerate(zip(names, found, case.reference.outputs, strict=True)):
        row = compare(case.label, name, array, wanted, how.rtol, how.atol)
        if not row.ok and wanted.is_floating_point() and how.rtol is None:
            row = _judged_by_noise(row, array, wanted, index, case, observation)
        yield row


def open_session(path: str | os.PathLike[str] | bytes, **options: Any) -> onnxruntime.InferenceSession:
    """An onnxruntime session on the CPU that logs errors only.

    Args:
        path: A file, or a serialised model.
        **options: Passed on to InferenceSession.
    """
    settings = options.pop("sess_options", None) or onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    options.setdefault("providers", ["CPUExecutionProvider"])
    source = path if isinstance(path, bytes) else os.fspath(path)
    return onnxruntime.InferenceSession(source, settings, **options)


def _patient() -> onnxruntime.SessionOptions:
    """Threads that sleep between operators: a few runs gain nothing from ones that spin, and others want the cores."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def run_session(
    session: onnxruntime.InferenceSession,
    inputs: Inputs,
    outputs: Sequence[str] | None = None,
    given: Collection[str] | None = None,
) -> list[Array]:
    """These outputs of the file, or all in order, as numpy arrays; bfloat16 ones widened to float32.

    Args:
        session: The file.
        inputs: What it is run on.
        outputs: Names of the wanted outputs.
        given: Names of the inputs to feed, if not all: a file of other makers may have left unused ones out.
    """
    feeds = {n: _value(t) for n, t in zip(inputs.names, inputs.tensors, strict=True) if given is None or n in given}
    names = [o.name for o in session.get_outputs()] if outputs is None else list(outputs)
    return [_numpy(v) for v in session.run_with_ort_values(names, feeds)]


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


def _judged_by_noise(
    row: Comparison, found: Array, wanted: Tensor, index: int, case: Case, observation: Observation
) -> Comparison:
    if found.shape != tuple(wanted.shape) or wanted.dtype is torch.float64:
        return row
    try:
        exact = observation.reference(f"{case.label} in float64", case.inputs, torch.float64)
    except ModelRefused:
        return row
    if index >= len(exact.outputs):
        return row
    return within_noise(row, found, wanted, exact.outputs[index])


def _message(rows: Sequence[Comparison]) -> str:
    bad = [row for row in rows if not row.ok]
    first = bad[0]
    output = f", output {first.output!r}" if first.output else ""
    more = f" ({len(bad) - 1} more)" if len(bad) > 1 else ""
    return f"the file does not compute what the model computes: case {first.case!r}{output}: {first.detail}{more}"


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:400]
