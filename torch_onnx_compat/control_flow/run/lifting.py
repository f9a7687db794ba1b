"""Lambda lifting: turns a part of a model into a function of all tensors that it reads, its closure included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch.utils._pytree import SUPPORTED_NODES, tree_leaves, tree_map_only

from torch_onnx_compat.control_flow.run.aliases import copy_of, present_aliases
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.tracing import is_tracing
from torch_onnx_compat.watch import Watcher, writes_in_place

Table = dict[int, tuple[Tensor, Tensor]]
"""By identity: a tensor and its replacement."""


class Lifting(Watcher):
    """Replaces the tensors from outside that a function reads, in each of its calls of torch.

    Args:
        table: Tensors from outside with their replacements; None replaces each by a copy, as a trial.
        own: Tensors that are the function's arguments.
    """

    def __init__(self, table: Table | None, own: Sequence[Tensor]) -> None:
        super().__init__()
        self._trial = table is None
        self._table: Table = table or {}
        # Weak: a view that nobody holds any more is not in the way of a write into its owner.
        # A replacement comes here again where torch's function is one of Python, whose calls are watched too.
        present = [*own, *(new for _, new in self._table.values())]
        self.made = WeakValueDictionary({id(tensor): tensor for tensor in present})
        self.outside: dict[int, Tensor] = {}
        """Tensors from outside that are not in the table."""

        self._entered = 0

    def __enter__(self) -> Any:
        if not self._entered:  # it is entered again around each function of torch that is written in Python
            _active.append(self)
        self._entered += 1
        return super().__enter__()  # type: ignore[no-untyped-call,unused-ignore]

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call,unused-ignore]
        self._entered -= 1
        if not self._entered:
            _active.remove(self)

    def present(self, tensor: Tensor) -> Tensor:
        """What stands for a tensor inside, as in a call of torch."""
        found: Tensor = self._substitute(tensor)
        return found

    def original_of(self, tensor: Any) -> Any:
        """The tensor from outside that a tensor replaces, or the tensor itself."""
        return next((old for old, new in self._table.values() if new is tensor), tensor)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes a call with replaced arguments."""
        if func is torch.tensor and not is_tracing() and len(args) == 1 and is_constant(args[0]):
            result = self._constant(args[0], {"dtype": _dtype_of(args[0]), **kwargs})
            self._keep(result)
            return result
        result = self.pass_on(func, self._substitute(args), {k: self._substitute(v) for k, v in kwargs.items()})
        self._keep(result)
        # What writes in place returns its argument, which has one identity for the model's code.
        return self.original_of(result) if writes_in_place(func, kwargs) else result

    def _constant(self, data: Any, kwargs: dict[str, Any]) -> Tensor:
        """Numbers in nested lists as a tensor; torch.export would lift that of torch.tensor out of a branch."""
        made: Tensor
        if not isinstance(data, (list, tuple)):
            made = self.pass_on(torch.full, ((), data), kwargs)
        elif data:
            made = self.pass_on(torch.stack, ([self._constant(item, kwargs) for item in data],), {})
        else:
            made = self.pass_on(torch.zeros, (0,), kwargs)
        return made

    def _keep(self, result: Any) -> None:
        self.made.update((id(leaf), leaf) for leaf in tree_leaves(result) if isinstance(leaf, Tensor))

    def _copy(self, tensor: Tensor) -> Tensor:
        copy = copy_of(tensor)
        if isinstance(copy, Pair):
            raise TypeError("a complex weight is read in it, and ONNX has no complex tensors")
        present_aliases().note_original(copy, tensor)
        self.made[id(copy)] = copy
        return copy

    def _substitute(self, value: Any) -> Any:
        if isinstance(value, Pair):
            return Pair(self._substitute(value.real), self._substitute(value.imag))
        if isinstance(value, Tensor):
            if id(value) in self.made:
                return value
            if id(value) not in self._table:
                self.outside[id(value)] = value
                if not self._trial:
                    return value
                self._table[id(value)] = value, self._copy(value)
            return self._table[id(value)][1]
        if type(value) in (list, tuple):
            return type(value)(self._substitute(item) for item in value)
        if type(value) is slice:
            return slice(self._substitute(value.start), self._substitute(value.stop), self._substitute(value.step))
        return tree_map_only(Tensor, self._substitute, value) if type(value) in SUPPORTED_NODES else value


def is_constant(data: Any) -> bool:
    """Whether something is a number of Python, or nested lists that hold such numbers alone."""
    leaves = tree_leaves(data) if isinstance(data, (list, tuple)) else [data]
    return all(type(leaf) in (bool, int, float) for leaf in leaves)


def _dtype_of(data: Any) -> torch.dtype:
    """The dtype that torch.tensor gives to Python's numbers."""
    kinds = {type(leaf) for leaf in tree_leaves(data)}
    return torch.get_default_dtype() if float in kinds or not kinds else torch.int64 if int in kinds else torch.bool


_active: list[Lifting] = []
"""Those in force, the outermost first; exports take turns."""


def present(tensor: Tensor) -> Tensor:
    """What stands for a tensor in the function that is being lifted, if one is: the present trace knows no other."""
    return _active[-1].present(tensor) if _active else tensor


def depth_of_lifting() -> int:
    """How many functions are being lifted, one within the other."""
    return len(_active)


def original_of(tensor: Tensor) -> Tensor:
    """The tensor from outside that a tensor replaces in the function that is being lifted, or the tensor itself."""
    found: Tensor = _active[-1].original_of(tensor) if _active else tensor
    return found


def note_made(tensors: Iterable[Tensor]) -> None:
    """Tells the functions that are being lifted that tensors were made inside them, by a call that no mode sees."""
    for lifting in _active:
        lifting.made.update((id(tensor), tensor) for tensor in tensors)


def note_made_with(tensor: Tensor, other: Tensor) -> None:
    """Tells the functions that are being lifted that a tensor was made where another one was, by a call no mode saw."""
    for lifting in _active:
        if id(other) in lifting.made:
            lifting.made[id(tensor)] = tensor


def clone_arguments(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Copies of tensors, made so that an enclosing lifting sees them read; it does not see the call that follows."""
    return [tensor.clone() for tensor in tensors]
