import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "cumsum_of_integers"
NEEDED_ON = ("torchscript",)
ARGS = (torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]]), torch.tensor([[2, -3, 4], [0, 5, 1]]))


def many(x, i):
    return (
        (i > 0).cumsum(1),
        i.int().cumsum(0),
        (i > 0).cumsum(1, dtype=torch.float32),
        x.cumsum(-1, dtype=torch.float64),
        x.cumsum(0, dtype=torch.int32),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"x": {0: "batch"}, "i": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x, i: (i > 0).cumsum(1), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x, i: x.cumsum(1) + i.cumsum(0), ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.cumsum, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return args[0].long()

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: (i > 0).cumsum(1), ARGS, NEEDED_ON[0], rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
