import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "histc_to_counts"
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]),
    torch.tensor([[2.5, 1.0, -0.5, 4.0], [1.0, -3.0, 0.75, 2.0]]),
)


def many(x, y):
    return (
        torch.histc(x, 5, -2, 2),
        y.histc(bins=4, min=-2.5, max=7),
        torch.histc(x.double(), 3, -1, 3),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_declines_bounds_of_the_data():
    with pytest.raises(Declined, match="min and max must be given"):
        catalogue()[NAME].body(ARGS[0], 5)


def test_sentinel():
    @rewrite(torch.histc, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.ones(5) + args[0].sum() * 0

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.histc(x, 5, -2, 2), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
