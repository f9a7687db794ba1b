"""Ends a run of a model that takes too long, at its next operation or its next line of Python."""

from __future__ import annotations

import gc
import sys
import time
from types import FrameType, TracebackType
from typing import Any

from torch_onnx_compat.backends.internals.modes import DispatchMode
from torch_onnx_compat.caller.reach import is_followed


class TooLong(BaseException):
    """A run has taken too long. No exception handler of the model's stands in its way."""


class TimeLimit(DispatchMode):
    """While active, code of this thread is ended after some time.

    A loop may have operations in no round of it, so lines are looked at, too: those of the model's own code and of
    libraries of models, where an error leaves behind no more than the model's own errors do. A debugger's function for
    lines is put back afterwards.

    Args:
        seconds: The most that a run may take.

    Raises:
        TooLong: It takes longer.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self.seconds = seconds
        self._end = 0.0
        self._before: list[Any] = []
        """What looked at lines before; a mode enters itself once more for the functions of a higher-order operator."""

    def __enter__(self) -> Any:
        if not self._before:
            self._end = time.perf_counter() + self.seconds
        entered = super().__enter__()  # type: ignore[no-untyped-call,unused-ignore]
        self._before.append(sys.gettrace())
        sys.settrace(self._call)
        return entered

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        sys.settrace(self._before.pop())
        super().__exit__(kind, error, at)  # type: ignore[no-untyped-call,unused-ignore]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._check()
        return func(*args, **(kwargs or {}))

    def _call(self, frame: FrameType, event: str, value: Any) -> Any:
        return self._line if is_followed(frame.f_globals.get("__name__")) else None

    def _line(self, frame: FrameType, event: str, value: Any) -> Any:
        if event == "line":
            self._check()
        return self._line

    def _check(self) -> None:
        if time.perf_counter() > self._end and not _is_in_a_finalizer():
            raise TooLong(f"does not end within {self.seconds:.3g} s")


def _is_in_a_finalizer() -> bool:
    """Whether Python would only print an error of the running code: in a callback of its collector, in a `__del__`."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in callbacks or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
