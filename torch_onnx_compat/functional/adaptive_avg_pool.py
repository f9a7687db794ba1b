"""adaptive_avg_pool as products with pooling matrices, for every size of input and output.

Math:   along an axis of n cells, output i of o is the mean of cells floor(i n / o) up to, not including,
        ceil((i + 1) n / o): a row of the (o, n) pooling matrix. Cell j is one of them if and only if i n < (j + 1) o
        and j o < (i + 1) n, which integers decide without rounding.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool2d.html; ATen/native/AdaptivePooling.h
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torch_onnx_compat.tracing import constant, static_size

Output: TypeAlias = Any
"""A number of output cells: an int if it is fixed, else a SymInt or Tensor; None leaves the axis unchanged."""

JOINT_LIMIT = 8192
"""Most elements of a joint matrix for all axes: in onnxruntime it is 3 to 9 times as fast as one per axis at 2000
elements, and not faster at 12000."""


def outputs_of(output_size: Any, axes: int) -> tuple[Output, ...]:
    """The argument `output_size` of torch's functions as one output for each pooled axis."""
    return tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * axes


def is_single_cell(outputs: Sequence[Output]) -> bool:
    """Whether each pooled axis is averaged as a whole."""
    return all(_is_fixed(o) and o == 1 for o in outputs)


def windows_of(input: Tensor, outputs: Sequence[Output]) -> tuple[int, ...] | None:
    """Lengths of the windows if an ordinary pool does the same (all sizes fixed multiples of the outputs); else None.

    Args:
        input: The argument of the rewrite's body, as static_size wants it.
        outputs: The number of cells for each of the last axes.
    """
    windows = []
    for axis, output in enumerate(outputs, start=-len(outputs)):
        size = static_size(input, axis)
        if output is None:
            output = size
        if size is None or not _is_fixed(output) or output < 1 or size % output:
            return None
        windows.append(size // output)
    return tuple(windows)


def adaptive_avg_pool(input: Tensor, outputs: Sequence[Output]) -> Tensor:
    """Averages the last axes over the windows of adaptive pooling.

    Args:
        input: The argument of the rewrite's body, (..., *sizes). An infinite or NaN cell spreads beyond its window,
            because 0 * inf is NaN.
        outputs: The number of cells for each of the last axes.
    """
    sizes = [static_size(input, axis) for axis in range(-len(outputs), 0)]
    if len(outputs) > 1:
        inner = [static_size(input, axis) for axis in range(1, input.dim() - len(outputs))]
        fixed = [(n, o) for n, o in zip(sizes, outputs, strict=True) if n is not None and _is_fixed(o)]
        small = math.prod(n * o for n, o in fixed) <= JOINT_LIMIT
        if len(fixed) == len(outputs) and small and None not in inner:
            matrix = reduce(np.kron, (pooling_matrix(n, o) for n, o in fixed))
            product = input.reshape(-1, matrix.shape[1]) @ constant(matrix.T, input)
            return product.reshape([-1, *(size for size in inner if size is not None), *(o for _, o in fixed)])
    result = input
    for axis, (size, output) in enumerate(zip(sizes, outputs, strict=True), start=-len(outputs)):
        result = _pool_axis(result, axis, input, size, output)
    return result


def pooling_matrix(size: int, output: int) -> npt.NDArray[Any]:
    """The (output, size) matrix whose product with an axis pools it."""
    first, cell = np.arange(output)[:, None] * size, np.arange(size) * output
    member = (first < cell + output) & (cell < first + size)
    matrix: npt.NDArray[Any] = member / member.sum(1, keepdims=True)
    return matrix


def _pool_axis(x: Tensor, axis: int, argument: Tensor, size: int | None, output: Output) -> Tensor:
    """Pools one axis of `x`, which has the same size in the body's argument."""
    if output is None or (_is_fixed(output) and output == size):
        return x
    if _is_fixed(output) and output == 1:
        return x.mean(dim=axis, keepdim=True)
    if size is not None and _is_fixed(output):
        matrix = constant(pooling_matrix(size, output), x)
    else:
        matrix = _matrix_in_graph(argument, axis, output)
    if axis == -1:
        return x @ matrix.transpose(0, 1)
    return matrix @ x if axis == -2 else (matrix @ x.transpose(axis, -2)).transpose(axis, -2)


def _matrix_in_graph(x: Tensor, axis: int, output: Output) -> Tensor:
    """The matrix of `pooling_matrix`, computed in the file from the size of an axis."""
    size = x.shape[axis]
    first = torch.arange(output, device=x.device).unsqueeze(1) * size
    cell = torch.arange(size, device=x.device) * output
    member = ((first < cell + output) & (cell < first + size)).to(x.dtype)
    matrix: Tensor = member / member.sum(1, keepdim=True)
    return matrix


def _is_fixed(output: Output) -> TypeGuard[int]:
    return type(output) is int
