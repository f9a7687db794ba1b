import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "sort_stable"
ARGS = (torch.randint(0, 3, (3, 20)).float(), torch.randint(0, 3, (3, 20)))


def many(x, i):
    return (
        *torch.sort(x, stable=True),
        *x.sort(stable=True, dim=0, descending=True),
        *i.sort(descending=True, stable=True),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_plain_call_is_left_alone(exporter):
    x = torch.tensor([[1.5, -2.0, 3.0], [0.5, 4.0, 2.0]])
    result = assert_same_outputs(lambda x: x.sort(1), x, exporter)
    assert NAME not in {note.entry for note in result.applied}
    assert not result.declined


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(ARGS[0], stable=True, out=(ARGS[0], ARGS[1]))


def test_sentinel():
    @rewrite(torch.sort, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, *, stable=None, dim=-1, descending=False):
        return torch.sort(input.flip(dim), dim, descending)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: x.sort(stable=True), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
