"""Pools: averages, unpooling and fractional windows.

max_unpool as values scattered over zeros.

Math:   an index is a place in the flattened last axes of the output; every cell that no index names is 0. Where no size
        is asked for, an axis of n cells grows to (n - 1) * stride + kernel - 2 * padding.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxUnpool2d.html

fractional_max_pool2d with given samples, as maxima over windows that are read by a table.

Math:   along an axis of n cells with windows of k, output i of o begins at trunc((i + u) a) - trunc(u a), where
        a = (n - k) / (o - 1) and u is the sample, the last output at n - k. A sample is a pair: u of the width, then
        of the height.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool2d.html;
        ATen/native/FractionalMaxPooling.h
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, decomposition
from torch_onnx_compat.tracing import constant, static_size


def max_unpool(
    input: Tensor, indices: Tensor, axes: int, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    """Puts (..., *sizes) at the places that the indices name.

    Args:
        input: The argument of the rewrite's body.
        indices: The places, as max_pool returns them.
        axes: How many of the last axes are unpooled.
        kernel_size: For all axes or each.
        stride: The same; None means the kernel's size.
        padding: The same.
        output_size: Sizes of the last axes, or of all; None for those that follow from the rest.
    """
    kernels, paddings = _each(kernel_size, axes), _each(padding, axes)
    strides = _each(stride, axes) if stride is not None else kernels
    first = input.dim() - axes
    known = [static_size(input, axis) for axis in range(input.dim())]
    sizes = [input.shape[axis] if size is None else size for axis, size in enumerate(known)]
    if output_size is not None:
        outputs = list(output_size)[-axes:]
    else:
        windows = zip(sizes[first:], kernels, strides, paddings, strict=True)
        outputs = [(n - 1) * step + kernel - 2 * pad for n, kernel, step, pad in windows]
    canvas = input.new_zeros((*sizes[:first], math.prod(outputs)))
    filled = canvas.scatter(-1, indices.flatten(first), input.flatten(first))
    return filled.reshape((*sizes[:first], *outputs))


def _each(value: Any, axes: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * axes


def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None, *, indices: bool
) -> tuple[Tensor, Tensor | None]:
    """Maxima of (N, C, H, W) or (C, H, W), and where they stand among the flattened last axes if that is asked for.

    Args:
        input: The argument of the rewrite's body.
        kernel_size: As for F.fractional_max_pool2d, as the next two are.
        output_size: Cells of the output, None if there is a ratio.
        output_ratio: Output by input.
        samples: (N, C, 2), N being 1 without a batch.
        indices: Whether the places are wanted.

    Raises:
        Declined: There are no samples, or the height or width varies.
    """
    if samples is None:
        decline("the windows are drawn at random; draw them outside and pass them on as _random_samples (N, C, 2)")
    height, width = static_size(input, -2), static_size(input, -1)
    if height is None or width is None:
        decline("the height and width must be fixed; export one file for each size")
    if output_size is None:
        output_size = [int(size * ratio) for size, ratio in zip((height, width), _pair(output_ratio), strict=True)]
    kernel, outputs = _pair(kernel_size), _pair(output_size)
    samples = samples if input.dim() == 4 else samples.squeeze(0)
    rows = _cells(samples[..., 1:], height, outputs[0], kernel[0]) * width
    columns = _cells(samples[..., :1], width, outputs[1], kernel[1])
    # (N, C, P, 1, k, 1) + (N, C, 1, Q, 1, l) -> (N, C, P Q, k l)
    joint = rows.unsqueeze(-2).unsqueeze(-1) + columns.unsqueeze(-3).unsqueeze(-2)
    cells = joint.flatten(-2).flatten(-3, -2)
    windows = input.flatten(-2).gather(-1, cells.flatten(-2)).unflatten(-1, (outputs[0] * outputs[1], -1))
    values = windows.amax(-1).unflatten(-1, outputs)
    if not indices:
        return values, None
    return values, cells.gather(-1, windows.argmax(-1, keepdim=True)).squeeze(-1).unflatten(-1, outputs)


def _cells(sample: Tensor, size: int, output: int, kernel: int) -> Tensor:
    """Numbers of the cells of each window of an axis: (..., 1) -> (..., output, kernel)."""
    number = constant(np.arange(output), sample)
    step = constant((size - kernel) / max(output - 1, 1), sample)
    starts = ((number + sample) * step).long() - (sample * step).long()
    is_last = constant(np.arange(output) == output - 1, sample, torch.bool)
    starts = torch.where(is_last, constant(size - kernel, sample, torch.int64), starts)
    return starts.unsqueeze(-1) + constant(np.arange(kernel), sample, torch.int64)


def _pair(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


@decomposition(nn.functional.avg_pool2d, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def avg_pool2d_to_sum(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Pools (N, C, H, W) or (C, H, W); stock ignores the divisor, TorchScript fails without a batch.

    Declines: a divisor with ceil_mode, whose last windows have fewer cells.

    Math: the mean of a window is its sum, padding included, by the number of its cells.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AvgPool2d.html
    """
    if input.dim() == 3:
        batch = input.unsqueeze(0)
    elif divisor_override is None:
        return NotImplemented
    else:
        batch = input
    if divisor_override is None:
        pooled = nn.functional.avg_pool2d(batch, kernel_size, stride, padding, ceil_mode, count_include_pad)
    else:
        if ceil_mode:
            decline("divisor_override needs ceil_mode=False")
        cells = math.prod(kernel_size) if isinstance(kernel_size, (tuple, list)) else kernel_size**2
        pooled = nn.functional.avg_pool2d(batch, kernel_size, stride, padding) * (cells / divisor_override)
    return pooled[0] if input.dim() == 3 else pooled


@decomposition(nn.functional.avg_pool3d, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def avg_pool3d_to_sum(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Pools (N, C, D, H, W) or (C, D, H, W); stock ignores the divisor, TorchScript fails without a batch.

    Declines: a divisor with ceil_mode, whose last windows have fewer cells.

    Math: the mean of a window is its sum, padding included, by the number of its cells.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AvgPool3d.html
    """
    if input.dim() == 4:
        batch = input.unsqueeze(0)
    elif divisor_override is None:
        return NotImplemented
    else:
        batch = input
    if divisor_override is None:
        pooled = nn.functional.avg_pool3d(batch, kernel_size, stride, padding, ceil_mode, count_include_pad)
    else:
        if ceil_mode:
            decline("divisor_override needs ceil_mode=False")
        cells = math.prod(kernel_size) if isinstance(kernel_size, (tuple, list)) else kernel_size**3
        pooled = nn.functional.avg_pool3d(batch, kernel_size, stride, padding) * (cells / divisor_override)
    return pooled[0] if input.dim() == 4 else pooled


@decomposition(nn.functional.max_pool2d, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def max_pool2d_unbatched(input: Tensor, *windows: Any, **options: Any) -> Tensor:
    """Pools an image without a batch axis, for which stock TorchScript writes a file that does not load.

    Declines: integers, which onnxruntime does not pool.

    Math: a batch of one.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html
    """
    if not input.is_floating_point():
        decline(f"{str(input.dtype)[6:]} cannot be pooled in onnxruntime; convert to float32 before")
    if input.dim() != 3:
        return NotImplemented
    pooled: Tensor = nn.functional.max_pool2d(input.unsqueeze(0), *windows, **options).squeeze(0)
    return pooled


@decomposition(nn.functional.max_pool2d_with_indices, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def max_pool2d_indices_unbatched(input: Tensor, *windows: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """Pools an image without a batch axis, for which stock TorchScript writes a file that does not load.

    Math: a batch of one; indices count within a channel.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html
    """
    if input.dim() != 3:
        return NotImplemented
    values, indices = nn.functional.max_pool2d_with_indices(input.unsqueeze(0), *windows, **options)
    return values.squeeze(0), indices.squeeze(0)


@decomposition(nn.functional.max_unpool1d, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def max_unpool1d_to_scatter(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Unpools (N, C, L) or (C, L); torch itself fails in a TorchScript trace.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxUnpool1d.html
    """
    return max_unpool(input, indices, 1, kernel_size, stride, padding, output_size)


@decomposition(nn.functional.max_unpool2d, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def max_unpool2d_to_scatter(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Unpools (N, C, H, W) or (C, H, W); torch itself fails in a TorchScript trace.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxUnpool2d.html
    """
    return max_unpool(input, indices, 2, kernel_size, stride, padding, output_size)


@decomposition(nn.functional.max_unpool3d, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def max_unpool3d_to_scatter(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Unpools (N, C, D, H, W) or (C, D, H, W); torch itself fails in a TorchScript trace.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxUnpool3d.html
    """
    return max_unpool(input, indices, 3, kernel_size, stride, padding, output_size)


@decomposition(nn.functional.fractional_max_pool2d, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fractional_max_pool2d_to_gather(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    """Pools (N, C, H, W) or (C, H, W); neither exporter has an operator for it.

    Declines: samples that torch would draw, and heights and widths that vary.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool2d.html
    """
    return fractional_max_pool2d(input, kernel_size, output_size, output_ratio, _random_samples, indices=False)[0]


@decomposition(
    nn.functional.fractional_max_pool2d_with_indices,
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.BITWISE,
)
def fractional_max_pool2d_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Pools (N, C, H, W) or (C, H, W); neither exporter has an operator for it.

    Declines: samples that torch would draw, and heights and widths that vary.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool2d.html
    """
    return fractional_max_pool2d(input, kernel_size, output_size, output_ratio, _random_samples, indices=True)
