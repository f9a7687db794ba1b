import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "isclose_to_less"
NEEDED_ON = ("torchscript",)
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, NAN, INF], [-INF, 7.0, INF, 3.0]]),
    torch.tensor([[1.5, -2.1, NAN, INF], [-INF, 7.00001, -INF, INF]]),
)


def many(x, y):
    return (
        torch.isclose(x, y),
        x.isclose(y, rtol=0.1),
        torch.isclose(x, y, atol=0.2, equal_nan=True),
        torch.isclose(x[:, 1:2].clamp(-9, 9).long(), y[:, 1:2].long()),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["x", "y"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_sentinel():
    @rewrite(torch.isclose, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] == args[1]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.isclose(x, y), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
