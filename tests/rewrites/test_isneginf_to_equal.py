import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "isneginf_to_equal"
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, 0.0, INF], [-INF, NAN, -0.0, 3.0]]),
    torch.tensor([[0.0, -0.0, 2.5, -INF], [-INF, 1.0, -0.0, -3.0]]),
)


def many(x, y):
    return (
        torch.isneginf(x),
        y.double().isneginf(),
        y.clamp(-9, 9).long().isneginf(),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.isneginf, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.isnan(args[0])

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.isneginf(x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
