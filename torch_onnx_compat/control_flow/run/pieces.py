"""The pieces into which torch.split and torch.chunk cut an axis whose length depends on the inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor
from torch.utils._pytree import register_pytree_node

from torch_onnx_compat.control_flow.run.lengths import at_most, divided_up
from torch_onnx_compat.control_flow.run.lists import Part, Rows, values_of, with_values
from torch_onnx_compat.control_flow.run.refusal import refusal
from torch_onnx_compat.tracing import is_tracing


class Pieces(Rows):
    """The pieces of an axis, of which the last may be shorter; their count depends on the inputs.

    Args:
        whole: What is cut.
        dim: The axis, from 0.
        size: The length of a piece: a number, a symbolic size, or an int64 tensor of shape ().
        chunks: What torch.chunk was given, where it made them.
    """

    def __init__(self, whole: Tensor, dim: int, size: Any, chunks: int | None = None) -> None:
        super().__init__([Part(whole, is_several=True, axis=dim)])
        self.whole, self.dim, self.size, self.chunks = whole, dim, size, chunks

    def copy(self) -> Rows:
        """Like list.copy; what is added to the copy is joined with the pieces."""
        made = Pieces(self.whole, self.dim, self.size, self.chunks)
        made.parts = list(self.parts)
        return made

    def count_items(self) -> Any:
        """What ``len()`` gives."""
        self._refuse_more()
        return divided_up(self.whole.shape[self.dim], self.size)

    def at(self, number: Any) -> Tensor:
        """The piece of a number from 0."""
        self._refuse_more()
        if type(self.size) is int and self.size == 1 and isinstance(number, Tensor):
            return self.whole.index_select(self.dim, number.reshape(1))  # torch's loops have no slices that vary
        start = number * self.size
        return self._cut(start, start + self.size)

    def stacked(self) -> Tensor:
        """The pieces, stacked on axis 0; all are of one length, as torch.stack demands."""
        self._refuse_more()
        length = at_most(self.size, self.whole.shape[self.dim])
        pieces: Tensor = self.whole.unflatten(self.dim, (-1, length)).movedim(self.dim, 0)
        return pieces

    def concatenated(self, dim: int = 0) -> Tensor:
        """The pieces, joined on one of their axes."""
        if dim % self.whole.dim() == self.dim or len(self.parts) > 1:
            return super().concatenated(dim)
        return Rows([Part(self.stacked(), is_several=True)]).concatenated(dim)

    def insert(self, place: Any, item: Any) -> None:
        """Refuses: the pieces come first in the list."""
        raise refusal("a tensor is inserted before pieces of an axis whose length depends on the inputs; join them.")

    def __iter__(self) -> Iterator[Tensor]:
        self._refuse_more()
        # As many as the example has: code gives each a name. The log of decisions sees the call.
        whole, dim = self.whole, self.dim
        fixed = whole.split(self.size, dim) if self.chunks is None else whole.chunk(self.chunks, dim)
        return map(self.at, range(len(fixed))) if is_tracing() else iter(fixed)

    def __getitem__(self, place: Any) -> Any:
        self._refuse_more()
        if not isinstance(place, slice):
            return self.at(self._from_start(place))
        if place.step not in (None, 1):
            raise refusal("every other piece of an axis whose length depends on the inputs is taken; take all of them.")
        start = None if place.start is None else self._from_start(place.start) * self.size
        stop = None if place.stop is None else self._from_start(place.stop) * self.size
        return Pieces(self._cut(start, stop), self.dim, self.size)

    def _from_start(self, place: Any) -> Any:
        return self.count_items() + place if isinstance(place, int) and place < 0 else place

    def _cut(self, start: Any, stop: Any) -> Tensor:
        return self.whole[(slice(None),) * self.dim + (slice(start, stop),)]

    def _refuse_more(self) -> None:
        if len(self.parts) > 1:
            raise refusal("pieces of an axis whose length depends on the inputs are in one list with other tensors.")


def _flatten(pieces: Pieces) -> tuple[list[Any], Any]:
    return [pieces.size, *values_of(pieces.parts)], (pieces.dim, pieces.chunks, pieces.parts)


def _unflatten(values: Iterable[Any], form: Any) -> Pieces:
    size, *others = values
    dim, chunks, parts = form
    changed = with_values(parts, others)
    made = Pieces(changed[0].value, dim, size, chunks)
    made.parts = changed
    return made


register_pytree_node(Pieces, _flatten, _unflatten)
