import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "interpolate_antialias_by_scale"
IMAGE = torch.randn(2, 3, 7, 10)
DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}
MODES = ("bilinear", "bicubic")


def resized(x, size=None, mode="bilinear", align_corners=False, **kwargs):
    return F.interpolate(x, size, mode=mode, align_corners=align_corners, antialias=True, **kwargs)


def many(x):
    """By size with align_corners and by scale, up and down, one axis kept."""
    results = [resized(x, size, mode, True) for mode in MODES for size in ((3, 4), (12, 2), (7, 4), 5)]
    results += [resized(x, mode=mode, scale_factor=0.45) for mode in MODES]
    return *results, resized(x, scale_factor=(0.45, 1.75)), resized(x, (x.shape[2] // 2, x.shape[3]), "bicubic", True)


@pytest.mark.parametrize("dynamic", ["batch", DYNAMIC], ids=["fixed", "dynamic"])
def test_matches(exporter, dynamic):
    samples = [(torch.randn(1, 3, 12, 9),)] if dynamic == DYNAMIC else []
    assert_entry(NAME, many, (IMAGE,), exporter, dynamic=dynamic, samples=samples)


def test_takes_two_nodes():
    result = assert_entry(NAME, lambda x: resized(x, scale_factor=0.45), (IMAGE,), "dynamo", dynamic="batch")
    assert result.nodes == {"MatMul": 2}


def test_what_stock_does_right_is_left_alone():
    def call(x):
        return resized(x, (3, 4)), resized(x, scale_factor=2), resized(x[..., :8, :], scale_factor=0.5)

    result = assert_same_outputs(call, (torch.randn(2, 3, 8, 10),), "dynamo", dynamic="batch")
    assert result.nodes["Resize"] == 3
    assert not result.applied


def test_declines_bytes():
    with pytest.raises(Declined, match=r"the image must be of floating-point type, got torch.uint8; convert it first"):
        catalogue()[NAME].body(torch.zeros(1, 1, 4, 4, dtype=torch.uint8), (2, 2), None, "bilinear", True, None, True)


def test_sentinel():
    @rewrite(F.interpolate, name=NAME, needed_on=("dynamo",), registry=None)
    def broken(input, size=None, scale_factor=None, mode="nearest", align_corners=None, *_, **__):
        return F.interpolate(input, size, scale_factor, mode, align_corners)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: resized(x, scale_factor=0.45), (IMAGE,), "dynamo", rewrites=[broken])


@pytest.mark.parametrize("options", [{"scale_factor": 0.45}, {"size": (3, 4), "align_corners": True}], ids=str)
def test_still_needed(exporter, options):
    assert_still_needed(NAME, lambda x: resized(x, **options), (IMAGE,), exporter)
