import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "cumsum_in_double"
PHASE = 0.05 + 0.001 * torch.rand(2, 24000)
DYNAMIC = {"x": {0: "batch", 1: "time"}}


def model(x):
    return torch.cumsum(x, -1), x.cumsum(1, dtype=torch.float32).sin(), torch.cumsum(x.half(), 1)[:, :100]


def test_matches(exporter):
    assert_same_outputs(model, PHASE, exporter, dynamic=DYNAMIC, uses=(NAME,))


def test_near_misses_are_left_alone(exporter):
    few = lambda x: (x[:, :8].cumsum(0), x.double().cumsum(1), (x * 9).long().cumsum(1))  # noqa: E731
    result = assert_same_outputs(few, PHASE[:, :50], exporter)
    assert NAME not in {note.entry for note in result.applied}


def test_other_targets_have_no_float64():
    result = assert_same_outputs(model, PHASE[:, :50], "torchscript", dynamic=DYNAMIC, target="openvino")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite(torch.cumsum, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, dim, *, dtype=None):
        return torch.cumsum(input.double(), dim).float() * 1.01

    with pytest.raises(VerificationError):
        assert_same_outputs(lambda x: torch.cumsum(x, -1), PHASE, exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, lambda x: torch.cumsum(x, -1).sin(), PHASE, exporter, dynamic=DYNAMIC)
