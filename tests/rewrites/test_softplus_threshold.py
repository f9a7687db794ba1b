import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "softplus_threshold"
INF, NAN = float("inf"), float("nan")
ARGS = (
    torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]),
    torch.tensor([[2.5, 1.0, -0.5, 4.0], [1.0, -3.0, 0.75, 2.0]]),
)


def many(x, y):
    return (
        torch.nn.functional.softplus(x, 2.0, 1.0),
        torch.nn.functional.softplus(y, 0.3, 0.5),
        torch.nn.Softplus(1.5, 2.0)(x),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_default_threshold_is_left_alone(exporter):
    result = assert_same_outputs(lambda x: torch.nn.functional.softplus(x), ARGS[0], exporter)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite(torch.nn.functional.softplus, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] * 2

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, y: torch.nn.functional.softplus(x, 1.0, 0.5), ARGS, "torchscript", rewrites=[broken]
        )


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
