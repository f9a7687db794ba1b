"""Pools whose window is the whole map: ``F.avg_pool2d(x, x.shape[2:])``, at every size of the map.

Neither exporter has windows of a dynamic size. A window as large as the axis has one place only, so the pool is the
mean or the maximum over that axis. Whether it is that large is seen from where its size comes from, not from numbers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat import Declaration, Exactness, decomposition
from torch_onnx_compat.functional.arithmetic import is_size_of, varies

AVERAGE = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
MAXIMUM = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)


@decomposition(nn.functional.avg_pool1d, **AVERAGE)
def avg_pool1d_of_whole_map(input: Tensor, kernel_size: Any, stride: Any = None, *rest: Any, **options: Any) -> Tensor:
    """Averages (N, C, L) or (C, L) over the length, where the window is as long."""
    return _pool(nn.functional.avg_pool1d, torch.mean, 1, input, kernel_size, stride, *rest, **options)


@decomposition(nn.functional.avg_pool2d, **AVERAGE)
def avg_pool2d_of_whole_map(input: Tensor, kernel_size: Any, stride: Any = None, *rest: Any, **options: Any) -> Tensor:
    """Averages (N, C, H, W) or (C, H, W) over the axes that are as long as the window is there."""
    return _pool(nn.functional.avg_pool2d, torch.mean, 2, input, kernel_size, stride, *rest, **options)


@decomposition(nn.functional.avg_pool3d, **AVERAGE)
def avg_pool3d_of_whole_map(input: Tensor, kernel_size: Any, stride: Any = None, *rest: Any, **options: Any) -> Tensor:
    """Averages (N, C, D, H, W) or (C, D, H, W) over the axes that are as long as the window is there."""
    return _pool(nn.functional.avg_pool3d, torch.mean, 3, input, kernel_size, stride, *rest, **options)


@decomposition(nn.functional.max_pool1d, **MAXIMUM)
def max_pool1d_of_whole_map(input: Tensor, kernel_size: Any, stride: Any = None, *rest: Any, **options: Any) -> Tensor:
    """Takes the maximum of (N, C, L) or (C, L) over the length, where the window is as long."""
    return _pool(nn.functional.max_pool1d, torch.amax, 1, input, kernel_size, stride, *rest, **options)


@decomposition(nn.functional.max_pool2d, **MAXIMUM)
def max_pool2d_of_whole_map(input: Tensor, kernel_size: Any, stride: Any = None, *rest: Any, **options: Any) -> Tensor:
    """Takes the maximum of (N, C, H, W) or (C, H, W) over the axes that are as long as the window is there."""
    return _pool(nn.functional.max_pool2d, torch.amax, 2, input, kernel_size, stride, *rest, **options)


@decomposition(nn.functional.max_pool3d, **MAXIMUM)
def max_pool3d_of_whole_map(input: Tensor, kernel_size: Any, stride: Any = None, *rest: Any, **options: Any) -> Tensor:
    """Takes the maximum of (N, C, D, H, W) or (C, D, H, W) over the axes that are as long as the window is there."""
    return _pool(nn.functional.max_pool3d, torch.amax, 3, input, kernel_size, stride, *rest, **options)


def _pool(
    pool: Callable[..., Tensor],
    reduce: Callable[..., Tensor],
    axes: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    *rest: Any,
    **options: Any,
) -> Tensor:
    """What torch's `pool` gives for these arguments; `reduce` takes the mean or maximum over axes."""
    kernel, padding = _each(kernel_size, axes), _each(padding, axes)
    options = dict(zip(_OPTIONS[reduce], rest, strict=False)) | options
    stride = kernel if stride is None or (isinstance(stride, (tuple, list)) and not stride) else _each(stride, axes)
    whole = [axis for axis in range(axes) if varies(kernel[axis])]
    is_other = options.get("divisor_override") is not None or options.get("return_indices")
    if is_other or not whole or any(padding[i] or not is_size_of(kernel[i], input, i - axes) for i in whole):
        return NotImplemented
    pooled = reduce(input, [axis - axes for axis in whole], keepdim=True)
    if len(whole) == axes:
        return pooled
    windows = [1 if axis in whole else kernel[axis] for axis in range(axes)]
    steps = [1 if axis in whole else stride[axis] for axis in range(axes)]
    return pool(pooled, windows, steps, padding, **options)


_OPTIONS: dict[Callable[..., Tensor], tuple[str, ...]] = {
    torch.mean: ("ceil_mode", "count_include_pad", "divisor_override"),
    torch.amax: ("dilation", "ceil_mode", "return_indices"),
}
"""The parameters behind the padding, in torch's order."""


def _each(value: Any, axes: int) -> Sequence[Any]:
    return tuple(value) * (axes if len(value) == 1 else 1) if isinstance(value, (tuple, list)) else (value,) * axes
