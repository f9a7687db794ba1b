"""Adaptive pools of any size.

adaptive_max_pool as maxima over a table of windows, for every size of input and output.

Math:   along an axis of n cells, output i of o is the largest of cells floor(i n / o) up to, not including,
        ceil((i + 1) n / o). A table of shape (o, k), k the longest window, lists the cells of each window; shorter
        windows repeat their last cell, which changes neither the maximum nor the first place where it stands.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool2d.html; ATen/native/AdaptivePooling.h
"""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.functional.adaptive_avg_pool import adaptive_avg_pool, is_single_cell, outputs_of, windows_of
from torch_onnx_compat.functional.take import take
from torch_onnx_compat.tracing import constant, static_size

Output: TypeAlias = Any
"""A number of output cells: an int where it is fixed, a SymInt or Tensor where not; None keeps the axis as it is."""


def has_equal_windows(input: Tensor, outputs: Sequence[Output]) -> bool:
    """Whether all sizes are fixed, and multiples of the outputs.

    Args:
        input: The argument of the rewrite's body, as static_size wants it.
        outputs: One for each of the last axes.
    """
    sizes = [static_size(input, axis) for axis in range(-len(outputs), 0)]
    return all(size is not None and _divides(output, size) for size, output in zip(sizes, outputs, strict=True))


def adaptive_max_pool(input: Tensor, outputs: Sequence[Output]) -> Tensor:
    """Maxima of the last axes over windows that follow from their sizes.

    Args:
        input: The argument of the rewrite's body, (..., *sizes).
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
        input: The argument of the rewrite's body, (..., *sizes).
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


def window_table(size: int, output: int) -> npt.NDArray[Any]:
    """The (output, k) table of the cells of each window."""
    number = np.arange(output)[:, None]
    first, last = number * size // output, ((number + 1) * size + output - 1) // output - 1
    longest: int = (last - first).max(initial=0) + 1
    table: npt.NDArray[Any] = np.minimum(first + np.arange(longest), last)
    return table


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
    return torch.minimum(first + torch.arange(length // output + 2, device=x.device), last)


def _joint_table(x: Tensor, outputs: Sequence[Output]) -> Tensor:
    """Cells of the flattened last axes: a row for each output of all axes together, (outputs, cells of a window)."""
    axes = range(x.dim() - len(outputs), x.dim())
    sizes = [static_size(x, axis) for axis in axes]
    if None not in sizes and all(type(output) is int or output is None for output in outputs):
        fixed = [(n, n if o is None else o) for n, o in zip(sizes, outputs, strict=True) if n is not None]
        joint = np.zeros((1, 1), np.int64)
        for size, output in fixed:
            joint = _combined(joint * size, window_table(size, output))
        return constant(joint, like=x, dtype=torch.int64)
    table = _table(x, axes[0], outputs[0])
    for axis, output in zip(axes[1:], outputs[1:], strict=True):
        table = _combined(table * x.shape[axis], _table(x, axis, output))
    return table


def _combined(rows: Any, columns: Any) -> Any:
    """All sums of an entry of each, outputs before cells; numpy arrays or tensors."""
    total = rows[:, None, :, None] + columns[None, :, None, :]
    return total.reshape(rows.shape[0] * columns.shape[0], rows.shape[1] * columns.shape[1])


def _divides(output: Output, size: int) -> bool:
    return type(output) is int and output > 0 and size % output == 0


@decomposition(
    nn.functional.adaptive_avg_pool1d,
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
    issue="https://github.com/pytorch/pytorch/issues/42653",
)
def adaptive_avg_pool1d_to_matmul(input: Tensor, output_size: Any) -> Tensor:
    """Pools (N, C, L) or (C, L) of any length; stock fails or errs unless a fixed output divides a fixed length.

    Declines: what stock writes right, i.e. batches pooled to a single cell or by equal windows.

    Math: torch_onnx_compat.functional.adaptive_avg_pool: averaging the windows of an axis is a product with a matrix.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool1d.html
    """
    outputs = outputs_of(output_size, 1)
    batched = input.dim() == 3
    if batched and is_single_cell(outputs):
        decline("a single cell is a mean, which torch exports for every size")
    windows = windows_of(input, outputs)
    if batched and windows is not None and input.dtype != torch.float64:  # onnxruntime pools no float64
        decline("the output divides the input, which torch exports as AveragePool")
    return adaptive_avg_pool(input, outputs)


@decomposition(
    nn.functional.adaptive_avg_pool2d,
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
    issue="https://github.com/pytorch/pytorch/issues/42653",
)
def adaptive_avg_pool2d_to_matmul(input: Tensor, output_size: Any) -> Tensor:
    """Pools (N, C, H, W) or (C, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: what stock writes as one right node, i.e. batches pooled to a single cell or by equal windows.

    Math: torch_onnx_compat.functional.adaptive_avg_pool: averaging the windows of an axis is a product with a matrix.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool2d.html
    """
    outputs = outputs_of(output_size, 2)
    batched = input.dim() == 4
    if batched and is_single_cell(outputs):
        decline("a single cell is a mean, which torch exports for every size")
    windows = windows_of(input, outputs)
    if batched and windows is not None and input.dtype != torch.float64:  # onnxruntime pools no float64
        if None not in outputs:
            decline("the output divides the input, which torch exports as AveragePool")
        return nn.functional.avg_pool2d(input, windows)
    return adaptive_avg_pool(input, outputs)


@decomposition(
    nn.functional.adaptive_avg_pool3d,
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
    issue="https://github.com/pytorch/pytorch/issues/42653",
)
def adaptive_avg_pool3d_to_matmul(input: Tensor, output_size: Any) -> Tensor:
    """Pools (N, C, D, H, W) or (C, D, H, W) of any size; stock dynamo has no 3-D adaptive pool at all.

    Declines: batches pooled to a single cell, which stock writes as one right node.

    Math: torch_onnx_compat.functional.adaptive_avg_pool: averaging the windows of an axis is a product with a matrix.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool3d.html
    """
    outputs = outputs_of(output_size, 3)
    batched = input.dim() == 5
    if batched and is_single_cell(outputs):
        decline("a single cell is a mean, which torch exports for every size")
    windows = windows_of(input, outputs)
    if batched and windows is not None and input.dtype != torch.float64:  # onnxruntime pools no float64
        return nn.functional.avg_pool3d(input, windows)
    return adaptive_avg_pool(input, outputs)


@decomposition(nn.functional.adaptive_max_pool1d, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def adaptive_max_pool1d_to_take(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Pools (N, C, L) or (C, L) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes as one right node.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool1d.html
    """
    outputs = outputs_of(output_size, 1)
    if input.dim() == 3 and has_equal_windows(input, outputs):
        decline("the output divides the input, which torch exports as MaxPool")
    return adaptive_max_pool(input, outputs)


@decomposition(nn.functional.adaptive_max_pool2d, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def adaptive_max_pool2d_to_take(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Pools (N, C, H, W) or (C, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes as one right node.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool2d.html
    """
    outputs = outputs_of(output_size, 2)
    if input.dim() == 4 and has_equal_windows(input, outputs):
        decline("the output divides the input, which torch exports as MaxPool")
    return adaptive_max_pool(input, outputs)


@decomposition(nn.functional.adaptive_max_pool3d, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def adaptive_max_pool3d_to_take(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Pools (N, C, D, H, W) or (C, D, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes as one right node.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool3d.html
    """
    outputs = outputs_of(output_size, 3)
    if input.dim() == 5 and has_equal_windows(input, outputs):
        decline("the output divides the input, which torch exports as MaxPool")
    return adaptive_max_pool(input, outputs)


@decomposition(
    nn.functional.adaptive_max_pool1d_with_indices,
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.BITWISE,
)
def adaptive_max_pool1d_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Pools (N, C, L) or (C, L) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes right.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool1d.html
    """
    outputs = outputs_of(output_size, 1)
    if input.dim() == 3 and has_equal_windows(input, outputs):
        decline("the output divides the input, which torch exports right")
    return adaptive_max_pool_with_indices(input, outputs)


@decomposition(
    nn.functional.adaptive_max_pool2d_with_indices,
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.BITWISE,
)
def adaptive_max_pool2d_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Pools (N, C, H, W) or (C, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes right.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool2d.html
    """
    outputs = outputs_of(output_size, 2)
    if input.dim() == 4 and has_equal_windows(input, outputs):
        decline("the output divides the input, which torch exports right")
    return adaptive_max_pool_with_indices(input, outputs)


@decomposition(
    nn.functional.adaptive_max_pool3d_with_indices,
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.BITWISE,
)
def adaptive_max_pool3d_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Pools (N, C, D, H, W) or (C, D, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes right.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool3d.html
    """
    outputs = outputs_of(output_size, 3)
    if input.dim() == 5 and has_equal_windows(input, outputs):
        decline("the output divides the input, which torch exports right")
    return adaptive_max_pool_with_indices(input, outputs)
