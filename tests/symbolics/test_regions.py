"""Regions of images, in rows; suppression against torchvision on many sets of boxes; what is declined."""

import numpy as np
import pytest
import torch
import torchvision
from torch.torch_version import TorchVersion
from torchvision import ops

from torch_onnx_compat import export_compat
from torch_onnx_compat.catalogue.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_same_outputs

CORNERS = torch.tensor([[0.0, 0, 4, 4], [1, 1, 5, 5], [4, 4, 0, 0], [2, 2, 2, 2], [1, 1, 5, 5], [9, 9, 2, 2]])
BOXES = (CORNERS, torch.tensor([0.5, 0.5, 0.9, 0.1, 0.7, 0.9]))
ANY_BOXES = {"boxes": {0: "boxes"}, "scores": {0: "boxes"}}
REGIONS = torch.tensor(
    [[0, 1.0, 1, 6, 7], [1, -2, -3, 5, 4], [1, 3, 3, 3, 3], [0, 8, 8, 30, 40], [1, 2.5, 1.5, 4.5, 9]]
)
FEATURES = torch.randn(2, 3, 12, 10)
CHECKS_REGIONS = TorchVersion(torchvision.__version__) >= "0.29.2"
"""Whether eager torchvision refuses a region of an image that there is not; older versions read what lies behind."""
COMPARABLE = EXPORTERS if CHECKS_REGIONS else ()
ANY_REGIONS = {"x": {0: "batch", 2: "height"}, "rois": {0: "regions"}}
OPSETS = {"torchscript": 17, "dynamo": 18}
"""Lowest for ps_roi_align with any batch, and lowest that dynamo writes."""


def regions(each, spread):
    """Two feature maps and as many regions of each, some beyond the border or empty."""
    generator = torch.Generator().manual_seed(0)
    corner = torch.rand(2 * each, 2, generator=generator) * 20 - spread
    boxes = torch.cat((corner, corner + torch.rand(2 * each, 2, generator=generator) * 12), 1)
    boxes[1, 2:] = boxes[1, :2]
    boxes[2] = torch.tensor([-3.0, 1.0, 7.0, 9.0])  # at halves where it is scaled by 0.5
    image = torch.randn(2, 12, 12, 10, generator=generator)
    return image, torch.cat((torch.arange(2 * each)[:, None] % 2, boxes), 1)


def suppress(boxes, scores):
    ordered = torch.cat((boxes[:, :2], boxes[:, 2:] + 9), 1)
    kept = ops.nms(boxes, scores, 0.3)
    return kept, ops.nms(ordered, scores, 0.7), boxes[kept]


def pool_in_full_size(op, input, rois, spatial_scale: float, pooled_height: int, pooled_width: int):
    pooled = op.MaxRoiPool(input, rois, pooled_shape=[pooled_height, pooled_width], spatial_scale=1.0)
    return pooled, op.Shape(pooled)


EXAMPLES = [
    Example(
        "nms",
        suppress,
        BOXES,
        dynamic=ANY_BOXES,
        samples=[(torch.rand(9, 4) * 9, torch.rand(9)), (torch.zeros(0, 4), torch.zeros(0))],
        leaves=lambda boxes, scores: ops.box_iou(boxes, boxes),
    ),
    Example(
        "roi_pool",
        lambda x, rois: (ops.roi_pool(x, rois, (3, 2), 0.5), ops.roi_pool(x, rois, 2), ops.RoIPool(1, 1.5)(x, rois)),
        (FEATURES, REGIONS),
        broken=pool_in_full_size,
        dynamic={"x": {0: "images"}, "rois": {0: "regions"}},
        samples=[(FEATURES, REGIONS[:1])],
        leaves=lambda x, rois: ops.roi_align(x, rois, 2, 1.0, 2),
        exporters=tuple(reversed(COMPARABLE)),  # dynamo needs the entry, and the wrong body is tried on the first
    ),
    *(
        Example(
            "ps_roi_align",
            model,
            regions(4, spread=2),
            dynamic=dynamic,
            leaves=lambda x, rois: ops.roi_align(x, rois, 2, 0.5, 2),
            exporters=(exporter,) if CHECKS_REGIONS else (),
            options={"opset": opset},
        )
        for exporter, opset in OPSETS.items()
        for model, dynamic in (
            (
                lambda x, rois: (
                    ops.ps_roi_align(x, rois, 2, 0.5, 2),
                    ops.ps_roi_align(x, rois, (2, 3), 0.7, -1),
                    ops.PSRoIAlign((3, 1), 1.0, 3)(x, rois),
                ),
                None,
            ),
            (lambda x, rois: ops.ps_roi_align(x, rois, (2, 3), 0.5, 2), ANY_REGIONS),
        )
    ),
    Example(
        "ps_roi_pool",
        lambda x, rois: (
            ops.ps_roi_pool(x, rois, 2, 0.5),
            ops.ps_roi_pool(x, rois, (2, 3), 0.7),
            ops.PSRoIPool((3, 1), 1.0)(x, rois),
            ops.ps_roi_pool(x + 1000, rois, 1),
        ),
        regions(6, spread=4),
        dynamic=ANY_REGIONS,
        exporters=COMPARABLE,
    ),
]


def box_sets(generator):
    """1000 sets of boxes on a grid: many boxes are equal, empty or of swapped corners, and many scores are equal."""
    for _ in range(1000):
        count = int(torch.randint(0, 12, (), generator=generator))
        boxes = torch.randint(0, 7, (count, 4), generator=generator).float()
        yield boxes, torch.randint(0, 5, (count,), generator=generator) / 4


@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.0])
def test_keeps_what_torchvision_keeps(threshold):
    session = export_compat(
        lambda boxes, scores: ops.nms(boxes, scores, threshold), BOXES, exporter="torchscript", dynamic=ANY_BOXES
    ).session()
    for boxes, scores in box_sets(torch.Generator().manual_seed(0)):
        found = session.run(None, {"boxes": boxes.numpy(), "scores": scores.numpy()})[0]
        np.testing.assert_array_equal(found, ops.nms(boxes, scores, threshold).numpy())


def test_suppression_takes_nine_nodes(exporter):
    result = assert_same_outputs(lambda boxes, scores: ops.nms(boxes, scores, 0.3), BOXES, exporter, uses=("nms",))
    assert result.nodes["NonMaxSuppression"] == 1
    assert sum(count for operator, count in result.nodes.items() if operator != "Constant") == 9


@pytest.mark.skipif(not CHECKS_REGIONS, reason="this torchvision reads regions of images that there are not")
def test_roi_pool_takes_one_node():
    result = assert_same_outputs(
        lambda x, rois: ops.roi_pool(x, rois, 2, 1.0), (FEATURES, REGIONS), "dynamo", uses=("roi_pool",)
    )
    assert set(result.nodes) - {"Constant"} == {"MaxRoiPool"}


def test_places_of_the_maxima_are_not_given():
    model = lambda x, rois: torch.ops.torchvision.roi_pool(x, rois, 1.0, 2, 2)[1]  # noqa: E731
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_same_outputs(model, (FEATURES, REGIONS), "dynamo")


def test_ps_roi_align_needs_opset_16():
    with pytest.raises(CompatError):
        assert_same_outputs(
            lambda x, rois: ops.ps_roi_align(x, rois, 2, 0.5, 2), regions(4, spread=2), "torchscript", opset=15
        )


def test_ps_roi_pool_declines_varying_channels():
    with pytest.raises(CompatError, match="the number of channels must be fixed"):
        assert_same_outputs(
            lambda x, rois: ops.ps_roi_pool(x, rois, 1),
            regions(6, spread=4),
            "torchscript",
            dynamic={"x": {1: "channels"}},
        )
