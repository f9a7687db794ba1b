"""Maps a function over the rows of tensors: a loop in eager torch, one Scan in a file.

Source: https://onnx.ai/onnx/operators/onnx__Scan.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.catalogue.entry import decline
from torch_onnx_compat.watch import Watcher


def map_rows(function: Callable[..., Tensor], rows: Sequence[Tensor], read: Sequence[Tensor] = ()) -> Tensor:
    """Applies a function to each row; returns the stacked results.

    Args:
        function: Takes a row of each tensor and then `read`; returns a new tensor, of one shape for all rows.
        rows: Tensors with the same number of rows, one at least.
        read: Other tensors that the function reads; no two of them share memory.
    """
    if not internals.exports_scan():
        decline("this torch exports no scan; torch 2.9 does")
    if not torch.compiler.is_exporting():
        return torch.stack([function(*row, *read) for row in zip(*rows, strict=True)])

    def body(*tensors: Tensor) -> tuple[Tensor, Tensor]:  # torch's scan needs a carried tensor
        items, carried, others = tensors[: len(rows)], tensors[len(rows)], tensors[len(rows) + 1 :]
        return carried.clone(), function(*items, *others)

    with internals.without_function_modes(Watcher):
        _, found = internals.call_scan(body, list(rows), [torch.zeros(())], list(read))
    result: Tensor = found
    return result
