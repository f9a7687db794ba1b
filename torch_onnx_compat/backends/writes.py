"""Repairs in-place writes to views, which a TorchScript trace would lose.

A trace binds Python tensors to values of the graph. A write to a view changes the memory of its owner and of the
owner's other views, but in the graph only the value of the tensor that is written to. While a model is traced, each
view is therefore recorded with the function that took it. A write to a view becomes a write to its owner, and a view
that is read after a write to its owner is taken from the owner again.

Source: https://docs.pytorch.org/docs/stable/tensor_view.html
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from torch_onnx_compat.backends.backend import ExportFailed
from torch_onnx_compat.backends.internals import is_kept_by_torch, names_of_views
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.tracing import (
    below_function_modes,
    is_tracing,
    record_as,
    recorded_value,
    whole_of,
    without_tracing,
)
from torch_onnx_compat.watch import Watcher

_COMPARISON_NAMES = (
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "not_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
)


def _functions(names: Sequence[str]) -> frozenset[Any]:
    found = (getattr(owner, name, None) for name in names for owner in (torch, Tensor))
    return frozenset(function for function in found if callable(function))


VIEWS = _functions(sorted({*names_of_views(), "__getitem__"})) | {
    getattr(Tensor, name).__get__ for name in ("T", "mT", "H", "mH", "real", "imag")
}
"""Functions whose results may share the memory of their first argument."""

_UNBINDS = _functions(["unbind"])
_SPLITS = _functions(["split", "split_with_sizes"])

_WHOLE = _functions(["detach"])
"""Views of all of a tensor as it is."""

_AUGMENTED = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")

WRITES = frozenset(
    getattr(Tensor, name)
    for name in dir(Tensor)
    if callable(getattr(Tensor, name))
    and ((name.endswith("_") and not name.startswith("_") and name != "requires_grad_") or name == "__setitem__")
) | _functions([f"__i{name}__" for name in _AUGMENTED])
"""Methods that write to their tensor."""

REPLACEMENTS = _functions(["set_", "resize_", "resize_as_"])
"""Functions that give a tensor other memory or another shape."""

VIEWS_IN_PLACE: dict[Any, Callable[..., Tensor]] = {
    getattr(Tensor, f"{name}_"): getattr(Tensor, name)
    for name in ("squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims")
}
"""Methods by which a tensor becomes another view of its memory, with the function that takes that view."""

_OF_BITS = {
    getattr(Tensor, f"__i{name}__"): getattr(Tensor, f"bitwise_{long}_")
    for name, long in {"and": "and", "or": "or", "xor": "xor", "lshift": "left_shift", "rshift": "right_shift"}.items()
}
"""Operators that the exporter does not know in place, as methods that it knows."""

_COMPARED: dict[Any, Callable[..., Any]] = {
    getattr(Tensor, f"{name}_"): getattr(Tensor, name) for name in _COMPARISON_NAMES if hasattr(Tensor, f"{name}_")
}


@dataclass
class _View:
    """The record of a view: its parent, and the function that took it from the parent."""

    parent: Tensor
    take: Callable[[Tensor], Tensor]
    key: Any
    """The index of numbers and slices that takes the same view; None if there is none."""
    current: Tensor | None
    """The view as taken after the last of the owner's writes that `writes` counts. None if that is the view itself: a
    reference to it from its own record would be a reference cycle."""
    writes: int
    """How many writes the owner had had when `current` was taken."""
    taken_again: bool = False
    """Whether it is the `current` of another view."""


class ViewWrites(Watcher):
    """Turns the writes of a traced model to views into writes to the owners of the memory."""

    def __init__(self) -> None:
        super().__init__()
        self._views: Any = WeakTensorKeyDictionary()
        self._writes: Any = WeakTensorKeyDictionary()
        self._viewed: Any = WeakTensorKeyDictionary()
        """The tensors that have views."""
        self._stale = False
        """Whether a tensor that has views was written to."""

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call takes a view or writes; after a write to a viewed tensor, any call may read a stale view."""
        return (func in VIEWS or _is_write(func) or self._stale) and is_tracing()

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes one call, with stale views replaced, and a write to a view made to its owner.

        Raises:
            ExportFailed: The call gives a tensor other memory or another shape, which no trace records.
        """
        func = _OF_BITS.get(func, func)
        args, kwargs = _with_first(args, kwargs)
        writes = _is_write(func) and bool(args) and isinstance(args[0], Tensor)
        _reject_replacement(func)
        if func is Tensor.__setitem__ and self._sets_part(args):
            return None
        renewed: dict[int, Tensor] = {}
        if self._stale:
            rest, kwargs = self._renew((args[1:] if writes else args, kwargs), renewed)
            args = (args[0], *rest) if writes else rest
        if func in VIEWS_IN_PLACE and args[0] in self._views:
            return self._turn(func, args, kwargs)
        if writes and not self._is_plain(func, args[0]):
            return self._write(func, args[0], args[1:], kwargs)
        result = self.pass_on(func, args, kwargs)
        if type(result) in (list, tuple):
            result = type(result)(renewed.get(id(value), value) for value in result)
        result = renewed.get(id(result), result)
        if writes and args[0] in self._views:
            self._count(args[0])
        elif func in VIEWS and args and isinstance(args[0], Tensor) and result is not renewed.get(id(args[0])):
            self._note(func, args, kwargs, result)
        return result

    # Views

    def _turn(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """Makes a view another view of its owner: it writes nothing."""
        tensor, *rest = args
        view = self._views[tensor]
        if tensor in self._viewed or view.current is not None:
            raise ExportFailed(
                f"TorchScript exporter: {func.__name__}() turns a view that has views of its own, or whose owner was "
                f"written to, which a trace does not record; give the result a name of its own, as in x = x.squeeze(0)."
            )
        result: Tensor = self.pass_on(func, args, kwargs)
        turned = functools.partial(VIEWS_IN_PLACE[func], **kwargs)
        take = view.take
        self._views[tensor] = replace(view, take=lambda owner: turned(take(owner), *rest), key=None)
        return result

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        parent, rest = args[0], args[1:]
        results = result if isinstance(result, (tuple, list)) else [result]
        for place, view in enumerate(results):
            if not isinstance(view, Tensor) or view is parent or not _share_memory(view, parent):
                continue

            piece = _piece_key(func, parent, rest, kwargs, place) if results is result else None

            def take(
                tensor: Tensor, number: int | None = place if results is result else None, key: Any = piece
            ) -> Any:
                if key is not None:
                    return self.pass_on(Tensor.__getitem__, (tensor, key), {})
                again = self.pass_on(func, (tensor, *rest), kwargs)
                return again if number is None else again[number]

            key = piece or _basic_key(func, parent, rest, kwargs)
            self._viewed[parent] = True
            self._views[view] = _View(parent, take, key, None, self._writes.get(self._owner(parent), 0))

    def _owner(self, tensor: Tensor) -> Tensor:
        while tensor in self._views:
            tensor = self._views[tensor].parent
        return tensor

    def _current_view(self, tensor: Tensor) -> Tensor:
        """A view taken again after the writes to its owner, or the tensor itself if it is none."""
        view = self._views.get(tensor)
        if view is None:
            return tensor
        writes = self._writes.get(self._owner(tensor), 0)
        if view.writes != writes:
            view.current, view.writes = view.take(self._current_view(view.parent)), writes
            self._views[view.current] = _View(view.parent, view.take, view.key, None, writes, True)
        return tensor if view.current is None else view.current

    def _renew(self, values: Any, renewed: dict[int, Tensor]) -> Any:
        """Arguments with stale views replaced.

        Args:
            values: The arguments.
            renewed: Gets what was replaced, by the id of what stands for it: a call that returns its argument, as
                contiguous() may, has to return what the model gave it.
        """

        def renew(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            current = self._current_view(leaf)
            if current is not leaf:
                renewed[id(current)] = leaf
            return current

        return tree.map_leaves(values, renew)

    def _renew_in_place(self, owner: Tensor) -> None:
        """Lets each view that is in use stand for what was written to its owner: it may be a result of the model."""
        for view in list(self._views):
            record = self._views[view]
            if record.taken_again or self._owner(view) is not owner:
                continue
            now = self._current_view(view)
            if now is not view:
                record_as(view, recorded_value(now))

    # Writes

    def _sets_part(self, args: tuple[Any, ...]) -> bool:
        """Carries out ``x[key] = part`` where it is no plain write.

        It is none where the part is the view of x that the key takes: Python assigns it after ``x[key] += y``. And it
        is written cell by cell where the key takes no cell.

        Returns:
            Whether nothing is left to do.
        """
        view = self._views.get(args[2]) if isinstance(args[2], Tensor) else None
        if view is not None and view.parent is args[0] and view.key is not None and view.key is args[1]:
            return True
        if not _is_empty_part(args[0], args[1]):
            return False
        self._put(self.watch(Tensor.__getitem__, args[:2], {}), args[2])
        return True

    def _is_plain(self, func: Any, tensor: Tensor) -> bool:
        """Whether the exporter translates the write correctly by itself."""
        if func in _COMPARED and tensor.dtype != torch.bool:
            return False
        if self._is_alone(tensor):
            self._views.pop(tensor, None)
        return tensor not in self._views and tensor not in self._viewed

    def _write(self, func: Any, tensor: Tensor, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if tensor not in self._views:
            result = self._call_method(func, tensor, rest, kwargs)
            self._count(tensor)
            return result
        if func is Tensor.copy_:
            self._put(tensor, rest[0])
            return tensor
        changed = self._current_view(tensor).clone()
        result = self._call_method(func, changed, rest, kwargs)
        self._put(tensor, changed)
        return tensor if result is changed else result

    def _overwrite(self, tensor: Tensor, value: Tensor) -> None:
        """Gives a tensor other contents of its shape."""
        self.watch(Tensor.copy_, (tensor, value), {})

    def _is_alone(self, view: Tensor) -> bool:
        """Whether a view is the only user of its memory: its parents and their other views are gone."""
        if view not in self._views or view in self._viewed:
            return False
        tensor = view
        while tensor in self._views:
            record = self._views[tensor]
            views = sum(other.parent is record.parent for other in self._views.values())
            if views > 1 or _is_referred_to(record):
                return False
            tensor = record.parent
        return True

    def _call_method(self, func: Any, tensor: Tensor, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the method; casts the result of a comparison, which the trace would make bool, to the tensor's type."""
        compared = _COMPARED.get(func)
        if compared is None or tensor.dtype == torch.bool:
            return self.pass_on(func, (tensor, *rest), kwargs)
        return tensor.copy_(compared(tensor, *rest, **kwargs).to(tensor.dtype))

    def _put(self, tensor: Tensor, value: Any) -> None:
        """Writes new contents to a view, as a write to its parent, and so on up to the owner.

        Args:
            tensor: The view.
            value: Its new contents, a tensor of its shape or of one that is broadcast to it, or a number.
        """
        view = self._views[tensor]
        is_owner = view.parent not in self._views
        key = None if _is_empty(tensor) else view.key  # the exporter divides by the number of the cells that a key has
        if is_owner and key is not None:
            view.parent[key] = value
            self._count(view.parent)
            return
        whole = self._current_view(view.parent)
        if key is not None:
            changed = whole.clone()
            changed[key] = value
        else:
            numbers = torch.arange(whole.numel(), device=whole.device).reshape(whole.shape)
            places = view.take(numbers)
            value = torch.as_tensor(value, device=whole.device).to(whole.dtype).expand_as(places)
            changed = whole.reshape(-1).scatter(0, places.reshape(-1), value.reshape(-1)).reshape(whole.shape)
        if is_owner:
            view.parent.copy_(changed)
            self._count(view.parent)
        else:
            self._put(view.parent, changed)

    def _count(self, tensor: Tensor) -> None:
        owner = self._owner(tensor)
        self._stale = True
        self._writes[owner] = self._writes.get(owner, 0) + 1
        self._renew_in_place(owner)


def _with_first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments with a tensor that is given by name at their first place."""
    name = next((name for name in ("input", "tensor") if name in kwargs), None)
    if args or name is None:
        return args, kwargs
    return (kwargs[name],), {other: value for other, value in kwargs.items() if other != name}


@functools.lru_cache(maxsize=4096)
def _reject_replacement(func: Any) -> None:
    if func in REPLACEMENTS:
        raise ExportFailed(
            f"TorchScript exporter: {func.__name__}() gives a tensor other memory or another shape, which a trace does "
            f"not record; give the result a name of its own, as in x = y."
        )


def _is_write(func: Any) -> bool:
    """Whether a function writes to its first argument: a method, or a function as torch.relu_."""
    name = getattr(func, "__name__", "")
    built_in = isinstance(func, types.BuiltinFunctionType) and name.endswith("_") and not name.startswith("_")
    return func in WRITES or built_in


def _is_referred_to(view: _View) -> bool:
    """Whether more than a view's record, and torch for the view, refers to its parent."""
    fewest, more_for_torch = _references_without_a_name()
    with below_function_modes():
        return _references(view) > fewest + (more_for_torch if is_kept_by_torch(view.parent) else 0)


def _references(view: _View) -> int:
    return sys.getrefcount(view.parent)


@functools.cache
def _references_without_a_name() -> tuple[int, int]:
    """How Python counts the references to a parent that has no name.

    Returns:
        The count where the view's record alone refers to the parent, and how much is added where torch does too: it
        keeps the owner of a view, but none of a detached tensor, and newer versions count this as one reference.
    """

    def make_record(take: Callable[[Tensor], Tensor]) -> tuple[_View, Tensor]:
        whole = torch.zeros(2)
        return _View(whole, take, None, None, 0), take(whole)

    with below_function_modes(), without_tracing(), torch.inference_mode(False):
        alone, _apart = make_record(torch.clone)
        kept, _part = make_record(lambda whole: whole[:1])
        fewest = _references(alone)
        return fewest, _references(kept) - fewest


def _share_memory(a: Tensor, b: Tensor) -> bool:
    with below_function_modes():
        return bool(whole_of(a).untyped_storage()._cdata == whole_of(b).untyped_storage()._cdata)


def _is_empty(tensor: Tensor) -> bool:
    with below_function_modes(), without_tracing():
        return tensor.numel() == 0


def _is_empty_part(tensor: Tensor, key: Any) -> bool:
    """Whether an index of numbers and slices takes no cells."""
    if _basic_key(Tensor.__getitem__, tensor, (key,), {}) is None:
        return False
    with below_function_modes(), without_tracing():
        return tensor[key].numel() == 0


def _piece_key(func: Any, parent: Tensor, rest: tuple[Any, ...], kwargs: dict[str, Any], place: int) -> Any:
    """The index that takes one of the views that a call gives at once; None if it depends on the size of the axis.

    The exporter takes all pieces of an axis for as long as the first one where it does not know the axis' size.
    """
    if func in _UNBINDS:
        sizes, dim = None, kwargs.get("dim", rest[0] if rest else 0)
    elif func in _SPLITS:
        given = [*rest, *kwargs.values()]
        sizes, dim = given[0], kwargs.get("dim", given[1] if len(given) > 1 else 0)
    else:
        return None
    before = (slice(None),) * (dim % parent.dim())
    if sizes is None:
        return (*before, place)
    if type(sizes) is int:
        return (*before, slice(place * sizes, (place + 1) * sizes))
    if not isinstance(sizes, (list, tuple)) or not all(type(size) is int for size in sizes):
        return None
    start = sum(sizes[:place])
    return (*before, slice(start, start + sizes[place]))


def _basic_key(func: Any, parent: Tensor, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The index of numbers and slices that takes the same view as a call; None if there is none."""
    if func in _WHOLE:
        return Ellipsis
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
