"""torchvision's detectors: Python that makes constants of sizes, levels and numbers of boxes.

torchvision is imported when one of the bodies runs, and not with the catalogue.

Source: https://github.com/pytorch/vision/tree/main/torchvision/models/detection
"""

import math
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional import cubic
from torch_onnx_compat.functional.rows import map_rows
from torch_onnx_compat.tracing import as_size, constant, example_size, is_tracing, size_tensor, without_tracing

# Pictures


@rewrite(
    "torchvision.models.detection.transform.GeneralizedRCNNTransform.batch_images",
    needed_on=("dynamo",),
    exactness=Exactness.BITWISE,
)
def batch_images_by_padding(self: Any, images: list[Tensor], size_divisible: int = 32) -> Tensor:
    """Makes one tensor (N, C, H, W) of images (C, h, w); torchvision's own code asks for every size as a number.

    Math: each image is padded at its lower and right end to the largest height and width among them, both rounded up to
          a multiple of a stride.
    Source: https://github.com/pytorch/vision/blob/main/torchvision/models/detection/transform.py
    """
    sym_max: Any = torch.sym_max
    largest = [reduce(sym_max, [image.shape[axis] for image in images]) for axis in (1, 2)]
    height, width = (-(-size // size_divisible) * size_divisible for size in largest)
    padded = [nn.functional.pad(i, (0, width - i.shape[2], 0, height - i.shape[1])) for i in images]
    return torch.stack(padded)


@rewrite(
    "torchvision.models.detection.transform._resize_image_and_masks",
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
)
def detector_resize_exactly(
    image: Tensor,
    self_min_size: int,
    self_max_size: int,
    target: Any = None,
    fixed_size: tuple[int, int] | None = None,
) -> tuple[Tensor, Any]:
    """Resizes an image (C, H, W) so that its shorter side is the smaller size, its longer one at most the larger.

    Math: an image (H, W) becomes floor(s H) x floor(s W) with s = min(a / min(H, W), b / max(H, W)), all in float64.
          torchvision computes s in float32 when an export to ONNX records it. The floor of that is one pixel less for
          about one picture size in seven.
    Source: https://github.com/pytorch/vision/blob/main/torchvision/models/detection/transform.py
    """
    is_fixed = not is_tracing() and all(type(size) is int for size in image.shape[-2:])
    if target is not None or fixed_size is not None or is_fixed:
        return NotImplemented
    sides = torch.stack((size_tensor(image, -2), size_tensor(image, -1))).double()
    # One-dimensional throughout: the TorchScript exporter makes float32 of a float64 without axes.
    shorter = constant([float(self_min_size)], like=sides) / sides.amin(0, keepdim=True)
    longer = constant([float(self_max_size)], like=sides) / sides.amax(0, keepdim=True)
    sizes = (sides * torch.minimum(shorter, longer)).floor().long()
    height, width = (as_size(sizes[axis], 1, self_max_size) for axis in (0, 1))
    resized = nn.functional.interpolate(image[None], (height, width), mode="bilinear", align_corners=False)
    return resized[0], None


# Boxes of all classes


@rewrite(
    ("torchvision.ops.batched_nms", "torchvision.ops.boxes.batched_nms", "*.batched_nms"),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.BITWISE,
)
def batched_nms_to_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """Keeps boxes within each class; torchvision decides by the number of boxes how, which both exporters freeze.

    Math: boxes of class c are moved by c (m + 1), where m is the largest coordinate; then no two classes overlap. With
          -inf beside the coordinates, m is defined without boxes too.
    Source: https://docs.pytorch.org/vision/stable/generated/torchvision.ops.batched_nms.html
    """
    lowest = constant([[float("-inf")] * 4], like=boxes)
    step = torch.cat((boxes, lowest)).max() + 1
    moved = boxes + (idxs.to(boxes.dtype) * step).unsqueeze(1)
    return torch.ops.torchvision.nms(moved, scores, iou_threshold)


@rewrite(
    "torchvision.models.detection.ssd.SSD.postprocess_detections",
    always=True,
    exactness=Exactness.ROUNDING,
)
def ssd_detections_at_once(
    self: Any, head_outputs: dict[str, Tensor], image_anchors: list[Tensor], image_shapes: list[tuple[Any, Any]]
) -> list[dict[str, Tensor]]:
    """Boxes (D, 4), scores (D) and labels (D) of each image; torchvision asks for the boxes of every class in turn.

    Math: of each class the k best boxes above a threshold are those above it among the k best. The classes' rows of
          scores, best first, masked and read row by row, give the same boxes in the same order.
    Source: https://github.com/pytorch/vision/blob/main/torchvision/models/detection/ssd.py
    """
    scores = nn.functional.softmax(head_outputs["cls_logits"], dim=-1)
    pictures = zip(head_outputs["bbox_regression"], scores, image_anchors, image_shapes, strict=True)
    return [_detections(self, *picture) for picture in pictures]


def _detections(model: Any, codes: Tensor, scores: Tensor, anchors: Tensor, shape: Any) -> dict[str, Tensor]:
    """Boxes (D, 4), scores (D) and labels (D) that an SSD finds in one picture, of all classes at once.

    Args:
        model: The SSD; its thresholds and its coder of boxes are read.
        codes: The network's code of each anchor's box, (A, 4).
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


# Boxes pooled from the map of their level


@rewrite("torchvision.ops.poolers._multiscale_roi_align", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def roi_align_by_level(
    x_filtered: list[Tensor],
    boxes: list[Tensor],
    output_size: Any,
    sampling_ratio: int,
    scales: list[float] | None,
    mapper: Any,
) -> Tensor:
    """Pools each box from the feature map of its level; torchvision's own code asks how many boxes there are.

    Math: the boxes of level 0, then those of level 1 and so on are a permutation p of all boxes; with q[p[i]] = i, row
          q[j] of the pooled boxes in that order is box j.
    Source: https://github.com/pytorch/vision/blob/main/torchvision/ops/poolers.py
    """
    from torchvision.ops import roi_align

    if scales is None or mapper is None or len(x_filtered) == 1:
        return NotImplemented
    numbers = [torch.full_like(each[:, :1], i) for i, each in enumerate(boxes)]
    rois = torch.cat((torch.cat(numbers), torch.cat(boxes)), dim=1)
    levels = mapper(boxes)
    order, pooled = [], []
    for level, (feature, scale) in enumerate(zip(x_filtered, scales, strict=True)):
        members = torch.where(levels == level)[0]
        order.append(members)
        pooled.append(roi_align(feature, rois[members], output_size, scale, sampling_ratio))
    joined = torch.cat(order)
    place = torch.zeros_like(levels).scatter(0, joined, torch.arange(joined.shape[0], device=levels.device))
    return torch.cat(pooled)[place]


@rewrite("torchvision.ops.poolers._setup_scales", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def roi_scales_of_example(
    features: list[Tensor], image_shapes: list[tuple[Any, Any]], canonical_scale: int, canonical_level: int
) -> tuple[list[float], Any]:
    """Scales and levels of a model that has never run; after a run they are numbers, which both exporters keep.

    Math: a map of height h of a picture of height H has the scale 2^round(log2(h / H)). Eager torch takes it from the
          first picture that the model ever sees, and keeps it.
    Source: https://github.com/pytorch/vision/blob/main/torchvision/ops/poolers.py
    """
    from torchvision.ops import poolers

    with without_tracing():
        heights = [example_size(feature.shape[-2]) for feature in features]
        height = max(example_size(shape[0]) for shape in image_shapes)
    exponents = [round(math.log2(h / height)) for h in heights]
    mapper = poolers.initLevelMapper(-exponents[0], -exponents[-1], canonical_scale, canonical_level)
    return [2.0**exponent for exponent in exponents], mapper


# Keypoints and masks: pictures of boxes, resized to the boxes


LARGEST = 2**16
"""Pixels of a side of a box; there is no larger picture."""


@rewrite(
    "torchvision.models.detection.roi_heads.heatmaps_to_keypoints",
    needed_on=("dynamo",),
    exactness=Exactness.ROUNDING,
)
def heatmaps_to_keypoints_by_scan(maps: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
    """Keypoints (N, K, 3) and their scores (N, K) of heatmaps (N, K, M, M) in boxes (N, 4).

    Math: a heatmap of M x M cells is resized to the whole pixels (w, h) of its box by bicubic interpolation, Wy A Wx^T,
          and its greatest value is the keypoint. Row p of W reads the four cells around u = (p + 1/2) M / w - 1/2,
          those beyond the edge as the one at the edge, with the weights of torch_onnx_compat.functional.cubic. Every
          matrix has as many rows as the largest box needs; what lies outside the own box is -inf.
    Source: https://github.com/pytorch/vision/blob/main/torchvision/models/detection/roi_heads.py;
            ATen/native/UpSample.h
    """
    size = (rois[:, 2:] - rois[:, :2]).clamp(min=1)
    whole = size.ceil()
    # One more heatmap, which is dropped again: onnxruntime's Scan takes no empty tensors.
    padded = torch.cat((maps, maps.new_zeros(1, *maps.shape[1:])))
    sizes = torch.cat((whole, whole.new_ones(1, 2)))
    longest = sizes.amax(0).long()
    width, height = (torch.arange(as_size(longest[i], 1, LARGEST), device=maps.device) for i in (0, 1))
    found = map_rows(_highest, (padded, sizes), (width, height, longest[0].clone()))[:-1]
    centre = found[:, :2] + 0.5
    place = centre * (size / whole)[..., None] + rois[:, :2, None]
    return torch.cat((place, torch.ones_like(place[:, :1])), 1).permute(0, 2, 1), found[:, 2]


def _highest(heatmap: Tensor, size: Tensor, columns: Tensor, rows: Tensor, width: Tensor) -> Tensor:
    """x, y and value of the greatest value of each of K heatmaps (K, M, M): (3, K)."""
    cells = heatmap.shape[-1]
    enlarged = _cubic_weights(size[1], rows, cells) @ heatmap @ _cubic_weights(size[0], columns, cells).transpose(0, 1)
    inside = (rows < size[1])[:, None] & (columns < size[0])
    enlarged = torch.where(inside, enlarged, torch.full_like(enlarged, float("-inf"))).flatten(1)
    best, place = enlarged.max(1)
    return torch.stack(((place % width).to(best.dtype), (place // width).to(best.dtype), best))


def _cubic_weights(size: Tensor, pixels: Tensor, cells: int) -> Tensor:
    """The weight of each cell in each pixel: (pixels, cells)."""
    place = (pixels + 0.5) * (cells / size) - 0.5
    first = place.floor()
    t = (place - first)[:, None]
    cell = torch.arange(cells, device=pixels.device)
    kernel = (
        cubic.outer(t + 1, cubic.PLAIN),
        cubic.inner(t, cubic.PLAIN),
        cubic.inner(1 - t, cubic.PLAIN),
        cubic.outer(2 - t, cubic.PLAIN),
    )
    taps = zip((-1, 0, 1, 2), kernel, strict=True)
    weights = [((first + tap).clamp(0, cells - 1)[:, None] == cell) * weight for tap, weight in taps]
    return weights[0] + weights[1] + weights[2] + weights[3]


@rewrite(
    "torchvision.models.detection.roi_heads.paste_masks_in_image",
    needed_on=("dynamo",),
    avoids=("Loop",),
    exactness=Exactness.ROUNDING,
)
def paste_masks_to_matmul(masks: Tensor, boxes: Tensor, img_shape: tuple[Any, Any], padding: int = 1) -> Tensor:
    """Masks (N, 1, M, M) in a picture (N, 1, H, W), without a loop over the boxes.

    Math: a mask of M x M cells, padded by a cell all round, lies in a box of integer corners (x0, y0, x1, y1), which is
          w = max(x1 - x0 + 1, 1) pixels wide, and h pixels high likewise. Pixel p of the picture reads the mask at
          u = clamp((p - x0 + 1/2) M / w - 1/2, 0, M - 1), cell m with weight max(1 - |u - m|, 0); no pixel outside
          [x0, x1] reads anything. The picture of mask A is Wy A Wx^T.
    Source: https://github.com/pytorch/vision/blob/main/torchvision/models/detection/roi_heads.py
    """
    cells = masks.shape[-1] + 2 * padding
    padded = nn.functional.pad(masks, (padding,) * 4)
    corners = _enlarge(boxes, cells / (cells - 2 * padding)).long()
    height, width = img_shape
    rows = _linear_weights(corners[:, 1], corners[:, 3], height, cells, masks.dtype)
    columns = _linear_weights(corners[:, 0], corners[:, 2], width, cells, masks.dtype)
    return rows @ padded @ columns.transpose(-1, -2)


def _enlarge(boxes: Tensor, scale: float) -> Tensor:
    half = (boxes[:, 2:] - boxes[:, :2]) * 0.5
    centre = (boxes[:, 2:] + boxes[:, :2]) * 0.5
    return torch.cat((centre - half * scale, centre + half * scale), dim=1)


def _linear_weights(first: Tensor, last: Tensor, length: Any, cells: int, dtype: torch.dtype) -> Tensor:
    """The weight of each cell in each pixel: (N, 1, length, cells)."""
    first, last = first[:, None], last[:, None]
    pixel = torch.arange(length, device=first.device)
    size = (last - first + 1).clamp(min=1)
    place = (pixel - first + 0.5) * (cells / size) - 0.5
    place = place.clamp(0, cells - 1)[..., None]
    weight = (1 - (place - torch.arange(cells, device=first.device)).abs()).clamp(min=0)
    inside = (pixel >= first) & (pixel <= last)
    return (weight * inside[..., None]).to(dtype)[:, None]
