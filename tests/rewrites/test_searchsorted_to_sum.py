import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "searchsorted_to_sum"
INF, NAN = float("inf"), float("nan")
EDGES = torch.tensor([-1.5, 0.0, 0.0, 2.0])
LONG = torch.arange(100) * 0.1 - 5
ARGS = (torch.tensor([[1.0, 1.0, 2.0], [0.0, 7.0, 7.5]]), torch.tensor([[1.0, 0.0, 7.0, 9.0], [7.0, 1.5, -2.0, NAN]]))


def many(t, v):
    t = t.sort().values
    return (
        *(torch.searchsorted(t, v), torch.searchsorted(t, v, right=True), torch.searchsorted(EDGES, v, side="right")),
        *(torch.searchsorted(EDGES, v, out_int32=True), torch.searchsorted(LONG, v), torch.searchsorted(EDGES, 0.0)),
        torch.searchsorted(-t, v, sorter=(-t).argsort().contiguous()),
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
    assert torch.equal(body(table, values, right=right), torch.searchsorted(table, values, right=right))
    rows = table.expand(2, -1).contiguous()
    values = values.expand(2, -1).contiguous()
    assert torch.equal(body(rows, values, right=right), torch.searchsorted(rows, values, right=right))


def test_few_cells_take_few_nodes(exporter):
    result = assert_same_outputs(lambda v: torch.searchsorted(EDGES, v), ARGS[1], exporter, uses=(NAME,))
    assert sum(n for op, n in result.nodes.items() if op != "Constant") <= 6


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(*ARGS, out=ARGS[0].clone())


def test_sentinel():
    @rewrite(torch.searchsorted, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(sorted_sequence, input):
        return (input > 1).long()

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda t, v: torch.searchsorted(t, v), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
