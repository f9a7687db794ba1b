import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "linalg_diagonal_to_diagonal"
ARGS = (torch.randn(2, 3, 4),)
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return (
        torch.linalg.diagonal(x),
        torch.linalg.diagonal(x, offset=1),
        torch.linalg.diagonal(x, offset=-2, dim1=1, dim2=2),
        torch.linalg.diagonal(x[:, 0], offset=-1, dim1=1, dim2=0),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC)


def test_applied():
    def model(x):
        return torch.linalg.diagonal(x, offset=1)

    result = assert_same_outputs(model, ARGS, "torchscript", dynamic=DYNAMIC, uses=(NAME,))
    assert result.nodes["Gather"] == 1
    assert "If" not in result.nodes


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: torch.diagonal(x, 0, 1, 2), ARGS, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @rewrite(torch.linalg.diagonal, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0][:, 0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.linalg.diagonal(x), ARGS, exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
