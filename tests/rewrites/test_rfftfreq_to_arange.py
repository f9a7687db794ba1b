import pytest
import torch
from torch import fft

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "rfftfreq_to_arange"
X = torch.randn(3, 1)


def many(x):
    return tuple(x * fft.rfftfreq(*args) for args in ((1,), (2,), (7,), (8, 0.5), (5, -2))), fft.rfftfreq(
        4, dtype=torch.float64
    ) * x


def test_matches(exporter):
    assert_entry(NAME, many, X, exporter, dynamic="batch")


def test_matches_at_a_length_that_varies():
    assert_entry(
        NAME, lambda x: x * fft.rfftfreq(x.shape[0], 0.3), X, "dynamo", dynamic="batch", samples=[torch.ones(6, 1)]
    )


def test_is_a_constant():
    assert set(assert_entry(NAME, lambda x: x * fft.rfftfreq(6), X, "dynamo").nodes) == {"Mul"}


def test_sentinel():
    @rewrite(fft.rfftfreq, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(n, d=1.0, **options):
        return torch.arange(n // 2 + 1) / n + d

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x * fft.rfftfreq(6), X, "dynamo", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, X, exporter)
