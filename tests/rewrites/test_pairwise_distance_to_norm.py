import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "pairwise_distance_to_norm"
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
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.nn.functional.pairwise_distance, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(x1, x2, p=2.0, eps=1e-6, keepdim=False):
        return (x1 - x2).sum(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, y: torch.nn.functional.pairwise_distance(x, y, p=1), ARGS, "torchscript", rewrites=[broken]
        )


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
