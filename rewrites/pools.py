"""Pools: averages by other divisors, pools without a batch axis, unpooling, and fractional windows."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torch_onnx_compat import Declaration, Exactness, decline, decomposition
from torch_onnx_compat.tracing import constant, static_size

AVERAGE = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
UNPOOL = Declaration(needed_on=("torchscript",), exactness=Exactness.BITWISE)
FRACTIONAL = Declaration(needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)


def _each(value: Any, axes: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * axes


# Averages: the mean of a window is its sum, padding included, by the number of its cells


@decomposition(nn.functional.avg_pool2d, **AVERAGE)
def avg_pool2d_to_sum(input: Tensor, *windows: Any, **options: Any) -> Tensor:
    """Pools (N, C, H, W) or (C, H, W); stock ignores the divisor, TorchScript fails without a batch.

    Declines: a divisor with ceil_mode, whose last windows have fewer cells.
    """
    return _average(nn.functional.avg_pool2d, 2, input, *windows, **options)


@decomposition(nn.functional.avg_pool3d, **AVERAGE)
def avg_pool3d_to_sum(input: Tensor, *windows: Any, **options: Any) -> Tensor:
    """Pools (N, C, D, H, W) or (C, D, H, W); stock ignores the divisor, TorchScript fails without a batch.

    Declines: a divisor with ceil_mode, whose last windows have fewer cells.
    """
    return _average(nn.functional.avg_pool3d, 3, input, *windows, **options)


def _average(
    pool: Callable[..., Tensor],
    axes: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """What torch's `pool` of so many axes gives for these arguments, which are its own."""
    is_single = input.dim() == axes + 1
    if divisor_override is None and not is_single:
        return NotImplemented
    batch = input.unsqueeze(0) if is_single else input
    if divisor_override is None:
        pooled = pool(batch, kernel_size, stride, padding, ceil_mode, count_include_pad)
    else:
        if ceil_mode:
            decline("divisor_override needs ceil_mode=False")
        pooled = pool(batch, kernel_size, stride, padding) * (math.prod(_each(kernel_size, axes)) / divisor_override)
    return pooled[0] if is_single else pooled


# Maxima over a dynamic length: torch asks for it as a number, unless the indices are wanted too


@decomposition(nn.functional.max_pool1d, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def max_pool1d_of_indices(input: Tensor, *windows: Any, **options: Any) -> Tensor:
    """Pools (N, C, L) or (C, L), by the function that also returns indices.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool1d.html
    """
    return nn.functional.max_pool1d_with_indices(input, *windows, **options)[0]


# Maxima of images without a batch axis: those of a batch of one, where indices count within a channel


@decomposition(nn.functional.max_pool2d, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def max_pool2d_unbatched(input: Tensor, *windows: Any, **options: Any) -> Tensor:
    """Pools an image without a batch axis, for which stock TorchScript writes a file that does not load.

    Declines: integers, which onnxruntime does not pool.
    """
    if not input.is_floating_point():
        decline(f"{str(input.dtype)[6:]} cannot be pooled in onnxruntime; convert to float32 before")
    if input.dim() != 3:
        return NotImplemented
    return nn.functional.max_pool2d(input.unsqueeze(0), *windows, **options).squeeze(0)


@decomposition(nn.functional.max_pool2d_with_indices, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def max_pool2d_indices_unbatched(input: Tensor, *windows: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """Pools an image without a batch axis, for which stock TorchScript writes a file that does not load.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html
    """
    if input.dim() != 3:
        return NotImplemented
    values, indices = nn.functional.max_pool2d_with_indices(input.unsqueeze(0), *windows, **options)
    return values.squeeze(0), indices.squeeze(0)


# Unpooling: values scattered over zeros


@decomposition(nn.functional.max_unpool1d, **UNPOOL)
def max_unpool1d_to_scatter(input: Tensor, indices: Tensor, *windows: Any, **options: Any) -> Tensor:
    """Unpools (N, C, L) or (C, L); torch itself fails in a TorchScript trace."""
    return _unpool(1, input, indices, *windows, **options)


@decomposition(nn.functional.max_unpool2d, **UNPOOL)
def max_unpool2d_to_scatter(input: Tensor, indices: Tensor, *windows: Any, **options: Any) -> Tensor:
    """Unpools (N, C, H, W) or (C, H, W); torch itself fails in a TorchScript trace."""
    return _unpool(2, input, indices, *windows, **options)


@decomposition(nn.functional.max_unpool3d, **UNPOOL)
def max_unpool3d_to_scatter(input: Tensor, indices: Tensor, *windows: Any, **options: Any) -> Tensor:
    """Unpools (N, C, D, H, W) or (C, D, H, W); torch itself fails in a TorchScript trace."""
    return _unpool(3, input, indices, *windows, **options)


def _unpool(
    axes: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Puts (..., *sizes) at the places that the indices name; the arguments are those of torch's function.

    Math: an index is a place in the flattened last axes of the output; every cell that no index names is 0. Where no
          size is asked for, an axis of n cells grows to (n - 1) * stride + kernel - 2 * padding.
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


# Fractional windows: maxima over windows that are read by a table


@decomposition(nn.functional.fractional_max_pool2d, **FRACTIONAL)
def fractional_max_pool2d_to_gather(input: Tensor, *windows: Any, **options: Any) -> Tensor:
    """Pools (N, C, H, W) or (C, H, W); neither exporter has an operator for it.

    Declines: samples that torch would draw, and heights and widths that vary.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool2d.html;
            ATen/native/FractionalMaxPooling.h
    """
    values, _, outputs = _fractional_windows(input, *windows, **options)
    return values.amax(-1).unflatten(-1, outputs)


@decomposition(nn.functional.fractional_max_pool2d_with_indices, **FRACTIONAL)
def fractional_max_pool2d_indices(input: Tensor, *windows: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """Pools (N, C, H, W) or (C, H, W); neither exporter has an operator for it.

    Declines: samples that torch would draw, and heights and widths that vary.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool2d.html;
            ATen/native/FractionalMaxPooling.h
    """
    values, cells, outputs = _fractional_windows(input, *windows, **options)
    maxima = values.amax(-1).unflatten(-1, outputs)
    return maxima, cells.gather(-1, values.argmax(-1, keepdim=True)).squeeze(-1).unflatten(-1, outputs)


def _fractional_windows(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """What torch's function pools for these arguments, which are its own.

    Math: along an axis of n cells with windows of k, output i of o begins at trunc((i + u) a) - trunc(u a), where
          a = (n - k) / (o - 1) and u is the sample, the last output at n - k. A sample is a pair: u of the width, then
          of the height.

    Returns:
        Values of each output's window, (..., outputs, cells); their places among the flattened last axes, alike; and
        the height and width of the output.

    Raises:
        Declined: There are no samples, or the height or width varies.
    """
    samples = _random_samples
    if samples is None:
        decline("the windows are drawn at random; draw them outside and pass them on as _random_samples (N, C, 2)")
    height, width = static_size(input, -2), static_size(input, -1)
    if height is None or width is None:
        decline("the height and width must be fixed; export one file for each size")
    if output_size is None:
        output_size = [int(size * ratio) for size, ratio in zip((height, width), _each(output_ratio, 2), strict=True)]
    kernel, outputs = _each(kernel_size, 2), _each(output_size, 2)
    samples = samples if input.dim() == 4 else samples.squeeze(0)
    rows = _cells(samples[..., 1:], height, outputs[0], kernel[0]) * width
    columns = _cells(samples[..., :1], width, outputs[1], kernel[1])
    # (N, C, P, 1, k, 1) + (N, C, 1, Q, 1, l) -> (N, C, P Q, k l)
    joint = rows.unsqueeze(-2).unsqueeze(-1) + columns.unsqueeze(-3).unsqueeze(-2)
    cells = joint.flatten(-2).flatten(-3, -2)
    values = input.flatten(-2).gather(-1, cells.flatten(-2)).unflatten(-1, (outputs[0] * outputs[1], -1))
    return values, cells, outputs


def _cells(sample: Tensor, size: int, output: int, kernel: int) -> Tensor:
    """Numbers of the cells of each window of an axis: (..., 1) -> (..., output, kernel)."""
    number = constant(np.arange(output), sample)
    step = constant((size - kernel) / max(output - 1, 1), sample)
    starts = ((number + sample) * step).long() - (sample * step).long()
    is_last = constant(np.arange(output) == output - 1, sample, torch.bool)
    starts = torch.where(is_last, constant(size - kernel, sample, torch.int64), starts)
    return starts.unsqueeze(-1) + constant(np.arange(kernel), sample, torch.int64)
