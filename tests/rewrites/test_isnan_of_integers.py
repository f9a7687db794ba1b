import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "isnan_of_integers"
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[2, -3, 4], [0, 5, 1]]), torch.tensor([[1.5, INF, NAN], [0.0, 5.0, 1.0]]))


def many(i, x):
    return (
        i.isnan(),
        torch.isnan(i.int()),
        torch.isnan(x),
        torch.isnan(i > 2),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite((torch.isnan, torch.isinf), name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] > 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i, x: torch.isnan(i), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
