import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "rshift_to_bitwise_right_shift"
NEEDED_ON = ("dynamo",)
ARGS = (torch.tensor([[2, -3, 4], [0, 5, 1]]), torch.tensor([[2, 0, 1], [3, 1, 4]]))


def many(i, j):
    return (
        i >> j,
        i >> 2,
        i.int() >> j.int(),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["i", "j"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_sentinel():
    @rewrite(torch.Tensor.__rshift__, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(self, other):
        return self + other

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i, j: i >> j, ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
