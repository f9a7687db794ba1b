import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "isclose_to_less"
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, NAN, INF], [-INF, 7.0, INF, 3.0]]),
    torch.tensor([[1.5, -2.1, NAN, INF], [-INF, 7.00001, -INF, INF]]),
)


def many(x, y):
    return (
        torch.isclose(x, y),
        x.isclose(y, rtol=0.1),
        torch.isclose(x, y, atol=0.2, equal_nan=True),
        torch.isclose(x[:, 1:2].clamp(-9, 9).long(), y[:, 1:2].long()),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.isclose, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] == args[1]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.isclose(x, y), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
