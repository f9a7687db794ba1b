import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "digamma_to_log"
NEEDED_ON = ("torchscript", "dynamo")
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[0.5, -2.5, 1e-4, 12.0], [1.0, 2.0, 300.0, -0.7], [0.0, 3.0, 1.46, 7.0]]),)


def many(x):
    return (
        torch.digamma(x),
        torch.special.psi(x + 0.25),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, allow_approximate=True, uses=(NAME,))


def test_matches_any_batch(exporter):
    assert_same_outputs(many, ARGS, exporter, allow_approximate=True, dynamic="batch")


def test_sentinel():
    @rewrite(torch.digamma, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] + 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.digamma(x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)


def test_needs_leave(exporter):
    if exporter in NEEDED_ON:
        with pytest.raises(CompatError):
            assert_same_outputs(many, ARGS, exporter)
