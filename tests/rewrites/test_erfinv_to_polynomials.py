import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs, assert_still_needed

NAME = "erfinv_to_polynomials"
NEEDED_ON = ("torchscript", "dynamo")
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[0.5, -0.999, 1e-4, 0.25], [-1.0, 1.0, 0.99999, -0.7]]),)


def many(x):
    return (
        torch.erfinv(x),
        torch.special.erfinv(x * 0.5),
    )


def test_matches(exporter):
    assert_same_outputs(many, ARGS, exporter, allow_approximate=True, uses=(NAME,))


def test_matches_any_batch(exporter):
    assert_same_outputs(many, ARGS, exporter, allow_approximate=True, dynamic="batch")


def test_sentinel():
    @rewrite(torch.erfinv, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0] + 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.erfinv(x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)


def test_needs_leave(exporter):
    if exporter in NEEDED_ON:
        with pytest.raises(CompatError):
            assert_same_outputs(many, ARGS, exporter)
