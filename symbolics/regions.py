"""Regions of images: non-maximum suppression and pooled boxes, as torchvision's operators.

torchvision's pools have a second result, the places of the maxima or the channel of each bin, that only the backward
pass reads. Zeros stand for it.
"""

import sys

import torch

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic
from torch_onnx_compat.ops import ONNX_TYPES

DOUBLE = ONNX_TYPES[torch.float64]
INT64 = ONNX_TYPES[torch.int64]


@symbolic("torchvision::nms", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def nms(op: Ops, dets: Value, scores: Value, iou_threshold: float) -> Value:
    """Places of the boxes that are kept, by decreasing score; both exporters err on boxes with swapped corners.

    onnxruntime compares in float32.

    Math:   torchvision gives a box whose second corner lies before its first no overlap with anything;
            NonMaxSuppression swaps the corners. With the second corner moved to the first, such a box is empty to both.
            An overlap, a float32, is above the threshold, a float64, if and only if it is above the float32 at or next
            below the threshold.
    Schema: nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
    Source: https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html; torchvision/csrc/ops/cpu/nms_kernel.cpp
    """
    dets, scores = op.cast(dets, torch.float32), op.cast(scores, torch.float32)
    first, second = op.Slice(dets, [0], [2], [1]), op.Slice(dets, [2], [4], [1])
    boxes = op.Concat(first, op.Max(first, second), axis=1)
    limit = op.constant([sys.maxsize], torch.int64)
    threshold = torch.tensor(iou_threshold, dtype=torch.float32)
    if threshold.item() > iou_threshold:  # torchvision compares with the number itself, in float64
        threshold = torch.nextafter(threshold, torch.tensor(-1.0))
    rounded = op.constant([threshold.item()], torch.float32)
    kept = op.NonMaxSuppression(op.Reshape(boxes, [1, -1, 4]), op.Reshape(scores, [1, 1, -1]), limit, rounded)
    return op.Reshape(op.Gather(kept, op.constant([2], torch.int64), axis=1), [-1])


@symbolic("torchvision::roi_pool", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def roi_pool(
    op: Ops, input: Value, rois: Value, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Value, Value]:
    """Pools regions (K, 5) into (K, C, P, Q); torch's lowering takes other arguments than the operator has.

    Math:   the largest value of each of the cells of a region, whose corners are rounded to whole pixels.
    Schema: roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) ->
            (Tensor, Tensor)
    Source: https://onnx.ai/onnx/operators/onnx__MaxRoiPool.html
    """
    pooled = op.MaxRoiPool(input, rois, pooled_shape=[pooled_height, pooled_width], spatial_scale=spatial_scale)
    return pooled, _zeros_like(op, pooled)


@symbolic(
    "torchvision::ps_roi_align",
    needed_on=("torchscript", "dynamo"),
    opset=(16, 99),
    exactness=Exactness.ROUNDING,
)
def ps_roi_align(
    op: Ops,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Value, Value]:
    """Samples regions (K, 5) of (N, C P Q, H, W) into (K, C, P, Q); every channel is sampled for all bins.

    Math:   bin (i, j) of output channel c comes from input channel (c P + i) Q + j. Regions begin half a pixel before
            their corner, as RoiAlign's do with half_pixel.
    Schema: ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int
            sampling_ratio) -> (Tensor, Tensor)
    Source: https://onnx.ai/onnx/operators/onnx__RoiAlign.html; torchvision/csrc/ops/cpu/ps_roi_align_kernel.cpp
    """
    dtype, boxes = op.dtype(input), op.Gather(rois, [1, 2, 3, 4], axis=1)
    aligned = op.RoiAlign(
        input,
        boxes,
        op.Cast(op.Gather(rois, op.constant(0, torch.int64), axis=1), to=INT64),
        coordinate_transformation_mode="half_pixel",
        mode="avg",
        output_height=pooled_height,
        output_width=pooled_width,
        sampling_ratio=max(sampling_ratio, 0),
        spatial_scale=spatial_scale,
    )
    bins = pooled_height * pooled_width
    own = [[(i * pooled_width + j) * (bins + 1) for j in range(pooled_width)] for i in range(pooled_height)]
    pooled = op.Gather(op.Reshape(aligned, [0, -1, bins * bins]), op.constant(own, torch.int64), axis=2)
    if sampling_ratio <= 0:
        # As many samples as cells: of none torchvision takes the mean, which is NaN, and RoiAlign 0.
        corners = op.Sub(op.Mul(boxes, op.constant(spatial_scale, dtype)), op.constant(0.5, dtype))
        extent = op.Sub(op.Gather(corners, [2, 3], axis=1), op.Gather(corners, [0, 1], axis=1))
        counts = op.Ceil(op.Div(extent, op.constant([float(pooled_width), float(pooled_height)], dtype)))
        count = op.Mul(op.Gather(counts, [0], axis=1), op.Gather(counts, [1], axis=1))
        is_empty = op.Unsqueeze(op.Equal(count, op.constant(0.0, dtype)), [2, 3])
        pooled = op.Where(is_empty, op.constant(float("nan"), dtype), pooled)
    return pooled, _zeros_like(op, pooled)


@symbolic("torchvision::ps_roi_pool", needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def ps_roi_pool(
    op: Ops, input: Value, rois: Value, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Value, Value]:
    """Pools regions (K, 5) of finite (N, C P Q, H, W) into (K, C, P, Q).

    Declines: a number of channels that varies.

    Math:   with S[h, w] the sum of all cells above and left of (h, w), the sum of a window is S at its end minus S at
            its two mixed corners plus S at its beginning. Bin (i, j) of output channel c is the mean of a window of
            input channel (c P + i) Q + j; torchvision's windows end before the last row and column. The sums are
            float64, so that their differences keep the digits of float32.
    Schema: ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) ->
            (Tensor, Tensor)
    Source: torchvision/csrc/ops/cpu/ps_roi_pool_kernel.cpp; Crow, Summed-area tables, 1984,
            https://doi.org/10.1145/800031.808600
    """
    shape, dtype = op.shape(input), op.dtype(input)
    if shape is None or shape[1] is None:
        decline("the number of channels must be fixed; leave axis 1 of the features out of the dynamic axes")
    height, width = (_size(op, input, axis) for axis in (2, 3))
    scaled = op.Mul(op.Gather(rois, [1, 2, 3, 4], axis=1), op.constant(spatial_scale, dtype))
    corners = _round_half_away(op, scaled)

    def windows(first: int, count: int, size: Value) -> tuple[Value, Value]:
        """Where each bin of an axis begins and ends, (K, count), by the corners' column of the region's beginning."""
        start, stop = (op.Gather(corners, [column], axis=1) for column in (first, first + 2))
        length = op.Cast(op.Max(op.Sub(stop, start), op.constant(1.0, torch.float64)), to=ONNX_TYPES[dtype])
        step = op.Div(length, op.constant(float(count), dtype))
        begins, ends = (
            op.Mul(op.constant([cell + shift for cell in range(count)], dtype), step) for shift in (0.0, 1.0)
        )
        limit = op.Cast(op.Sub(size, op.constant(1, torch.int64)), to=DOUBLE)
        bounds = (op.Add(op.Cast(x, to=DOUBLE), start) for x in (op.Floor(begins), op.Ceil(ends)))
        begin, end = (op.Max(op.Min(bound, limit), op.constant(0.0, torch.float64)) for bound in bounds)
        return begin, end

    rows = [op.Unsqueeze(bound, [1, 3]) for bound in windows(1, pooled_height, height)]
    columns = [op.Unsqueeze(bound, [1, 2]) for bound in windows(0, pooled_width, width)]
    areas = [op.Max(op.Sub(end, begin), op.constant(0.0, torch.float64)) for begin, end in (rows, columns)]
    area = op.Mul(*areas)

    sums = op.Cast(input, to=DOUBLE)
    for axis in (2, 3):
        sums = op.CumSum(sums, op.constant(axis, torch.int64), exclusive=1)
    sums = op.Reshape(sums, [-1])
    numbers = op.constant(list(range(shape[1])), torch.int64)
    number = op.Reshape(numbers, [1, -1, pooled_height, pooled_width])
    batch = op.Cast(op.Gather(rois, [0], axis=1), to=INT64)
    channel = op.Add(op.Mul(op.Unsqueeze(batch, [2, 3]), op.constant(shape[1], torch.int64)), number)

    def sum_before(row: Value, column: Value) -> Value:
        row, column = (op.Cast(bound, to=INT64) for bound in (row, column))
        place = op.Add(op.Mul(op.Add(op.Mul(channel, height), row), width), column)
        return op.Gather(sums, place, axis=0)

    (top, bottom), (left, right) = rows, columns
    below = op.Sub(sum_before(bottom, right), sum_before(top, right))
    total = op.Add(op.Sub(below, sum_before(bottom, left)), sum_before(top, left))
    mean = op.Div(total, op.Max(area, op.constant(1.0, torch.float64)))
    is_empty = op.Equal(area, op.constant(0.0, torch.float64))
    pooled = op.Cast(op.Where(is_empty, op.constant(0.0, torch.float64), mean), to=ONNX_TYPES[dtype])
    return pooled, _zeros_like(op, pooled)


def _zeros_like(op: Ops, x: Value) -> Value:
    return op.Expand(op.constant(0, torch.int32), op.Shape(x))


def _round_half_away(op: Ops, x: Value) -> Value:
    """Nearest whole numbers as float64; halves go away from zero, unlike with ONNX's Round."""
    exact = op.Cast(x, to=DOUBLE)
    return op.Mul(op.Sign(exact), op.Floor(op.Add(op.Abs(exact), op.constant(0.5, torch.float64))))


def _size(op: Ops, x: Value, axis: int) -> Value:
    """Size of an axis as an int64 tensor of shape ()."""
    return op.Gather(op.Shape(x), op.constant(axis, torch.int64), axis=0)
