import pytest
import torch
from torch import nn
from torchvision.models.detection import transform

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "batch_images_by_padding"
TARGET = "torchvision.models.detection.transform.GeneralizedRCNNTransform.batch_images"
DYNAMIC = {"first": {1: "height", 2: "width"}, "second": {1: "other_height", 2: "other_width"}}
PICTURES = (torch.rand(3, 20, 40), torch.rand(3, 33, 17))


class Batch(nn.Module):
    def __init__(self):
        super().__init__()
        self.transform = transform.GeneralizedRCNNTransform(16, 32, [0.5] * 3, [0.2] * 3, size_divisible=8)

    def forward(self, first, second):
        return self.transform.batch_images([first, second], 8)


def test_matches(exporter):
    assert_entry(NAME, Batch().eval(), PICTURES, exporter, dynamic=DYNAMIC, samples=[(PICTURES[1], PICTURES[0])])


def test_one_size(exporter):
    assert_same_outputs(Batch().eval(), PICTURES, exporter)


def test_sentinel():
    @rewrite(TARGET, name=NAME, needed_on=("dynamo",), registry=None)
    def broken(self, images, size_divisible=32):
        return nn.functional.pad(images[1], (0, 23, 0, 7))[None].expand(2, -1, -1, -1)

    with pytest.raises(CompatError):
        assert_same_outputs(Batch().eval(), PICTURES, "dynamo", rewrites=[broken])


def test_still_needed():
    assert_still_needed(NAME, Batch().eval(), PICTURES, "dynamo", dynamic=DYNAMIC)
