"""torchvision::nms -> NonMaxSuppression of boxes that are never inside out.

Math:   torchvision gives a box whose second corner lies before its first no overlap with anything; NonMaxSuppression
        swaps the corners. Moved to its first corner, such a box is empty to both. An overlap, a float32, is above the
        threshold, a float64, if and only if it is above the float32 at or next below the threshold.
Schema: nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html; torchvision/csrc/ops/cpu/nms_kernel.cpp
"""

import sys

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("torchvision::nms", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def nms(op: Ops, dets: Value, scores: Value, iou_threshold: float) -> Value:
    """Places of the boxes that are kept, by decreasing score; both exporters keep the wrong ones of boxes inside out.

    Onnxruntime compares in float32.
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
