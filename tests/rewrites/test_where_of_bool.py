import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "where_of_bool"
NEEDED_ON = ("torchscript", "dynamo")
ARGS = (torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]]), torch.tensor([[2, -3, 4], [0, 5, 1]]))


def many(x, i):
    return (
        torch.where(i > 0, i > 3, i),
        torch.where(i > 0, x, i > 2),
        torch.where(i > 0, i > 1, i < 5),
        torch.where(i > 4, x > 0, i.float()),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"x": {0: "batch"}, "i": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x, i: torch.where(i > 0, i > 1, i < 5), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x, i: torch.where(i > 0, x, i), ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_the_method_of_that_name_takes_the_condition_second(exporter):
    result = assert_same_outputs(lambda x, i: (x.where(i > 0, x * 2), (i + x).where(x > 0, i)), ARGS, exporter)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.where, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return args[1]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: torch.where(i > 0, i > 1, i < 5), ARGS, NEEDED_ON[0], rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
