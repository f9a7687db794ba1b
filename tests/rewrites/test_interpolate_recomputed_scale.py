import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "interpolate_recomputed_scale"
IMAGE = torch.randn(2, 3, 7, 10)
DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}


def resized(x, mode="nearest", **kwargs):
    return F.interpolate(x, scale_factor=1.7, mode=mode, recompute_scale_factor=True, **kwargs)


def many(x):
    return (
        *(resized(x), resized(x, "bilinear"), resized(x, "bicubic", align_corners=True), resized(x[..., 0], "linear")),
        F.interpolate(x, scale_factor=(0.4, 2), mode="bilinear", recompute_scale_factor=True),
        nn.Upsample(scale_factor=0.6, recompute_scale_factor=True)(x),
    )


@pytest.mark.parametrize("dynamic", ["batch", DYNAMIC], ids=["fixed", "dynamic"])
def test_matches(dynamic):
    samples = [(torch.randn(1, 3, 12, 9),)]
    samples = samples if dynamic == DYNAMIC else []
    assert_same_outputs(many, (IMAGE,), "torchscript", dynamic=dynamic, samples=samples, uses=(NAME,))


def test_matches_with_dynamo():
    assert_same_outputs(lambda x: resized(x, "bilinear"), (IMAGE,), "dynamo", dynamic="batch")


def test_writes_one_resize():
    smooth = lambda x: resized(x, "bilinear")  # noqa: E731
    result = assert_same_outputs(smooth, (IMAGE,), "torchscript", dynamic=DYNAMIC, uses=(NAME,))
    assert result.nodes["Resize"] == 1


def test_scales_that_are_kept_are_left_alone():
    result = assert_same_outputs(lambda x: F.interpolate(x, scale_factor=1.5), (IMAGE,), "torchscript", dynamic=DYNAMIC)
    assert not result.applied
    assert not result.declined


def test_equals_eager():
    body = catalogue()[NAME].body
    for scale in (0.3, 0.5, 1.7, (2, 0.6)):
        found = body(IMAGE, None, scale, "bilinear", False, True)
        wanted = F.interpolate(IMAGE, None, scale, "bilinear", False, True)
        torch.testing.assert_close(found, wanted)


def test_sentinel():
    @rewrite(F.interpolate, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, size=None, scale_factor=None, mode="nearest", *_, **__):
        return F.interpolate(input, (11, 17), None, mode).flip(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(resized, (IMAGE,), "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="would freeze a Python decision"):
        assert_same_outputs(resized, (IMAGE,), "torchscript", dynamic=DYNAMIC, exclude=[NAME])
