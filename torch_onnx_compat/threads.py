"""What a model computes in threads of its own, which no capture hears: the modes and the trace belong to one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from torch.overrides import TorchFunctionMode, resolve_name

from torch_onnx_compat.errors import CompatError


class UnheardThread(CompatError):
    """A thread that the model starts computes with its tensors."""


@contextmanager
def hear_threads() -> Iterator[None]:
    """While active, what this thread gives to a pool of threads runs at once, in this thread.

    A thread that is started otherwise may wait for others, so it runs as it is, and its calls are noted.

    Raises:
        UnheardThread: A thread that was started otherwise has called torch.
    """
    here = threading.get_ident()
    log = _CallLog()
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    def start_with_log(thread: threading.Thread) -> None:
        if threading.get_ident() == here:
            thread.run = log.around(thread.run)  # type: ignore[method-assign]
        start(thread)

    def submit_here(pool: ThreadPoolExecutor, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if threading.get_ident() != here:
            return submit(pool, function, *args, **kwargs)
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:  # of any kind; whoever asks for the result gets it
            future.set_exception(error)
        return future

    try:
        threading.Thread.start = start_with_log  # type: ignore[method-assign,assignment]
        ThreadPoolExecutor.submit = submit_here  # type: ignore[method-assign,assignment]
        yield
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
        ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]
    if log.first_call:
        raise UnheardThread(
            f"the model uses {log.first_call} in a thread that it starts, which no exporter sees; its result would be "
            "a constant of the file. Call the function without a thread, or give it to a "
            "concurrent.futures.ThreadPoolExecutor, whose work is done in order while the model is captured."
        )


class _CallLog:
    """Notes the first call of torch in other threads."""

    def __init__(self) -> None:
        self.first_call = ""

    def around(self, run: Callable[[], None]) -> Callable[[], None]:
        """A thread's run whose calls are noted."""

        def run_with_log() -> None:
            with _Calls(self):
                run()

        return run_with_log


class _Calls(TorchFunctionMode):
    """Passes calls on, and notes the first."""

    def __init__(self, log: _CallLog) -> None:
        super().__init__()
        self._log = log

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._log.first_call = self._log.first_call or resolve_name(func) or str(func)
        return func(*args, **(kwargs or {}))
