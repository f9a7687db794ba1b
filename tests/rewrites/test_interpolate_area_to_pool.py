import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "interpolate_area_to_pool"
IMAGE = torch.randn(2, 3, 6, 8)
DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}


def area(x, size=None, **kwargs):
    return F.interpolate(x, size, mode="area", **kwargs)


def many(x):
    return (
        *(area(x, (3, 2)), area(x, (4, 5)), area(x, 1), area(x, (9, 16)), area(x, scale_factor=0.5)),
        *(area(x, scale_factor=(0.4, 1.5)), area(x[..., 0], 3), area(x[..., 0], 4), area(x.double(), 2)),
        *(area(x.unsqueeze(2).repeat(1, 1, 4, 1, 1), 2), area(x, scale_factor=0.6, recompute_scale_factor=True)),
    )


def test_matches(exporter):
    assert_entry(NAME, many, (IMAGE,), exporter, dynamic="batch")


def test_matches_any_size(exporter):
    sizes = [(torch.randn(1, 3, 7, 12),), (torch.randn(3, 3, 5, 4),)]
    assert_entry(NAME, lambda x: (area(x, (4, 5)), area(x, 1)), (IMAGE,), exporter, dynamic=DYNAMIC, samples=sizes)


def test_equal_windows_are_one_pool():
    result = assert_entry(NAME, lambda x: area(x, (3, 2)), (IMAGE,), "torchscript", dynamic="batch")
    assert dict(result.nodes) == {"AveragePool": 1}


def test_other_modes_are_left_alone():
    result = assert_same_outputs(lambda x: F.interpolate(x, (3, 2)), (IMAGE,), "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(F.interpolate, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, size=None, *args, **kwargs):
        return F.interpolate(input, size, mode="bilinear")

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: area(x, (4, 5)), (IMAGE,), "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError):
        assert_same_outputs(many, (IMAGE,), "torchscript", exclude=[NAME, "adaptive_avg_pool2d_to_matmul"])
