import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "sgn_to_sign"
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]), torch.tensor([[2, -3, 4], [0, 5, 1]]))


def many(x, i):
    return (
        x.sgn(),
        torch.sgn(i),
        x.double().sgn(),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_declines_complex_numbers():
    with pytest.raises(Declined, match="complex numbers have no operator"):
        catalogue()[NAME].body(torch.ones(2, dtype=torch.complex64))


def test_sentinel():
    @rewrite(torch.sgn, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] + 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: x.sgn(), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
