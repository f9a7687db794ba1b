"""Keeps the exporters' noise away: log lines, warnings, and the graph that TorchScript prints when it fails."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator

_LOGGERS = ("torch", "torch.onnx", "torch.export", "torch._dynamo", "torch.fx", "onnxscript", "onnx_ir")
_DUMPS = (b"ONNX graph being constructed during exception", b"Torch IR graph at exception")


@contextlib.contextmanager
def quiet_logs() -> Iterator[None]:
    """Silences the exporters' loggers and warnings; what matters in them is checked elsewhere, or raised."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def without_graph_dump() -> Iterator[None]:
    """Holds standard output back and passes it on without the graph, which torch's C++ code writes past Python."""
    try:
        saved = os.dup(1)
    except OSError:  # no standard output, nothing to keep clean
        yield
        return
    with tempfile.TemporaryFile() as held:
        _flush()
        os.dup2(held.fileno(), 1)
        try:
            yield
        finally:
            _flush()
            os.dup2(saved, 1)
            os.close(saved)
            held.seek(0)
            text = held.read()
            for dump in _DUMPS:
                text = text.partition(dump)[0]
            if text:
                os.write(1, text)


def _flush() -> None:
    with contextlib.suppress(ValueError, OSError, AttributeError):
        sys.stdout.flush()
    with contextlib.suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).fflush(None)  # C's own buffers; Windows has no handle for None
