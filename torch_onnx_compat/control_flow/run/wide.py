"""Tensors that stand for Python's numbers, and their values in float64.

Python computes ``x.max().item() * 0.1`` in float64. In an export the number is a tensor of the input's element type, so
that the file's arithmetic on tensors stays what it is; what a comparison sees may then be off by a rounding, and on the
other side. So each such operation is done once more in float64, for comparisons and for what makes whole numbers of it.
What nobody asks for is dead code, which the exporters drop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import tree
from torch_onnx_compat.tracing import is_tracing, recorded_value
from torch_onnx_compat.watch import Watcher


class Numbers:
    """Tensors that stand for what Python has as numbers, in one trace."""

    def __init__(self) -> None:
        self._tensors: dict[int, Tensor] = {}
        self._wide: dict[int, Tensor] = {}

    def __bool__(self) -> bool:
        return bool(self._tensors)

    def __contains__(self, value: Tensor) -> bool:
        return _key(value) in self._tensors

    def knows(self, value: Tensor) -> bool:
        """Whether a tensor of shape () stands for a number: one that was noted, or a size in a trace."""
        return value in self or is_size(value)

    def has_recorded(self, unique: int) -> bool:
        """Whether a value of the trace, by its number there, is one."""
        return unique in self._tensors

    def note(self, value: Tensor, wide: Tensor | None = None) -> None:
        """Notes that a tensor stands for a number.

        Args:
            value: Of shape ().
            wide: The same in float64, of shape (1,); None where the tensor's own value is the number.
        """
        key = _key(value)
        self._tensors[key] = value  # alive, so that its identity stays its own
        if wide is not None:
            self._wide[key] = wide

    def wide(self, value: Tensor) -> Tensor | None:
        """A number in float64, of shape (1,); None for what is not known to be a number.

        TorchScript's exporter takes float64 of shape () for a Python number, and makes float32 of it.
        """
        if not self.knows(value):
            return None
        if _key(value) in self._wide:
            return self._wide[_key(value)]
        return value.reshape(1).to(torch.float64)

    def exact(self, value: Tensor) -> Tensor | None:
        """A tensor of one element, which is the number: the tensor, or float64's where it was computed from numbers."""
        return self._wide.get(_key(value), value) if self.knows(value) else None

    def clear(self) -> None:
        """Forgets all."""
        self._tensors.clear()
        self._wide.clear()


def is_size(value: Tensor) -> bool:
    """Whether a traced tensor is a size of another, which Python has as a number."""
    return is_tracing() and not value.is_floating_point() and recorded_value(value).node().kind() == "prim::NumToTensor"


def _key(value: Tensor) -> int:
    return recorded_value(value).unique() if is_tracing() else id(value)


class WideNumbers(Watcher):
    """While active, what is computed of numbers alone is noted as one, with its value in float64.

    Args:
        numbers: Gives the numbers of the present trace.
    """

    def __init__(self, numbers: Callable[[], Numbers]) -> None:
        super().__init__()
        self._numbers = numbers

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """No call is handled, only looked at afterwards."""
        return False

    def check(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Makes the call again in float64 if it was one of numbers; a trace has sizes from its beginning."""
        is_real = isinstance(result, Tensor) and not result.dim() and result.is_floating_point()
        if is_real and (self._numbers() or is_tracing()):
            self._widen(func, args, kwargs, result)

    def _widen(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> None:
        leaves, structure = tree.flatten((args, kwargs))
        numbers = self._numbers()
        wide = [numbers.wide(leaf) if not leaf.dim() else None for _, leaf in leaves]
        if not wide or any(number is None for number in wide) or any(result is leaf for _, leaf in leaves):
            return
        wide_args, wide_kwargs = structure.unflatten([number for number in wide if number is not None])
        try:
            found = func(*wide_args, **wide_kwargs)
        except (RuntimeError, TypeError, ValueError):  # a function of another element type: nobody knows better
            return
        if isinstance(found, Tensor) and found.dtype == torch.float64 and found.dim() == 1:
            numbers.note(result, found)
