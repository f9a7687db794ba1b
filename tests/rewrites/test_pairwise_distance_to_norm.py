import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "pairwise_distance_to_norm"
NEEDED_ON = ("torchscript",)
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]),
    torch.tensor([[2.5, 1.0, -0.5, 4.0], [1.0, -3.0, 0.75, 2.0]]),
)


def many(x, y):
    return (
        *(torch.nn.functional.pairwise_distance(x, y, p=p) for p in (1, 2, 3, float("inf"))),
        torch.nn.PairwiseDistance(1, keepdim=True)(x, y),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["x", "y"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


def test_sentinel():
    @rewrite(torch.nn.functional.pairwise_distance, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(x1, x2, p=2.0, eps=1e-6, keepdim=False):
        return (x1 - x2).sum(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, y: torch.nn.functional.pairwise_distance(x, y, p=1), ARGS, "torchscript", rewrites=[broken]
        )


def test_still_needed(exporter):
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
