import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "lshift_to_bitwise_left_shift"
ARGS = (torch.tensor([[2, -3, 4], [0, 5, 1]]), torch.tensor([[2, 0, 1], [3, 1, 4]]))


def many(i, j):
    return (
        i << j,
        i << 2,
        i.int() << j.int(),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.Tensor.__lshift__, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(self, other):
        return self + other

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i, j: i << j, ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
