"""fold: overlapping windows put back into an image and summed.

Math:   window (a, b) puts its cell (i, j) at row a * stride + i * dilation - padding, and at the column likewise. Where
        all sizes are fixed, a table lists for each cell of the image the cells of windows that fall on it, one more
        than there are standing for none. Otherwise the windows are added to an image with its padding, which is then
        cut off.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Fold.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from torch_onnx_compat.functional.take import take
from torch_onnx_compat.tracing import constant, static_size


@dataclass(frozen=True)
class Windows:
    """The windows along one axis of the image."""

    output: Any
    """Size of the image: an int where it is fixed, else what the exporter knows it as."""
    kernel: int
    dilation: int
    padding: int
    stride: int

    @property
    def count(self) -> Any:
        """How many there are."""
        return (self.output + 2 * self.padding - self.dilation * (self.kernel - 1) - 1) // self.stride + 1


def windows_of(output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> list[Windows]:
    """The arguments of F.fold, each one number or a pair, as the windows along H and W."""
    values = (output_size, kernel_size, dilation, padding, stride)
    pairs = [value if isinstance(value, (tuple, list)) else (value, value) for value in values]
    return [Windows(*along) for along in zip(*pairs, strict=True)]


def fold(input: Tensor, axes: Sequence[Windows]) -> Tensor:
    """Sums windows (N, C * kernels, counts) into images (N, C, H, W), or those of one image without N.

    Args:
        input: The argument of the rewrite's body.
        axes: Those of H and of W.
    """
    vertical, horizontal = axes
    cells = vertical.kernel * horizontal.kernel
    columns = static_size(input, -2)
    channels = (input.shape[-2] if columns is None else columns) // cells
    if input.dim() == 2:
        return _fold_batch(input.unsqueeze(0), channels, vertical, horizontal)[0]
    return _fold_batch(input, channels, vertical, horizontal)


def _fold_batch(input: Tensor, channels: Any, vertical: Windows, horizontal: Windows) -> Tensor:
    axes, cells = (vertical, horizontal), vertical.kernel * horizontal.kernel
    if all(type(axis.output) is int for axis in axes):
        flat = input.reshape(-1, channels, cells * vertical.count * horizontal.count)
        table = fold_table(vertical, horizontal)
        if table.max() == flat.shape[-1]:
            flat = nn.functional.pad(flat, (0, 1))
        read = take(flat, constant(table, like=input, dtype=torch.int64), 2)
        summed = read.sum(dim=-1) if table.shape[1] > 1 else read
        return summed.reshape(-1, channels, vertical.output, horizontal.output)
    height, width = (axis.output + 2 * axis.padding for axis in axes)
    flat = input.reshape(input.shape[0], channels, -1)
    rows, places = (_places(axis, input) for axis in axes)
    index = (rows[:, None, :, None] * width + places[None, :, None, :]).flatten()
    canvas = input.new_zeros((input.shape[0], channels, height * width))
    image = canvas.scatter_add(2, index.expand(flat.shape), flat).reshape(-1, channels, height, width)
    return image.narrow(2, vertical.padding, vertical.output).narrow(3, horizontal.padding, horizontal.output)


def fold_table(vertical: Windows, horizontal: Windows) -> npt.NDArray[Any]:
    """For each cell of the image, row by row, the numbers of the cells of windows that are summed there."""
    rows, columns = (_numpy_places(axis) for axis in (vertical, horizontal))
    image = np.broadcast_arrays(
        rows[:, None, :, None] * horizontal.output + columns[None, :, None, :],
        (rows >= 0)[:, None, :, None] & (columns >= 0)[None, :, None, :],
    )
    place, inside = (part.reshape(-1) for part in image)
    none = place.size
    numbers = np.flatnonzero(inside)
    numbers = numbers[np.argsort(place[numbers], kind="stable")]
    per_cell = np.bincount(place[numbers], minlength=vertical.output * horizontal.output)
    table = np.full((per_cell.size, max(per_cell.max(initial=0), 1)), none)
    table[np.arange(table.shape[1]) < per_cell[:, None]] = numbers
    return table


def _numpy_places(axis: Windows) -> npt.NDArray[Any]:
    """Where cell i of window a falls, (kernel, count); -1 for the padding."""
    start = np.arange(axis.count) * axis.stride - axis.padding
    places: npt.NDArray[Any] = np.arange(axis.kernel)[:, None] * axis.dilation + start
    return np.where((places >= 0) & (places < axis.output), places, -1)


def _places(axis: Windows, like: Tensor) -> Tensor:
    """The same on the padded axis, computed in the file."""
    starts = torch.arange(axis.count, device=like.device) * axis.stride
    return torch.arange(axis.kernel, device=like.device).unsqueeze(1) * axis.dilation + starts
