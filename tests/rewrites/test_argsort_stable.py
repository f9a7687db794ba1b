import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "argsort_stable"
ARGS = (torch.randint(0, 3, (3, 20)).float(), torch.randint(0, 3, (3, 20)))


def many(x, i):
    return (
        torch.argsort(x, stable=True),
        x.argsort(stable=True, dim=0, descending=True),
        i.argsort(descending=True, stable=True),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_plain_call_is_left_alone(exporter):
    x = torch.tensor([[1.5, -2.0, 3.0], [0.5, 4.0, 2.0]])
    result = assert_same_outputs(lambda x: x.argsort(1), x, exporter)
    assert NAME not in {note.entry for note in result.applied}
    assert not result.declined


def test_sentinel():
    @rewrite(torch.argsort, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, *, stable=None, dim=-1, descending=False):
        return torch.argsort(input.flip(dim), dim, descending)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: x.argsort(stable=True), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
