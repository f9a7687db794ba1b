"""torchvision::ps_roi_pool -> differences of a table of sums.

Math:   with S[h, w] the sum of all cells above and left of (h, w), the sum of a window is S at its end minus S at its
        two mixed corners plus S at its beginning. Bin (i, j) of output channel c is the mean of a window of input
        channel (c P + i) Q + j; torchvision's windows end before the last row and column. The sums are float64, so
        that their differences keep the digits of float32.
Schema: ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width)
        -> (Tensor, Tensor)
Source: torchvision/csrc/ops/cpu/ps_roi_pool_kernel.cpp; Crow, Summed-area tables, 1984,
        https://doi.org/10.1145/800031.808600
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic
from torch_onnx_compat.ops import ONNX_TYPES


@symbolic("torchvision::ps_roi_pool", needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def ps_roi_pool(
    op: Ops, input: Value, rois: Value, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Value, Value]:
    """Pools regions (K, 5) of finite (N, C P Q, H, W) into (K, C, P, Q).

    The second result, the channel of each bin, is for the backward pass; zeros stand for it.

    Declines: a number of channels that varies.
    """
    shape, dtype = op.shape(input), op.dtype(input)
    if shape is None or shape[1] is None:
        decline("the number of channels must be fixed; leave axis 1 of the features out of the dynamic axes")
    height, width = (_size(op, input, axis) for axis in (2, 3))
    corners = _rounded(op, op.Mul(op.Gather(rois, [1, 2, 3, 4], axis=1), op.constant(spatial_scale, dtype)))

    def windows(first: int, count: int, size: Value) -> tuple[Value, Value]:
        """Where each bin of an axis begins and ends, (K, count), by the corners' column of the region's beginning."""
        start, stop = (op.Gather(corners, [column], axis=1) for column in (first, first + 2))
        length = op.Cast(op.Max(op.Sub(stop, start), op.constant(1.0, torch.float64)), to=ONNX_TYPES[dtype])
        step = op.Div(length, op.constant(float(count), dtype))
        begins, ends = (
            op.Mul(op.constant([cell + shift for cell in range(count)], dtype), step) for shift in (0.0, 1.0)
        )
        limit = op.Cast(op.Sub(size, op.constant(1, torch.int64)), to=ONNX_TYPES[torch.float64])
        bounds = (op.Add(op.Cast(x, to=ONNX_TYPES[torch.float64]), start) for x in (op.Floor(begins), op.Ceil(ends)))
        begin, end = (op.Max(op.Min(bound, limit), op.constant(0.0, torch.float64)) for bound in bounds)
        return begin, end

    rows = [op.Unsqueeze(bound, [1, 3]) for bound in windows(1, pooled_height, height)]
    columns = [op.Unsqueeze(bound, [1, 2]) for bound in windows(0, pooled_width, width)]
    areas = [op.Max(op.Sub(end, begin), op.constant(0.0, torch.float64)) for begin, end in (rows, columns)]
    area = op.Mul(*areas)

    sums = op.Cast(input, to=ONNX_TYPES[torch.float64])
    for axis in (2, 3):
        sums = op.CumSum(sums, op.constant(axis, torch.int64), exclusive=1)
    sums = op.Reshape(sums, [-1])
    numbers = op.constant(list(range(shape[1])), torch.int64)
    number = op.Reshape(numbers, [1, -1, pooled_height, pooled_width])
    batch = op.Cast(op.Gather(rois, [0], axis=1), to=ONNX_TYPES[torch.int64])
    channel = op.Add(op.Mul(op.Unsqueeze(batch, [2, 3]), op.constant(shape[1], torch.int64)), number)

    def at(row: Value, column: Value) -> Value:
        row, column = (op.Cast(bound, to=ONNX_TYPES[torch.int64]) for bound in (row, column))
        place = op.Add(op.Mul(op.Add(op.Mul(channel, height), row), width), column)
        return op.Gather(sums, place, axis=0)

    (top, bottom), (left, right) = rows, columns
    total = op.Add(op.Sub(op.Sub(at(bottom, right), at(top, right)), at(bottom, left)), at(top, left))
    mean = op.Div(total, op.Max(area, op.constant(1.0, torch.float64)))
    is_empty = op.Equal(area, op.constant(0.0, torch.float64))
    pooled = op.Cast(op.Where(is_empty, op.constant(0.0, torch.float64), mean), to=ONNX_TYPES[dtype])
    return pooled, op.Expand(op.constant(0, torch.int32), op.Shape(pooled))


def _rounded(op: Ops, x: Value) -> Value:
    """Nearest whole numbers as float64; halves go away from zero, unlike with ONNX's Round."""
    exact = op.Cast(x, to=ONNX_TYPES[torch.float64])
    return op.Mul(op.Sign(exact), op.Floor(op.Add(op.Abs(exact), op.constant(0.5, torch.float64))))


def _size(op: Ops, x: Value, axis: int) -> Value:
    """Size of an axis as an int64 tensor of shape ()."""
    return op.Gather(op.Shape(x), op.constant(axis, torch.int64), axis=0)
