import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "expm1_to_tanh"
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[1e-7, -1e-6, 1e-5, 3e-7], [-2e-7, 1e-6, 5e-6, 0.0]]), torch.tensor([[2, -3, 4], [0, 5, 1]]))


def many(x, i):
    return (
        torch.expm1(x),
        x.double().expm1(),
        torch.special.expm1(i),
        torch.expm1(x * 1e7),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.expm1, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.exp(args[0]) - 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: torch.expm1(x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
