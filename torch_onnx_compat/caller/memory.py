"""The memory of a twin: what shares memory with something else in a model shares it in the copy, too.

A buffer may be a view of another buffer or of a parameter, and an array the values of a buffer, as in
``self.v = self.c.numpy()``. What is written to one is then read through the other.
"""

from __future__ import annotations

import bisect
import copy
import ctypes
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn

from torch_onnx_compat.caller.copiers import CopyAnew

Array = np.ndarray[Any, Any]

_KEY: Any = "torch_onnx_compat.caller.memory"
"""Under which the memo of a deepcopy has its Memory; the memos of others have none."""


@dataclass(frozen=True)
class _Region:
    """Memory of the caller's, and what the twin has in its place."""

    start: int
    stop: int
    copy: torch.UntypedStorage | None = None
    """None where the twin shares it."""
    storages: frozenset[int] = frozenset()
    """Of memory that is shared: the addresses of the parameters' storages."""

    def joined(self, other: _Region) -> _Region:
        start, stop = min(self.start, other.start), max(self.stop, other.stop)
        return _Region(start, stop, storages=self.storages | other.storages)


@dataclass
class Memory:
    """What a twin has in place of the caller's memory on the CPU.

    Attributes:
        written: Addresses of the storages of parameters that have to be copied; those are added of which something
            else than a parameter is a view, as not every write to it is seen.
        joined: Regions that have to be copied as one.
    """

    written: set[int]
    joined: list[_Region] = field(default_factory=list)
    _known: list[_Region] = field(default_factory=list)
    """Sorted; none overlaps another."""

    def anew(self) -> Memory:
        """An empty one that knows what overlaps."""
        return Memory(self.written, self.joined)

    def share(self, parameter: Tensor, storage: int) -> None:
        """Notes that a parameter of the twin lies in the caller's storage at this address."""
        if not _is_plain(parameter):
            return
        region = _Region(*_extent_of(parameter), storages=frozenset({storage}))
        for other in self._overlapping(region):
            if other.copy is not None:
                self._refuse(other, region)
            self._known.remove(other)
            region = other.joined(region)
        bisect.insort(self._known, region, key=_start_of)

    def tensor(self, tensor: Tensor) -> Tensor:
        """A tensor over the twin's memory; a clone where its memory cannot be told, or is of another device."""
        if not _is_plain(tensor):
            return tensor.detach().clone()
        storage, first = self._of(*_extent_of(tensor))
        if first % tensor.element_size():
            return tensor.detach().clone()
        new = torch.empty(0, dtype=tensor.dtype)
        return new.set_(storage, first // tensor.element_size(), tensor.size(), tensor.stride())

    def array(self, array: Array) -> Array:
        """An array over the twin's memory."""
        if not array.size:
            return np.array(array)
        before, after = _reach_of(array)
        address = array.ctypes.data
        storage, first = self._of(address - before, address + after)
        values = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
        new: Array = np.ndarray(array.shape, array.dtype, values, first + before, array.strides)
        new.flags.writeable = array.flags.writeable
        return new

    def storage(self, storage: torch.UntypedStorage) -> Any:
        """A storage over the twin's memory."""
        if storage.device.type != "cpu" or not storage.nbytes():
            return storage.clone()
        found, first = self._of(storage.data_ptr(), storage.data_ptr() + storage.nbytes())
        return found[first : first + storage.nbytes()]

    def _of(self, start: int, stop: int) -> tuple[torch.UntypedStorage, int]:
        """The twin's storage for a region of memory, and where the region begins in it."""
        wanted = _Region(start, stop)
        for known in self._overlapping(wanted):
            if known.copy is not None and known.start <= start and stop <= known.stop:
                return known.copy, start - known.start
            self._refuse(known, wanted)
        whole = next((one for one in self.joined if one.start <= start and stop <= one.stop), wanted)
        values = torch.frombuffer(
            (ctypes.c_char * (whole.stop - whole.start)).from_address(whole.start), dtype=torch.uint8
        )
        storage = values.clone().untyped_storage()
        bisect.insort(self._known, _Region(whole.start, whole.stop, storage), key=_start_of)
        return storage, start - whole.start

    def _overlapping(self, region: _Region) -> list[_Region]:
        first = bisect.bisect_right(self._known, region.start, key=_start_of)
        if first and self._known[first - 1].stop > region.start:
            first -= 1
        last = bisect.bisect_left(self._known, region.stop, key=_start_of)
        return self._known[first:last]

    def _refuse(self, one: _Region, other: _Region) -> NoReturn:
        both = one.joined(other)
        self.written |= both.storages
        overlapping = [region for region in self.joined if region.start < both.stop and both.start < region.stop]
        for region in overlapping:
            self.joined.remove(region)
            both = both.joined(region)
        self.joined.append(both)
        raise CopyAnew


def _start_of(region: _Region) -> int:
    return region.start


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor is nothing but a view of memory on the CPU."""
    if type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__ or tensor.layout is not torch.strided:
        return False
    is_lazy = tensor.is_quantized or tensor.is_conj() or tensor.is_neg()
    return tensor.device.type == "cpu" and tensor.numel() > 0 and not is_lazy


def _extent_of(tensor: Tensor) -> tuple[int, int]:
    """The addresses of a tensor's first element, and after its last one."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def _reach_of(array: Array) -> tuple[int, int]:
    """How many bytes an array extends before and after the address of its first item; a stride may be negative."""
    steps = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
    return -sum(step for step in steps if step < 0), sum(step for step in steps if step > 0) + array.itemsize


# What copy.deepcopy calls


def memory_in(memo: dict[int, Any]) -> Memory:
    """The Memory of a twin that a memo belongs to."""
    found: Memory = memo[_KEY]
    return found


def put_into(memo: dict[int, Any], memory: Memory) -> None:
    """Lets deepcopy copy memory so."""
    memo[_KEY] = memory


def _copy_array(array: Array, memo: dict[int, Any]) -> Any:
    if _KEY not in memo:
        return array.__deepcopy__(memo)
    if not array.dtype.hasobject:
        return memory_in(memo).array(array)
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if root is array or not root.flags.forc:
        return array.__deepcopy__(memo)
    items = copy.deepcopy(root, memo).ravel(order="K")
    first = (array.ctypes.data - root.ctypes.data) // items.itemsize
    return np.lib.stride_tricks.as_strided(items[first:], array.shape, array.strides)


def _copy_view(view: memoryview, memo: dict[int, Any]) -> memoryview:
    if _KEY not in memo or not isinstance(view.obj, np.ndarray):
        raise TypeError("cannot copy memoryview objects")
    values: Any = memory_in(memo).array(np.asarray(view))
    return memoryview(values)


def _copy_storage(storage: torch.UntypedStorage, memo: dict[int, Any]) -> Any:
    return memory_in(memo).storage(storage) if _KEY in memo else storage.__deepcopy__(memo)


def _copy_parameter(parameter: nn.Parameter, memo: dict[int, Any]) -> Any:
    """Copies one that is not the model's own."""
    if _KEY not in memo:
        return parameter.__deepcopy__(memo)
    return nn.Parameter(memory_in(memo).tensor(parameter.data), parameter.requires_grad)


COPIERS: dict[type, Any] = {
    np.ndarray: _copy_array,
    memoryview: _copy_view,
    torch.UntypedStorage: _copy_storage,
    nn.Parameter: _copy_parameter,
}
"""What deepcopy is to call, by class."""
