import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "mode_to_counts"
ARGS = (torch.tensor([[1.0, 1.0, 2.0, 2.0, 0.0], [0.0, 7.0, 7.5, 7.0, 0.5]]), torch.tensor([[2, -3, 2], [5, 5, -9]]))


def many(x, i):
    return (
        *x.mode(),
        *torch.mode(x, 0),
        *i.mode(1, keepdim=True),
        *i.int().mode(),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=15))
@settings(max_examples=200, deadline=None)
def test_equals_eager(values):
    x = torch.tensor(values)
    for found, wanted in zip(catalogue()[NAME].body(x), x.mode(), strict=True):
        assert torch.equal(found, wanted)


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(ARGS[0], 1, out=(ARGS[0], ARGS[0]))


def test_declines_single_numbers():
    with pytest.raises(Declined, match="must be numbers along an axis"):
        catalogue()[NAME].body(torch.tensor(1.0))


def test_sentinel():
    @rewrite(torch.mode, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input):
        return input.max(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: x.mode(), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
