"""In-place writes that a TorchScript trace would lose, made as writes to the tensor that owns the memory.

A trace binds Python tensors to values of the graph. A write to a view of a view changes the memory of all of them, but
in the graph only the value of the tensor that was written to. While a model is traced, the views that it takes are
kept together with how they were taken; a write to one becomes a write to its owner, and what is read of a view after a
write to its owner is taken from the owner once more.

Source: https://docs.pytorch.org/docs/stable/tensor_view.html
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from torch_onnx_compat import tree
from torch_onnx_compat.tracing import below_function_modes, is_tracing, untraced
from torch_onnx_compat.watch import Watcher

_TAKING = (
    *("select", "narrow", "transpose", "t", "permute", "diagonal", "unsqueeze", "squeeze", "view", "reshape"),
    *("flatten", "unflatten", "unbind", "chunk", "split", "tensor_split", "hsplit", "vsplit", "dsplit", "ravel"),
    *("swapaxes", "swapdims", "movedim", "moveaxis", "view_as", "unfold", "detach", "adjoint", "__getitem__"),
)
_COMPARING = (
    *("eq", "ne", "lt", "le", "gt", "ge", "greater", "greater_equal", "less", "less_equal", "not_equal"),
    *("logical_and", "logical_or", "logical_xor", "logical_not"),
)


def _functions(names: Sequence[str]) -> frozenset[Any]:
    found = (getattr(owner, name, None) for name in names for owner in (torch, Tensor))
    return frozenset(function for function in found if callable(function))


VIEWS = _functions(_TAKING) | {getattr(Tensor, name).__get__ for name in ("T", "mT")}
"""Functions whose results may share the memory of their first argument."""

WRITES = frozenset(
    getattr(Tensor, name)
    for name in dir(Tensor)
    if callable(getattr(Tensor, name))
    and ((name.endswith("_") and not name.startswith("_") and name != "requires_grad_") or name == "__setitem__")
)
"""Methods that write to their tensor, except for ``x += y``, whose result Python hands to ``x[...] =`` afterwards."""

_COMPARED: dict[Any, Callable[..., Any]] = {
    getattr(Tensor, f"{name}_"): getattr(Tensor, name) for name in _COMPARING if hasattr(Tensor, f"{name}_")
}


@dataclass
class _View:
    """How a tensor was taken from another one, which is the call's first argument."""

    parent: Tensor
    take: Callable[[Tensor], Tensor]
    key: Any
    """The basic index that does the same; None where there is none."""
    current: Tensor | None
    """The view as it is in the graph after the owner's writes that `writes` counts; None where that is the view itself,
    which its own record would keep from ever ending."""
    writes: int
    """Of the owner, when `current` was taken."""


class ViewWrites(Watcher):
    """Makes the writes of a traced model to the owners of the memory."""

    def __init__(self) -> None:
        super().__init__()
        self._views: Any = WeakTensorKeyDictionary()
        self._writes: Any = WeakTensorKeyDictionary()
        self._viewed: Any = WeakTensorKeyDictionary()
        """What views were taken of."""
        self._fewest = _fewest_references()
        self._stale = False
        """Whether a tensor was written to of which there are views."""

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Views and writes; once views were written to, all that may read one."""
        return (func in VIEWS or func in WRITES or self._stale) and is_tracing()

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes one call on views as they are now."""
        writes = func in WRITES and bool(args) and isinstance(args[0], Tensor)
        if self._stale:
            rest, kwargs = self._renew((args[1:] if writes else args, kwargs))
            args = (args[0], *rest) if writes else rest
        if writes and not self._is_plain(func, args[0]):
            return self._write(func, args[0], args[1:], kwargs)
        # Views and plain writes are called here: the exporter joins the two by the stack that they were called with.
        result = self.pass_on(func, args, kwargs)
        if writes and args[0] in self._views:
            self._count(args[0])
        elif func in VIEWS and args and isinstance(args[0], Tensor):
            self._note(func, args, kwargs, result)
        return result

    # Views

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        parent, rest = args[0], args[1:]
        results = result if isinstance(result, (tuple, list)) else [result]
        for place, view in enumerate(results):
            if not isinstance(view, Tensor) or view is parent or not _share_memory(view, parent):
                continue

            def take(tensor: Tensor, number: int | None = place if results is result else None) -> Tensor:
                result = self.pass_on(func, (tensor, *rest), kwargs)
                return result if number is None else result[number]  # type: ignore[no-any-return]

            key = _basic_key(func, parent, rest, kwargs)
            self._viewed[parent] = True
            self._views[view] = _View(parent, take, key, None, self._writes.get(self._owner(parent), 0))

    def _owner(self, tensor: Tensor) -> Tensor:
        while tensor in self._views:
            tensor = self._views[tensor].parent
        return tensor

    def _current_view(self, tensor: Tensor) -> Tensor:
        """A view as the writes to its owner left it."""
        view = self._views.get(tensor)
        if view is None:
            return tensor
        writes = self._writes.get(self._owner(tensor), 0)
        if view.writes != writes:
            view.current, view.writes = view.take(self._current_view(view.parent)), writes
            self._views[view.current] = _View(view.parent, view.take, view.key, None, writes)
        return tensor if view.current is None else view.current

    def _renew(self, values: Any) -> Any:
        return tree.map_leaves(values, lambda leaf: self._current_view(leaf) if isinstance(leaf, Tensor) else leaf)

    # Writes

    def _is_plain(self, func: Any, tensor: Tensor) -> bool:
        """Whether the exporter makes the write right by itself."""
        if func in _COMPARED and tensor.dtype != torch.bool:
            return False
        if self._is_alone(tensor):
            self._views.pop(tensor, None)
        view = self._views.get(tensor)
        if view is None:
            return tensor not in self._viewed
        return func is Tensor.copy_ and view.key is not None and view.parent not in self._views

    def _write(self, func: Any, tensor: Tensor, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if tensor not in self._views:
            result = self._call_method(func, tensor, rest, kwargs)
            self._count(tensor)
            return result
        now = self._current_view(tensor)
        if func is Tensor.copy_:
            self._put(tensor, rest[0].to(tensor.dtype).expand_as(now))
            return tensor
        changed = now.clone()
        result = self._call_method(func, changed, rest, kwargs)
        self._put(tensor, changed)
        return tensor if result is changed else result

    def _is_alone(self, view: Tensor) -> bool:
        """Whether what a view was taken of is gone, with all other views of it: then nobody else reads the memory."""
        if view not in self._views or view in self._viewed:
            return False
        tensor = view
        while tensor in self._views:
            record = self._views[tensor]
            views = sum(other.parent is record.parent for other in self._views.values())
            if views > 1 or _references(record) > self._fewest:
                return False
            tensor = record.parent
        return True

    def _call_method(self, func: Any, tensor: Tensor, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the method; the trace would give a comparison's result the type bool whatever the tensor's is."""
        compared = _COMPARED.get(func)
        if compared is None or tensor.dtype == torch.bool:
            return self.pass_on(func, (tensor, *rest), kwargs)
        return tensor.copy_(compared(tensor, *rest, **kwargs).to(tensor.dtype))

    def _put(self, tensor: Tensor, value: Tensor) -> None:
        """Gives a view new contents, by way of those of what it was taken from."""
        view = self._views[tensor]
        is_owner = view.parent not in self._views
        if is_owner and view.key is not None:
            view.parent[view.key] = value
            self._count(view.parent)
            return
        whole = self._current_view(view.parent)
        if view.key is not None:
            changed = whole.clone()
            changed[view.key] = value
        else:
            numbers = torch.arange(whole.numel(), device=whole.device).reshape(whole.shape)
            places = view.take(numbers).reshape(-1)
            changed = whole.reshape(-1).scatter(0, places, value.reshape(-1)).reshape(whole.shape)
        if is_owner:
            view.parent.copy_(changed)
            self._count(view.parent)
        else:
            self._put(view.parent, changed)

    def _count(self, tensor: Tensor) -> None:
        owner = self._owner(tensor)
        self._stale = True
        self._writes[owner] = self._writes.get(owner, 0) + 1


def _references(view: _View) -> int:
    return sys.getrefcount(view.parent)


def _fewest_references() -> int:
    """How often what a view was taken of is referred to when only the view's record and torch itself do so."""

    def make_record() -> tuple[_View, Tensor]:
        whole = torch.zeros(2)
        part = whole[:1]  # torch holds the whole as it holds every tensor in a trace; some versions count that
        return _View(whole, Tensor.clone, None, None, 0), part

    with below_function_modes(), untraced():
        record, _part = make_record()
        return _references(record)


def _share_memory(a: Tensor, b: Tensor) -> bool:
    with below_function_modes():
        return bool(a.untyped_storage()._cdata == b.untyped_storage()._cdata)


def _basic_key(func: Any, parent: Tensor, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The index of numbers and slices that reads the same as a call."""
    if kwargs or not rest:
        return None
    if func is Tensor.__getitem__:
        keys = rest[0] if isinstance(rest[0], tuple) else (rest[0],)
        return rest[0] if all(key is Ellipsis or isinstance(key, (int, slice)) for key in keys) else None
    if func in (Tensor.select, torch.select):
        axis, key = rest[0], rest[1]
    elif func in (Tensor.narrow, torch.narrow) and not isinstance(rest[1], Tensor) and rest[1] >= 0:
        axis, key = rest[0], slice(rest[1], rest[1] + rest[2])
    else:
        return None
    with below_function_modes():
        return (*[slice(None)] * (axis % parent.dim()), key)
