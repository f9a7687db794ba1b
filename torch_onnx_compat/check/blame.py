"""Adds the place where a file first goes wrong to the error of its verification."""

from __future__ import annotations

from pathlib import Path

from torch_onnx_compat.check.file_log import module_of
from torch_onnx_compat.check.localise import localise_prepared
from torch_onnx_compat.check.run_failure import find_failed_node
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.prepare import Prepared


def add_location(error: VerificationError, path: Path, prepared: Prepared) -> VerificationError:
    """Adds a line to the error: the first layer that differs, or the node that fails.

    Args:
        error: The error that verification raised.
        path: The file.
        prepared: The model.
    """
    if error.inputs is None:
        return error
    try:
        line = _line(error, path, prepared)
    except Exception as failure:  # an error of the search must not hide the one that it explains
        line = f"the place was not found: {type(failure).__name__}: {str(failure)[:200]}"
    error.args = (f"{error}\n  {line}",)
    return error


def _line(error: VerificationError, path: Path, prepared: Prepared) -> str:
    assert error.inputs is not None
    if not error.table or not error.table[-1].detail.startswith("fails:"):
        error.place = localise_prepared(prepared, path, error.inputs)
        return str(error.place)
    node = find_failed_node(path, " ".join(str(error.__cause__).split()))
    if node is None:
        return "it fails before the first node."
    module = module_of(node, dict(prepared.model.named_modules())) or "the model itself"
    return f"it fails at {module}: {node.op_type} {node.name!r}."
