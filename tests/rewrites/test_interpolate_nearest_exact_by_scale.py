import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "interpolate_nearest_exact_by_scale"
IMAGE = torch.randn(2, 3, 7, 10)
DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}
SAMPLES = [(torch.randn(1, 3, 8, 12),), (torch.randn(3, 3, 23, 31),)]


def resized(x, size=None, **kwargs):
    return F.interpolate(x, size, mode="nearest-exact", **kwargs)


def many(x):
    """Up and down, one axis, three axes, other types."""
    return (
        *(resized(x, scale_factor=(1.7, 0.6)), resized(x, scale_factor=2.5), resized(x, scale_factor=(2, 1.3))),
        *(resized(x[..., 0], scale_factor=1.9), resized(x[:, None], scale_factor=(1, 1.4, 1.1))),
        *(resized(x.double(), scale_factor=1.3), resized((x * 9).to(torch.uint8), scale_factor=1.6)),
    )


def third(x):
    return resized(x, scale_factor=0.3)


def test_matches(exporter):
    assert_entry(NAME, many, (IMAGE,), exporter, dynamic=DYNAMIC, samples=SAMPLES)


def test_what_stock_does_right_is_left_alone():
    def call(x):
        return resized(x, (13, 4)), resized(x, scale_factor=2), resized(x, scale_factor=(3.0, 1))

    result = assert_same_outputs(call, (IMAGE,), "dynamo", dynamic=DYNAMIC)
    assert not {note.entry for note in result.applied} & {NAME}
    assert not assert_same_outputs(third, (IMAGE,), "dynamo", dynamic="batch").applied


def test_sentinel():
    @rewrite(F.interpolate, name=NAME, needed_on=("dynamo",), registry=None)
    def broken(input, size=None, scale_factor=None, mode="nearest", **kwargs):
        return F.interpolate(input, size, scale_factor, "nearest")

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(third, (IMAGE,), "dynamo", dynamic="batch", rewrites=[broken])


def test_still_needed(exporter):
    sizes = {"dynamic": {"x": {0: "batch", 2: ("height"), 3: "width"}}, "samples": [(torch.randn(2, 3, 9, 12),)]}
    assert_still_needed(NAME, lambda x: resized(x, scale_factor=1.7), (IMAGE,), exporter, **sizes)
