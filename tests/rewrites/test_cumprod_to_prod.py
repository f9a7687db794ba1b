import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "cumprod_to_prod"
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[1.5, -2.0, 3.0, 0.5], [0.0, 7.0, -1.0, 2.0]]), torch.tensor([[2, -3, 4], [0, 5, 1]]))


def many(x, i):
    return (
        *(x.cumprod(1), torch.cumprod(x, 0), x.cumprod(dim=-1), i.cumprod(1), i.int().cumprod(0), (i > 0).cumprod(1)),
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
        found, wanted = catalogue()[NAME].body(x, dim), torch.cumprod(x, dim)
        torch.testing.assert_close(found, wanted, equal_nan=True)


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(ARGS[0], 1, out=ARGS[0].clone())


def test_declines_doubles_of_varying_size(exporter):
    with pytest.raises(CompatError, match="cumprod"):
        assert_same_outputs(
            lambda x: x.double().cumprod(0), ARGS[:1], exporter, dynamic="batch", samples=[(torch.randn(5, 4),)]
        )


def test_sentinel():
    @rewrite(torch.cumprod, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, dim):
        return torch.cumsum(input, dim)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: x.cumprod(1), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
