"""What torchvision's detectors are made of, in rows; pictures of every size; any number of boxes; nodes."""

import numpy as np
import pytest
import torch
from torch import nn
from torchvision import ops
from torchvision.models.detection import roi_heads, ssd, transform
from torchvision.models.detection._utils import BoxCoder
from torchvision.ops import MultiScaleRoIAlign, poolers, roi_align

from torch_onnx_compat import export_compat
from torch_onnx_compat.backends import internals
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs, assert_still_needed
from torch_onnx_compat.tracing import as_size, size_tensor

FIXED = Verify(random=False)
needs_scan = pytest.mark.skipif(not internals.exports_scan(), reason="this torch exports no scan")


# Pictures


class Batch(nn.Module):
    def __init__(self):
        super().__init__()
        self.transform = transform.GeneralizedRCNNTransform(16, 32, [0.5] * 3, [0.2] * 3, size_divisible=8)

    def forward(self, first, second):
        return self.transform.batch_images([first, second], 8)


PICTURES = (torch.rand(3, 20, 40), torch.rand(3, 33, 17))
SIZES = [(375, 500), (500, 375), (100, 301), (301, 100), (60, 80), (30, 52), (33, 61), (31, 122), (33, 64)]
"""Of them, 30 x 52, 33 x 61 and 31 x 122 come out a pixel smaller by a scale in float32."""


class Resizes(nn.Module):
    """The picture as a detector with pictures of 80 to 133 pixels sees it."""

    def __init__(self):
        super().__init__()
        self.transform = transform.GeneralizedRCNNTransform(80, 133, [0.5] * 3, [0.2] * 3)

    def forward(self, image):
        return self.transform([image])[0].tensors


def pictures():
    coarse = torch.rand(len(SIZES), 1, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    return [(nn.functional.interpolate(c, size, mode="bilinear")[0],) for c, size in zip(coarse, SIZES, strict=True)]


def resize_in_float32(image, self_min_size, self_max_size, target=None, fixed_size=None):
    """As torchvision records it for ONNX."""
    sides = torch.stack((size_tensor(image, -2), size_tensor(image, -1))).float()
    shorter, longer = self_min_size / sides.amin(0, keepdim=True), self_max_size / sides.amax(0, keepdim=True)
    sizes = (sides * torch.minimum(shorter, longer)).floor().long()
    size = [as_size(sizes[axis], 1, self_max_size) for axis in (0, 1)]
    return nn.functional.interpolate(image[None], size, mode="bilinear", align_corners=False)[0], None


# Boxes of all classes


BOXES_OF_CLASSES = (
    torch.tensor([[0.0, 0, 4, 4], [1, 1, 5, 5], [0, 0, 4, 4], [2, 2, 2, 2]]),
    torch.tensor([0.5, 0.7, 0.9, 0.1]),
    torch.tensor([0, 0, 1, 1]),
)
COUNT = {name: {0: "count"} for name in ("boxes", "scores", "classes")}


def keep_by_class(boxes, scores, classes):
    return ops.batched_nms(boxes, scores, classes, 0.3)


def sets_of_boxes(generator):
    """Boxes on a grid, many of them equal or empty, of three classes; none in some sets, over 1000 in the last."""
    counts = [*torch.randint(0, 12, (300,), generator=generator).tolist(), 1100]
    for count in counts:
        corner = torch.randint(0, 7 if count < 100 else 300, (count, 2), generator=generator)
        boxes = torch.cat((corner, corner + torch.randint(0, 5, (count, 2), generator=generator)), 1).float()
        scores = torch.randperm(count, generator=generator) / max(count, 1)
        yield boxes, scores, torch.randint(0, 3, (count,), generator=generator)


class SSDHead(nn.Module):
    """What torchvision's SSD does with the outputs of its network."""

    def __init__(self, anchors=60):
        super().__init__()
        self.box_coder = BoxCoder((10.0, 10.0, 5.0, 5.0))
        self.score_thresh, self.topk_candidates, self.nms_thresh, self.detections_per_img = 0.2, 20, 0.45, 30
        corner = torch.rand(anchors, 2) * 40
        self.anchors = torch.cat((corner, corner + torch.rand(anchors, 2) * 20 + 4), 1)

    def forward(self, codes, logits):
        outputs = {"bbox_regression": codes, "cls_logits": logits}
        count = codes.shape[0] if isinstance(codes.shape[0], int) else 2
        return ssd.SSD.postprocess_detections(self, outputs, [self.anchors] * count, [(50, 60)] * count)


def ssd_outputs(anchors=60, spread=3.0, shift=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, anchors, 5, generator=generator) * spread
    logits[..., 0] += shift
    return torch.randn(2, anchors, 4, generator=generator), logits


# Boxes pooled from the map of their level


class Pools(nn.Module):
    """Boxes of one picture, or of two, from a pyramid of three levels."""

    def __init__(self, levels=3, pictures=1):
        super().__init__()
        names = [str(level) for level in range(levels)]
        self.pool = MultiScaleRoIAlign(names, 3, 2, canonical_scale=32, canonical_level=3)
        self.pictures = pictures
        size = 64
        self.maps = {name: torch.randn(pictures, 2, size >> i + 2, size >> i + 2) for i, name in enumerate(names)}
        self.pool(self.maps, [torch.rand(1, 4)] * pictures, [(size, size)] * pictures)  # sets its scales for good

    def forward(self, boxes):
        boxes = boxes[boxes[:, 2] > boxes[:, 0]][:30]  # only the data says how many
        return self.pool(self.maps, [boxes] + [boxes * 0.9] * (self.pictures - 1), [(64, 64)] * self.pictures)


def boxes(count=9):
    corner = torch.rand(count, 2) * 30
    return torch.cat((corner, corner + torch.logspace(0.3, 1.8, count, 10.0)[:, None] * torch.rand(count, 2)), 1)


def pool_first_level(x_filtered, boxes, output_size, sampling_ratio, scales, mapper):
    rois = torch.cat((torch.zeros_like(boxes[0][:, :1]), boxes[0]), dim=1)
    return roi_align(x_filtered[0], rois, output_size, scales[0], sampling_ratio)


IMAGE = torch.randn(1, 2, 48, 64)


class NeverRan(nn.Module):
    """Pools from maps of a quarter and an eighth of the picture, of which the pooler has seen none yet."""

    def __init__(self):
        super().__init__()
        self.pool = MultiScaleRoIAlign(["0", "1"], 3, 2, canonical_scale=32, canonical_level=3)
        self.boxes = torch.tensor([[1.0, 2, 9, 8], [0, 0, 40, 30], [5, 5, 20, 40]])

    def forward(self, image):
        maps = {"0": nn.functional.avg_pool2d(image, 4), "1": nn.functional.avg_pool2d(image, 8)}
        return self.pool(maps, [self.boxes], [image.shape[-2:]])


class Ran(NeverRan):
    def __init__(self):
        super().__init__()
        self(IMAGE)


# Keypoints and masks


def keypoints(maps, rois):
    return roi_heads.heatmaps_to_keypoints(maps, rois)


def heatmaps(count, seed=0):
    """Smooth heatmaps, so that each has one greatest value, and boxes, one of them narrower than a pixel."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, 5, 4, 4, generator=generator)
    maps = (
        torch.nn.functional.interpolate(coarse, (14, 14), mode="bicubic") if count else coarse.new_zeros(0, 5, 14, 14)
    )
    corner = torch.rand(count, 2, generator=generator) * 50
    rois = torch.cat((corner, corner + torch.rand(count, 2, generator=generator) * 40), 1)
    if count:
        rois[0, 2] = rois[0, 0] + 0.4
    return maps, rois


HEATMAPS = {"maps": {0: "count"}, "rois": {0: "count"}}


def paste(masks, boxes):
    return roi_heads.paste_masks_in_image(masks, boxes, (40, 60))


def masks(count, seed=0):
    """Masks and boxes, some beyond the picture, one smaller than a pixel."""
    generator = torch.Generator().manual_seed(seed)
    corner = torch.rand(count, 2, generator=generator) * torch.tensor([50.0, 30.0]) - 4
    boxes = torch.cat((corner, corner + torch.rand(count, 2, generator=generator) * 30), 1)
    if count:
        boxes[0, 2:] = boxes[0, :2] + 0.3
    return torch.rand(count, 1, 28, 28, generator=generator), boxes


MASKS = {
    "dynamic": {"masks": {0: "count"}, "boxes": {0: "count"}},
    "samples": [masks(0), masks(1), masks(30, seed=1)],
}


EXAMPLES = [
    Example(
        "batch_images_by_padding",
        Batch().eval(),
        PICTURES,
        dynamic={"first": {1: "height", 2: "width"}, "second": {1: "other_height", 2: "other_width"}},
        samples=[PICTURES[::-1]],
    ),
    Example(
        "detector_resize_exactly",
        Resizes().eval(),
        pictures()[-1],
        # Of pictures of a thousand rows, onnxruntime's Resize rounds the places in the picture more than torch does.
        dynamic={"image": {1: ("height", 1, 600), 2: ("width", 1, 600)}},
        broken=resize_in_float32,
        samples=pictures(),
        options={"verify": True},
    ),
    Example(
        "batched_nms_to_nms",
        keep_by_class,
        BOXES_OF_CLASSES,
        dynamic=COUNT,
        broken=lambda boxes, scores, idxs, threshold: torch.ops.torchvision.nms(boxes, scores, threshold),
        leaves=lambda boxes, scores, classes: (ops.nms(boxes, scores, 0.3), classes + 1),
        options={"control_flow": False},
    ),
    Example(
        "roi_align_by_level",
        Pools().eval(),
        (boxes(),),
        dynamic={"boxes": {0: "count"}},
        broken=pool_first_level,
        samples=[(torch.zeros(0, 4),), (boxes(40),)],
        leaves=Pools(levels=1).eval(),
        exporters=("dynamo",),
        options={"verify": FIXED, "control_flow": False},
    ),
    Example(
        "roi_scales_of_example",
        NeverRan().eval(),
        (IMAGE,),
        dynamic={"image": {2: "height", 3: "width"}},
        broken=lambda features, shapes, scale, level: ([0.5, 0.25], poolers.initLevelMapper(1, 2, scale, level)),
        leaves=Ran().eval(),
        options={"verify": Verify(sizes={"height": (64,), "width": (80,)}), "control_flow": False},
    ),
    *(
        Example(
            "ssd_detections_at_once",
            SSDHead(anchors).eval(),
            ssd_outputs(anchors),
            dynamic=None,
            samples=[ssd_outputs(anchors, shift=9.0, seed=1), ssd_outputs(anchors, shift=40.0)],  # few, none
        )
        for anchors in (60, 12)
    ),
    Example(
        "heatmaps_to_keypoints_by_scan",
        keypoints,
        heatmaps(4),
        dynamic=HEATMAPS,
        samples=[heatmaps(0), heatmaps(1), heatmaps(9, seed=1)],
        exporters=("dynamo",) if internals.exports_scan() else (),
        options={"verify": True},
    ),
    Example("paste_masks_to_matmul", paste, masks(6), options={"verify": FIXED}, **MASKS),
]


def test_pictures_of_one_size(exporter):
    assert_same_outputs(Batch().eval(), PICTURES, exporter)
    # Noise resized in float32: a place between two cells is off by a rounding, and the cells by far.
    verify = Verify(random=False)
    assert_same_outputs(Resizes().eval(), pictures()[0], exporter, verify=verify)


def test_pictures_of_a_size_that_the_caller_fixes_are_left_alone(exporter):
    model = Resizes().eval()
    model.transform.fixed_size = (64, 64)
    result = assert_same_outputs(model, pictures()[0], exporter, verify=FIXED)
    assert "detector_resize_exactly" not in {note.entry for note in result.applied}


def test_keeps_what_torchvision_keeps(exporter):
    session = export_compat(keep_by_class, BOXES_OF_CLASSES, exporter=exporter, dynamic=COUNT).session()
    for args in sets_of_boxes(torch.Generator().manual_seed(0)):
        feeds = {name: arg.numpy() for name, arg in zip(COUNT, args, strict=True)}
        np.testing.assert_array_equal(session.run(None, feeds)[0], keep_by_class(*args).numpy())


def test_keeps_boxes_without_a_branch(exporter):
    uses = ("batched_nms_to_nms", "nms")
    result = assert_same_outputs(keep_by_class, BOXES_OF_CLASSES, exporter, dynamic=COUNT, uses=uses)
    assert result.nodes["NonMaxSuppression"] == 1
    assert "If" not in result.nodes


@pytest.mark.dynamo_from("2.10", "torch.export cannot take the first of a number of rows that values decide")
@pytest.mark.parametrize("anchors", [60, 12])
def test_ssd_takes_one_topk_a_picture(exporter, anchors):
    model, uses = SSDHead(anchors).eval(), ("ssd_detections_at_once",)
    result = assert_same_outputs(model, ssd_outputs(anchors), exporter, uses=uses)
    assert result.nodes["TopK"] == 2


@pytest.mark.dynamo_from("2.10", "torch.export cannot take the first of a number of rows that values decide")
@pytest.mark.parametrize("pictures", [1, 2])
def test_pools_take_one_node_a_level(exporter, pictures):
    samples, dynamic = [(torch.zeros(0, 4),), (boxes(40),)], {"boxes": {0: "count"}}
    options = {"dynamic": dynamic, "samples": samples, "verify": FIXED}
    result = assert_entry("roi_align_by_level", Pools(pictures=pictures).eval(), boxes(), exporter, **options)
    assert result.nodes["RoiAlign"] == 3


def test_pools_of_one_level_are_left_alone(exporter):
    result = assert_same_outputs(Pools(levels=1).eval(), boxes(), exporter)
    assert "roi_align_by_level" not in {note.entry for note in result.applied}


def test_scales_with_control_flow(exporter):
    options = {"dynamic": {"image": {2: "height", 3: "width"}}}
    verify = Verify(sizes={"height": (64,), "width": (80,)})
    assert_entry("roi_scales_of_example", NeverRan().eval(), IMAGE, exporter, verify=verify, **options)
    result = assert_same_outputs(Ran().eval(), IMAGE, exporter, **options)
    assert "roi_scales_of_example" not in {note.entry for note in result.applied}


def test_scales_leave_the_model_as_new(exporter):
    model = NeverRan().eval()
    assert_same_outputs(model, IMAGE, exporter)
    assert model.pool.scales is None


@needs_scan
def test_keypoints_take_one_scan():
    uses = ("heatmaps_to_keypoints_by_scan",)
    result = assert_same_outputs(keypoints, heatmaps(4), "dynamo", dynamic=HEATMAPS, uses=uses, verify=True)
    assert result.nodes["Scan"] == 1


def test_keypoints_of_torchscript_have_a_loop_of_their_own():
    options = {"dynamic": HEATMAPS, "samples": [heatmaps(9, seed=1)], "verify": True}
    assert_same_outputs(keypoints, heatmaps(4), "torchscript", **options)


def test_keypoints_still_need_it():
    assert_still_needed("heatmaps_to_keypoints_by_scan", keypoints, heatmaps(4), "dynamo", dynamic=HEATMAPS)


def test_masks_take_no_loop(exporter):
    name = "paste_masks_to_matmul"
    result = assert_same_outputs(paste, masks(6), exporter, uses=(name,), include=[name], verify=FIXED, **MASKS)
    assert not set(result.nodes) & {"Loop", "If"}


def test_masks_of_torchscript_avoid_a_loop():
    options = {**MASKS, "samples": [masks(0)], "verify": FIXED}
    assert_still_needed("paste_masks_to_matmul", paste, masks(6), "torchscript", **options)
