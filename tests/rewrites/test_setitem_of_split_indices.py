import pytest
import torch
from torch import Tensor

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "setitem_of_split_indices"
ARGS = (torch.randn(2, 3, 4, 4), torch.randn(2, 4, 4))
FIRST, SECOND = torch.tensor([0, 1]), torch.tensor([2, -1])


def many(x, v):
    a, b, c = (x.clone() for _ in range(3))
    a[torch.tensor([0, -1]), :, SECOND] = 4.0
    b[FIRST, :, SECOND] = v[:, :3]
    c[FIRST[:, None], :, torch.tensor([2, 0, -1])] = 1.0
    return a, b, c


def one(x, v):
    y = x.clone()
    y[FIRST, :, SECOND] = v[:, :3]
    return y


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_near_misses_are_left_alone():
    def model(x, v):
        y = x.clone()
        y[FIRST, SECOND] = 5.0
        return y

    result = assert_same_outputs(model, ARGS, "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(Tensor.__setitem__, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(self, key, value):
        self.copy_(self + 1)

    with pytest.raises(VerificationError):
        assert_same_outputs(one, ARGS, "torchscript", rewrites=[broken])


def test_still_needed():
    assert_still_needed(NAME, one, ARGS, "torchscript")
