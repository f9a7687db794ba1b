import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "logsigmoid_to_softplus"
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[1.5, -200.0, 0.0, INF], [-INF, 7.0, -95.0, 3.0]]),)


def many(x):
    return (
        torch.nn.functional.logsigmoid(x),
        torch.nn.LogSigmoid()(x * 2),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.nn.functional.logsigmoid, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.log(torch.sigmoid(args[0]))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.nn.functional.logsigmoid(x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
