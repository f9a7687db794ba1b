import pytest
import torch
from torchvision.models.detection import roi_heads

from torch_onnx_compat import rewrite
from torch_onnx_compat.check.cases import Verify
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "paste_masks_to_matmul"
TARGET = "torchvision.models.detection.roi_heads.paste_masks_in_image"
DYNAMIC = {"masks": {0: "count"}, "boxes": {0: "count"}}


def pasted(masks, boxes):
    return roi_heads.paste_masks_in_image(masks, boxes, (40, 60))


def sample(count, seed=0):
    """Masks and boxes, some beyond the picture, one smaller than a pixel."""
    generator = torch.Generator().manual_seed(seed)
    corner = torch.rand(count, 2, generator=generator) * torch.tensor([50.0, 30.0]) - 4
    boxes = torch.cat((corner, corner + torch.rand(count, 2, generator=generator) * 30), 1)
    if count:
        boxes[0, 2:] = boxes[0, :2] + 0.3
    return torch.rand(count, 1, 28, 28, generator=generator), boxes


def test_matches(exporter):
    samples = [sample(0), sample(1), sample(30, seed=1)]
    options = {"dynamic": DYNAMIC, "samples": samples, "verify": Verify(random=False)}
    assert_entry(NAME, pasted, sample(6), exporter, **options)
    result = assert_same_outputs(pasted, sample(6), exporter, uses=(NAME,), include=[NAME], **options)
    assert not set(result.nodes) & {"Loop", "If"}


def test_sentinel():
    @rewrite(TARGET, name=NAME, needed_on=("dynamo",), registry=None)
    def broken(masks, boxes, img_shape, padding=1):
        return torch.nn.functional.interpolate(masks, img_shape)

    with pytest.raises(CompatError):
        assert_same_outputs(pasted, sample(6), "dynamo", rewrites=[broken])


def test_still_needed(exporter):
    verify = Verify(random=False)
    assert_still_needed(NAME, pasted, sample(6), exporter, dynamic=DYNAMIC, samples=[sample(0)], verify=verify)
