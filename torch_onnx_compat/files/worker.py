"""Runs ONNX files in a process of its own; started as a script, it needs numpy, onnxruntime, onnx and ml_dtypes.

An integer divided by zero, a graph that asks for a terabyte or a fault of an engine ends this process, and not the one
of the caller. Messages are pickles behind their length in eight bytes, on standard input and output.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import struct
import sys
import time
from typing import Any, BinaryIO

sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

import ml_dtypes  # noqa: E402 - modules in this directory have names of other packages' modules
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402

RAW = {
    "tensor(bfloat16)": (16, ml_dtypes.bfloat16, np.uint16),
    "tensor(float8e4m3fn)": (17, ml_dtypes.float8_e4m3fn, np.uint8),
    "tensor(float8e4m3fnuz)": (18, ml_dtypes.float8_e4m3fnuz, np.uint8),
    "tensor(float8e5m2)": (19, ml_dtypes.float8_e5m2, np.uint8),
    "tensor(float8e5m2fnuz)": (20, ml_dtypes.float8_e5m2fnuz, np.uint8),
}
"""Element types that onnxruntime does not exchange as numpy arrays: number, numpy type, type of the same width."""


class Onnxruntime:
    """A file in onnxruntime, on one thread.

    Args:
        path: The file.
        plain: Whether the graph is run node by node as it is written.
    """

    def __init__(self, path: str, plain: bool) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        if plain:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._inputs = {value.name: value.type for value in self._session.get_inputs()}
        self._outputs = {value.name: value.type for value in self._session.get_outputs()}

    def run(self, feeds: dict[str, Any], names: list[str] | None) -> list[Any]:
        """Computes outputs by name; all of them by default."""
        names = list(self._outputs) if names is None else names
        given = {*(self._inputs.get(name) for name in feeds), *(self._outputs.get(name) for name in names)}
        if not given & set(RAW):
            return list(self._session.run(names, feeds))
        values = {name: self._value(array, self._inputs.get(name, "")) for name, array in feeds.items()}
        return [self._array(value) for value in self._session.run_with_ort_values(names, values)]

    def _value(self, array: Any, kind: str) -> Any:
        if kind not in RAW:
            return onnxruntime.OrtValue.ortvalue_from_numpy(array)
        number, _, plain = RAW[kind]
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ascontiguousarray(array).view(plain), number)

    def _array(self, value: Any) -> Any:
        if value.data_type() not in RAW:
            return value.numpy()
        _, dtype, _ = RAW[value.data_type()]
        shape, dtype = value.shape(), np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        data = ctypes.string_at(value.data_ptr(), count * dtype.itemsize) if count else b""
        return np.frombuffer(data, dtype).reshape(shape)


class Reference:
    """A file in the reference evaluator of the onnx package, for what onnxruntime has no kernels for."""

    def __init__(self, path: str, plain: bool) -> None:
        from onnx.reference import ReferenceEvaluator

        self._evaluator = ReferenceEvaluator(path)

    def run(self, feeds: dict[str, Any], names: list[str] | None) -> list[Any]:
        """Computes outputs by name; all of them by default."""
        return [np.asarray(value) if np.isscalar(value) else value for value in self._evaluator.run(names, feeds)]


JUDGES: dict[str, Any] = {"onnxruntime": Onnxruntime, "reference": Reference}


def main() -> None:
    """Answers until standard input ends; the argument is how many bytes of memory the process may have."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    _limit_memory(int(sys.argv[1]))
    onnxruntime.set_default_logger_severity(4)
    files: dict[str, Any] = {}
    while (job := _receive(sys.stdin.buffer)) is not None:
        _send(answers, _answer(job, files))


def _answer(job: dict[str, Any], files: dict[str, Any]) -> dict[str, Any]:
    start = time.process_time()
    try:
        outputs: list[Any] = []
        if job["do"] == "open":
            files.pop(job["key"], None)
            files[job["key"]] = JUDGES[job["judge"]](job["path"], job["plain"])
        elif job["do"] == "close":
            files.pop(job["key"], None)
        else:
            outputs = files[job["key"]].run(job["feeds"], job["names"])
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # some engines raise outside Exception
        return {"error": " ".join(f"{type(error).__name__}: {error}".split())[:600]}
    return {"error": "", "outputs": outputs, "seconds": time.process_time() - start}


def _limit_memory(size: int) -> None:
    if size:
        with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has none, and some systems refuse
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _send(stream: BinaryIO, value: Any) -> None:
    data = pickle.dumps(value, protocol=5)
    stream.write(struct.pack("<Q", len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: BinaryIO) -> Any:
    head = stream.read(8)
    if len(head) < 8:
        return None
    return pickle.loads(stream.read(struct.unpack("<Q", head)[0]))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
