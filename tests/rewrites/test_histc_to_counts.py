import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "histc_to_counts"
NEEDED_ON = ("torchscript",)
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]),
    torch.tensor([[2.5, 1.0, -0.5, 4.0], [1.0, -3.0, 0.75, 2.0]]),
)


def many(x, y):
    return (
        torch.histc(x, 5, -2, 2),
        y.histc(bins=4, min=-2.5, max=7),
        torch.histc(x.double(), 3, -1, 3),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["x", "y"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_declines_bounds_of_the_data():
    with pytest.raises(Declined, match="min and max must be given"):
        catalogue()[NAME].body(ARGS[0], 5)


def test_sentinel():
    @rewrite(torch.histc, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.ones(5) + args[0].sum() * 0

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.histc(x, 5, -2, 2), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
