"""Tensors that stand for Python's numbers, and their values in float64.

Python computes ``x.max().item() * 0.1`` in float64, and rounds it once where it meets a tensor. In an export the number
is a tensor of the input's element type, and each operation on it would be rounded: what compares it, or makes a whole
number of it, may then come out on the other side. So each such operation is done in float64; the tensor that stands for
the number is the result, rounded once. What meets float64 takes it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_onnx_compat.inputs import tree
from torch_onnx_compat.tracing import is_tracing, recorded_value
from torch_onnx_compat.watch import Watcher

SIZE_NODE = "prim::NumToTensor"
"""The kind of the node that makes a tensor of a size in a trace."""


TENSOR_NODES = frozenset({"aten::detach", "aten::full", "aten::scalar_tensor"})
"""The kinds of the nodes with which a trace makes a tensor of a number, as ``torch.tensor(n)`` does."""


class Numbers:
    """Tensors that stand for what Python has as numbers, in one trace."""

    def __init__(self) -> None:
        self._tensors: dict[int, Tensor] = {}
        self._wide: dict[int, Tensor] = {}
        self._noted: dict[int, _Noted] = {}
        self._sizes: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._tensors)

    def __contains__(self, value: Tensor) -> bool:
        return self._key(value) in self._tensors

    def knows(self, value: Tensor) -> bool:
        """Whether a tensor of shape () stands for a number: one that was noted, or a size in a trace."""
        return value in self or is_size(value) or _identity(value) in self._sizes

    def note_size(self, value: Tensor) -> None:
        """Notes an input of a nested trace that is a size of a tensor outside."""
        self._sizes.add(_identity(value))

    def is_recorded_size(self, recorded: Any) -> bool:
        """Whether a value of the trace is a size of a tensor."""
        return recorded.node().kind() == SIZE_NODE or recorded.unique() in self._sizes

    def has_recorded(self, unique: int) -> bool:
        """Whether a value of the trace, by its number there, is one."""
        return unique in self._tensors

    def note(self, value: Tensor, wide: Tensor | None = None) -> Tensor:
        """Notes a number.

        Args:
            value: The number, of shape ().
            wide: The same in float64, of shape (1,); None where the tensor's own value is the number.

        Returns:
            The tensor that stands for it: where there is a wide value, that one, rounded once, as torch rounds Python's
            numbers when they meet tensors.
        """
        if wide is not None and value.dtype != torch.float64:
            value = wide.reshape(()).to(value.dtype)
        key = _identity(value)
        self._tensors[key] = value
        self._noted[id(value)] = _Noted(value, key, _version(value))
        if wide is not None:
            self._wide[key] = wide
        return value

    def wide(self, value: Tensor) -> Tensor | None:
        """A number in float64, of shape (1,); None for what is not known to be a number.

        TorchScript's exporter takes float64 of shape () for a Python number, and makes float32 of it.
        """
        if not self.knows(value):
            return None
        found = self.wide_of(value)
        return value.reshape(1).to(torch.float64) if found is None else found

    def wide_before(self, value: Tensor) -> Tensor | None:
        """The value in float64 that a number had when it was noted, before it was written to."""
        noted = self._noted.get(id(value))
        return self._wide.get(noted.key) if noted is not None else None

    def exact(self, value: Tensor) -> Tensor | None:
        """A tensor of one element, which is the number: the tensor, or float64's where it was computed from numbers."""
        return self._wide.get(self._key(value), value) if self.knows(value) else None

    @property
    def has_wide(self) -> bool:
        """Whether some number is known in float64."""
        return bool(self._wide)

    def wide_of(self, value: Tensor) -> Tensor | None:
        """The value in float64 that was noted for a number, of shape (1,); None if there is none."""
        return self._wide.get(self._key(value))

    def clear(self) -> None:
        """Forgets all."""
        self._tensors.clear()
        self._wide.clear()
        self._noted.clear()
        self._sizes.clear()

    def _key(self, value: Tensor) -> int:
        """What a number was noted under; none of them if it was written to since."""
        noted = self._noted.get(id(value))
        if noted is None:
            return _identity(value)
        # A call that changes nothing, such as `to` of the same type, gives the tensor another value of the trace.
        return noted.key if noted.version == _version(value) else _UNKNOWN


class _Noted(NamedTuple):
    value: Tensor
    """Kept alive, so that its identity stays its own."""
    key: int
    version: int


_UNKNOWN = -1


def is_size(value: Tensor) -> bool:
    """Whether a traced tensor is a size of another, which Python has as a number."""
    return is_tracing() and not value.is_floating_point() and recorded_value(value).node().kind() == SIZE_NODE


def in_double(number: Any) -> Tensor:
    """A number in float64, of shape (1,); what a constant is made by here, no exporter rounds to float32."""
    if isinstance(number, Tensor):
        return number.reshape(1).to(torch.float64)
    double: Tensor = torch.zeros(1, dtype=torch.float64) + number
    return double


def _identity(value: Tensor) -> int:
    return recorded_value(value).unique() if is_tracing() else id(value)


def _version(value: Tensor) -> int:
    return 0 if value.is_inference() else value._version


_in_force: ContextVar[bool] = ContextVar("numbers are wide", default=False)


@contextmanager
def wide_numbers(numbers: Callable[[], Numbers]) -> Iterator[None]:
    """While active, what is computed of numbers alone is a number, with its value in float64.

    Args:
        numbers: Gives the numbers of the present trace.
    """
    token = _in_force.set(True)
    try:
        with WideNumbers(numbers):
            yield
    finally:
        _in_force.reset(token)


def wide_sizes() -> AbstractContextManager[None]:
    """The same for the sizes in a trace, where no numbers of decisions are in force."""
    numbers = Numbers()
    return nullcontext() if _in_force.get() else wide_numbers(lambda: numbers)


class WideNumbers(Watcher):
    """While active, what is computed of numbers alone is noted as one, with its value in float64.

    Args:
        numbers: Gives the numbers of the present trace.
    """

    def __init__(self, numbers: Callable[[], Numbers]) -> None:
        super().__init__()
        self._numbers = numbers

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether numbers meet what holds more digits than float32; a trace has sizes from its beginning."""
        numbers = self._numbers()
        return numbers.has_wide and _is_wide(numbers, tree.tensors_in((args, kwargs)), kwargs)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes the call with the numbers' values in float64."""
        numbers = self._numbers()

        def widen(leaf: Any) -> Any:
            wide = numbers.wide_of(leaf) if isinstance(leaf, Tensor) and not leaf.dim() else None
            return leaf if wide is None else wide.reshape(())

        args, kwargs = tree.map_leaves((args, kwargs), widen)
        return self.pass_on(func, args, kwargs)

    def check(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """Makes the call again in float64 if it was one of numbers."""
        if func in _FACTORIES or not isinstance(result, Tensor) or result.dim():
            return result
        if result.is_floating_point():
            return self._widen(func, args, kwargs, result) if self._numbers() or is_tracing() else result
        return result if is_tracing() or not self._numbers() else self._note_whole(args, kwargs, result)

    def _note_whole(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> Tensor:
        """Notes what torch.export computes of whole numbers alone; a trace can be asked what it computed that of."""
        numbers, leaves = self._numbers(), tree.tensors_in((args, kwargs))
        return numbers.note(result) if leaves and all(leaf in numbers for leaf in leaves) else result

    def _widen(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> Tensor:
        leaves, structure = tree.flatten((args, kwargs))
        numbers = self._numbers()

        def widen(leaf: Tensor) -> Tensor | None:
            if result is not leaf:
                return None if leaf.dim() else numbers.wide(leaf)
            before = numbers.wide_before(leaf)  # ``number += 1`` writes to the tensor
            return None if before is None or leaf in numbers else before.clone()

        wide = [widen(leaf) for _, leaf in leaves]
        if not wide or any(number is None for number in wide):
            return result
        wide_args, wide_kwargs = structure.unflatten([number for number in wide if number is not None])
        try:
            found = func(*wide_args, **wide_kwargs)
        except (RuntimeError, TypeError, ValueError):  # a function of another element type: nobody knows better
            return result
        if isinstance(found, Tensor) and found.dtype == torch.float64 and found.dim() == 1:
            return numbers.note(result, found)
        return result


_FACTORIES = (torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor, torch.full)
"""Functions that make a tensor of a number, which is a number no more."""


def _is_wide(numbers: Numbers, leaves: Sequence[Tensor], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call has a number in float64, and makes a tensor that holds more than float32's digits of it."""
    known = [not leaf.dim() and numbers.wide_of(leaf) is not None for leaf in leaves]
    if not any(known):
        return False
    dtypes = [leaf.dtype for leaf, is_known in zip(leaves, known, strict=True) if not is_known]
    return any(dtype == torch.float64 for dtype in dtypes) or kwargs.get("dtype") in WIDE


WIDE = frozenset({torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})
"""Element types in which a number that was rounded to float32 first may come out as another."""
