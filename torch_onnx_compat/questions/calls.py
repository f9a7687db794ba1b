"""The calls of torch's functions in a symbolic run, with what is known of the sizes of their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torch_onnx_compat.backends.internals import symbolic
from torch_onnx_compat.tracing import below_function_modes
from torch_onnx_compat.watch import CallPlace, Watcher, place_of_call, spellings, tensors_of


@dataclass(frozen=True)
class Call:
    """One call of a function.

    Attributes:
        function: The function.
        callers: The numbers of the calls that this one is made in.
        known: For each tensor among the arguments its sizes, None for those that vary.
        place: Where the model makes it.
    """

    function: Any
    callers: tuple[int, ...]
    known: tuple[tuple[int | None, ...], ...]
    place: CallPlace | None


class Calls(Watcher):
    """Records the calls of certain functions.

    Args:
        functions: The functions.
    """

    def __init__(self, functions: Sequence[Any]) -> None:
        super().__init__()
        self._functions = {spelling for function in functions for spelling in spellings(function)}
        self._calls: list[Call] = []
        self._callers: list[int] = []

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Only the functions."""
        return func in self._functions

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Records the call, then makes it."""
        with below_function_modes():  # the mode below notes who asks for a shape
            known = tuple(tuple(map(_known, tensor.shape)) for tensor in tensors_of(args, kwargs))
        self._calls.append(Call(func, tuple(self._callers), known, place_of_call(func)))
        self._callers.append(len(self._calls) - 1)
        try:
            return self.pass_on(func, args, kwargs)
        finally:
            self._callers.pop()

    def of(self, functions: Sequence[Any]) -> Iterator[Call]:
        """The calls of these functions that have tensors and lie in no other of them, as `watch.CallCounter` counts."""
        wanted = {spelling for function in functions for spelling in spellings(function)}
        counted = [call.function in wanted for call in self._calls]
        for call, counts in zip(self._calls, counted, strict=True):
            if counts and call.known and not any(counted[caller] for caller in call.callers):
                yield call


def _known(size: Any) -> int | None:
    if isinstance(size, torch.SymInt):
        number = symbolic.fixed_number(size)
        return None if number is None else int(number)
    return int(size)
