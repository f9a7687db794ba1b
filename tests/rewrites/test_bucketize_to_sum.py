import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.functional.searching import COUNT_LIMIT
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "bucketize_to_sum"
INF, NAN = float("inf"), float("nan")
EDGES = torch.tensor([-1.5, 0.0, 0.0, 2.0])
LONG = torch.arange(100) * 0.1 - 5
ARGS = (torch.tensor([[1.0, 0.0, 7.0, 9.0], [7.0, 1.5, -2.0, INF]]),)


def many(v):
    return (
        *(torch.bucketize(v, EDGES), torch.bucketize(v, EDGES, right=True), torch.bucketize(v, EDGES, out_int32=True)),
        torch.bucketize(v.clamp(-9, 9).long(), torch.tensor([-2, 0, 0, 7])),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


@given(st.lists(st.floats(-3, 3, width=16), min_size=1, max_size=130), st.booleans())
@settings(max_examples=200, deadline=None)
def test_equals_eager(cells, right):
    table = torch.tensor(sorted(cells))
    values = torch.tensor([-4.0, -1.0, 0.0, 0.5, 3.0, INF, -INF, NAN, *cells])
    body = catalogue()[NAME].body
    if len(cells) <= COUNT_LIMIT:
        assert torch.equal(body(values, table, right=right), torch.bucketize(values, table, right=right))


def test_declines_many_boundaries(exporter):
    result = assert_same_outputs(lambda v: torch.bucketize(v, LONG), ARGS, exporter)
    assert "at most 64 boundaries are compared one by one, got 100" in str(result)


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(ARGS[0], EDGES, out=ARGS[0].clone())


def test_sentinel():
    @rewrite(torch.bucketize, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, boundaries):
        return (input > 1).long()

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda v: torch.bucketize(v, EDGES), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    ours = assert_same_outputs(many, ARGS, exporter)
    stock = assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
    assert sum(ours.nodes.values()) < sum(stock.nodes.values())
