"""Goes through the rows of tensors: a loop in eager torch, one Scan or Loop in a file.

Source: https://onnx.ai/onnx/operators/onnx__Scan.html; https://onnx.ai/onnx/operators/onnx__Loop.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends import internals
from torch_onnx_compat.catalogue.entry import decline
from torch_onnx_compat.tracing import is_tracing, without_tracing
from torch_onnx_compat.watch import without_watchers


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

    with without_watchers() as under_watchers:
        _, found = internals.call_scan(under_watchers(body), list(rows), [torch.zeros(())], list(read))
    result: Tensor = found
    return result


Step = Callable[[Tensor, Tensor], Tensor]
"""Takes the result so far and a row; returns a new tensor of the same shape and type."""


def accumulate_rows(function: Step, rows: Tensor, start: Tensor) -> Tensor:
    """Combines each row with what the rows before it gave, like itertools.accumulate; returns the stacked results.

    Args:
        function: Combines.
        rows: At least one row; their number may vary.
        start: The result before the first row.
    """
    if not is_tracing():
        return _scan(function, rows, start)[1]
    loop = _script_loop(lambda *given: (_of_round(function, *given),) * 2, rows, start, stacks=True)
    result: Tensor = loop(rows.shape[0], start, rows, rows[:0])[1]
    return result


def reduce_rows(function: Step, rows: Tensor, start: Tensor) -> Tensor:
    """Combines all rows, like functools.reduce; returns the last result.

    Args:
        function: Combines.
        rows: At least one row; their number may vary.
        start: The result before the first row.
    """
    if not is_tracing():
        return _scan(function, rows, start)[0]
    loop = _script_loop(lambda *given: _of_round(function, *given), rows, start, stacks=False)
    result: Tensor = loop(rows.shape[0], start, rows)
    return result


def _scan(function: Step, rows: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """The last result and all of them."""
    if not internals.exports_scan():
        decline("this torch exports no scan; torch 2.9 does")
    if not torch.compiler.is_exporting():
        found = list(accumulate(rows, function, initial=start))
        return found[-1], torch.stack(found[1:])

    def round_of(row: Tensor, so_far: Tensor) -> tuple[Tensor, Tensor]:
        new = function(so_far, row)
        return new, new.clone()

    with without_watchers() as under_watchers:
        last, every = internals.call_scan(under_watchers(round_of), [rows], [start], [])
    return last, every


def _of_round(function: Step, number: Tensor, so_far: Tensor, rows: Tensor) -> Tensor:
    return function(so_far, rows[number])


def _script_loop(body: Callable[..., Any], rows: Tensor, start: Tensor, *, stacks: bool) -> Callable[..., Any]:
    with without_tracing():
        given = (torch.zeros((), dtype=torch.int64), start.clone(), rows.detach().clone())
        traced = torch.jit.trace(body, given, check_trace=False)
        internals.forget_sizes(traced)
        return internals.script_loop("for", traced, carried=1, read=1, rows=[None] if stacks else [])
