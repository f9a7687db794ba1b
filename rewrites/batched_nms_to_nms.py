"""torchvision.ops.batched_nms -> nms of boxes that were moved apart, class by class.

Math:   boxes of class c are moved by c (m + 1), where m is the largest coordinate; then no two classes overlap. With
        -inf beside the coordinates, m is defined without boxes too.
Source: https://docs.pytorch.org/vision/stable/generated/torchvision.ops.batched_nms.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.tracing import constant


@rewrite(
    ("torchvision.ops.batched_nms", "torchvision.ops.boxes.batched_nms", "*.batched_nms"),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.BITWISE,
)
def batched_nms_to_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """Keeps boxes within each class; torchvision decides by the number of boxes how, which both exporters freeze."""
    lowest = constant([[float("-inf")] * 4], like=boxes)
    step = torch.cat((boxes, lowest)).max() + 1
    moved = boxes + (idxs.to(boxes.dtype) * step).unsqueeze(1)
    kept: Tensor = torch.ops.torchvision.nms(moved, scores, iou_threshold)
    return kept
