"""Joins the values of a decision's two branches by a mask."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.wide import in_double
from torch_onnx_compat.control_flow.run.aliases import pause_watch, stand_for
from torch_onnx_compat.control_flow.run.lists import AppendLog, Part, Rows, parts_of
from torch_onnx_compat.control_flow.run.number_kinds import SYMBOLS, is_number
from torch_onnx_compat.control_flow.run.refusal import here
from torch_onnx_compat.control_flow.run.session import as_tensor, current
from torch_onnx_compat.control_flow.run.slots import Slots
from torch_onnx_compat.tracing import is_tracing, without_tracing


class Undefined:
    """The value of a name that a branch did not bind; reading it is an error, as in Python."""

    def __repr__(self) -> str:
        return "an unbound name"

    def __bool__(self) -> bool:
        raise UnboundLocalError("a name is read that only one branch of a decision binds")


UNDEFINED = Undefined()


class Mismatch(Exception):
    """Two values cannot be joined by a mask; the text says where in the result, and why.

    Attributes:
        of_kinds: Whether they are no values of one kind, such as a tensor and None, so that no ONNX If joins them.
    """

    def __init__(self, message: str, *, of_kinds: bool = False) -> None:
        super().__init__(message)
        self.of_kinds = of_kinds


def kind_of(value: Any) -> str:
    """What a value is to the model's author: the lists of a loop are lists."""
    if isinstance(value, Tensor):
        return "Tensor"
    return "list" if isinstance(value, (AppendLog, Rows)) else type(value).__name__


def join(condition: Tensor, a: Any, b: Any, path: str = "the result", *, grows: bool = False) -> Any:
    """`a` where the condition holds, else `b`; joins containers item by item.

    Args:
        condition: A boolean tensor of shape ().
        a: A value.
        b: Another one.
        path: What they are, for messages.
        grows: Whether lists of different lengths become one whose length values decide.

    Raises:
        Mismatch: Types, keys, lengths, shapes or dtypes differ.
    """
    if a is b or b is UNDEFINED:
        return a
    if a is UNDEFINED:
        return b
    if _is_value(a) and _is_value(b):
        return _join_values(condition, a, b, path)
    if type(a) is type(b) and type(a) in _OWN_LISTS:
        return _OWN_LISTS[type(a)](condition, a, b, path)
    if isinstance(a, Rows) or isinstance(b, Rows) or (grows and _are_lists_of_other_lengths(a, b)):
        return Rows(_join_parts(condition, a, b, path))
    if type(a) is not type(b):
        message = f"{path} is a {kind_of(a)} in one branch and a {kind_of(b)} in the other"
        raise Mismatch(message, of_kinds=True)
    return _note_choice(_join_containers(condition, a, b, path, grows), a, b)


def _note_choice(joined: Any, a: Any, b: Any) -> Any:
    session = current()
    if session is not None and joined is not a:
        session.choices.note(joined, (a, b))
    return joined


def _join_slots(condition: Tensor, a: Slots, b: Slots, path: str) -> Slots:
    if a.writes != b.writes:  # what is not filled is None in Python, and code may ask
        raise Mismatch(f"{path} is a list that one branch fills, and the other does not", of_kinds=True)
    if a.value is None or b.value is None:
        return a.copy()
    return Slots(a.length, join(condition, a.value, b.value, path), a.writes)


def _are_lists_of_other_lengths(a: Any, b: Any) -> bool:
    return type(a) is list and type(b) is list and len(a) != len(b) and all(map(_is_value, (*a, *b)))


def _join_logs(condition: Tensor, a: AppendLog, b: AppendLog, path: str) -> AppendLog:
    if a.in_front != b.in_front and a.parts and b.parts:
        raise Mismatch(f"{path} grows at its beginning in one branch and at its end in the other", of_kinds=True)
    ends = [
        None if x is None or y is None else join(condition, x, y, path)
        for x, y in ((a.last, b.last), (a.length, b.length))
    ]
    joined = (a if a.parts else b).with_parts(_join_parts(condition, a, b, path), *ends)
    joined.asked |= a.asked | b.asked
    return joined


def _join_parts(condition: Tensor, a: Any, b: Any, path: str) -> list[Part]:
    """The parts of a list that is one or another: a part that only one of them has is in the list where it is the one.

    Parts of the same number are joined; what they are is right then, as the parts before them are.
    """
    ours, theirs = parts_of(a), parts_of(b)
    if ours is None or theirs is None:
        kinds = (kind_of(side) for side in (a, b))
        raise Mismatch(f"{path} is a {next(kinds)} in one branch and a {next(kinds)} in the other", of_kinds=True)
    found = []
    for number, (x, y) in enumerate(zip(ours, theirs, strict=False)):
        is_one = x is y or (x.value is y.value and x.keep is y.keep)
        if (x.is_several or y.is_several) and not is_one:
            raise Mismatch(f"{path} has other items in one branch than in the other", of_kinds=True)
        value = x.value if is_one else join(condition, x.value, y.value, f"{path}[{number}]")
        keep = x.keep if x.keep is y.keep else join(condition, x.keep, y.keep)
        found.append(dataclasses.replace(x, value=value, keep=keep))
    for only, rest in ((condition, ours[len(theirs) :]), (~condition, theirs[len(ours) :])):
        for part in rest:
            if part.is_several:
                raise Mismatch(f"{path} has items in one branch that the other lacks", of_kinds=True)
            found.append(Part(part.value, only if part.keep is True else only & part.keep))
    return found


_OWN_LISTS: dict[type, Callable[..., Any]] = {AppendLog: _join_logs, Slots: _join_slots}


def join_what_fits(condition: Tensor, taken: Any, other: Any, *, grows: bool = False) -> Any:
    """`taken`, with each item joined that can be: the search goes on with values that vary as in the file."""
    try:
        return join(condition, taken, other, grows=grows)
    except Mismatch:
        if type(taken) is tuple and type(other) is tuple and len(taken) == len(other):
            return tuple(join_what_fits(condition, a, b, grows=grows) for a, b in zip(taken, other, strict=True))
        return taken


def _is_value(value: Any) -> bool:
    return isinstance(value, Tensor) or is_number(value)


def _join_containers(condition: Tensor, a: Any, b: Any, path: str, grows: bool) -> Any:
    if isinstance(a, dict):
        if list(a) != list(b):
            raise Mismatch(f"{path} has the keys {list(a)} in one branch and {list(b)} in the other", of_kinds=True)
        values = {key: join(condition, a[key], b[key], f"{path}[{key!r}]", grows=grows) for key in a}
        return type(a)(**values) if dataclasses.is_dataclass(a) else type(a)(values)
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            raise Mismatch(f"{path} has {len(a)} items in one branch and {len(b)} in the other", of_kinds=True)
        items = [join(condition, x, y, f"{path}[{i}]", grows=grows) for i, (x, y) in enumerate(zip(a, b, strict=True))]
        return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
    if dataclasses.is_dataclass(a):
        return _join_fields(condition, a, b, path, grows)
    if _equal(a, b):
        return a
    raise Mismatch(f"{path} is one {kind_of(a)} or another, which is no tensor", of_kinds=True)


def _join_fields(condition: Tensor, a: Any, b: Any, path: str, grows: bool) -> Any:
    joined = copy.copy(a)
    for field in dataclasses.fields(a):
        value = join(condition, getattr(a, field.name), getattr(b, field.name), f"{path}.{field.name}", grows=grows)
        object.__setattr__(joined, field.name, value)
    return joined


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:  # a user's __eq__ may raise anything
        return False


def _join_values(condition: Tensor, a: Any, b: Any, path: str) -> Any:
    plain = not isinstance(a, (Tensor, *SYMBOLS)) and not isinstance(b, (Tensor, *SYMBOLS))
    if plain and type(a) is type(b) and a == b:
        return a
    like = a if isinstance(a, Tensor) else b if isinstance(b, Tensor) else condition
    x, y = as_tensor(a, like), as_tensor(b, like)
    x, y = _one_dtype(x, y, a, b, path)
    if isinstance(a, Tensor) and isinstance(b, Tensor) and not same_shape(x, y):
        raise Mismatch(f"{path} has {_shapes(_shape(x), _shape(y))}")
    with pause_watch():  # binding a name reads nothing
        # onnxruntime has no Where for booleans
        joined = (condition & x) | (~condition & y) if x.dtype == torch.bool else torch.where(condition, x, y)
    return stand_for(_note_kind(joined, condition, a, b), (a, b))


def _note_kind(joined: Tensor, condition: Tensor, a: Any, b: Any) -> Tensor:
    """Notes that a name is a number after both branches, or that its kind is unknown.

    Returns:
        The tensor that stands for it from now on.
    """
    session = current()
    if session is None or session.note_several_kinds(joined, (a, b), _KINDS, here()):
        return joined
    kind, wide = session.kind_of_number(a), None
    if kind is None:
        return joined
    if kind is float and session.computes_wide:
        with pause_watch():
            exact = [session.exact(v) if isinstance(v, (Tensor, *SYMBOLS)) else v for v in (a, b)]
            if all(value is not None for value in exact):  # else nobody knows more digits of one of them
                wide = torch.where(condition, in_double(exact[0]), in_double(exact[1]))
    noted: Tensor = session.note_number(joined, wide)
    return noted


_KINDS = "a number after one branch of a decision, and after the other a tensor or a number of another type"


def _one_dtype(x: Tensor, y: Tensor, a: Any, b: Any, path: str) -> tuple[Tensor, Tensor]:
    """Casts a number to the dtype of the other branch's tensor, if it fits; two tensors must have the same dtype."""
    if x.dtype == y.dtype:
        return x, y
    tensors = [t for t, value in ((x, a), (y, b)) if isinstance(value, Tensor) and not _stands_for_number(t)]
    if len(tensors) == 2:
        raise Mismatch(f"{path} is {x.dtype} in one branch and {y.dtype} in the other", of_kinds=True)
    wanted = torch.promote_types(x.dtype, y.dtype)
    if tensors and _kind(tensors[0].dtype) >= _kind(wanted):
        wanted = tensors[0].dtype
    elif tensors:
        raise Mismatch(f"{path} is {tensors[0].dtype} in one branch and a number that does not fit in the other")
    return x.to(wanted), y.to(wanted)


def _stands_for_number(tensor: Tensor) -> bool:
    """Whether a tensor is a size in a TorchScript trace, which the model takes for a number."""
    return is_tracing() and tensor.dim() == 0 and tensor.dtype == torch.int64


def _kind(dtype: torch.dtype) -> int:
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if dtype == torch.bool else 1


def _shapes(one: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    if list(map(str, one)) == list(map(str, other)):
        return f"shape {one} in both branches here, but values decide its sizes, and it may have two shapes elsewhere"
    return f"shape {one} in one branch and {other} in the other"


def same_shape(x: Tensor, y: Tensor) -> bool:
    """Whether shapes are equal: at every size under torch.export, at the traced size, for all values, in a trace."""
    if x.dim() != y.dim():
        return False
    if is_tracing():
        session = current()
        equal = [int(s) for s in _sizes(x)] == [int(s) for s in _sizes(y)]
        return equal and not (session is not None and session.may_differ(x, y))
    known: Callable[[Any], bool] = bool
    if current() is not None:
        from torch.fx.experimental.symbolic_shapes import statically_known_true

        known = statically_known_true
    return all(known(i == j) for i, j in zip(x.shape, y.shape, strict=True))


def _sizes(tensor: Tensor) -> list[int]:
    with without_tracing():
        return list(tensor.shape)


def _shape(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(_sizes(tensor)) if is_tracing() else tuple(tensor.shape)
