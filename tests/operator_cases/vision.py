"""torchvision: boxes, regions of interest, transforms, layers."""

import torch
import torchvision
from torch import nn
from torchvision import ops
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

from operator_cases.case import Case


def image(*size: int):
    return lambda n: (torch.rand(n, *size),)


def boxes(n: int):
    """4 n boxes, some of them equal or empty."""
    corner = torch.rand(4 * n, 2) * 20
    found = torch.cat((corner, corner + torch.rand(4 * n, 2) * 12), 1)
    found[1] = found[0]
    found[2, 2] = found[2, 0]
    return found


def scored(n: int):
    return boxes(n), torch.rand(4 * n)


def tied(n: int):
    """As `scored`, with few different scores."""
    return boxes(n), (torch.rand(4 * n) * 3).floor()


def apart(n: int):
    return boxes(n) + 100 * torch.arange(4 * n)[:, None], torch.rand(4 * n)


def classes(n: int):
    return *scored(n), torch.randint(0, 3, (4 * n,))


def pairs(n: int):
    other = boxes(1)
    return boxes(n), other + 1.5


def paired(n: int):
    return boxes(n), boxes(n) + 1.5


def regions(n: int):
    """Feature maps of n images and 4 n regions on them, some of them beyond the border."""
    index = torch.arange(4 * n) % n
    return torch.randn(n, 8, 12, 10), torch.cat((index[:, None], boxes(n) - 2), 1)


def one_map(n: int):
    return torch.randn(2, 3, 12, 10), boxes(n)


def two_maps(n: int):
    return torch.randn(2, 3, 12, 10), boxes(n), boxes(1)


def masks(n: int):
    found = torch.zeros(n, 8, 9, dtype=torch.bool)
    found[:, 2:5, 3:8] = torch.rand(n, 3, 5) > 0.3
    found[:, 4, 6] = True
    return (found,)


def norm() -> nn.Module:
    layer = ops.FrozenBatchNorm2d(3)
    for buffer in layer.buffers():
        buffer.copy_(torch.rand(3) + 0.5)
    return layer


class Pyramid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pyramid = ops.FeaturePyramidNetwork([3, 4], 5)

    def forward(self, a, b):
        return tuple(self.pyramid({"a": a, "b": b}).values())


CASES = [
    Case("nms", "", lambda b, s: ops.nms(b, s, 0.4), scored),
    Case("nms", "ties", lambda b, s: ops.nms(b, s, 0.4), tied),
    Case("nms", "nothing overlaps", lambda b, s: ops.nms(b, s, 0.4), apart),
    Case("nms", "threshold 0", lambda b, s: ops.nms(b, s, 0.0), scored),
    Case("nms", "threshold 1", lambda b, s: ops.nms(b, s, 1.0), scored),
    Case("nms", "gathered", lambda b, s: b[ops.nms(b, s, 0.4)[:3]], scored),
    Case("nms", "no boxes", lambda b, s: ops.nms(b[s > 2], s[s > 2], 0.4), scored),
    Case("batched_nms", "", lambda b, s, i: ops.batched_nms(b, s, i, 0.4), classes),
    Case("roi_align", "", lambda x, r: ops.roi_align(x, r, (3, 2), 0.5, 2), regions),
    Case("roi_align", "aligned", lambda x, r: ops.roi_align(x, r, 3, 0.5, 2, aligned=True), regions),
    Case("roi_align", "adaptive sampling", lambda x, r: ops.roi_align(x, r, (3, 2), 0.5, -1), regions),
    Case("roi_align", "adaptive sampling, aligned", lambda x, r: ops.roi_align(x, r, 2, 1.0, -1, True), regions),
    Case("roi_align", "list of boxes", lambda x, a, b: ops.roi_align(x, [a, b], 3, 0.5, 2, True), two_maps),
    Case("roi_align", "module", ops.RoIAlign((3, 2), 0.5, 2, aligned=True), regions),
    Case("roi_pool", "", lambda x, r: ops.roi_pool(x, r, (3, 2), 0.5), regions),
    Case("roi_pool", "module", ops.RoIPool(2, 1.0), regions),
    Case("ps_roi_align", "", lambda x, r: ops.ps_roi_align(x, r, 2, 0.5, 2), regions),
    Case("ps_roi_pool", "", lambda x, r: ops.ps_roi_pool(x, r, 2, 0.5), regions),
    Case(
        "deform_conv2d",
        "",
        lambda x, o, w: ops.deform_conv2d(x, o, w, padding=1),
        lambda n: (torch.randn(n, 3, 6, 5), torch.randn(n, 18, 6, 5), torch.randn(4, 3, 3, 3)),
    ),
    Case("box_iou", "", ops.box_iou, pairs),
    Case("generalized_box_iou", "", ops.generalized_box_iou, pairs),
    Case("distance_box_iou", "", ops.distance_box_iou, pairs),
    Case("complete_box_iou", "", ops.complete_box_iou, pairs),
    Case("box_area", "", ops.box_area, lambda n: (boxes(n),)),
    *(
        Case("box_convert", f"{a} to {b}", lambda x, a=a, b=b: ops.box_convert(x, a, b), lambda n: (boxes(n),))
        for a in ("xyxy", "xywh", "cxcywh")
        for b in ("xyxy", "xywh", "cxcywh")
        if a != b
    ),
    Case("clip_boxes_to_image", "", lambda b: ops.clip_boxes_to_image(b - 3, (15, 17)), lambda n: (boxes(n),)),
    Case(
        "clip_boxes_to_image",
        "size of a tensor",
        lambda b, x: ops.clip_boxes_to_image(b - 3, x.shape[-2:]),
        lambda n: (boxes(n), torch.rand(1, 3, 7 + n, 9)),
    ),
    Case("remove_small_boxes", "", lambda b: ops.remove_small_boxes(b, 3.0), lambda n: (boxes(n),)),
    Case("masks_to_boxes", "", ops.masks_to_boxes, masks),
    Case("complete_box_iou_loss", "", lambda a, b: ops.complete_box_iou_loss(a, b), paired),
    Case("generalized_box_iou_loss", "", lambda a, b: ops.generalized_box_iou_loss(a, b, reduction="mean"), paired),
    Case(
        "sigmoid_focal_loss",
        "",
        lambda x, y: ops.sigmoid_focal_loss(x, y.sigmoid()),
        lambda n: (torch.randn(n, 4), torch.randn(n, 4)),
    ),
    Case("normalize", "", lambda x: F.normalize(x, [0.4, 0.5, 0.3], [0.2, 0.3, 0.25]), image(3, 6, 5)),
    Case("normalize", "transform", torchvision.transforms.Normalize([0.4, 0.5, 0.3], [0.2, 0.3, 0.25]), image(3, 6, 5)),
    Case("resize", "antialias", lambda x: F.resize(x, [5, 4]), image(3, 9, 7)),
    Case("resize", "larger, antialias", lambda x: F.resize(x, [13, 11]), image(3, 9, 7)),
    Case("resize", "no antialias", lambda x: F.resize(x, [5, 4], antialias=False), image(3, 9, 7)),
    Case("resize", "shorter side", lambda x: F.resize(x, [4]), image(3, 9, 7)),
    Case("resize", "bicubic, antialias", lambda x: F.resize(x, [5, 4], InterpolationMode.BICUBIC), image(3, 9, 7)),
    Case("resize", "nearest exact", lambda x: F.resize(x, [5, 4], InterpolationMode.NEAREST_EXACT), image(3, 9, 7)),
    Case("center_crop", "", lambda x: F.center_crop(x, [4, 3]), image(3, 9, 8)),
    Case("center_crop", "beyond the size", lambda x: F.center_crop(x, [12, 5]), image(3, 9, 8)),
    Case("crop", "", lambda x: F.crop(x, 1, 2, 4, 3), image(3, 9, 8)),
    Case("five_crop", "", lambda x: F.five_crop(x, [4, 3]), image(3, 9, 8)),
    Case("pad", "", lambda x: F.pad(x, [1, 2, 3, 0], fill=0.5), image(3, 5, 4)),
    Case("pad", "reflect", lambda x: F.pad(x, [1, 2], padding_mode="reflect"), image(3, 5, 4)),
    Case("horizontal_flip", "", F.horizontal_flip, image(3, 5, 4)),
    Case("vertical_flip", "", F.vertical_flip, image(3, 5, 4)),
    Case("rgb_to_grayscale", "", F.rgb_to_grayscale, image(3, 5, 4)),
    Case("rgb_to_grayscale", "three channels", lambda x: F.rgb_to_grayscale(x, num_output_channels=3), image(3, 5, 4)),
    Case("adjust_brightness", "", lambda x: F.adjust_brightness(x, 1.4), image(3, 5, 4)),
    Case("adjust_contrast", "", lambda x: F.adjust_contrast(x, 0.6), image(3, 5, 4)),
    Case("adjust_saturation", "", lambda x: F.adjust_saturation(x, 1.5), image(3, 5, 4)),
    Case("adjust_gamma", "", lambda x: F.adjust_gamma(x, 2.2), image(3, 5, 4)),
    Case(
        "adjust_sharpness",
        "",
        lambda x: F.adjust_sharpness(x, 1.7),
        image(3, 6, 5),
        declined="take exporter='dynamo'",
    ),
    Case(
        "gaussian_blur",
        "",
        lambda x: F.gaussian_blur(x, [3, 3], [0.8, 1.2]),
        image(3, 6, 5),
        declined="take exporter='dynamo'",
    ),
    Case("invert", "", lambda x: (F.invert(x), F.solarize(x, 0.5)), image(3, 5, 4)),
    Case(
        "to_dtype",
        "bytes to floats",
        lambda x: F.to_dtype(x, torch.float32, scale=True),
        lambda n: (torch.randint(0, 256, (n, 3, 4, 4), dtype=torch.uint8),),
    ),
    Case(
        "convert_image_dtype",
        "preset",
        torchvision.transforms._presets.ImageClassification(crop_size=6, resize_size=8),
        lambda n: (torch.randint(0, 256, (n, 3, 9, 12), dtype=torch.uint8),),
    ),
    Case("FrozenBatchNorm2d", "", norm(), image(3, 5, 4)),
    Case("StochasticDepth", "", ops.StochasticDepth(0.3, "row"), image(3, 5)),
    Case("SqueezeExcitation", "", ops.SqueezeExcitation(4, 2), image(4, 5, 3)),
    Case("Permute", "", ops.Permute([0, 2, 3, 1]), image(3, 5, 4)),
    Case("DropBlock2d", "", ops.DropBlock2d(0.3, 3), image(3, 8, 8)),
    Case("Conv2dNormActivation", "", ops.Conv2dNormActivation(3, 4), image(3, 6, 5)),
    Case("MLP", "", ops.MLP(4, [6, 2]), image(4)),
    Case("FeaturePyramidNetwork", "", Pyramid(), lambda n: (torch.rand(n, 3, 8, 6), torch.rand(n, 4, 4, 3))),
]
