import pytest
import torch
from torch import Tensor

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "setitem_of_none"
ARGS = (torch.randn(2, 4, 3), torch.randn(2, 4, 3))


def many(x, v):
    a, b, c, d = (x.clone() for _ in range(4))
    a[:, None, 1] = v[:, None, 0]
    b[None, ..., 0] = v[..., 1]
    c[:, 1:3, None] = v[:, :1, None]
    d[0, None] = 3.0
    return a, b, c, d


def one(x, v):
    y = x.clone()
    y[:, None, 1] = v[:, :1]
    return y


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, one, ARGS, exporter, dynamic="batch")


def test_near_misses_are_left_alone():
    def model(x, v):
        y = x.clone()
        y[:, 1] = v[:, 0]
        return y

    result = assert_same_outputs(model, ARGS, "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(Tensor.__setitem__, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(self, key, value):
        self[:, 2] = value[:, 0]

    with pytest.raises(VerificationError):
        assert_same_outputs(one, ARGS, "torchscript", rewrites=[broken])


def test_still_needed():
    assert_still_needed(NAME, one, ARGS, "torchscript")
