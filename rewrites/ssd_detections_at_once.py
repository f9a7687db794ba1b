"""torchvision's SSD.postprocess_detections -> all classes at once.

Math:   of each class the k best boxes above a threshold are those above it among the k best. The classes' rows of
        scores, best first, masked and read row by row, give the same boxes in the same order.
Source: https://github.com/pytorch/vision/blob/main/torchvision/models/detection/ssd.py
"""

from typing import Any

import torch
from torch import Tensor, nn
from torchvision.models.detection import _utils
from torchvision.ops import boxes as box_ops

from torch_onnx_compat import Exactness, rewrite


@rewrite(
    "torchvision.models.detection.ssd.SSD.postprocess_detections",
    always=True,
    exactness=Exactness.ROUNDING,
)
def ssd_detections_at_once(
    self: Any, head_outputs: dict[str, Tensor], image_anchors: list[Tensor], image_shapes: list[tuple[Any, Any]]
) -> list[dict[str, Tensor]]:
    """Boxes (D, 4), scores (D) and labels (D) of each image; torchvision asks for the boxes of every class in turn."""
    scores = nn.functional.softmax(head_outputs["cls_logits"], dim=-1)
    found = zip(head_outputs["bbox_regression"], scores, image_anchors, image_shapes, strict=True)
    return [_detections(self, *image) for image in found]


def _detections(model: Any, codes: Tensor, scores: Tensor, anchors: Tensor, shape: Any) -> dict[str, Tensor]:
    boxes = box_ops.clip_boxes_to_image(model.box_coder.decode_single(codes, anchors), shape)
    by_class = scores[:, 1:].transpose(0, 1)
    best, places = by_class.topk(_utils._topk_min(by_class, model.topk_candidates, 1), dim=1)
    kept = best > model.score_thresh
    labels = torch.arange(1, scores.shape[1], device=scores.device)[:, None].expand_as(best)[kept]
    scored, located = best[kept], boxes[places[kept]]
    keep = box_ops.batched_nms(located, scored, labels, model.nms_thresh)[: model.detections_per_img]
    return {"boxes": located[keep], "scores": scored[keep], "labels": labels[keep]}
