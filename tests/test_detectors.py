"""torchvision's detectors, whole: preprocessing, network, non-maximum suppression, masks and keypoints in one file."""

import pytest
import torch
from torchvision.models import detection

from torch_onnx_compat import Verify, export_compat
from torch_onnx_compat.zoo import load
from torch_onnx_compat.zoo.detectors import spread_scores

RESIZED = (
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "fasterrcnn_mobilenet_v3_large_fpn",
    "fasterrcnn_resnet50_fpn",
    "fasterrcnn_resnet50_fpn_v2",
    "fcos_resnet50_fpn",
    "keypointrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn_v2",
    "retinanet_resnet50_fpn",
    "retinanet_resnet50_fpn_v2",
)
FIXED = ("ssd300_vgg16", "ssdlite320_mobilenet_v3_large")
SIZE = (160, 192)


def detector(name):
    sample = load(f"torchvision:{name}", SIZE)
    if name in RESIZED:  # to pictures that a test has time for, in which something is to be found again
        sample.model.transform.min_size, sample.model.transform.max_size = (128,), 192
        with torch.no_grad():
            handle = spread_scores(sample.model)
            sample.model(*sample.args)
            handle.remove()
    return sample


def without_detections(model):
    """No score exceeds the threshold any more."""
    (getattr(model, "roi_heads", None) or model).score_thresh = 1.1
    return model


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", RESIZED + FIXED)
def test_finds_what_eager_torch_finds(name, exporter):
    sample = detector(name)
    result = export_compat(sample.model, sample.args, exporter=exporter)
    with torch.no_grad():
        assert len(sample.model(*sample.args)[0]["boxes"]) > 1
    assert result.nodes["NonMaxSuppression"]
    assert all(row.ok for row in result.table)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["fasterrcnn_mobilenet_v3_large_320_fpn", "fcos_resnet50_fpn", "ssd300_vgg16"])
def test_pictures_of_any_size(name, exporter):
    sample = detector(name)
    picture = sample.args[0][0]
    others = [([torch.nn.functional.interpolate(picture[None], size)[0]],) for size in ((100, 301), (375, 500))]
    result = export_compat(
        sample.model,
        sample.args,
        exporter=exporter,
        dynamic={"images_0": {1: "height", 2: "width"}},
        samples=others,
    )
    assert {"sample 0", "sample 1"} <= {row.case for row in result.table}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name", ["maskrcnn_resnet50_fpn", "keypointrcnn_resnet50_fpn", "ssdlite320_mobilenet_v3_large"]
)
def test_nothing_to_find(name, exporter):
    sample = detector(name)
    export_compat(without_detections(sample.model), sample.args, exporter=exporter)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_pictures_of_two_sizes(exporter):
    sample = detector("fasterrcnn_mobilenet_v3_large_320_fpn")
    picture = sample.args[0][0]
    pictures = ([picture, picture[:, :120].flip(2)],)
    result = export_compat(sample.model, pictures, exporter=exporter, verify=Verify(random=False))
    assert len(result.session().get_outputs()) == 6


@pytest.mark.one_exporter
@pytest.mark.dynamo_from("2.10", "torch.export cannot pad to a number that values decide")
def test_a_small_detector(exporter):
    """The whole way of a Faster R-CNN, with a backbone of two layers."""
    torch.manual_seed(0)
    backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 4, 1), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, 2, 1))
    backbone.out_channels = 8
    anchors = detection.anchor_utils.AnchorGenerator(((16, 32),), ((1.0,),))
    model = detection.FasterRCNN(
        backbone, 3, 64, 96, rpn_anchor_generator=anchors, box_score_thresh=0.2, rpn_post_nms_top_n_test=40
    ).eval()
    export_compat(
        model,
        ([torch.rand(3, 48, 56)],),
        exporter=exporter,
        dynamic={"images_0": {1: "height", 2: "width"}},
        samples=[([torch.rand(3, 75, 50)],)],
        verify=Verify(sizes={"height": (60,), "width": (41,)}),
    )
