import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "fmax_to_where"
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, NAN, INF], [-INF, NAN, 4.0, 3.0]]),
    torch.tensor([[0.0, NAN, NAN, -INF], [2.0, 1.0, -1.0, -3.0]]),
)


def many(x, y):
    return (
        torch.fmax(x, y),
        x.fmax(y.double()),
        torch.fmax(x[:, 3:].clamp(-5, 5).long(), torch.tensor(2)),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.fmax, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, other):
        return torch.maximum(input, other)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.fmax(x, y), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
