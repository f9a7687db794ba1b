import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "threshold_to_where"
NEEDED_ON = ("torchscript",)
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, 0.0, INF], [-INF, NAN, -0.0, 3.0]]),
    torch.tensor([[0.0, -0.0, 2.5, -INF], [-INF, 1.0, -0.0, -3.0]]),
)


def many(x, y):
    return (
        torch.nn.functional.threshold(x, 0.5, -3),
        torch.nn.Threshold(-1.0, 20.0)(y),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["x", "y"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_declines_in_place():
    with pytest.raises(Declined, match="inplace must be False"):
        catalogue()[NAME].body(ARGS[0], 0.5, 1.0, inplace=True)


def test_sentinel():
    @rewrite(torch.nn.functional.threshold, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.relu(args[0])

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, y: torch.nn.functional.threshold(x, 0.5, -3), ARGS, "torchscript", rewrites=[broken]
        )


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
