import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "cumulative_trapezoid_to_cumsum"
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]),
    torch.tensor([[2.5, 1.0, -0.5, 4.0], [1.0, -3.0, 0.75, 2.0]]),
)


def many(y, x):
    return (
        torch.cumulative_trapezoid(y),
        torch.cumulative_trapezoid(y, dx=0.5),
        torch.cumulative_trapezoid(y, x),
        torch.cumulative_trapezoid(y, x[0]),
        torch.cumulative_trapezoid(y.double(), dim=1),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_declines_abscissae_of_other_rank():
    with pytest.raises(Declined, match="x must have 1 or 3 axes, got 2"):
        catalogue()[NAME].body(torch.ones(2, 3, 4), torch.ones(3, 4))


def test_sentinel():
    @rewrite(torch.cumulative_trapezoid, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0].cumsum(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda y, x: torch.cumulative_trapezoid(y), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
