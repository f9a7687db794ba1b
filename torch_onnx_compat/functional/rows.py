"""A function of rows, row after row: a loop in eager torch, one Scan in a file.

Source: https://onnx.ai/onnx/operators/onnx__Scan.html
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.entry import decline
from torch_onnx_compat.watch import Watcher


def each_row(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """The results for each row, stacked.

    Args:
        function: Takes a row of every tensor, returns a tensor of the same shape for all. It may read other tensors,
            but no sizes that are data.
        *tensors: All with the same number of rows, one at least.
    """
    if not torch.compiler.is_exporting():
        return torch.stack([function(*rows) for rows in zip(*tensors, strict=True)])
    scan = internals.scan()
    if scan is None:
        decline("this torch exports no scan; torch 2.9 does")

    def step(carry: Tensor, rows: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        return carry.clone(), function(*rows)

    with internals.without_function_modes(Watcher):
        _, found = scan(step, torch.zeros(()), tensors)
    result: Tensor = found
    return result
