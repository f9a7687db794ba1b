"""What reads a tensor below the operators: its memory, its storage, its number of dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from torch_onnx_compat.backends.checks import is_caught_on_stack
from torch_onnx_compat.backends.failures import may_fail_for_sizes
from torch_onnx_compat.backends.internals import symbolic
from torch_onnx_compat.questions.given_numbers import with_symbols
from torch_onnx_compat.questions.log import Log
from torch_onnx_compat.stack import frames_of_model

_READS = frozenset(
    {
        Tensor.numpy,
        Tensor.tolist,
        Tensor.__array__,
        Tensor.__dlpack__,
        Tensor.__repr__,
        Tensor.__format__,
        Tensor.untyped_storage,
        Tensor.data_ptr,
        Tensor.__deepcopy__,
    }
)
"""What reads a tensor's memory, or makes Python values of it."""

_BASE: Any = Tensor._base.__get__  # type: ignore[union-attr]

_MEMORY = frozenset({Tensor._is_view, _BASE, Tensor.is_set_to, Tensor.data_ptr, Tensor.untyped_storage, Tensor.storage})
"""What tells which memory a tensor has: its own, or another one's. Operators decide that by sizes and strides."""

_BYTES = frozenset({Tensor.untyped_storage})
"""Of these, what tells how many bytes there are."""


_NUMEL_OPERATORS = frozenset({torch.ops.aten.numel, torch.ops.aten.numel.default})
"""Spellings of `Tensor.numel` that torch's C++ refuses for a fake before any dispatch."""

_NUMBERS_OF_DIMENSIONS = frozenset({Tensor.dim, Tensor.ndimension, Tensor.ndim.__get__})  # type: ignore[attr-defined]
_RANKS = _NUMBERS_OF_DIMENSIONS | {Tensor.size, Tensor.shape.__get__}  # type: ignore[attr-defined]
"""What tells a tensor's number of dimensions."""


class Reads(TorchFunctionMode):
    """While active, what reads a tensor below the operators reads the real one.

    Args:
        symbols: What the fakes are made of.
        actual: Gives the real tensor beside a fake.
        log: Notes what is read.
        compares_objects: Whether the model asks if two things are one object.
    """

    def __init__(
        self, symbols: symbolic.Symbols, actual: Callable[[Any], Any], log: Log, *, compares_objects: bool = False
    ) -> None:
        super().__init__()
        self._symbols, self._actual, self._log = symbols, actual, log
        self._compares_objects = compares_objects

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func == Tensor.nbytes.__get__:  # type: ignore[attr-defined]
            return args[0].numel() * args[0].element_size()
        if func in _NUMEL_OPERATORS:
            return args[0].numel()
        if func in _MEMORY:
            self._log.note_memory()
        if func in _READS:
            return self._read_actual(func, args, kwargs or {})
        if func in _RANKS and getattr(args[0], "has_open_rank", False):
            self._log.ask_rank(reads_shape=func not in _NUMBERS_OF_DIMENSIONS)
        self._log.of_call.clear()
        self._log.call_reads = False
        try:
            result = func(*args, **(kwargs or {}))
        except Exception:  # of any kind; the model gets it
            self._log.note_call()  # where the model catches the error, it goes another way then
            raise
        self._note_way(func, args)
        self._note_result(result)
        if any(kind == "number" for kind, _, _ in self._log.of_call):
            return with_symbols(self._symbols, func, tuple(args), dict(kwargs or {}), result)
        return result

    def _note_way(self, func: Any, args: Any) -> None:
        """Notes which way a call went, where the model's Python may see it: by an object, or by an error."""
        if not self._log.of_call:
            return
        may_fail = may_fail_for_sizes(func, args) and is_caught_on_stack(frames_of_model())
        if may_fail or (func is Tensor.contiguous and self._compares_objects):
            self._log.note_call()

    def _note_result(self, result: Any) -> None:
        """Notes what the model's Python gets of a call: an answer about sizes, or what was read of values."""
        if isinstance(result, bool):
            self._log.note_answer()
        if type(result) in (list, tuple) and not result:
            self._log.note_nothing()
        if self._log.call_reads and not any(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(result)):
            self._log.note_read()

    def _read_actual(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Reads the real tensor, and notes that its values, and sizes, are known to the model then."""
        tensor = args[0]
        self._log.note_read()
        sizes = [tensor.numel() * tensor.element_size()] if func in _BYTES else tensor.shape
        for size in sizes:
            if symbolic.is_symbolic(size):
                self._log.read("number", size)
        args, kwargs = pytree.tree_map(self._actual, (tuple(args), dict(kwargs)))
        with symbolic.without_modes():
            return func(*args, **kwargs)
