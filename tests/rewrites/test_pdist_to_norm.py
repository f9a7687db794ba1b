import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "pdist_to_norm"
ARGS = (torch.randn(2, 5, 3),)


def many(x):
    return (
        torch.nn.functional.pdist(x[0]),
        torch.pdist(x[0], 1),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_declines_varying_numbers_of_points(exporter):
    with pytest.raises(CompatError, match="pdist"):
        assert_same_outputs(lambda x: torch.pdist(x), (torch.randn(4, 3),), exporter, dynamic="batch")


def test_sentinel():
    @rewrite((torch.pdist, torch.nn.functional.pdist), name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, p=2.0):
        return (input[:1] - input[1:]).sum(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.pdist(x[0]), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
