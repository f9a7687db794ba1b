import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "cov_to_matmul"
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]), torch.tensor([2, 3, 1, 1]))


def many(x, w):
    return (
        torch.cov(x),
        x.cov(correction=0),
        torch.cov(x[0]),
        torch.cov(x, fweights=w),
        torch.cov(x, aweights=w * 0.5),
        torch.cov(x, fweights=w, aweights=w * 0.3),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_declines_varying_numbers_of_rows():
    with pytest.raises(CompatError, match="cov"):
        assert_same_outputs(lambda x: torch.cov(x), torch.randn(3, 4), "torchscript", dynamic="batch")


def test_declines_single_numbers():
    with pytest.raises(Declined, match="must have 1 or 2 axes, got 0"):
        catalogue()[NAME].body(torch.tensor(1.0))


def test_sentinel():
    @rewrite(torch.cov, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] @ args[0].T

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, w: torch.cov(x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
