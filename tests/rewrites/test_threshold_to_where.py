import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "threshold_to_where"
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, 0.0, INF], [-INF, NAN, -0.0, 3.0]]),
    torch.tensor([[0.0, -0.0, 2.5, -INF], [-INF, 1.0, -0.0, -3.0]]),
)


def many(x, y):
    return (
        torch.nn.functional.threshold(x, 0.5, -3),
        torch.nn.Threshold(-1.0, 20.0)(y),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_declines_in_place():
    with pytest.raises(Declined, match="inplace must be False"):
        catalogue()[NAME].body(ARGS[0], 0.5, 1.0, inplace=True)


def test_sentinel():
    @rewrite(torch.nn.functional.threshold, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.relu(args[0])

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, y: torch.nn.functional.threshold(x, 0.5, -3), ARGS, "torchscript", rewrites=[broken]
        )


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
