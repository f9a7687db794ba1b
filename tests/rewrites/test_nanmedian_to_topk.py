import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "nanmedian_to_topk"
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[1.5, -2.0, 3.0, 0.5], [0.0, NAN, -1.0, 2.0]]), torch.tensor([[2, -3, 4], [0, 5, 1]]))


def many(x, i):
    return (
        *(
            x.nanmedian(),
            i.nanmedian(),
            x.nanmedian(1).values,
            x[:1].nanmedian(dim=0).values,
            torch.nanmedian(x, 1, keepdim=True).values,
        ),
        i.nanmedian(0).values,
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


@given(st.lists(st.sampled_from([-2.0, 0.0, 1.0, 2.5, INF, -INF, NAN]), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_equals_eager(values):
    x, body = torch.tensor(values), catalogue()[NAME].body
    torch.testing.assert_close(body(x), torch.nanmedian(x), equal_nan=True, rtol=0, atol=0)
    torch.testing.assert_close(body(x, 0).values, x.nanmedian(0).values, equal_nan=True, rtol=0, atol=0)
    torch.testing.assert_close(body(x, 0, True).values, x.nanmedian(0, True).values, equal_nan=True, rtol=0, atol=0)


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(ARGS[0], 1, out=(ARGS[0], ARGS[0]))


def test_declines_single_numbers():
    with pytest.raises(Declined, match="must have an axis"):
        catalogue()[NAME].body(torch.tensor(1.0), 0)


def test_sentinel():
    @rewrite(torch.nanmedian, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, *axis):
        return input.mean()

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: x[0].nanmedian(), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
