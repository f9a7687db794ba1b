import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "xlogy_to_where"
NEEDED_ON = EXPORTERS
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, 0.0, 0.0, 0.0], [2.0, 0.0, 1.0, 3.0]]),
    torch.tensor([[0.5, 0.0, 2.5, INF], [4.0, NAN, 0.0, 3.0]]),
)


def many(x, y):
    return (
        torch.xlogy(x, y),
        x.xlogy(2.0),
        torch.xlogy(3, y),
        torch.special.xlogy(x, y),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["x", "y"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_sentinel():
    @rewrite(torch.xlogy, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] * torch.log(args[1])

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.xlogy(x, y), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
