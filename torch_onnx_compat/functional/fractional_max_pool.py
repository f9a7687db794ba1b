"""fractional_max_pool2d with given samples, as maxima over windows that are read by a table.

Math:   along an axis of n cells with windows of k, output i of o begins at trunc((i + u) a) - trunc(u a), where
        a = (n - k) / (o - 1) and u is the sample, the last output at n - k. A sample is a pair: u of the width, then
        of the height.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool2d.html;
        ATen/native/FractionalMaxPooling.h
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.entry import decline
from torch_onnx_compat.tracing import constant, static_size


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
