"""Matrix products of groups of rows, as mixtures of experts take them.

Math:   rows offsets[g - 1] <= s < offsets[g] of x, with offsets[-1] = 0, are multiplied by weight[g].
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.grouped_mm.html
"""

from __future__ import annotations

import torch

from torch_onnx_compat.entry import decline
from torch_onnx_compat.ops import Ops, Value


def grouped_products(op: Ops, x: Value, weight: Value, offsets: Value) -> Value:
    """X (S, K) by weight (G, K, N) -> (S, N), zero in the rows after the last group; offsets (G,), ascending.

    One product for each group: as much work as torch does, whatever the number of groups. A group may be empty.

    Declines: a number of groups that varies.
    """
    shape = op.shape(weight)
    if shape is None or shape[0] is None:
        decline("the number of groups must be fixed")
    ends = [op.constant([0], torch.int64)]
    every = op.cast(offsets, torch.int64)
    products = []
    for group in range(shape[0]):
        ends.append(op.Gather(every, [group], axis=0))
        rows = op.Slice(x, ends[-2], ends[-1], [0])
        products.append(op.MatMul(rows, op.Gather(weight, op.constant(group, torch.int64), axis=0)))
    rest = op.Sub(op.Slice(op.Shape(x), [0], [1]), ends[-1])
    return op.Pad(op.Concat(*products, axis=0), op.Concat([0, 0], rest, [0], axis=0))
