import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "interpolate_antialias_to_matmul"
IMAGE = torch.randn(2, 3, 7, 10)
DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}
KINDS = [(mode, corners) for mode in ("bilinear", "bicubic") for corners in (False, True)]


def resized(x, size=None, mode="bilinear", align_corners=False, **kwargs):
    return F.interpolate(x, size, mode=mode, align_corners=align_corners, antialias=True, **kwargs)


def many(x):
    """By size and by scale, up and down, one axis kept; torch's own kernel errs on results one cell wide."""
    results = [resized(x, size, *kind) for kind in KINDS for size in ((3, 4), (12, 2), (7, 4), 5)]
    results += [resized(x, scale_factor=(0.45, 1.7)), resized(x, scale_factor=0.3, recompute_scale_factor=True)]
    return *results, resized(x, (x.shape[2] // 2, x.shape[3]))


@pytest.mark.parametrize("dynamic", ["batch", DYNAMIC], ids=["fixed", "dynamic"])
def test_matches(dynamic):
    samples = [(torch.randn(1, 3, 12, 9),)]
    samples = samples if dynamic == DYNAMIC else []
    assert_same_outputs(many, (IMAGE,), "torchscript", dynamic=dynamic, samples=samples, uses=(NAME,))


def test_matches_at_opset_17():
    assert_same_outputs(lambda x: resized(x, (3, 4)), (IMAGE,), "torchscript", opset=17, uses=(NAME,))


def test_matches_with_dynamo():
    result = assert_same_outputs(lambda x: resized(x, (3, 4)), (IMAGE,), "dynamo", dynamic="batch")
    assert not result.applied


@given(size=st.integers(1, 20), output=st.integers(1, 20), kind=st.sampled_from(KINDS))
@settings(max_examples=150, deadline=None)
def test_equals_eager(size, output, kind):
    x = torch.randn(1, 2, size, 6)
    found = catalogue()[NAME].body(x, (output, 4), None, *kind, None, True)
    torch.testing.assert_close(found, resized(x, (output, 4), *kind), atol=1e-5, rtol=1e-5)


def test_takes_two_nodes():
    result = assert_same_outputs(lambda x: resized(x, (3, 4)), (IMAGE,), "torchscript", dynamic="batch", uses=(NAME,))
    assert {k: v for k, v in result.nodes.items() if k != "Constant"} == {"MatMul": 2}


def test_resizing_without_antialias_is_left_alone():
    result = assert_same_outputs(
        lambda x: F.interpolate(x, (13, 4), mode="bilinear"), (IMAGE,), "torchscript", dynamic="batch"
    )
    assert not result.applied


def test_declines_bytes():
    with pytest.raises(Declined, match=r"the image must be of floating-point type, got torch.uint8"):
        catalogue()[NAME].body(torch.zeros(1, 1, 4, 4, dtype=torch.uint8), (2, 2), None, "bilinear", antialias=True)


def test_sentinel():
    @rewrite(F.interpolate, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, size=None, scale_factor=None, mode="nearest", align_corners=None, *_, **__):
        return F.interpolate(input, size, scale_factor, mode, align_corners)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: resized(x, (3, 4)), (IMAGE,), "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="_upsample_bilinear2d_aa"):
        assert_same_outputs(lambda x: resized(x, (3, 4)), (IMAGE,), "torchscript", exclude=[NAME])
