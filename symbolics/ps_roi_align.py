"""torchvision::ps_roi_align -> RoiAlign of all channels, and of each bin the channels that are its own.

Math:   bin (i, j) of output channel c comes from input channel (c P + i) Q + j. Regions begin half a pixel before
        their corner, as RoiAlign's do with half_pixel.
Schema: ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width,
        int sampling_ratio) -> (Tensor, Tensor)
Source: https://onnx.ai/onnx/operators/onnx__RoiAlign.html; torchvision/csrc/ops/cpu/ps_roi_align_kernel.cpp
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic
from torch_onnx_compat.ops import ONNX_TYPES


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

    The second result, the channel of each bin, is for the backward pass; zeros stand for it.
    """
    dtype, boxes = op.dtype(input), op.Gather(rois, [1, 2, 3, 4], axis=1)
    aligned = op.RoiAlign(
        input,
        boxes,
        op.Cast(op.Gather(rois, op.constant(0, torch.int64), axis=1), to=ONNX_TYPES[torch.int64]),
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
    return pooled, op.Expand(op.constant(0, torch.int32), op.Shape(pooled))
