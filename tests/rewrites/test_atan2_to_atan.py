import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "atan2_to_atan"
NEEDED_ON = ("torchscript", "dynamo")
INF, NAN = float("inf"), float("nan")
AXIS = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, INF, -INF])
ARGS = (AXIS.repeat(7)[None], AXIS.repeat_interleave(7)[None])


def many(y, x):
    return (
        torch.atan2(y, x),
        y.atan2(x[:, :1]),
        torch.atan2(y[:, :3].long(), x[:, :3]),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["y", "x"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_sentinel():
    @rewrite((torch.atan2, torch.arctan2), name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, other):
        return torch.atan(input / other)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda y, x: torch.atan2(y, x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
