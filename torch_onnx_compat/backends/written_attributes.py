"""Attributes that forward writes to: those that share memory, and those that are no buffers.

Both exporters take each attribute for a tensor of its own. So where forward writes to memory that several attributes
share, all but the largest become views of that one, which are taken anew in forward. torch.export refuses a write to an
attribute that is no buffer, so it becomes one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from torch_onnx_compat.backends.backend import ExportJob
from torch_onnx_compat.caller.undo import WriteWatch, memory_of, undo_writes
from torch_onnx_compat.observe import Subject


@dataclass(frozen=True)
class _Slot:
    """Where a module keeps a tensor."""

    module: nn.Module
    scope: dict[str, Any]
    name: str

    @property
    def tensor(self) -> Tensor:
        tensor: Tensor = self.scope[self.name]
        return tensor

    @property
    def is_registered(self) -> bool:
        """Whether it is a parameter or a buffer."""
        return self.scope is not vars(self.module)

    def replace(self, tensor: Tensor) -> None:
        self.scope[self.name] = tensor

    def register(self) -> _Slot:
        """Makes a buffer of the attribute."""
        self.module._buffers[self.name] = self.scope.pop(self.name)
        return _Slot(self.module, self.module._buffers, self.name)


@dataclass(frozen=True)
class _Part:
    """A slot whose tensor is a view of another slot's."""

    slot: _Slot
    owner: _Slot
    view: Callable[[Tensor], Tensor]
    """Takes it of the owner."""

    def separate(self) -> None:
        """Gives the slot memory of its own: torch makes one input of those that share some."""
        part = self.slot.tensor
        alone = part.detach().clone()
        self.slot.replace(nn.Parameter(alone, part.requires_grad) if isinstance(part, nn.Parameter) else alone)


def prepare_written(job: ExportJob, *, registers: bool) -> ExportJob:
    """The job with views and buffers for the attributes to whose memory forward writes.

    Args:
        job: The job; its subject is prepared, too.
        registers: Whether attributes become buffers.
    """
    if not any(_is_lost(slots, registers) for slots in _slots_by_memory(job.subject.twin)):
        return job
    written = _are_written(job)

    def make_prepared() -> Subject:
        return _prepare(job.make_subject(), written, registers)

    _prepare(job.subject, written, registers)
    return replace(job, make_subject=make_prepared)


def _prepare(subject: Subject, written: Sequence[bool], registers: bool) -> Subject:
    parts: list[_Part] = []
    for slots in itertools.compress(_slots_by_memory(subject.twin), written):
        parts += _parts([slot.register() if registers and not slot.is_registered else slot for slot in slots])
    for part in parts:
        part.separate()
    if parts:
        subject.wrap(lambda: _viewing(parts), inside=True)
    return subject


def _are_written(job: ExportJob) -> list[bool]:
    """For each piece of memory, whether one call of the model writes to it."""
    trial = job.make_subject()
    memory = [memory_of(slots[0].tensor) for slots in _slots_by_memory(trial.twin)]
    written: set[int] = set()
    with undo_writes(trial.twin), WriteWatch(set(memory), lambda tensor: written.add(memory_of(tensor))):
        trial.call([tensor.clone() for tensor in job.inputs.tensors])
    return [one in written for one in memory]


@contextmanager
def _viewing(parts: list[_Part]) -> Iterator[None]:
    before = [part.slot.tensor for part in parts]
    try:
        for part in parts:
            part.slot.replace(part.view(part.owner.tensor))
        yield
    finally:
        for part, tensor in zip(parts, before, strict=True):
            part.slot.replace(tensor)


def _slots_by_memory(model: nn.Module) -> list[list[_Slot]]:
    """The slots of the tensors of a model, by the memory that they share."""
    found: dict[int, list[_Slot]] = {}
    for module in (m for m in model.modules() if not isinstance(m, torch.jit.ScriptModule)):
        for scope in (module._parameters, module._buffers, vars(module)):
            for name, value in scope.items():
                if isinstance(value, Tensor) and not is_lazy(value) and memory_of(value):
                    found.setdefault(memory_of(value), []).append(_Slot(module, scope, name))
    return list(found.values())


def _is_lost(slots: Sequence[_Slot], registers: bool) -> bool:
    """Whether an exporter would lose a write to one of the slots, or refuse it."""
    shares = len({id(slot.tensor) for slot in slots}) > 1
    return shares or (registers and not all(slot.is_registered for slot in slots))


def _parts(slots: list[_Slot]) -> Iterator[_Part]:
    """The slots as views of the largest, as far as they are."""
    owner = max(slots, key=lambda slot: slot.tensor.numel())
    for slot in slots:
        view = None if slot is owner else _view_of(owner.tensor, slot.tensor)
        if view is not None:
            yield _Part(slot, owner, view)


def _view_of(whole: Tensor, part: Tensor) -> Callable[[Tensor], Tensor] | None:
    """The function that takes a view of a tensor: elements in a row, or a part of each axis, in another order."""
    start, shape, count = int(part.storage_offset() - whole.storage_offset()), part.shape, part.numel()
    if start < 0 or whole.dtype != part.dtype or not whole.is_contiguous():
        return None
    key, order = _index_of(whole, part, start)
    views = (
        lambda tensor: tensor.view(-1)[start : start + count].view(shape),
        lambda tensor: tensor[key].permute(order),
    )
    return next((view for view in views if _is_made_by(view, whole, part)), None)


def _index_of(whole: Tensor, part: Tensor, start: int) -> tuple[tuple[Any, ...], list[int]]:
    """The index by which a part is taken of a whole, if there is one, and the order of its axes then."""
    left = list(range(part.dim()))
    key: list[Any] = []
    order: list[int] = []
    for size, stride in zip(whole.shape, whole.stride(), strict=True):
        first = start // stride % size
        axis = next((a for a in left if not part.stride(a) % stride and part.stride(a) < stride * size), None)
        if axis is None:
            key.append(first)
            continue
        step = max(part.stride(axis) // stride, 1)
        key.append(slice(first, first + step * (part.shape[axis] - 1) + 1, step))
        order.append(axis)
        left.remove(axis)
    return tuple(key), sorted(range(len(order)), key=order.__getitem__)


def _is_made_by(view: Callable[[Tensor], Tensor], whole: Tensor, part: Tensor) -> bool:
    try:
        made = view(whole.detach())
    except (RuntimeError, IndexError):
        return False
    places = ((t.shape, t.stride(), t.storage_offset()) for t in (made, part))
    return next(places) == next(places)
