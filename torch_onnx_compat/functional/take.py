"""Reads cells of one axis by a table of any rank, as a custom operator that becomes one ONNX Gather.

torch has no operator that both exporters write as one Gather: an index such as ``x[:, table]`` becomes two Transpose
nodes and a GatherND under dynamo, and index_select takes 1-dimensional tables only.

Source: https://onnx.ai/onnx/operators/onnx__Gather.html
"""

from __future__ import annotations

import torch
from torch import Tensor


def take(x: Tensor, table: Tensor, axis: int) -> Tensor:
    """Puts ``x[..., table, ...]`` in place of an axis: (..., n, ...) and (*t) -> (..., *t, ...).

    Args:
        x: The tensor that is read.
        table: Numbers of cells, int64, from 0 to the axis' size - 1.
        axis: The axis, not negative.
    """
    result: Tensor = operator(x, table, axis)
    return result


@torch.library.custom_op("torch_onnx_compat::take", mutates_args=())
def operator(x: Tensor, table: Tensor, axis: int) -> Tensor:
    """The custom operator of `take`."""
    shape = (*x.shape[:axis], *table.shape, *x.shape[axis + 1 :])
    return x.index_select(axis, table.reshape(-1)).reshape(shape)


@operator.register_fake
def _(x: Tensor, table: Tensor, axis: int) -> Tensor:
    return x.new_empty((*x.shape[:axis], *table.shape, *x.shape[axis + 1 :]))
