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
def heard_threads(*, is_captured: bool) -> Iterator[None]:
    """While active, what this thread gives to a pool of threads runs at once, in this thread.

    A thread that is started otherwise may wait for others, so it runs as it is.

    Args:
        is_captured: Whether the model is captured, and not only run.

    Raises:
        UnheardThread: It is captured, and a thread that was started otherwise has called torch.
    """
    if not is_captured:
        yield
        return
    here = threading.get_ident()
    heard = _Heard()
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    def start_heard(thread: threading.Thread) -> None:
        if threading.get_ident() == here:
            thread.run = heard.around(thread.run)  # type: ignore[method-assign]
        start(thread)

    def submit_here(pool: ThreadPoolExecutor, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if threading.get_ident() != here:
            return submit(pool, function, *args, **kwargs)
        done: Future[Any] = Future()
        try:
            done.set_result(function(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done

    threading.Thread.start = start_heard  # type: ignore[method-assign,assignment]
    ThreadPoolExecutor.submit = submit_here  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
        ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]
    if heard.called:
        raise UnheardThread(
            f"the model uses {heard.called} in a thread that it starts, which no exporter sees; its result would be "
            "a constant of the file. Call the function without a thread, or give it to a "
            "concurrent.futures.ThreadPoolExecutor, whose work is done in order while the model is captured."
        )


class _Heard:
    """Notes the first call of torch in other threads."""

    def __init__(self) -> None:
        self.called = ""

    def around(self, run: Callable[[], None]) -> Callable[[], None]:
        """A thread's run whose calls are noted."""

        def heard() -> None:
            with _Calls(self):
                run()

        return heard


class _Calls(TorchFunctionMode):
    """Passes calls on, and notes that there are any."""

    def __init__(self, heard: _Heard) -> None:
        super().__init__()
        self._heard = heard

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._heard.called = self._heard.called or resolve_name(func) or str(func)
        return func(*args, **(kwargs or {}))
