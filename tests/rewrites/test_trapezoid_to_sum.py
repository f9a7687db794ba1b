import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "trapezoid_to_sum"
NEEDED_ON = ("torchscript",)
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]),
    torch.tensor([[2.5, 1.0, -0.5, 4.0], [1.0, -3.0, 0.75, 2.0]]),
)


def many(y, x):
    return (
        torch.trapezoid(y),
        torch.trapezoid(y, dx=0.5),
        torch.trapezoid(y, x),
        torch.trapezoid(y, x[0]),
        torch.trapezoid(y.double(), dim=1),
        torch.trapz(y),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["y", "x"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_declines_abscissae_of_other_rank():
    with pytest.raises(Declined, match="x must have 1 or 3 axes, got 2"):
        catalogue()[NAME].body(torch.ones(2, 3, 4), torch.ones(3, 4))


def test_sentinel():
    @rewrite((torch.trapezoid, torch.trapz), name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0].sum(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda y, x: torch.trapezoid(y), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
