import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "logsigmoid_to_softplus"
NEEDED_ON = ("torchscript", "dynamo")
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[1.5, -200.0, 0.0, INF], [-INF, 7.0, -95.0, 3.0]]),)


def many(x):
    return (
        torch.nn.functional.logsigmoid(x),
        torch.nn.LogSigmoid()(x * 2),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["x"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_sentinel():
    @rewrite(torch.nn.functional.logsigmoid, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.log(torch.sigmoid(args[0]))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.nn.functional.logsigmoid(x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
