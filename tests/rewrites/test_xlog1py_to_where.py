import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "xlog1py_to_where"
NEEDED_ON = ("torchscript", "dynamo")
ARGS = (torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]]), torch.tensor([[2, -3, 4], [0, 5, 1]]))


def many(x, i):
    return (
        torch.special.xlog1py(x.abs(), x.abs()),
        torch.special.xlog1py(0.0, x),
        torch.special.xlog1py(i, x.abs()),
        torch.special.xlog1py(2.0, x.abs()),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"x": {0: "batch"}, "i": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x, i: torch.special.xlog1py(x.abs(), x.abs()), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x, i: torch.xlogy(x.abs(), 2.0) + i, ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.special.xlog1py, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return args[0] * args[1]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: torch.special.xlog1py(x.abs(), x.abs()), ARGS, NEEDED_ON[0], rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
