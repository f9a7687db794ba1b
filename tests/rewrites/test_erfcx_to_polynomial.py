import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "erfcx_to_polynomial"
NEEDED_ON = ("torchscript", "dynamo")
ARGS = (torch.tensor([[0.5, -2.0, 4.5, 3.0], [8.0, 0.0, -6.0, 1e-4]]), torch.tensor([[1, 2], [0, -1]]))


def many(x, i):
    return (
        torch.special.erfcx(x.abs()),
        torch.special.erfcx(x.abs() * 100),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"x": {0: "batch"}, "i": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x, i: torch.special.erfcx(x), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x, i: torch.erf(x) + i[0, 0], ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.special.erfcx, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return torch.erf(args[0])

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: torch.special.erfcx(x), ARGS, NEEDED_ON[0], rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)


def test_declines_float64():
    with pytest.raises(CompatError, match="float64 is not written with all its digits; convert to float32"):
        assert_same_outputs(lambda x, i: torch.special.erfcx(x.double()) + i[0, 0], ARGS, "torchscript")
