import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "unique_consecutive_to_mask"
ARGS = (torch.tensor([[2, 2, 4, 4], [4, 1, 1, 2], [4, 1, 1, 2]]),)


def many(i):
    return (
        *torch.unique_consecutive(i, return_inverse=True, return_counts=True),
        torch.unique_consecutive(i, dim=0),
        i.unique_consecutive(),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.unique_consecutive, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, **options):
        return input.reshape(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i: torch.unique_consecutive(i), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
