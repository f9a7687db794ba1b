"""TorchFunctionModes that see every torch call of a model, also those made inside torch's own Python functions."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from torch_onnx_compat.backends.internals.higher_order import without_function_modes
from torch_onnx_compat.backends.internals.transforms import lets_subclasses_handle
from torch_onnx_compat.functional.complex import Pair, answer
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.places import is_user_file
from torch_onnx_compat.stack import frames_of_model
from torch_onnx_compat.tracing import below_function_modes, current_trace, function_modes, resume, without_tracing


def writes_in_place(func: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a call of torch writes to its first argument, or to what it is given as ``out``."""
    name = getattr(func, "__name__", "")
    in_place = name.endswith("_") and not name.endswith("__") and name not in ("requires_grad_", "retain_grad_")
    operator = name == "__setitem__" or (name.startswith("__i") and name not in ("__index__", "__int__", "__invert__"))
    return in_place or operator or kwargs.get("out") is not None


class Watcher(TorchFunctionMode):
    """Passes calls on and stays in force inside torch's Python functions; subclasses override `watch`.

    A trace walks the Python stack at every operator that it records, so passing a call on takes one frame.
    """

    in_bodies: ClassVar[bool] = False
    """Whether it is in force in the branches and bodies that torch captures, too: it writes calls in another form."""
    modules: ClassVar[set[str]] = {__name__}
    """The modules of all watchers: their frames stand between a call of torch and the statement that makes it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)  # type: ignore[no-untyped-call,unused-ignore]
        Watcher.modules.add(cls.__module__)

    def __init__(self) -> None:
        super().__init__()
        self._copies: dict[Any, Callable[..., Any] | None] = {}

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call goes to `watch`; the others are passed on. No other mode hears what it asks of a tensor."""
        return True

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Handles one call; `pass_on` makes it."""
        return self.pass_on(func, args, kwargs)

    def pass_on(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes the call; what a Python function of torch calls in turn is watched too."""
        copy = self._copy_of(func)
        if copy is None:
            return _callable(func, args)(*args, **kwargs)
        return self.pass_inside(copy, func, args, kwargs)

    def pass_inside(self, copy: Callable[..., Any], func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes the call of a Python function of torch, by a copy of it whose calls are watched.

        If another watcher below replaces the function, that one makes the call, replaced or by its own copy.
        """
        if any(isinstance(mode, Watcher) and mode.replaces(func) for mode in function_modes()):
            _passing.append(self)
            try:
                return func(*args, **kwargs)
            finally:
                _passing.pop()
        with ExitStack() as stack, nobody_passes() as above:
            for watcher in (self, *reversed(above)):
                stack.enter_context(watcher)
            return copy(*args, **kwargs)

    def replaces(self, func: Any) -> bool:
        """Whether `watch` may make another call than this function's."""
        return False

    def check(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """Looks at what a call returned that was passed on; returns what the caller gets."""
        return result

    def note_failure(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Looks at a call that failed."""

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        trace = current_trace()
        try:
            handle = _handler_of(kinds) if kinds and lets_subclasses_handle() else None
            if handle is not None:
                return self.pass_inside(functools.partial(_call_handler, handle, func, kinds), func, args, kwargs)
            with below_function_modes():
                concerns = self.concerns(func, args, kwargs)
            if concerns:
                return self.watch(func, args, kwargs)
            copy = self._copy_of(func) if isinstance(func, types.FunctionType) else None
            if copy is not None:
                return self.pass_inside(copy, func, args, kwargs)
            call = _callable(func, args) if args and isinstance(args[0], Pair) else func
            return self.check(func, args, kwargs, call(*args, **kwargs))
        except Exception:  # whatever a model may catch: the error goes on, the trace must too
            resume(trace)
            self.note_failure(func, args, kwargs)
            raise

    def _copy_of(self, func: Any) -> Callable[..., Any] | None:
        if not isinstance(func, types.FunctionType):
            return None
        if func not in self._copies:
            self._copies[func] = _without_dispatch(func)
        return self._copies[func]


def _handler_of(kinds: tuple[type, ...]) -> Callable[..., Any] | None:
    """The `__torch_function__` that a model's subclass of Tensor has, whose calls no mode would see; None if none has.

    Args:
        kinds: The classes among a call's arguments that torch names, the one that handles the call first.
    """
    own = (kind for kind in kinds if is_of_model(kind) or (issubclass(kind, Tensor) and _handles(kind)))
    return getattr(next(own, None), "__torch_function__", None)


def is_of_model(kind: type) -> bool:
    """Whether a class of tensors is a model's or a library's own, and none of torch's."""
    return issubclass(kind, Tensor) and kind.__module__.partition(".")[0] not in _TORCHS


def _handles(kind: type) -> bool:
    """Whether a class has a `__torch_function__` that is neither Tensor's nor none, as torch's CausalBias has."""
    plain: Any = Tensor.__torch_function__
    own = getattr(getattr(kind, "__torch_function__", None), "__func__", None)
    return own is not None and own is not plain.__func__


_TORCHS = ("torch", "torch_onnx_compat")


def _call_handler(handle: Callable[..., Any], func: Any, kinds: tuple[type, ...], *args: Any, **kwargs: Any) -> Any:
    return handle(func, kinds, args, kwargs)


_passing: list[Watcher] = []
"""Those that have passed on the present call of a Python function, the first one first; exports take turns."""


@contextmanager
def nobody_passes() -> Iterator[list[Watcher]]:
    """While active, calls are new ones, and none that somebody has passed on; yields those that had."""
    above, _passing[:] = list(_passing), []
    try:
        yield above
    finally:
        _passing[:] = above


def _callable(func: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
    """A function, in a form that asks what stands for a tensor: methods of Tensor, such as `__mul__`, do not."""
    if not (args and isinstance(args[0], Pair) and isinstance(func, _METHODS)):
        return func  # type: ignore[no-any-return]
    if isinstance(next(reversed(function_modes()), None), Watcher):
        return functools.partial(torch.overrides.handle_torch_function, func, (args[0],))
    return lambda *args, **kwargs: answer(func, args, kwargs)  # torch's own modes would call the method


_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)


Body = Callable[..., Any]
"""A branch of a conditional, or the body of a loop: a function of tensors."""


@contextmanager
def without_watchers() -> Iterator[Callable[[Body], Body]]:
    """While active, torch may capture a conditional or a loop, which it cannot under watchers.

    Yields:
        What makes a body for torch to capture: those watchers are in force in it that write calls in another form, as
        they are around it. Its calls have no number, since it stands for many rounds, or for one branch.
    """
    with without_function_modes(Watcher) as watchers:
        kept = [watcher for watcher in watchers if watcher.in_bodies]

        def under_watchers(body: Body) -> Body:
            @functools.wraps(body)
            def run(*tensors: Any) -> Any:
                with ExitStack() as stack:
                    for watcher in kept:
                        stack.enter_context(watcher)
                    stack.enter_context(_apart(_counters()))
                    return body(*tensors)

            return run

        yield under_watchers


class CallCounter(Watcher):
    """Numbers the calls of certain functions, in an order that does not depend on who handles them.

    The numbers are those of the original's run on the example. Rewritten code also runs branches that the original does
    not take, and rounds of loops for all others: their calls have no number, nor have those after such a round.
    """

    def __init__(self, functions: Sequence[Any]) -> None:
        super().__init__()
        self.counted = {spelling for f in functions for spelling in spellings(f)}
        self._calls = self._others = 0
        self._inside = 0
        self._apart = 0
        self._is_lost = False

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Only the counted functions."""
        return func in self.counted

    def number(self, func: Any, args: Any, kwargs: Any) -> int | None:
        """The running number of this call; None inside another counted call, and for arithmetic on sizes."""
        if func not in self.counted or self._inside or not _has_tensor((*args, *kwargs.values())):
            return None
        if self._apart or self._is_lost:
            self._others += 1
            return None
        self._calls += 1
        return self._calls - 1

    def place(self, func: Any) -> CallPlace | None:
        """Where this call is, if it has no number because it stands for those of many rounds, or of one branch."""
        return place_of_call(func) if func in self.counted and not self._inside else None

    def pass_on(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes the call, not counting what it calls in turn if it is counted itself."""
        counted = func in self.counted
        self._inside += counted
        try:
            return super().pass_on(func, args, kwargs)
        finally:
            self._inside -= counted


Numbering = Callable[[], AbstractContextManager[None]]
"""What is in force while a branch runs: whether its calls have numbers, and from which one on."""


@contextmanager
def numbers_of_branches() -> Iterator[Numbering]:
    """While active, the two branches of a decision are run, and what joins them.

    Yields:
        What is in force while the branch runs that the example takes; it may run several times.
    """
    counters = _counters()
    before = [counter._calls for counter in counters]

    @contextmanager
    def taken() -> Iterator[None]:
        for counter, calls in zip(counters, before, strict=True):
            counter._calls, counter._apart = calls, counter._apart - 1
        try:
            yield
        finally:
            for counter in counters:
                counter._apart += 1

    with _apart(counters):
        yield taken


@contextmanager
def number_no_rounds() -> Iterator[None]:
    """While active, a round runs that stands for all of a loop."""
    counters = [counter for counter in _counters() if not counter._apart]
    before = [counter._others for counter in counters]
    with _apart(counters):
        yield
    for counter, others in zip(counters, before, strict=True):
        counter._is_lost |= counter._others > others


@contextmanager
def _apart(counters: Sequence[CallCounter]) -> Iterator[None]:
    for counter in counters:
        counter._apart += 1
    try:
        yield
    finally:
        for counter in counters:
            counter._apart -= 1


def _counters() -> list[CallCounter]:
    return [mode for mode in function_modes() if isinstance(mode, CallCounter)]


CallPlace = tuple[Any, str, int]
"""A function that is called, and the file and line of the model's that calls it."""


def place_of_call(func: Any) -> CallPlace | None:
    """Where the model calls a function, while it does."""
    frame = next((one for one in frames_of_model() if is_user_file(one.f_code.co_filename)), None)
    return None if frame is None else (func, frame.f_code.co_filename, frame.f_lineno)


class ShapeLog(CallCounter):
    """Records the shapes of the tensor arguments of certain functions, call by call."""

    def __init__(self, functions: Sequence[Any]) -> None:
        super().__init__(functions)
        self.calls: list[tuple[CallPlace | None, list[tuple[int, ...]]]] = []

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Records the shapes, then makes the call."""
        if self.number(func, args, kwargs) is not None:
            self.calls.append((place_of_call(func), shapes_of(args, kwargs)))
        return self.pass_on(func, args, kwargs)


def _has_tensor(values: Sequence[Any]) -> bool:
    """Whether `tensors_of` finds any; asked at every counted call, so without its walk through the whole structure."""
    with below_function_modes():  # the modes below would see the questions
        return any(map(_is_or_has_tensor, values))


def _is_or_has_tensor(value: Any) -> bool:
    if isinstance(value, Tensor):
        return _is_no_size(value)
    if isinstance(value, dict):
        value = tuple(value.values())
    return isinstance(value, Pair) or (isinstance(value, (tuple, list)) and any(map(_is_or_has_tensor, value)))


def _is_no_size(tensor: Tensor) -> bool:
    """In a TorchScript trace sizes are whole numbers of shape (); elsewhere they are no tensors."""
    return tensor.dim() > 0 or tensor.dtype != torch.int64


_PLAIN = frozenset({int, float, bool, str, type(None), torch.dtype, torch.device})


def tensors_of(args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors among a call's arguments; in place of a pair its real part, which has the complex tensor's sizes.

    Sizes are left out.
    """
    values = (*args, *kwargs.values())
    if all(isinstance(value, Tensor) or type(value) in _PLAIN for value in values):
        return [value for value in values if isinstance(value, Tensor) and _is_no_size(value)]
    real = tree.map_leaves((args, kwargs), lambda leaf: leaf.real if isinstance(leaf, Pair) else leaf, leaf=Pair)
    return [tensor for tensor in tree.tensors_in(real) if _is_no_size(tensor)]


def shapes_of(args: Any, kwargs: Any) -> list[tuple[int, ...]]:
    """Shapes of the tensors among a call's arguments, as plain numbers also while tracing."""
    with without_tracing():
        return [tuple(int(s) for s in tensor.shape) for tensor in tensors_of(args, kwargs)]


@functools.cache
def spellings(function: Any) -> tuple[Any, ...]:
    """A torch function, the Tensor method of its name and the in-place one, which are one thing to a rewrite."""
    name = getattr(function, "__name__", "")
    method = getattr(Tensor, name, None)
    is_method_too = getattr(torch, name, None) is function and callable(method)
    if (not is_method_too and method is not function) or function in _OF_ANOTHER_ORDER:
        return (function,)
    written = in_place(name)
    return tuple(dict.fromkeys((function, method, *([written] if written else []))))


_OF_ANOTHER_ORDER = (torch.where,)
"""Functions whose method takes its arguments in another order: ``x.where(condition, other)``."""


def in_place(name: str) -> Any:
    """The method of Tensor that writes the result of the method or operator of this name into the tensor, if any."""
    return getattr(Tensor, f"__i{name[2:]}" if name.startswith("__") else f"{name}_", None)


_MODULES = ("torch.nn.functional", "torch.functional")
"""Where torch keeps functions that are written in Python. Methods of Tensor are not among them: those that are written
in Python call super(), which would hand itself to the mode without end."""


def _without_dispatch(function: types.FunctionType) -> Callable[..., Any] | None:
    """A copy of one of torch's Python functions that does not hand itself to the modes in force once more.

    Such a function first asks has_torch_function and, under a mode, always gets a yes; calling it from the mode's
    handler, where the mode is off, would hide everything it calls. Only that question is answered differently.
    """
    if function.__module__ not in _MODULES:
        return None
    questions = [name for name in function.__code__.co_names if name.startswith("has_torch_function")]
    if not questions:
        return None
    scope = {**function.__globals__, **dict.fromkeys(questions, _no)}
    copy = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _no(*_: Any, **__: Any) -> bool:
    return False
