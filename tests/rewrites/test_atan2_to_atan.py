import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "atan2_to_atan"
INF, NAN = float("inf"), float("nan")
AXIS = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, INF, -INF])
ARGS = (AXIS.repeat(7)[None], AXIS.repeat_interleave(7)[None])


def many(y, x):
    return (
        torch.atan2(y, x),
        y.atan2(x[:, :1]),
        torch.atan2(y[:, :3].long(), x[:, :3]),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite((torch.atan2, torch.arctan2), name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, other):
        return torch.atan(input / other)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda y, x: torch.atan2(y, x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
