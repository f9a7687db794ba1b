import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "kron_to_mul"
NEEDED_ON = ("torchscript", "dynamo")
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]), torch.tensor([[2, -3, 4], [0, 5, 1]]))


def many(x, i):
    return (
        torch.kron(x, i),
        torch.kron(x[0], x[1]),
        torch.kron(i, x[:, :2]),
        torch.kron(x[0], i),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.kron, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.cat((args[0].repeat(2, 3), args[0].repeat(2, 3)))[:4, :12]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: torch.kron(x, i), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    axes = {name: {0: "batch"} for name in ["x", "i"]}
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, dynamic=axes, exclude=[NAME])
