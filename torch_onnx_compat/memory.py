"""Gives back memory that nobody needs any more, before the next step takes its own."""

from __future__ import annotations

import ctypes
import sys
import traceback
from functools import cache
from typing import Any

from torch_onnx_compat.errors import causes


def trim() -> None:
    """Returns freed memory to the system where the C library keeps it; glibc does, some gigabytes after a trace."""
    function = _malloc_trim()
    if function is not None:
        function(0)


def forget_locals(error: BaseException) -> None:
    """Drops the local variables of the functions that an error came out of; its traceback keeps its lines.

    An error that is kept would keep the session and the graph of the attempt that failed, too.
    """
    for cause in causes(error, contexts=True):
        traceback.clear_frames(cause.__traceback__)


@cache
def _malloc_trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
