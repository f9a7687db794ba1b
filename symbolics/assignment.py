"""Assignments to parts of a tensor, ``x[i, :, mask, 2:] = value``, which stock TorchScript loses or gets wrong."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Declaration, Exactness, decomposition
from torch_onnx_compat.tracing import static_size, without_tracing

WRITING = Declaration(needed_on=("torchscript",), exactness=Exactness.BITWISE)


def _as_tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


@decomposition(Tensor.__setitem__, **WRITING)
def setitem_of_none(self: Tensor, key: Any, value: Any) -> None:
    """Writes to numbers and slices of axes, with new axes between; stock TorchScript loses the write.

    Indices that are tensors or lists are left to torch.

    Math: None adds an axis of size 1 to what is read, so a value brought to that shape has one cell there.
    Source: https://numpy.org/doc/stable/user/basics.indexing.html#dimensional-indexing-tools
    """
    keys = _as_tuple(key)
    if not any(k is None for k in keys) or not all(map(_is_basic, keys)):
        return NotImplemented
    if not any(k is Ellipsis for k in keys):
        keys = (*keys, Ellipsis)
    if isinstance(value, Tensor) and value.dim():
        value = value.expand(self[keys].shape)
        for axis in reversed(_new_axes(keys, self.dim())):
            value = value.squeeze(axis)
    self[tuple(k for k in keys if k is not None)] = value


def _new_axes(keys: tuple[Any, ...], rank: int) -> list[int]:
    """The axes of x[keys] that None stands for."""
    given = sum(key is not None and key is not Ellipsis for key in keys)
    axes, axis = [], 0
    for key in keys:
        if key is None:
            axes.append(axis)
        if key is Ellipsis:
            axis += rank - given
        elif key is None or isinstance(key, slice):
            axis += 1
    return axes


def _is_basic(key: Any) -> bool:
    if isinstance(key, bool):
        return False
    return key is None or key is Ellipsis or isinstance(key, (int, slice, torch.SymInt))


@decomposition(Tensor.__setitem__, **WRITING)
def setitem_of_split_indices(self: Tensor, key: Any, value: Any) -> None:
    """Writes at indices of several axes that are apart, which stock TorchScript refuses.

    Masks, and slices of less than an axis, are left to torch.

    Math: indices with whole axes between them read (*b, *others), b being their common shape, which is also what they
          read of the tensor whose indexed axes stand in front.
    Source: https://numpy.org/doc/stable/user/basics.indexing.html#combining-advanced-and-basic-indexing
    """
    keys = _as_tuple(key)
    axes = [axis for axis, k in enumerate(keys) if isinstance(k, Tensor)]
    indices = [keys[axis] for axis in axes]
    others = [k for k in keys if not isinstance(k, Tensor)]
    is_split = len(axes) > 1 and axes[-1] - axes[0] + 1 != len(axes)
    if not is_split or any(not isinstance(k, slice) or k != slice(None) for k in others):
        return NotImplemented
    if any(_is_mask(index) or not index.dim() for index in indices):
        return NotImplemented
    order = [*axes, *(axis for axis in range(self.dim()) if axis not in axes)]
    front = self.permute(order).clone()
    front[tuple(indices)] = value
    self.copy_(front.permute([order.index(axis) for axis in range(self.dim())]))


@decomposition(Tensor.__setitem__, **WRITING)
def setitem_to_expanded(self: Tensor, key: Any, value: Any) -> None:
    """Writes a smaller tensor to a slice or at places; stock TorchScript's file fails on it.

    Numbers, values of the right shape, and masks are left to torch.

    Math: the value takes the shape of x[key], which is what broadcasting means.
    Source: https://docs.pytorch.org/docs/stable/notes/broadcasting.html
    """
    keys = _as_tuple(key)
    if not isinstance(value, Tensor) or not value.dim() or any(map(_may_be_mask, keys)):
        return NotImplemented
    with without_tracing():
        sizes = [int(size) for size in self[key].shape]
    missing = len(sizes) - value.dim()
    single = [static_size(value, axis) == 1 and sizes[missing + axis] != 1 for axis in range(value.dim())]
    if missing < 0 or not (missing or any(single)):
        return NotImplemented
    self[key] = value.expand(self[key].shape)


@decomposition(Tensor.__setitem__, **WRITING)
def setitem_of_single_axes(self: Tensor, key: Any, value: Any) -> None:
    """Writes a value whose first axes have size 1 at places; stock TorchScript takes its other sizes for fixed.

    Where the number of places comes from a mask, the size 1 may be that of the example's one place. Writes at a mask
    beside a number or a slice of less than an axis, which stock TorchScript gets wrong, are written so, too.
    Other values of which all sizes are fixed, and indices that are apart, are left to torch.

    Math: Python drops leading axes of size 1 from a value that is assigned, and index_put broadcasts without that. With
          the indexed axes in front, a value (*before, *places, *after) is (*places, *before, *after).
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html
    """
    keys = _as_tuple(key)
    indices = [k for k in keys if isinstance(k, Tensor)]
    if not indices or not all(isinstance(k, Tensor) or _is_basic(k) for k in keys):
        return NotImplemented
    first = next(place for place, k in enumerate(keys) if isinstance(k, Tensor))
    if not all(isinstance(k, Tensor) for k in keys[first : first + len(indices)]):
        return NotImplemented
    has_mask = any(map(_is_mask, indices))
    are_several = len(indices) > 1 and (len(keys) > len(indices) or (isinstance(value, Tensor) and value.dim() > 0))
    if not are_several and not (has_mask and any(map(_takes_part, keys))) and not _loses_axes(value, has_mask):
        return NotImplemented
    if not isinstance(value, Tensor):
        value = torch.full((), value, dtype=self.dtype)
    basic = [part for k in keys for part in ([slice(None)] * _covered(k) if isinstance(k, Tensor) else [k])]
    axis, covered = _axis_of(basic, first, self.dim()), sum(map(_covered, indices))
    width = max(1 if _is_mask(k) else k.dim() for k in indices)
    part = self if all(k == slice(None) for k in basic) else self[tuple(basic)]
    if axis:
        rank = part.dim() - covered + width
        part = part.movedim([axis + i for i in range(covered)], list(range(covered)))
        if value.dim():
            value = value[(None,) * (rank - value.dim())].movedim([axis + i for i in range(width)], list(range(width)))
    part.index_put_(tuple(indices), value.to(self.dtype))


@decomposition(torch.index_put, **WRITING)
def index_put_to_expanded(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Writes at indices a value that may broadcast; stock TorchScript takes it to have all cells.

    Sums, single numbers and masks are left to others.

    Math: the value takes the shape of what is read there.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html
    """
    are_integers = all(isinstance(k, Tensor) and not _is_mask(k) for k in indices)
    if accumulate or not are_integers or not values.dim():
        return NotImplemented
    return torch.index_put(self, indices, values.expand(self[tuple(indices)].shape))


def _loses_axes(value: Any, at_mask: bool) -> bool:
    """Whether Python drops axes of a value that is assigned, and others have sizes that vary, as at a mask."""
    if not isinstance(value, Tensor) or not value.dim():
        return False
    with without_tracing():
        is_dropped = int(value.shape[0]) == 1
    return is_dropped and (at_mask or any(static_size(value, axis) is None for axis in range(value.dim())))


def _takes_part(key: Any) -> bool:
    """Whether a key is a number, or a slice of less than an axis."""
    return isinstance(key, (int, torch.SymInt)) or (isinstance(key, slice) and key != slice(None))


def _axis_of(keys: Sequence[Any], place: int, rank: int) -> int:
    """The axis of x[keys] that the key at a place becomes."""
    taken = sum(key is not None and key is not Ellipsis for key in keys)
    widths = [rank - taken if k is Ellipsis else k is None or isinstance(k, slice) for k in keys[:place]]
    return int(sum(widths))


def _covered(index: Tensor) -> int:
    """How many axes an index stands for."""
    return index.dim() if _is_mask(index) else 1


def _is_mask(key: Any) -> bool:
    return isinstance(key, Tensor) and key.dtype in (torch.bool, torch.uint8)


def _may_be_mask(key: Any) -> bool:
    return _is_mask(key) or isinstance(key, (bool, list))
