import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "interpolate_nearest_exact"
IMAGE = torch.randn(2, 3, 7, 10)
DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}


def resized(x, size=None, **kwargs):
    return F.interpolate(x, size, mode="nearest-exact", **kwargs)


def many(x):
    """By size and by scale, up and down, one axis, three axes, other types."""
    return (
        *(resized(x, (13, 4)), resized(x, (7, 5)), resized(x, scale_factor=2), resized(x, scale_factor=(1.7, 0.6))),
        *(resized(x, scale_factor=0.5), resized(x, scale_factor=0.3, recompute_scale_factor=True)),
        *(resized(x[..., 0], 11), resized(x[:, None], (2, 9, 5)), nn.Upsample(5, mode="nearest-exact")(x.double())),
        *(resized((x * 9).to(torch.uint8), (13, 4)), resized(x, (x.shape[2] // 2, x.shape[3] * 2))),
    )


def test_matches():
    assert_same_outputs(many, (IMAGE,), "torchscript", dynamic="batch", uses=(NAME,))


def test_matches_at_dynamic_sizes():
    samples = [(torch.randn(1, 3, 8, 12),)]
    assert_same_outputs(many, (IMAGE,), "torchscript", dynamic=DYNAMIC, samples=samples, uses=(NAME,))


def test_matches_with_dynamo():
    result = assert_same_outputs(lambda x: resized(x, (13, 4)), (IMAGE,), "dynamo", dynamic="batch")
    assert not result.applied


@given(size=st.integers(1, 40), output=st.integers(1, 40), scale=st.floats(0.1, 3))
@settings(max_examples=200, deadline=None)
def test_equals_eager(size, output, scale):
    x = torch.arange(size).reshape(1, 1, size).float()
    body = catalogue()[NAME].body
    assert torch.equal(body(x, output, None, "nearest-exact"), resized(x, output))
    if int(size * scale):
        assert torch.equal(body(x, None, scale, "nearest-exact"), resized(x, scale_factor=scale))


def test_takes_one_node_an_axis():
    result = assert_same_outputs(lambda x: resized(x, (13, 4)), (IMAGE,), "torchscript", dynamic="batch", uses=(NAME,))
    assert {k: v for k, v in result.nodes.items() if k != "Constant"} == {"Gather": 2}


def test_other_modes_are_left_alone():
    result = assert_same_outputs(lambda x: F.interpolate(x, (13, 4)), (IMAGE,), "torchscript", dynamic="batch")
    assert not result.applied
    assert not result.declined


def test_sentinel():
    @rewrite(F.interpolate, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, size=None, scale_factor=None, mode="nearest", **kwargs):
        return F.interpolate(input, size, scale_factor, "nearest")

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: resized(x, (13, 4)), (IMAGE,), "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="_upsample_nearest_exact2d"):
        assert_same_outputs(lambda x: resized(x, (13, 4)), (IMAGE,), "torchscript", exclude=[NAME])
