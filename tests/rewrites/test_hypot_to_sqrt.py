import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "hypot_to_sqrt"
NEEDED_ON = ("torchscript", "dynamo")
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[3.0, -1e30, 0.0, INF], [3e-30, 7.0, INF, -2.5]]),
    torch.tensor([[-4.0, 1e30, 0.0, 1.0], [4e-30, -3.0, NAN, 0.0]]),
)


def many(x, y):
    return (
        torch.hypot(x, y),
        x.hypot(y[:, :1]),
        torch.hypot(x, y.double()),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["x", "y"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_sentinel():
    @rewrite(torch.hypot, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, other):
        return torch.sqrt(input * input + other * other)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.hypot(x, y), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
