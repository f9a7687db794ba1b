"""Finds the functions that may see a tensor in a number's place: all that run after the first such tensor was made."""

from __future__ import annotations

import functools
import sys
import sysconfig
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch_onnx_compat.places import is_user_file
from torch_onnx_compat.stack import frames
from torch_onnx_compat.watch import Watcher

_PYTHONS = tuple({sysconfig.get_path(name).replace("\\", "/") + "/" for name in ("stdlib", "platstdlib")})
_INSTALLED = ("/site-packages/", "/dist-packages/")
"""Folders inside Python's own that hold other packages."""


class NumberUsers:
    """The codes of the model that run, or are returned to, once a tensor stands for a number.

    An argument is one way of several for a number to reach a function: attributes, closures and results are others.
    So every function counts, whatever it is given.
    """

    def __init__(self) -> None:
        self.codes: dict[types.CodeType, None] = {}
        self._is_allowed = self._is_watching = False
        self._before: Any = None

    @contextmanager
    def watch(self) -> Iterator[None]:
        """While active, `begin` has an effect; afterwards the thread's profile function is the caller's again."""
        self._is_allowed = True
        try:
            yield
        finally:
            self._is_allowed = False
            if self._is_watching:
                sys.setprofile(self._before)
                self._is_watching = False

    def begin(self) -> None:
        """Notes functions from here on. A trace without numbers pays nothing."""
        if not self._is_allowed or self._is_watching:
            return
        self.codes.update((frame.f_code, None) for frame in frames() if _is_of_model(frame))  # they are returned to
        self._before = sys.getprofile()
        self._is_watching = True
        sys.setprofile(self._note_call)

    @property
    def is_watching(self) -> bool:
        """Whether functions are noted."""
        return self._is_watching

    @contextmanager
    def pause(self) -> Iterator[None]:
        """While active, nothing is noted: around work of this package that makes many calls, each of which costs."""
        if not self._is_watching:
            yield
            return
        sys.setprofile(None)
        try:
            yield
        finally:
            sys.setprofile(self._note_call)

    def _note_call(self, frame: types.FrameType, event: str, _: Any) -> None:
        # Every call comes here, torch's own and C's too; what most of them need is one look at a set.
        if event == "call" and frame.f_code not in self.codes and _is_of_model(frame):
            self.codes[frame.f_code] = None


class PauseInCalls(Watcher):
    """While active, calls inside of torch's C functions are not noted: no code of a model runs there.

    What watches a trace makes many Python calls for each of these functions, and noting a call takes time.
    """

    def __init__(self, users: NumberUsers) -> None:
        super().__init__()
        self._users = users

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether functions are noted now, and C runs this one."""
        return self._users.is_watching and isinstance(func, _OF_C)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes the call unseen."""
        with self._users.pause():
            return self.pass_on(func, args, kwargs)


_OF_C = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
)


def _is_of_model(frame: types.FrameType | None) -> bool:
    """Whether a frame runs the model's code, and torch's machinery did not call it.

    torch, too, runs code of Python and of other packages; between that and the model's own lies a frame of torch that
    calls no models. Python's own code, such as a decorator's, may lie between two functions of a model.
    """
    if frame is None or not _may_be_models(frame.f_code.co_filename):
        return False
    outermost = frame
    while frame is not None and is_user_file(frame.f_code.co_filename):
        outermost, frame = frame, frame.f_back
    return frame is None or _calls_models(frame) or _was_given(frame, outermost.f_code)


def _calls_models(frame: types.FrameType) -> bool:
    is_torchs = str(frame.f_globals.get("__name__", "")).startswith(_CALLERS)
    return is_torchs or _is_pythons(frame.f_code.co_filename)


def _was_given(frame: types.FrameType, code: types.CodeType) -> bool:
    """Whether a frame has the function of a code in one of its variables, as that of a decorator has."""
    values = list(frame.f_locals.values())
    functions = (value.__func__ if isinstance(value, types.MethodType) else value for value in values)
    return any(isinstance(function, types.FunctionType) and function.__code__ is code for function in functions)


_CALLERS = (
    "torch.nn.",
    "torch.utils.",
    "torch.autograd.",
    "torch._functorch.",
    "torch._higher_order_ops.",
    "torch_onnx_compat.control_flow.run.",
    "torch_onnx_compat.stack",
    "torch_onnx_compat.threads",
)
"""Modules that call the model's code, C between the two of them included."""


@functools.lru_cache(maxsize=4096)
def _may_be_models(filename: str) -> bool:
    return not _is_pythons(filename) and is_user_file(filename)


@functools.lru_cache(maxsize=4096)
def _is_pythons(filename: str) -> bool:
    path = filename.replace("\\", "/")
    return path.startswith(_PYTHONS) and not any(folder in path for folder in _INSTALLED)
