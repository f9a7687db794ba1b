import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "copysign_to_where"
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, 0.0, INF], [-INF, NAN, -0.0, 3.0]]),
    torch.tensor([[0.0, -0.0, 2.5, -INF], [-INF, 1.0, -0.0, -3.0]]),
)


def many(x, y):
    return (
        torch.copysign(x, y),
        x.copysign(-2.0),
        x.copysign(3),
        torch.copysign(y.clamp(-9, 9).long(), y),
        1 / x.copysign(y),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.copysign, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, other):
        return input.abs() * torch.sign(other)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.copysign(x, y), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
