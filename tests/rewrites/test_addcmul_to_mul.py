import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "addcmul_to_mul"
ARGS = (torch.tensor([[2, -3, 4], [0, 5, 1]]), torch.tensor([[3, 2, 5], [7, 1, -4]]))


def many(i, j):
    return (
        torch.addcmul(i, i, j, value=2),
        i.addcmul(j, j),
        torch.addcmul(i.float(), i, j.float(), value=0.5),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.addcmul, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] - args[1] * args[2]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i, j: torch.addcmul(i, i, j), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
