import pytest
import torch
from torch import nn
from torchvision.models.detection import transform

from torch_onnx_compat import rewrite
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "detector_resize_exactly"
DYNAMIC = {"image": {1: "height", 2: "width"}}
SIZES = [(375, 500), (500, 375), (100, 301), (301, 100), (60, 80), (33, 64)]
"""Of them, 375 x 500 and 60 x 80 come out a pixel smaller by a scale in float32."""


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


def test_matches_at_every_size(exporter):
    samples = pictures()
    assert_entry(NAME, Resizes().eval(), samples[-1], exporter, dynamic=DYNAMIC, samples=samples, verify=True)


def test_one_size(exporter):
    assert_same_outputs(Resizes().eval(), pictures()[0], exporter)


def test_fixed_size_is_left_alone(exporter):
    model = Resizes().eval()
    model.transform.fixed_size = (64, 64)
    result = assert_same_outputs(model, pictures()[0], exporter, verify=Verify(random=False))
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite(
        "torchvision.models.detection.transform._resize_image_and_masks",
        name=NAME,
        needed_on=EXPORTERS,
        registry=None,
    )
    def broken(image, *args):
        return image, None

    with pytest.raises(CompatError):
        assert_same_outputs(Resizes().eval(), pictures()[0], exporter, rewrites=[broken])


def test_still_needed(exporter):
    samples = pictures()
    verify = Verify(random=False)
    assert_still_needed(NAME, Resizes().eval(), samples[-1], exporter, dynamic=DYNAMIC, samples=samples, verify=verify)
