"""Runs a branch that the model may not take, and undoes its writes to tensors from outside.

In the file both branches run, so an index, an integer divisor or a size of the branch that is not taken could make it
fail, as the size of a padding where there is nothing to pad. They are kept in range; those in range do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.checks import is_caught_on_stack
from torch_onnx_compat.backends.writes import REPLACEMENTS
from torch_onnx_compat.control_flow.run.aliases import (
    Marks,
    copy_of,
    in_branch,
    pause_watch,
    present_aliases,
    targets_of,
)
from torch_onnx_compat.control_flow.run.belongings import Attribute, State, take_state
from torch_onnx_compat.control_flow.run.branch import restore_variables
from torch_onnx_compat.control_flow.run.lifting import original_of, present
from torch_onnx_compat.control_flow.run.refusal import refusal
from torch_onnx_compat.control_flow.run.session import as_tensor, current
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.stack import frames_of_model
from torch_onnx_compat.tracing import below_function_modes, is_tracing, without_tracing
from torch_onnx_compat.watch import Watcher


@dataclass
class Outcome:
    """The result of a branch: its value or its error, and its writes."""

    value: Any = None
    error: Exception | None = None
    writes: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """By identity: a tensor from outside, and its contents after the branch."""
    bound: dict[Attribute, Any] = field(default_factory=dict)
    """The attributes that it bound, with their values; they are as before again."""
    changed: str = ""
    """What it changed beside that, such as a list; the change is undone."""
    marks: Marks = field(default_factory=dict)
    """What may be the tensors that it wrote to, under other names."""


class WriteLog(Watcher):
    """Saves the tensors from outside that a function is about to overwrite.

    Args:
        made: Tensors that the function may write to, since they are its own.
    """

    def __init__(self, made: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self._made = {id(tensor): tensor for tensor in made}
        self.saved: dict[int, tuple[Tensor, Tensor]] = {}

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Saves the tensor that the call overwrites, then makes the call."""
        aliases = present_aliases()
        for item in aliases.items_among(lambda: tree.tensors_in((args, kwargs))):
            item.renew()
        targets = targets_of(func, args, kwargs)
        items = aliases.items_among(lambda: targets)
        for target in (*targets, *(item.owner for item in items)):
            self._save(target)
        result = self.pass_on(func, args, kwargs)
        for item in items:
            item.put()
        self._made.update((id(root), root) for root in made_by(result, (args, kwargs)))
        return result

    def scope(self) -> AbstractContextManager[None]:
        """What else is active while the function runs."""
        return nullcontext()

    def separate(self, value: Any, kept: Iterable[Tensor] = ()) -> Any:
        """A value, its parts copied that lie in memory which is about to be put back, but for some tensors."""
        own = {id(tensor) for tensor in kept}

        def copy(leaf: Any) -> Any:
            is_written = isinstance(leaf, Tensor) and id(leaf) not in own and id(_owner_of(leaf)) in self.saved
            return copy_of(leaf) if is_written else leaf

        return tree.map_leaves(value, copy) if self.saved else value

    def _save(self, target: Tensor) -> None:
        root, owner = root_of(target), _owner_of(target)
        if id(root) in self._made or id(owner) in self.saved:
            return
        if root is owner:  # of what replaces it in a round, the loop looks at the original
            self.check_write(target)
        self.saved[id(owner)] = (owner, copy_of(owner))

    def check_write(self, target: Tensor) -> None:
        """Raises if the file cannot hold a write to a tensor from outside."""
        refuse_shared(target)


def made_by(result: Any, arguments: Any) -> list[Tensor]:
    """The tensors that a call has made, or the tensors that these are views of."""
    found = tree.tensors_in(result)
    # Not the memory of an argument: x.contiguous() may be x, and x.detach() is no view of it to torch.
    given = {_memory(present(tensor)) for tensor in tree.tensors_in(arguments)} if found else ()
    return [root_of(tensor) for tensor in found if _memory(tensor) not in given]


def _memory(tensor: Tensor) -> int:
    """What tells whether two tensors share memory; the tensor's own number where it has no storage."""
    try:
        with below_function_modes():
            number: int = tensor.untyped_storage()._cdata
            return number
    except (NotImplementedError, RuntimeError):
        return id(tensor)


def root_of(tensor: Tensor) -> Tensor:
    """The tensor that a tensor is a view of, or the tensor itself."""
    return tensor._base if tensor._is_view() and tensor._base is not None else tensor


def _owner_of(tensor: Tensor) -> Tensor:
    """The tensor that a tensor is a view of, by the name that it has outside of the function that is being lifted."""
    return original_of(root_of(tensor))


def refuse_shared(target: Tensor) -> None:
    """Raises if a write in a round would change other tensors through shared memory: no ONNX Loop carries that."""
    root = root_of(target)
    if is_tracing() and (root is not target or _is_shared(root)):
        raise refusal(
            "a loop writes in place through a view, or into a tensor that has views, which a Loop of the file does not "
            "carry; write x = x + y instead of x += y, or use torch.where."
        )


class Guard(WriteLog):
    """The mode under which a branch runs that may not be taken.

    Args:
        sizes_vary: Whether axes are dynamic: then a constant index may be out of range in this branch.
    """

    def __init__(self, *, sizes_vary: bool) -> None:
        super().__init__()
        self._sizes_vary = sizes_vary

    def scope(self) -> AbstractContextManager[None]:
        """The branch may not be taken, and neither are its writes."""
        return in_branch()

    def check_write(self, target: Tensor) -> None:
        """Raises never: the trace has the writes of both branches, and what is written through views."""

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Brings indices, divisors and sizes into range, then makes the call."""
        if _name_of(func) in _REPLACEMENTS:
            raise refusal(f"a branch gives a tensor other memory or another shape ({_name_of(func)}); use x = y.")
        if func in _INDEXED:
            args = self._keep_in_range(func, args)
        elif func in _DIVISIONS or (func in _ROUNDED_DIVISIONS and kwargs.get("rounding_mode") is not None):
            args, kwargs = _avoid_zero_divisor(func, args, kwargs)
        elif func in _SIZED and not is_caught_on_stack(frames_of_model()):
            args, kwargs = _avoid_negative_sizes(func, args, kwargs)
        return super().watch(func, args, kwargs)

    def _keep_in_range(self, func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if func is Tensor.__getitem__:
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            if any(i is None or i is Ellipsis or _is_mask(i) for i in index):
                return args
            moved = tuple(self._clamp(i, args[0], dim) for dim, i in enumerate(index))
            return args[0], moved if isinstance(args[1], tuple) else moved[0]
        if len(args) < 3 or not isinstance(args[1], int):
            return args
        return (*args[:2], self._clamp(args[2], args[0], args[1]), *args[3:])

    def _clamp(self, index: Any, tensor: Tensor, dim: int) -> Any:
        if isinstance(index, Tensor) and index.dtype in (torch.int64, torch.int32):
            size = as_tensor(tensor.shape[dim], index)
            return torch.minimum(torch.maximum(index, -size.to(index.dtype)), size.to(index.dtype) - 1)
        if isinstance(index, bool) or not isinstance(index, int) or not self._sizes_vary or index == 0:
            return index
        size = as_tensor(tensor.shape[dim], tensor)
        number = torch.tensor(index, device=tensor.device)
        return torch.minimum(number, size - 1) if index > 0 else torch.maximum(number, -size)


_INDEXED = (Tensor.__getitem__, torch.index_select, Tensor.index_select, torch.gather, Tensor.gather)
_REFLECTED = (Tensor.__rfloordiv__, Tensor.__rmod__)
_DIVISIONS = (
    Tensor.__floordiv__,
    Tensor.__mod__,
    Tensor.floor_divide,
    Tensor.remainder,
    Tensor.fmod,
    Tensor.__ifloordiv__,
    Tensor.__imod__,
    Tensor.floor_divide_,
    Tensor.remainder_,
    Tensor.fmod_,
    torch.floor_divide,
    torch.remainder,
    torch.fmod,
    *_REFLECTED,
)
_ROUNDED_DIVISIONS = (torch.div, Tensor.div, Tensor.div_, torch.divide, Tensor.divide, Tensor.divide_)
"""Divisions of whole numbers where their result is rounded."""


_OF_OTHERS = (Tensor.new_zeros, Tensor.new_ones, Tensor.new_empty, Tensor.new_full, Tensor.repeat, Tensor.expand)
_FILLED = (torch.full, Tensor.new_full)
"""Functions that are given a value behind the sizes."""
_SIZED = (torch.zeros, torch.ones, torch.empty, torch.full, torch.rand, torch.randn, *_OF_OTHERS)
"""Functions that are given sizes, none of which may be negative; in `expand` -1 leaves a size as it is.

Where the model catches the error of a negative one, they are left alone: it goes another way then.
"""


def _avoid_negative_sizes(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    start = 1 if func in _OF_OTHERS else 0
    end = start + 1 if func in _FILLED else len(args)
    least = -1 if func is Tensor.expand else 0

    def raised(size: Any) -> Any:
        if isinstance(size, (tuple, list)):
            return tuple(map(raised, size))
        if isinstance(size, torch.SymInt):
            return torch.sym_max(size, 0)  # which asks nothing; a size that may be negative would be asked about
        if isinstance(size, Tensor) and not size.dim() and not size.is_floating_point():
            with without_tracing():
                is_negative = bool(size < 0)
            return size.clamp(min=0) if is_negative else size
        return 0 if type(size) is int and size < least else size

    given = {name: raised(value) if name in ("size", "repeats") else value for name, value in kwargs.items()}
    return (*args[:start], *map(raised, args[start:end]), *args[end:]), given


def _name_of(func: Any) -> str:
    """The name of a function of torch; that of an operator, as torch.export calls them, without its overload."""
    return str(getattr(func, "__name__", "")).partition(".")[0]


_REPLACEMENTS = frozenset(map(_name_of, REPLACEMENTS))


def _is_mask(index: Any) -> bool:
    return isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8)


def _is_shared(tensor: Tensor) -> bool:
    """Whether another tensor shares the storage."""
    with without_tracing():
        if tensor._is_view():
            return True
        storage = tensor.untyped_storage()
        # Two references are the tensor's own and that of the Python object `storage`.
        return internals.references_to(storage) > 2


def _avoid_zero_divisor(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    position = 0 if func in _REFLECTED else 1
    is_named = len(args) < 2
    divisor = kwargs.get("other") if is_named else args[position]
    if not isinstance(divisor, Tensor) or divisor.is_floating_point():
        return args, kwargs
    safe = torch.where(divisor == 0, torch.ones_like(divisor), divisor)
    if is_named:
        return args, {**kwargs, "other": safe}
    return (*args[:position], safe, *args[position + 1 :]), kwargs


def attempt(
    branch: Callable[[], Any],
    guard: WriteLog,
    *,
    separates: bool = True,
    apart_from: Collection[str] = (),
    state: State | None = None,
) -> Outcome:
    """Runs a branch, or a round of a loop, and undoes its writes.

    Args:
        branch: What is run.
        guard: Is in force while it runs.
        separates: Whether results that lie in memory it wrote to are copied, but for the tensors themselves; a round
            of a loop does so by itself.
        apart_from: Names of its scope that may hold other containers after it.
        state: What it can reach, if that was taken before; it is as it was again afterwards.
    """
    outcome = Outcome()
    session = current()
    state = state or take_state([branch], session.reach if session is not None else None, apart_from)
    aliases = present_aliases()
    marks, known = dict(aliases.marks), aliases.known
    function, bound = getattr(branch, "function", branch), ""
    try:
        with restore_variables(function):
            with guard, guard.scope():
                outcome.value = branch()
            bound = state.bound_by_helper(function)
    except Exception as error:
        outcome.error = error
    written = [tensor for tensor, _ in guard.saved.values()]
    outcome.value = guard.separate(outcome.value, written) if separates else outcome.value
    outcome.changed = bound or state.change()
    outcome.bound = {attribute: guard.separate(value) for attribute, (_, value) in state.bindings().items()}
    if outcome.changed or outcome.bound:
        state.put_back()
    outcome.marks = aliases.take_back(marks, known)
    with pause_watch():
        for identity, (tensor, saved) in guard.saved.items():
            outcome.writes[identity] = (tensor, copy_of(tensor))
            tensor.copy_(saved)
    return outcome


def separate_results(one: Outcome, other: Outcome) -> None:
    """Replaces tensors that a branch wrote to and yields by their contents after it.

    A tensor that both branches yield at the same places stays the tensor, which gets its contents after the decision.
    """
    if not one.writes and not other.writes:
        return
    ours, theirs = _places(one.value), _places(other.value)
    apart = {identity for identity in {**ours, **theirs} if ours.get(identity) != theirs.get(identity)}
    for outcome in (one, other):
        after = {identity: state for identity, (_, state) in outcome.writes.items() if identity in apart}
        outcome.value = _exchange(outcome.value, after)


def _exchange(value: Any, others: dict[int, Tensor]) -> Any:
    """A nested value with other tensors for some, by identity."""
    return tree.map_leaves(value, lambda leaf: others.get(id(leaf), leaf))


def _places(value: Any) -> dict[int, set[Any]]:
    """Where each tensor is in a nested value, by its identity."""
    found: dict[int, set[Any]] = {}
    for path, tensor in tree.flatten((value,))[0]:
        found.setdefault(id(tensor), set()).add(path)
    return found


def tensors_written_by(outcomes: Iterable[Outcome]) -> dict[int, Tensor]:
    """The tensors that any of the branches wrote into."""
    return {identity: tensor for outcome in outcomes for identity, (tensor, _) in outcome.writes.items()}
