"""Lists that code makes at their full length, ``[None] * n``, and fills item by item."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import register_pytree_node

from torch_onnx_compat.control_flow.run.lists import Part, Rows
from torch_onnx_compat.control_flow.run.refusal import refusal
from torch_onnx_compat.control_flow.run.session import as_tensor


class Slots(Rows):
    """A list of tensors of one shape, of a length that depends on the inputs, which is filled by number.

    What is not filled yet is None in Python, and zeros in the file.

    Args:
        length: How many items it has: a symbolic size, or an int64 tensor of shape ().
        value: The items, stacked; None where none is filled.
        writes: How often it was written to, in this round.
    """

    def __init__(self, length: Any, value: Tensor | None = None, writes: int = 0) -> None:
        super().__init__([] if value is None else [Part(value, is_several=True)])
        self.length, self.writes = length, writes

    @property
    def value(self) -> Tensor | None:
        """The items, stacked; None where none is filled."""
        return self.parts[0].value if self.parts else None

    def copy(self) -> Slots:
        """Like list.copy."""
        return Slots(self.length, self.value, self.writes)

    def like(self, other: Slots) -> Slots:
        """This list before anything is in it, as tensors of the shape and dtype of what the other one has."""
        return self if other.value is None else Slots(self.length, torch.zeros_like(other.value), self.writes)

    def count_items(self) -> Any:
        """What ``len()`` gives."""
        return self.length

    def stacked(self) -> Tensor:
        """The items, stacked on axis 0."""
        if self.value is None:
            raise refusal("a list is joined in which nothing is filled.")
        return self.value

    def __getitem__(self, place: Any) -> Any:
        return None if self.value is None else super().__getitem__(place)

    def __setitem__(self, place: Any, item: Any) -> None:
        if isinstance(place, slice) or not isinstance(item, Tensor):
            raise refusal("a list whose length depends on the inputs is filled with something else than tensors.")
        whole = item.new_zeros((self.length, *item.shape)) if self.value is None else self.value
        if whole.dtype != item.dtype or whole.dim() != item.dim() + 1:
            raise refusal("a list whose length depends on the inputs is filled with tensors of several kinds.")
        self.writes += 1
        number = as_tensor(place, item)
        number = torch.where(number < 0, number + as_tensor(self.length, item), number)
        self.parts = [Part(torch.index_put(whole, (number.reshape(1),), item.unsqueeze(0)), is_several=True)]

    def _refuse(self, *_: Any) -> Any:
        raise refusal("a list that is made at its full length, which depends on the inputs, is made longer or shorter.")

    append = extend = insert = reverse = __iadd__ = _refuse  # type: ignore[assignment]


def _flatten(slots: Slots) -> tuple[list[Any], Any]:
    return [slots.length, slots.value], slots.writes


def _unflatten(values: Iterable[Any], writes: int) -> Slots:
    length, value = values
    return Slots(length, value, writes)


register_pytree_node(Slots, _flatten, _unflatten)
