"""Whole numbers that fit smaller sizes: what is an index, a length or a position in the example is none there.

A model that is given row 5 of 6 refuses an axis of 2 for the value, and not for the size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from torch_onnx_compat.inputs.draws import sort_like
from torch_onnx_compat.inputs.inputs import Inputs


@dataclass(frozen=True)
class Fit:
    """A way to make whole numbers smaller."""

    limit: int
    """The size that they fit."""
    is_length: bool
    """Whether the limit itself fits, as a length does, and an index does not."""

    def of(self, inputs: Inputs) -> Inputs:
        """The inputs with whole numbers that fit."""
        tied = {position for position, _ in inputs.lengths}
        tensors = [
            self._fitted(tensor) if i not in tied and _holds_numbers(tensor) else tensor
            for i, tensor in enumerate(inputs.tensors)
        ]
        return replace(inputs, tensors=tuple(tensors))

    def _fitted(self, tensor: Tensor) -> Tensor:
        """Lengths end at the limit; indices begin again at 0, and stay sorted where they are; -1 is the last index."""
        numbers = tensor.detach().cpu().long()
        if self.is_length:
            smaller = numbers.clamp(max=self.limit)
        else:
            smaller = torch.where(numbers < self.limit, numbers.clamp(min=-self.limit), numbers % self.limit)
        return sort_like(numbers, smaller).to(device=tensor.device, dtype=tensor.dtype)


def fits(inputs: Inputs) -> Iterator[Fit]:
    """Ways to make the whole numbers of a smaller example fit its sizes, those that leave the most values first.

    Args:
        inputs: The example at other sizes; where no axis is shorter than the example's, its numbers fit.
    """
    if len(inputs.origin) != len(inputs.tensors) or not any(map(_holds_numbers, inputs.tensors)):
        return
    sizes, before = inputs.named_sizes(), replace(inputs, tensors=inputs.origin).named_sizes()
    shorter = {size for name, size in sizes.items() if 0 < size < before[name]}
    made = [inputs.tensors]
    for limit in sorted({*shorter, 1}, reverse=True) if shorter else ():  # 0 is an index of whatever has a cell
        for is_length in (False, True):
            fit = Fit(limit, is_length)
            tensors = fit.of(inputs).tensors
            if not any(all(map(torch.equal, tensors, others)) for others in made):
                made.append(tensors)
                yield fit


def _holds_numbers(tensor: Tensor) -> bool:
    return bool(tensor.numel()) and tensor.dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
