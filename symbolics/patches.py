"""Patches of images: windows (unfold, fold), pixel and channel shuffles.

Math:   fold puts cell i of window a at row a * stride + i * dilation - padding of the image, at the column likewise,
        and sums the cells that fall on one place. Where all sizes are fixed, a table lists for each place the cells
        that fall on it; the number after the last cell stands for none. Otherwise the windows are added to an image
        with its padding, which is then cut off.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.functional.take import take
from torch_onnx_compat.tracing import constant, static_size

# Windows


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
        """Number of windows."""
        return (self.output + 2 * self.padding - self.dilation * (self.kernel - 1) - 1) // self.stride + 1


def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    """Sums windows (N, C * kernels, counts) into images (N, C, H, W), or those of one image without N.

    Args:
        input: The argument of an entry's body.
        output_size: H and W, as one number or a pair; so are the following.
        kernel_size: Size of a window.
        dilation: Distance between the cells of a window.
        padding: Number of rows and columns that windows see around the image.
        stride: Distance between windows.
    """
    values = (output_size, kernel_size, dilation, padding, stride)
    pairs = [value if isinstance(value, (tuple, list)) else (value, value) for value in values]
    vertical, horizontal = (Windows(*along) for along in zip(*pairs, strict=True))
    columns = static_size(input, -2)
    channels = (input.shape[-2] if columns is None else columns) // (vertical.kernel * horizontal.kernel)
    batch = input.unsqueeze(0) if input.dim() == 2 else input
    if type(vertical.output) is int and type(horizontal.output) is int:
        images = _fold_by_table(batch, channels, vertical, horizontal)
    else:
        images = _fold_by_addition(batch, channels, vertical, horizontal)
    return images[0] if input.dim() == 2 else images


def _fold_by_table(input: Tensor, channels: Any, vertical: Windows, horizontal: Windows) -> Tensor:
    cells = vertical.kernel * horizontal.kernel * vertical.count * horizontal.count
    flat = input.reshape(-1, channels, cells)
    table = fold_table(vertical, horizontal)
    if table.max() == cells:
        flat = nn.functional.pad(flat, (0, 1))
    read = take(flat, constant(table, like=input, dtype=torch.int64), 2)
    summed = read.sum(dim=-1) if table.shape[1] > 1 else read
    return summed.reshape(-1, channels, vertical.output, horizontal.output)


def fold_table(vertical: Windows, horizontal: Windows) -> npt.NDArray[Any]:
    """For each place of the image, row by row, the numbers of the cells of windows that are summed there."""
    rows, columns = (_numpy_places(axis) for axis in (vertical, horizontal))
    image = np.broadcast_arrays(
        rows[:, None, :, None] * horizontal.output + columns[None, :, None, :],
        (rows >= 0)[:, None, :, None] & (columns >= 0)[None, :, None, :],
    )
    place, inside = (part.reshape(-1) for part in image)
    none = place.size
    numbers = np.flatnonzero(inside)
    numbers = numbers[np.argsort(place[numbers], kind="stable")]
    per_place = np.bincount(place[numbers], minlength=vertical.output * horizontal.output)
    table = np.full((per_place.size, max(per_place.max(initial=0), 1)), none)
    table[np.arange(table.shape[1]) < per_place[:, None]] = numbers
    return table


def _numpy_places(axis: Windows) -> npt.NDArray[Any]:
    """Where cell i of window a falls, (kernel, count); -1 for the padding."""
    starts = np.arange(axis.count) * axis.stride - axis.padding
    places = np.arange(axis.kernel)[:, None] * axis.dilation + starts
    return np.where((places >= 0) & (places < axis.output), places, -1)


def _fold_by_addition(input: Tensor, channels: Any, vertical: Windows, horizontal: Windows) -> Tensor:
    height, width = (axis.output + 2 * axis.padding for axis in (vertical, horizontal))
    flat = input.reshape(input.shape[0], channels, -1)
    rows, columns = (_places(axis, input) for axis in (vertical, horizontal))
    index = (rows[:, None, :, None] * width + columns[None, :, None, :]).flatten()
    canvas = input.new_zeros((input.shape[0], channels, height * width))
    image = canvas.scatter_add(2, index.expand(flat.shape), flat).reshape(-1, channels, height, width)
    return image.narrow(2, vertical.padding, vertical.output).narrow(3, horizontal.padding, horizontal.output)


def _places(axis: Windows, like: Tensor) -> Tensor:
    """Where cell i of window a falls on the padded axis, (kernel, count), computed in the file."""
    starts = torch.arange(axis.count, device=like.device) * axis.stride
    return torch.arange(axis.kernel, device=like.device).unsqueeze(1) * axis.dilation + starts


@decomposition(nn.functional.fold, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def fold_of_batch(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Sums windows (C * kernels, L) into an image (C, H, W); stock writes a file that does not load.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Fold.html
    """
    if input.dim() != 2:
        return NotImplemented
    return fold(input, output_size, kernel_size, dilation, padding, stride)


@decomposition(nn.functional.fold, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def fold_to_take(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Sums windows (N, C * kernels, L) into images (N, C, H, W); stock's Col2Im needs opset 18 and a fixed size.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Fold.html
    """
    if input.dim() == 2:
        return NotImplemented
    return fold(input, output_size, kernel_size, dilation, padding, stride)


@decomposition(nn.functional.unfold, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def unfold_of_batch(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Windows of an image (C, H, W) as columns; stock writes a file that does not load, and dies of no images at all.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Unfold.html
    """
    if input.dim() == 4:
        sizes = [static_size(input, axis) for axis in range(4)]
        if 0 not in sizes:
            return NotImplemented
        return _unfold_by_tables(input, sizes[2:], (kernel_size, dilation, padding, stride))
    return nn.functional.unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)


def _unfold_by_tables(images: Tensor, sizes: list[int | None], values: tuple[Any, ...]) -> Tensor:
    """The windows of images (N, C, H, W), with no size left to be found, which torch would divide by 0 for."""
    pairs = [value if isinstance(value, (tuple, list)) else (value, value) for value in values]
    along = [Windows(size, *numbers) for size, *numbers in zip(sizes, *pairs, strict=True)]
    if None in sizes:
        decline("the height and width of no images must be fixed")
    vertical, horizontal = along
    padding = (horizontal.padding, horizontal.padding, vertical.padding, vertical.padding)
    cells = take(nn.functional.pad(images, padding), _table_of(vertical, images), 2)
    cells = take(cells, _table_of(horizontal, images), 4).permute(0, 1, 2, 4, 3, 5)
    columns = images.shape[1] * vertical.kernel * horizontal.kernel
    return cells.reshape(images.shape[0], columns, vertical.count * horizontal.count)


def _table_of(windows: Windows, like: Tensor) -> Tensor:
    """For each cell of a window, its places in the padded image, (kernel, count)."""
    starts = range(0, windows.count * windows.stride, windows.stride)
    cells = [[start + cell * windows.dilation for start in starts] for cell in range(windows.kernel)]
    return constant(cells, like=like, dtype=torch.int64)


@decomposition(Tensor.unfold, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def tensor_unfold_to_take(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of an axis, as a new last axis; stock TorchScript puts them elsewhere, or slices one by one.

    Math: window i holds the cells from i * step up to, not including, i * step + size; there are
          (n - size) // step + 1 windows.
    """
    if self.dim() == 0:
        if size != 1:
            decline(f"size must be 1 for a single number, got {size}")
        return self.reshape(1)
    axis = dimension % self.dim()
    length = static_size(self, axis)
    if length is None:
        return _unfold_by_ranges(self, axis, size, step)
    cells = [[start + cell for cell in range(size)] for start in range(0, length - size + 1, step)]
    return take(self, constant(cells, like=self, dtype=torch.int64), axis).movedim(axis + 1, self.dim())


def _unfold_by_ranges(x: Tensor, axis: int, size: Any, step: Any) -> Tensor:
    starts = torch.arange(0, x.shape[axis] - size + 1, step, device=x.device)
    table = starts.unsqueeze(1) + torch.arange(size, device=x.device)
    return take(x, table, axis).movedim(axis + 1, x.dim())


@decomposition(Tensor.unfold, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def tensor_unfold_of_computed_size(self: Tensor, dimension: int, size: Any, step: Any) -> Tensor:
    """Windows whose size or step is computed of sizes, which stock dynamo fixes.

    Windows of a known size and step are left to torch.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.unfold.html
    """
    if (type(size) is int and type(step) is int) or not self.dim():
        return NotImplemented
    return _unfold_by_ranges(self, dimension % self.dim(), size, step)


# Shuffles


def shuffle_images(shuffle: Callable[[Tensor, int], Tensor], input: Tensor, factor: int) -> Tensor:
    """Calls a function of (N, C, H, W) for (C, H, W) and (..., C, H, W), of which all axes in front are batch axes."""
    if input.dim() == 4:
        return NotImplemented
    if input.dim() == 3:
        return shuffle(input.unsqueeze(0), factor).squeeze(0)
    images = shuffle(input.flatten(0, -4), factor)
    return images.reshape((*input.shape[:-3], *images.shape[1:]))


@decomposition(torch.pixel_shuffle, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def pixel_shuffle_of_integers(input: Tensor, upscale_factor: int) -> Tensor:
    """Shuffles integers (..., C, H, W), for which onnxruntime has no DepthToSpace.

    Math: with r the factor, cell (c, h r + i, w r + j) of the result is cell (c r^2 + i r + j, h, w).
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.PixelShuffle.html
    """
    if input.is_floating_point():
        return NotImplemented
    r, front = upscale_factor, input.dim() - 3
    cells = input.reshape((*input.shape[:-3], -1, r, r, *input.shape[-2:]))
    order = (*range(front + 1), front + 3, front + 1, front + 4, front + 2)
    return cells.permute(order).reshape((*input.shape[:-3], -1, input.shape[-2] * r, input.shape[-1] * r))


@decomposition(torch.pixel_shuffle, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def pixel_shuffle_of_images(input: Tensor, upscale_factor: int) -> Tensor:
    """Takes (C, H, W) and (..., C, H, W), for which stock TorchScript has no symbolic.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.PixelShuffle.html
    """
    return shuffle_images(torch.pixel_shuffle, input, upscale_factor)


@decomposition(torch.pixel_unshuffle, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def pixel_unshuffle_of_images(input: Tensor, downscale_factor: int) -> Tensor:
    """Takes (C, H, W) and (..., C, H, W), for which stock TorchScript has no symbolic.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.PixelUnshuffle.html
    """
    return shuffle_images(torch.pixel_unshuffle, input, downscale_factor)


@decomposition(
    (torch.channel_shuffle, torch.native_channel_shuffle), needed_on=("torchscript",), exactness=Exactness.BITWISE
)
def channel_shuffle_to_take(input: Tensor, groups: int) -> Tensor:
    """Shuffles (N, C, ...); stock TorchScript has no symbolic for it.

    Math: with g groups of c channels, channel i * g + j of the result is channel j * c + i.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.ChannelShuffle.html
    """
    channels = static_size(input, 1)
    if channels is None:
        return input.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)
    order = [start for first in range(channels // groups) for start in range(first, channels, channels // groups)]
    return take(input, constant(order, like=input, dtype=torch.int64), 1)
