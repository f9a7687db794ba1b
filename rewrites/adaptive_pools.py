"""Adaptive pools of one, two and three axes, averages and maxima, for every size of input and output.

Math:   along an axis of n cells, output i of o pools cells floor(i n / o) up to, not including, ceil((i + 1) n / o).
        Averages are a product with a matrix (torch_onnx_compat.functional.adaptive_avg_pool). Maxima are taken over a
        table of shape (o, k), k the longest window, that lists the cells of each window. A shorter window repeats its
        last cell, which changes neither the maximum nor the first place where it stands.
Source: https://docs.pytorch.org/docs/stable/nn.html#pooling-layers; ATen/native/AdaptivePooling.h
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from torch_onnx_compat import Declaration, Exactness, decline, decomposition
from torch_onnx_compat.functional.adaptive_avg_pool import adaptive_avg_pool, is_single_cell, outputs_of, windows_of
from torch_onnx_compat.functional.take import take
from torch_onnx_compat.tracing import constant, static_size

Output: TypeAlias = Any
"""A number of output cells: an int where it is fixed, a SymInt or Tensor where not; None keeps the axis as it is."""

AVERAGE = Declaration(
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
    issue="https://github.com/pytorch/pytorch/issues/42653",
)
MAXIMUM = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)


# Averages


@decomposition(nn.functional.adaptive_avg_pool1d, **AVERAGE)
def adaptive_avg_pool1d_to_matmul(input: Tensor, output_size: Any) -> Tensor:
    """Pools (N, C, L) or (C, L) of any length; stock fails or errs unless a fixed output divides a fixed length.

    Declines: what stock writes right, i.e. batches pooled to a single cell or by equal windows.
    """
    return _average(input, outputs_of(output_size, 1))


@decomposition(nn.functional.adaptive_avg_pool2d, **AVERAGE)
def adaptive_avg_pool2d_to_matmul(input: Tensor, output_size: Any) -> Tensor:
    """Pools (N, C, H, W) or (C, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: what stock writes as one right node, i.e. batches pooled to a single cell or by equal windows.
    """
    outputs = outputs_of(output_size, 2)
    # Stock writes no AveragePool where an axis is kept.
    return _average(input, outputs, nn.functional.avg_pool2d if None in outputs else None)


@decomposition(nn.functional.adaptive_avg_pool3d, **AVERAGE)
def adaptive_avg_pool3d_to_matmul(input: Tensor, output_size: Any) -> Tensor:
    """Pools (N, C, D, H, W) or (C, D, H, W) of any size; stock dynamo has no 3-D adaptive pool at all.

    Declines: batches pooled to a single cell, which stock writes as one right node.
    """
    return _average(input, outputs_of(output_size, 3), nn.functional.avg_pool3d)


def _average(input: Tensor, outputs: Sequence[Output], pool: Callable[..., Tensor] | None = None) -> Tensor:
    """Averages the last axes.

    Args:
        input: The argument of the entry's body.
        outputs: One for each of the last axes.
        pool: torch's pool of equal windows, where stock does not write equal windows as a pool itself.
    """
    if input.dim() == len(outputs) + 2:
        if is_single_cell(outputs):
            decline("a single cell is a mean, which torch exports for every size")
        windows = windows_of(input, outputs)
        if windows is not None and input.dtype != torch.float64:  # onnxruntime pools no float64
            if pool is None:
                decline("the output divides the input, which torch exports as AveragePool")
            return pool(input, windows)
    return adaptive_avg_pool(input, outputs)


# Maxima; the arguments `return_indices` are there for calls that name them


@decomposition(nn.functional.adaptive_max_pool1d, **MAXIMUM)
def adaptive_max_pool1d_to_take(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Pools (N, C, L) or (C, L) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes as one right node.
    """
    return _maxima(input, outputs_of(output_size, 1))


@decomposition(nn.functional.adaptive_max_pool2d, **MAXIMUM)
def adaptive_max_pool2d_to_take(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Pools (N, C, H, W) or (C, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes as one right node.
    """
    return _maxima(input, outputs_of(output_size, 2))


@decomposition(nn.functional.adaptive_max_pool3d, **MAXIMUM)
def adaptive_max_pool3d_to_take(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Pools (N, C, D, H, W) or (C, D, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes as one right node.
    """
    return _maxima(input, outputs_of(output_size, 3))


@decomposition(nn.functional.adaptive_max_pool1d_with_indices, **MAXIMUM)
def adaptive_max_pool1d_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Pools (N, C, L) or (C, L) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes right.
    """
    return _maxima_and_places(input, outputs_of(output_size, 1))


@decomposition(nn.functional.adaptive_max_pool2d_with_indices, **MAXIMUM)
def adaptive_max_pool2d_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Pools (N, C, H, W) or (C, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes right.
    """
    return _maxima_and_places(input, outputs_of(output_size, 2))


@decomposition(nn.functional.adaptive_max_pool3d_with_indices, **MAXIMUM)
def adaptive_max_pool3d_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Pools (N, C, D, H, W) or (C, D, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes right.
    """
    return _maxima_and_places(input, outputs_of(output_size, 3))


def _maxima(input: Tensor, outputs: Sequence[Output]) -> Tensor:
    if _has_equal_windows(input, outputs):
        decline("the output divides the input, which torch exports as MaxPool")
    return adaptive_max_pool(input, outputs)


def _maxima_and_places(input: Tensor, outputs: Sequence[Output]) -> tuple[Tensor, Tensor]:
    if _has_equal_windows(input, outputs):
        decline("the output divides the input, which torch exports right")
    return adaptive_max_pool_with_indices(input, outputs)


def _has_equal_windows(input: Tensor, outputs: Sequence[Output]) -> bool:
    """Whether the input is a batch, whose sizes are all fixed and multiples of the outputs."""
    sizes = [static_size(input, axis) for axis in range(-len(outputs), 0)]
    return input.dim() == len(outputs) + 2 and all(
        size is not None and type(output) is int and output > 0 and size % output == 0
        for size, output in zip(sizes, outputs, strict=True)
    )


def adaptive_max_pool(input: Tensor, outputs: Sequence[Output]) -> Tensor:
    """Maxima of the last axes over windows that follow from their sizes.

    Args:
        input: The argument of the entry's body, (..., *sizes).
        outputs: One for each of the last axes.
    """
    if all(type(output) is int and output == 1 for output in outputs):
        return input.amax(dim=tuple(range(-len(outputs), 0)), keepdim=True)
    result = input
    for axis, output in enumerate(outputs, start=input.dim() - len(outputs)):
        size = static_size(input, axis)
        if output is None or (size is not None and type(output) is int and output == size):
            continue
        if type(output) is int and output == 1:
            result = result.amax(dim=axis, keepdim=True)
        else:
            result = take(result, _table(input, axis, output), axis).amax(dim=axis + 1)
    return result


def adaptive_max_pool_with_indices(input: Tensor, outputs: Sequence[Output]) -> tuple[Tensor, Tensor]:
    """The same maxima, and where each first stands among the flattened last axes.

    Args:
        input: The argument of the entry's body, (..., *sizes).
        outputs: One for each of the last axes.
    """
    first = input.dim() - len(outputs)
    known = [static_size(input, axis) for axis in range(1, input.dim())]
    sizes = [input.shape[axis] if size is None else size for axis, size in enumerate(known, start=1)]
    channels, inner = sizes[: first - 1], sizes[first - 1 :]
    flat = input.flatten(first) if None in known else input.reshape([-1, *channels, math.prod(inner)])
    cells = _joint_table(input, outputs)
    windows = take(flat, cells, first)
    # An index into a window becomes one into the flattened table, and this one the place.
    starts = torch.arange(cells.shape[0], device=input.device) * cells.shape[1]
    places = take(cells.flatten(), windows.argmax(dim=-1) + starts, 0)
    shape = [-1, *channels, *(size if o is None else o for size, o in zip(inner, outputs, strict=True))]
    return windows.amax(dim=-1).reshape(shape), places.reshape(shape)


# Tables of windows


def window_table(size: int, output: int) -> npt.NDArray[Any]:
    """The (output, k) table of the cells of each window."""
    number = np.arange(output)[:, None]
    first, last = number * size // output, ((number + 1) * size + output - 1) // output - 1
    longest: int = (last - first).max(initial=0) + 1
    return np.minimum(first + np.arange(longest), last)


def _table(x: Tensor, axis: int, output: Output) -> Tensor:
    """The table of an axis of the body's argument: a constant where its sizes are fixed, else computed in the file."""
    size = static_size(x, axis)
    if output is None:
        output = x.shape[axis] if size is None else size
    if size is not None and type(output) is int:
        return constant(window_table(size, output), like=x, dtype=torch.int64)
    length = x.shape[axis]
    number = torch.arange(output, device=x.device).unsqueeze(1)
    first, last = number * length // output, ((number + 1) * length + (output - 1)) // output - 1
    # No window is longer than length // output + 2.
    return torch.minimum(first + torch.arange(length // output + 2, device=x.device), last)


def _joint_table(x: Tensor, outputs: Sequence[Output]) -> Tensor:
    """Cells of the flattened last axes: a row for each output of all axes together, (outputs, cells of a window)."""
    axes = range(x.dim() - len(outputs), x.dim())
    sizes = [static_size(x, axis) for axis in axes]
    if None not in sizes and all(type(output) is int or output is None for output in outputs):
        fixed = [(n, n if o is None else o) for n, o in zip(sizes, outputs, strict=True) if n is not None]
        joint = np.zeros((1, 1), np.int64)
        for size, output in fixed:
            joint = _outer_sum(joint * size, window_table(size, output))
        return constant(joint, like=x, dtype=torch.int64)
    table = _table(x, axes[0], outputs[0])
    for axis, output in zip(axes[1:], outputs[1:], strict=True):
        table = _outer_sum(table * x.shape[axis], _table(x, axis, output))
    return table


def _outer_sum(rows: Any, columns: Any) -> Any:
    """All sums of an entry of each, outputs before cells; numpy arrays or tensors."""
    total = rows[:, None, :, None] + columns[None, :, None, :]
    return total.reshape(rows.shape[0] * columns.shape[0], rows.shape[1] * columns.shape[1])
