import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "max_unpool1d_to_scatter"
X = torch.randperm(torch.Size((2, 3, 9)).numel()).reshape(2, 3, 9).float() - 40
EVEN = X[..., :8]
DYNAMIC = {"x": {0: "batch", 2: "length"}}


def unpooled(x, kernel, sized=False, **kwargs):
    y, indices = F.max_pool1d(x, kernel, return_indices=True, **kwargs)
    return F.max_unpool1d(y * 2 - 1, indices, kernel, **kwargs, output_size=x.shape if sized else None)


def many(x):
    """Windows beside each other, overlapping, padded, cut off, and without values for the last cells."""
    return unpooled(x[..., :8], 2), unpooled(x, 3, stride=2), unpooled(x, 3, stride=2, padding=1), unpooled(x, 2, True)


def test_matches(exporter):
    assert_entry(NAME, many, (X,), exporter, dynamic="batch")


def test_matches_at_dynamic_sizes():
    assert_same_outputs(lambda x: unpooled(x, 2, True), (X,), "torchscript", dynamic=DYNAMIC, uses=(NAME,))


def test_matches_a_single_image_and_other_types():
    def call(y, indices):
        return (
            F.max_unpool1d(y[0], indices[0], 2),
            F.max_unpool1d(y.double(), indices, 2),
            F.max_unpool1d(y.half(), indices, 2),
        )

    example = F.max_pool1d(EVEN, 2, return_indices=True)
    result = assert_same_outputs(call, example, "torchscript", uses=(NAME,))
    assert result.nodes["ScatterElements"] == 3


def test_pooling_alone_is_left_alone():
    result = assert_same_outputs(lambda x: F.max_pool1d(x, 2, return_indices=True), (X,), "torchscript")
    assert not result.applied


def test_sentinel():
    @rewrite(F.max_unpool1d, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        return F.interpolate(input, size=X.shape[2:])

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: unpooled(x, 2, True), (X,), "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="cond must be a bool"):
        assert_same_outputs(lambda x: unpooled(x[..., :8], 2), (X,), "torchscript", dynamic="batch", exclude=[NAME])
