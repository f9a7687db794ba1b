"""onnxruntime sessions, as quiet as a library's should be."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
import onnxruntime

EXACT_PRODUCTS = ("session.x64quantprecision", "1")
"""Session option with which sums of eight-bit products are right on x86 processors without VNNI.

By default onnxruntime's kernels for these add two products of uint8 and int8 in 16 bits, and cut off what is more.
"""

_OF_SHARED_WEIGHTS = "replace the existing tensor"
"""Of onnxruntime 1.32's error with that option, where two layers share their weights."""


def open_session(path: str | os.PathLike[str] | bytes, **options: Any) -> onnxruntime.InferenceSession:
    """An onnxruntime session on the CPU that logs errors only, and adds up eight-bit products exactly.

    Args:
        path: A file, or a serialised model.
        **options: Passed on to InferenceSession; what its `sess_options` say of the sums is kept.
    """
    settings = options.pop("sess_options", None) or onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    options.setdefault("providers", ["CPUExecutionProvider"])
    source = path if isinstance(path, bytes) else os.fspath(path)
    if _has_entry(settings, EXACT_PRODUCTS[0]):
        return onnxruntime.InferenceSession(source, settings, **options)
    settings.add_session_config_entry(*EXACT_PRODUCTS)
    try:
        return onnxruntime.InferenceSession(source, settings, **options)
    except Exception as error:
        if _OF_SHARED_WEIGHTS not in str(error):
            raise
        settings.add_session_config_entry(EXACT_PRODUCTS[0], "0")
        return onnxruntime.InferenceSession(source, settings, **options)


def _has_entry(settings: onnxruntime.SessionOptions, name: str) -> bool:
    try:
        settings.get_session_config_entry(name)
    except RuntimeError:  # onnxruntime's for a name that is not there
        return False
    return True


def options_of_few_runs() -> onnxruntime.SessionOptions:
    """Options with threads that sleep between operators: spinning gains nothing in a few runs and occupies cores."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def run_within(
    session: onnxruntime.InferenceSession, names: Sequence[str], feeds: Mapping[str, Any], seconds: float
) -> list[Any]:
    """Runs a session, and ends it at its next node after some seconds: the loop of a file may never end.

    Args:
        session: The session.
        names: Of the outputs.
        feeds: onnxruntime's values, by the names of the inputs.
        seconds: The most that the run may take.

    Raises:
        TimeoutError: It took longer.
    """
    options = onnxruntime.RunOptions()
    timer = threading.Timer(seconds, setattr, (options, "terminate", True))
    timer.daemon = True
    timer.start()
    try:
        values = list(session.run_with_ort_values(list(names), dict(feeds), options))
    except Exception as error:
        if options.terminate:
            raise TimeoutError(f"the file does not end within {seconds:.0f} s") from error
        raise
    finally:
        timer.cancel()
    return values


@dataclass(frozen=True)
class GraphInput:
    """An input as onnxruntime's sessions tell it, such as ``tensor(float)``."""

    name: str
    type: str


def inputs_of(graph: onnx.GraphProto) -> list[GraphInput]:
    """What `get_inputs` of a session would say, without one."""
    weights = {tensor.name for tensor in graph.initializer}
    return [GraphInput(v.name, f"tensor({_element(v)})") for v in graph.input if v.name not in weights]


def _element(value: onnx.ValueInfoProto) -> str:
    return str(onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)).lower()


_SIGNATURE = re.compile(
    r"/onnxruntime_src/\S+:\d+ [\w:<>&*~ ]*::~?\w+(?:<[^>]*>)?\([^)]*\)(?: const)?(?: \[with [^\]]*\])? "
)
"""The function of onnxruntime's own in which a check failed."""


def reason_of(error: BaseException) -> str:
    """The beginning of what onnxruntime raised, in one line, without the C++ that stands before the reason."""
    return _SIGNATURE.sub("", " ".join(str(error).split()))[:400]
