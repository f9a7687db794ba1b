import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "logcumsumexp_to_logsumexp"
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[1.5, -90.0, 93.0, 90.5], [0.0, 120.0, -INF, 2.0]]),)


def many(x):
    return (
        x.logcumsumexp(1),
        torch.logcumsumexp(x, 0),
        x.logcumsumexp(dim=-1),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


@given(
    st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, INF, -INF, NAN]), min_size=1, max_size=70), st.integers(1, 3)
)
@settings(max_examples=100, deadline=None)
def test_equals_eager(values, rows):
    x = torch.tensor(values).expand(rows, -1).contiguous()
    for dim in (0, 1, -1):
        found, wanted = catalogue()[NAME].body(x, dim), torch.logcumsumexp(x, dim)
        torch.testing.assert_close(found, wanted, equal_nan=True)


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(ARGS[0], 1, out=ARGS[0].clone())


def test_sentinel():
    @rewrite(torch.logcumsumexp, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, dim):
        return torch.cumsum(input, dim)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x.logcumsumexp(1), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
