"""Untrained detectors find a few things on the picture they were given, and no flood of them."""

import pytest
import torch

from torch_onnx_compat.zoo import load
from torch_onnx_compat.zoo.detectors import FEW


@pytest.mark.parametrize(
    "name",
    [
        "ssdlite320_mobilenet_v3_large",
        "fasterrcnn_mobilenet_v3_large_320_fpn",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                "ssd300_vgg16",
                "retinanet_resnet50_fpn",
                "fcos_resnet50_fpn",
                "keypointrcnn_resnet50_fpn",
                "maskrcnn_resnet50_fpn_v2",
            )
        ),
    ],
)
def test_a_few_detections(name: str) -> None:
    sample = load(f"torchvision:{name}")
    with torch.no_grad():
        (found,) = sample.model(*sample.args)
    assert 1 <= len(found["boxes"]) <= 2 * FEW
    assert "detections" in sample.note
