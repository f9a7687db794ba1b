import pytest
import torch
from torchvision.models.detection import roi_heads

from torch_onnx_compat import rewrite
from torch_onnx_compat.backends import internals
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "heatmaps_to_keypoints_by_scan"
TARGET = "torchvision.models.detection.roi_heads.heatmaps_to_keypoints"
DYNAMIC = {"maps": {0: "count"}, "rois": {0: "count"}}

needs_scan = pytest.mark.skipif(not internals.exports_scan(), reason="this torch exports no scan")


def keypoints(maps, rois):
    return roi_heads.heatmaps_to_keypoints(maps, rois)


def sample(count, seed=0):
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


@needs_scan
def test_matches():
    samples = [sample(0), sample(1), sample(9, seed=1)]
    result = assert_entry(NAME, keypoints, sample(4), "dynamo", dynamic=DYNAMIC, samples=samples, verify=True)
    assert result.nodes["Scan"] == 1


def test_torchscript_has_its_own_loop():
    assert_same_outputs(keypoints, sample(4), "torchscript", dynamic=DYNAMIC, samples=[sample(9, seed=1)], verify=True)


@needs_scan
def test_sentinel():
    @rewrite(TARGET, name=NAME, needed_on=("dynamo",), registry=None)
    def broken(maps, rois):
        return torch.zeros_like(maps[:, :, 0, :3]), maps.amax((2, 3))

    with pytest.raises(CompatError):
        assert_same_outputs(keypoints, sample(4), "dynamo", rewrites=[broken])


def test_still_needed():
    assert_still_needed(NAME, keypoints, sample(4), "dynamo", dynamic=DYNAMIC)
