"""Non-maximum suppression of a batch of pictures as a mask over the candidates: as an operator, or as arithmetic.

Math:   greedy suppression keeps a box unless a kept one with a higher score overlaps it by more than the threshold.
        Let the boxes be sorted by score, and S[i, j] = 1 where j < i and the two overlap. Then the kept boxes are the
        only solution of keep[i] = (sum over j of S[i, j] keep[j] = 0). From all ones, the iteration
        keep <- relu(1 - S keep) has the first t + 1 elements right after t steps, so k - 1 steps are exact for k boxes.
        The operator has no classes here: boxes of class c are moved by c (m + 1), where m is the extent of all boxes.
        torchvision.ops.batched_nms does so too; it rounds large coordinates.
Source: torchvision/csrc/ops/cpu/nms_kernel.cpp for the overlap, which is compared in float64 there: see `threshold_of`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat.tracing import constant


class Candidates(NamedTuple):
    """The best boxes of each picture, by decreasing score."""

    boxes: Tensor
    """(N, K, 4), corners: left, top, right, bottom."""
    scores: Tensor
    """(N, K)."""
    classes: Tensor
    """(N, K), int64."""


def best_candidates(boxes: Tensor, scores: Tensor, count: int, pad: bool) -> Candidates:
    """The boxes with the highest scores, each with its best class; among equal scores the first.

    Args:
        boxes: (N, A, 4), corners.
        scores: (N, A, C).
        count: How many to take.
        pad: Whether there may be fewer boxes; then empty ones with a score of -inf are added.
    """
    if pad:
        batch, classes_of_box = boxes.shape[0], scores.shape[2]
        boxes = torch.cat((boxes, boxes.new_zeros((batch, count, 4))), 1)
        scores = torch.cat((scores, scores.new_full((batch, count, classes_of_box), float("-inf"))), 1)
    best, classes = scores.max(-1)
    best, order = torch.sort(best, dim=-1, descending=True, stable=True)
    order = order[:, :count]
    chosen = boxes.gather(1, order.unsqueeze(-1).expand(-1, -1, 4))
    return Candidates(chosen, best[:, :count], classes.gather(1, order))


def best_pairs(boxes: Tensor, scores: Tensor, count: int) -> Candidates:
    """The pairs of a box and a class with the highest scores; among equal scores the first.

    Args:
        boxes: (N, A, 4), corners.
        scores: (N, A, C).
        count: How many to take, at most A * C.
    """
    classes = int(scores.shape[2])
    best, order = torch.sort(scores.flatten(1), dim=-1, descending=True, stable=True)
    order = order[:, :count]
    places = torch.div(order, classes, rounding_mode="floor")
    chosen = boxes.gather(1, places.unsqueeze(-1).expand(-1, -1, 4))
    return Candidates(chosen, best[:, :count], order - places * classes)


def threshold_of(iou_threshold: float) -> float:
    """The float32 threshold that is equivalent to a float64 one, for float32 overlaps."""
    rounded = torch.tensor(iou_threshold, dtype=torch.float32)
    if rounded.item() > iou_threshold:
        rounded = torch.nextafter(rounded, torch.tensor(-1.0))
    return rounded.item()


def keep_mask_dense(found: Candidates, allowed: Tensor, iou_threshold: float, by_class: bool) -> Tensor:
    """Mask of the boxes that suppression keeps, in operators that every engine has.

    Args:
        found: By decreasing score; their number K is fixed.
        allowed: (N, K), bool; False for boxes that take no part.
        iou_threshold: A box is dropped if it overlaps a kept one by more, 0..1.
        by_class: Whether only boxes of one class suppress each other.

    Returns:
        (N, K), bool.
    """
    boxes = found.boxes
    lower, upper = boxes[..., :2], boxes[..., 2:]
    sizes = upper - lower
    area = sizes[..., 0] * sizes[..., 1]
    common = torch.minimum(upper.unsqueeze(1), upper.unsqueeze(2)) - torch.maximum(
        lower.unsqueeze(1), lower.unsqueeze(2)
    )
    common = functional.relu(common)
    inside = common[..., 0] * common[..., 1]
    overlap = inside / (area.unsqueeze(1) + area.unsqueeze(2) - inside)
    count = int(boxes.shape[1])
    earlier = constant(np.tril(np.ones((count, count), bool), -1), like=boxes, dtype=torch.bool)
    suppressing = (overlap > threshold_of(iou_threshold)) & earlier & allowed.unsqueeze(1)
    if by_class:
        suppressing = suppressing & (found.classes.unsqueeze(1) == found.classes.unsqueeze(2))
    suppresses = suppressing.to(boxes.dtype)
    start = allowed.to(boxes.dtype).unsqueeze(-1)
    keep = start
    for _ in range(count - 1):
        keep = functional.relu(start - suppresses @ keep)
    return keep.squeeze(-1) > 0


def keep_mask_by_operator(found: Candidates, allowed: Tensor, iou_threshold: float, by_class: bool) -> Tensor:
    """Mask of the boxes that suppression keeps, by ONNX's NonMaxSuppression; arguments as of `keep_mask_dense`."""
    boxes, scores = found.boxes, found.scores
    batch, count = scores.shape
    extent = boxes.amax() - boxes.amin() + 1
    if by_class:
        boxes = boxes + (found.classes.to(boxes.dtype) * extent).unsqueeze(-1)
        extent = boxes.amax() - boxes.amin() + 1
    picture = torch.arange(batch, device=boxes.device).to(boxes.dtype).reshape(-1, 1, 1)
    where = allowed.reshape(-1).nonzero().squeeze(-1)
    chosen = (boxes + picture * extent).reshape(-1, 4)[where]
    kept = torch.ops.torchvision.nms(chosen, scores.reshape(-1)[where], iou_threshold)
    mask = torch.zeros_like(scores).reshape(-1)
    return mask.scatter(0, where[kept], 1.0).reshape(batch, count) > 0


def compact(found: Candidates, keep: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Moves the kept boxes of each picture to the front, and pads with zeros, and with -1 for the class.

    Returns:
        boxes (N, D, 4), scores (N, D), classes (N, D) int64, count (N,) int64; D is `count` or K, whichever is less.
    """
    candidates = int(keep.shape[1])
    rank = constant(np.arange(candidates, 0, -1), like=found.scores)
    # All keys differ, since the TopK of some engines, e.g. OpenVINO's, orders equal keys arbitrarily.
    key, order = torch.sort(keep.to(rank.dtype) * candidates + rank, dim=-1, descending=True)
    flag, order = (key[:, :count] > candidates).to(rank.dtype), order[:, :count]
    boxes = found.boxes.gather(1, order.unsqueeze(-1).expand(-1, -1, 4)) * flag.unsqueeze(-1)
    classes = torch.where(flag > 0, found.classes.gather(1, order), torch.full_like(order, -1))
    scores = torch.where(flag > 0, found.scores.gather(1, order), torch.zeros_like(flag))
    return boxes, scores, classes, flag.sum(-1).to(torch.int64)
