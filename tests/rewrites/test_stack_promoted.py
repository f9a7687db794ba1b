import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "stack_promoted"
ARGS = (torch.randn(2, 3), torch.tensor([[2, -3, 4], [0, 5, 1]]))
DYNAMIC = {"x": {0: "batch"}, "i": {0: "batch"}}


def many(x, i):
    return (
        torch.stack((x, i)),
        torch.stack([i, x.double(), x], 1),
        torch.stack((x > 0, i.int(), i), dim=-1),
        torch.stack((i[0, 0], x[0, 0])),
        torch.stack((x.half(), i)),
    )


def one(x, i):
    return torch.stack((i, x))


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC)


def test_applied():
    assert assert_entry(NAME, one, ARGS, "dynamo").nodes["Cast"] == 1


def test_stacks_of_one_type_are_left_alone():
    result = assert_same_outputs(lambda x, i: torch.stack((x, x * i)), ARGS, "dynamo")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.stack, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(tensors, dim=0):
        return torch.stack([t.int() for t in tensors], dim)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(one, ARGS, "dynamo", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, one, ARGS, exporter)
