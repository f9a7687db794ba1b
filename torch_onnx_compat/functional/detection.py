"""torchvision's detectors: what their rewrites need of torchvision, which is imported when one of them runs.

Source: https://github.com/pytorch/vision/tree/main/torchvision/models/detection
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def pooled_by_level(
    features: Sequence[Tensor], rois: Tensor, levels: Tensor, scales: Sequence[float], size: Any, sampling_ratio: int
) -> Tensor:
    """Boxes (N, 5) pooled from the map of their level, (N, C, *size).

    Args:
        features: A map (B, C, H, W) for each level.
        rois: Number of the picture, and corners.
        levels: Number of the map, for each box.
        scales: Of each map.
        size: Height and width of a pooled box.
        sampling_ratio: As for roi_align.
    """
    from torchvision.ops import roi_align

    order, pooled = [], []
    for level, (feature, scale) in enumerate(zip(features, scales, strict=True)):
        members = torch.where(levels == level)[0]
        order.append(members)
        pooled.append(roi_align(feature, rois[members], size, scale, sampling_ratio))
    joined = torch.cat(order)
    place = torch.zeros_like(levels).scatter(0, joined, torch.arange(joined.shape[0], device=levels.device))
    return torch.cat(pooled)[place]


def scales_of(heights: Sequence[int], height: int, canonical_scale: int, canonical_level: int) -> tuple[Any, Any]:
    """Scales of maps of these heights of a picture of that height, and torchvision's mapper of boxes to levels."""
    from torchvision.ops import poolers

    exponents = [round(math.log2(h / height)) for h in heights]
    mapper = poolers.initLevelMapper(-exponents[0], -exponents[-1], canonical_scale, canonical_level)
    return [2.0**exponent for exponent in exponents], mapper


def detected(model: Any, codes: Tensor, scores: Tensor, anchors: Tensor, shape: Any) -> dict[str, Tensor]:
    """Boxes (D, 4), scores (D) and labels (D) that an SSD finds in one picture, of all classes at once.

    Args:
        model: The SSD; its thresholds and its coder of boxes are read.
        codes: What the network says of each anchor's box, (A, 4).
        scores: Probabilities of each class, (A, C), the background first.
        anchors: Boxes (A, 4).
        shape: Height and width of the picture.
    """
    from torchvision.models.detection import _utils
    from torchvision.ops import boxes as box_ops

    boxes = box_ops.clip_boxes_to_image(model.box_coder.decode_single(codes, anchors), shape)
    by_class = scores[:, 1:].transpose(0, 1)
    best, places = by_class.topk(_utils._topk_min(by_class, model.topk_candidates, 1), dim=1)
    kept = best > model.score_thresh
    labels = torch.arange(1, scores.shape[1], device=scores.device)[:, None].expand_as(best)[kept]
    scored, located = best[kept], boxes[places[kept]]
    keep = box_ops.batched_nms(located, scored, labels, model.nms_thresh)[: model.detections_per_img]
    return {"boxes": located[keep], "scores": scored[keep], "labels": labels[keep]}
