"""Suppresses the exporters' output: log lines, warnings, and the graph that TorchScript prints when it fails."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import IO, Any

_LOGGERS = ("torch", "torch.onnx", "torch.export", "torch._dynamo", "torch.fx", "onnxscript", "onnx_ir")
_DUMPS = (b"ONNX graph being constructed during exception", b"Torch IR graph at exception")
_PROGRAM = re.compile(r"\s*(?:class \w+\(torch\.nn\.Module\):|def forward\(self)")
_HINTS = (b"In-place op on output of tensor.shape",)


@contextlib.contextmanager
def quiet_logs() -> Iterator[None]:
    """Silences the exporters' loggers and warnings; the backends check for the same problems themselves."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            _set_levels(loggers, levels)
    finally:  # once more, as the first may have been interrupted
        _set_levels(loggers, levels)


def _set_levels(loggers: list[logging.Logger], levels: list[int]) -> None:
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@contextlib.contextmanager
def without_partial_program() -> Iterator[None]:
    """Removes the unfinished program that a failed torch.export prints from the standard error."""
    with contextlib.redirect_stderr(_WithoutPrograms(sys.stderr)):
        yield


class _WithoutPrograms:
    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._ending = False

    def write(self, text: str) -> int:
        dropped = _PROGRAM.match(text) is not None or (self._ending and text == "\n")
        self._ending = dropped and text != "\n"
        if not dropped:
            self._stream.write(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def without_graph_dump() -> Iterator[None]:
    """Buffers both standard streams, and passes them on without the dumps that torch's C++ code writes."""
    with _hold_back(1, _before_dump), _hold_back(2, _without_hints):
        yield


def _before_dump(text: bytes) -> bytes:
    for dump in _DUMPS:
        text = text.partition(dump)[0]
    return text


def _without_hints(text: bytes) -> bytes:
    return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(_HINTS))


@contextlib.contextmanager
def _hold_back(stream: int, clean: Callable[[bytes], bytes]) -> Iterator[None]:
    """Collects what is written to a stream of the process, and writes it in the end, cleaned.

    Whatever is raised, and wherever, the stream is put back first. Each step that must happen stands in a `finally`
    of its own, and the last ones twice, as an interrupt may come while they are carried out.
    """
    try:
        saved = os.dup(stream)
    except OSError:  # the process has no such stream
        yield
        return
    with tempfile.TemporaryFile() as buffer:
        try:
            try:
                try:
                    _flush()
                    os.dup2(buffer.fileno(), stream)
                    yield
                finally:
                    _flush()  # so that what C's buffers hold is cleaned too
            finally:
                os.dup2(saved, stream)
        finally:
            os.dup2(saved, stream)
            os.close(saved)
            _pass_on(buffer, stream, clean)


def _pass_on(buffer: IO[bytes], stream: int, clean: Callable[[bytes], bytes]) -> None:
    buffer.seek(0)
    text = memoryview(clean(buffer.read()))
    with contextlib.suppress(OSError):  # nobody reads the stream any more
        while text:
            text = text[os.write(stream, text) :]


def _flush() -> None:
    with contextlib.suppress(ValueError, OSError, AttributeError):
        sys.stdout.flush()
        sys.stderr.flush()
    with contextlib.suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).fflush(None)  # the buffers of C's stdio; on Windows CDLL(None) fails
