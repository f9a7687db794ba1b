"""What a round computes, call by call: two runs of it that make the same calls of the same things do the same.

A name may be a number before a loop and a tensor after a round. Whatever the code asks of it, by isinstance, by
getattr, by catching an error, shows in what is called next. So nobody has to list the ways to ask.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.watch import Watcher

_OWN = "torch_onnx_compat."
"""Modules whose calls are not the model's: they convert numbers, which is what differs."""

_METHODS = (Watcher.__torch_function__, Watcher.watch, Watcher.pass_on, Watcher.pass_inside)
_PASSING = frozenset(method.__name__ for method in _METHODS)
"""Methods of watchers, through which a call comes."""

_ARITHMETIC = frozenset({"add", "sub", "mul", "truediv", "floordiv", "div", "mod", "pow", "matmul", "and", "or", "xor"})
_COMMUTATIVE = frozenset({"add", "mul", "and", "or", "xor", "eq", "ne"})
_ALIKE = {"truediv": "div", "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub"}


class CallSequence(Watcher):
    """Records the calls of torch, with what each is called on.

    Args:
        numbers: What names hold before a loop.
        tensors: What the loop carries in their place.
    """

    def __init__(self, numbers: Sequence[Any], tensors: Sequence[Tensor]) -> None:
        super().__init__()
        self.calls: list[Any] = []
        self._numbers = {_key(value): ("carried", place) for place, value in enumerate(numbers)}
        pairs = zip(tensors, numbers, strict=True)
        self._labels: dict[int, Any] = {id(tensor): self._numbers[_key(value)] for tensor, value in pairs}
        self._kept: list[Any] = [*tensors]
        """So that no identity is that of another tensor."""
        self._outside = 0

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Records a call, also one that fails."""
        if _is_own(sys._getframe(2)):
            result = self.pass_on(func, args, kwargs)
            # What a round reads from outside is copied for it, and a number becomes a tensor.
            is_copy = func in (Tensor.clone, torch.as_tensor) and _is_tensor(args[0])
            same = [self._label(args[0])] if is_copy else [self._numbers.get(_key(arg)) for arg in args]
            label = next(filter(None, same), None)
            if label is not None and _is_tensor(result):
                self._labels.setdefault(id(result), label)
                self._kept.append(result)
            return result
        name, is_reversed = _name_of(func)
        labels = [self._label(value) for value in (reversed(args) if is_reversed else args)]
        if name in _COMMUTATIVE and len(labels) == 2:
            labels.sort(key=str)  # Tensor.__radd__ is torch's add
        place = len(self.calls)
        self.calls.append((name, tuple(labels), tuple((key, self._label(kwargs[key])) for key in sorted(kwargs))))
        result = self.pass_on(func, args, kwargs)
        for number, tensor in enumerate(result if isinstance(result, (tuple, list)) else (result,)):
            if _is_tensor(tensor) and id(tensor) not in self._labels:
                self._labels[id(tensor)] = "made", place, number
                self._kept.append(tensor)
        return result

    def finish(self, result: Any) -> list[Any]:
        """The calls, and what came of them."""
        return [*self.calls, self._label(result)]

    def _label(self, value: Any) -> Any:
        """What a value is, in a way that is the same in another run."""
        if _is_tensor(value):
            if id(value) not in self._labels:
                self._labels[id(value)] = "outside", self._outside
                self._outside += 1
                self._kept.append(value)
            return self._labels[id(value)]
        if isinstance(value, (bool, int, float)) or _key(value) in self._numbers:
            return self._numbers.get(_key(value), (type(value).__name__, value))
        if isinstance(value, (list, tuple)):
            return type(value).__name__, *map(self._label, value)
        if isinstance(value, dict):
            return "dict", *((repr(key), self._label(one)) for key, one in value.items())
        if isinstance(value, slice):
            return "slice", *map(self._label, (value.start, value.stop, value.step))
        return repr(value) if isinstance(value, (str, type(None))) else type(value).__name__


def _key(value: Any) -> tuple[type, Any]:
    """What tells numbers apart; a symbolic one has no hash, and is one with itself."""
    return type(value), value if isinstance(value, (bool, int, float)) else id(value)


def _is_tensor(value: Any) -> bool:
    return type.__instancecheck__(Tensor, value)  # asked of a tensor, isinstance is a call that is seen


def _is_own(frame: types.FrameType | None) -> bool:
    """Whether a call comes from this package, and not from what passes the model's calls on."""
    while frame is not None and frame.f_code.co_name in _PASSING:
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__")).startswith(_OWN)


def _name_of(func: Callable[..., Any]) -> tuple[str, bool]:
    """A function's name, one for ``a + b``, ``a += b`` and torch.add(a, b); whether its arguments are in reverse."""
    of = getattr(func, "__self__", None)
    name = getattr(func, "__name__", type(func).__name__)
    if name == "__get__":
        return f"{name} {getattr(of, '__name__', '')}", False
    name = name.strip("_")
    is_reversed = name[:1] == "r" and name[1:] in _ARITHMETIC
    name = name[1:] if is_reversed or (name[:1] == "i" and name[1:] in _ARITHMETIC) else name
    return _ALIKE.get(name, name), is_reversed
