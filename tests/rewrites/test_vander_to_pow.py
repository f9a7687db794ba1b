import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "vander_to_pow"
ARGS = (torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]]),)


def many(x):
    return (
        torch.vander(x[0]),
        torch.vander(x[0], 4),
        torch.vander(x[1], increasing=True),
        torch.vander(x[:, 0], 3),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic={"x": {0: "batch"}})


def test_applied():
    result = assert_same_outputs(lambda x: torch.vander(x[0]), ARGS, "torchscript", uses=(NAME,))
    assert not set(result.nodes) & {"Loop"}


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: x**2, ARGS, "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.vander, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(*args, **options):
        return args[0][:, None].expand(-1, 3)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.vander(x[0]), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
