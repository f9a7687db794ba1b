import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "hypot_to_sqrt"
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[3.0, -1e30, 0.0, INF], [3e-30, 7.0, INF, -2.5]]),
    torch.tensor([[-4.0, 1e30, 0.0, 1.0], [4e-30, -3.0, NAN, 0.0]]),
)


def many(x, y):
    return (
        torch.hypot(x, y),
        x.hypot(y[:, :1]),
        torch.hypot(x, y.double()),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.hypot, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, other):
        return torch.sqrt(input * input + other * other)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.hypot(x, y), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
