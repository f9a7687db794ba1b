import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "logaddexp2_to_log"
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -200.0, 0.0, INF], [-INF, 700.0, -0.0, 3.0]]),
    torch.tensor([[0.0, -201.0, 2.5, INF], [-INF, 1.0, -0.0, -3.0]]),
)


def many(x, y):
    return (
        torch.logaddexp2(x, y),
        x.logaddexp2(y[:, :1]),
        torch.logaddexp2(x.double(), y.double()),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.logaddexp2, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.maximum(*args)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.logaddexp2(x, y), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
