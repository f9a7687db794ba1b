import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "bitwise_not_to_sub"
ARGS = (
    torch.tensor([[2, -3, 4], [99, -(2**62) - 5, 2**62 + 9]]),
    torch.tensor([[7, -6, 1], [-(2**63), 1, 2**62 + 12]]),
)


def many(i, j):
    return (
        torch.bitwise_not(i),
        ~i,
        ~i.int(),
        ~i.clamp(0, 99).byte(),
        ~(i > 0),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.bitwise_not, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return -args[0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i, j: torch.bitwise_not(i), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
