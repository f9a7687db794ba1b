import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "cdist_to_norm"
ARGS = (torch.tensor([[[1.5, -2.0, 0.0], [1.5, 1.0, 2.0]], [[0.5, 4.0, -1.0], [3.0, 3.0, 3.5]]]),)


def many(x):
    return (
        *(torch.cdist(x, x[:, :1] + 0.5, p=p) for p in (0.0, 1.0, 2.0, 3.5, float("inf"))),
        torch.cdist(x[0], x[1]),
        torch.cdist(x, x),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_many_points_are_one_product(exporter):
    points = torch.randn(2, 30, 3)
    result = assert_same_outputs(lambda x: torch.cdist(x, x + 4), points, exporter, dynamic="batch", uses=(NAME,))
    assert result.nodes["MatMul"] == 1


def test_sentinel():
    @rewrite(torch.cdist, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(x1, x2, p=2.0, compute_mode=""):
        return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).sum(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.cdist(x, x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
