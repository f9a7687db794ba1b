import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "histc_of_data"
NEEDED_ON = ("torchscript", "dynamo")
ARGS = (torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]]),)


def many(x):
    return (
        torch.histc(x, 5),
        x.histc(3),
        torch.histc(x * 0 + 1, 4),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"x": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x: torch.histc(x, 5), ARGS, NEEDED_ON[0], uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: torch.histc(x, 5, -2, 2), ARGS, NEEDED_ON[0])
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.histc, name=NAME, needed_on=NEEDED_ON, registry=None)
    def broken(*args, **options):
        return args[0][0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.histc(x, 5), ARGS, NEEDED_ON[0], rewrites=[broken])


@pytest.mark.parametrize("name", NEEDED_ON)
def test_still_needed(name):
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, name, exclude=[NAME, "histc_to_counts"])
