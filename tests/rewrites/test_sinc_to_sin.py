import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "sinc_to_sin"
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[0.5, -1.3, 0.0, 0.25], [-0.5, 2.7, -0.0, 3.4], [1.0, -2.0, 5.0, 7.0]]),)


def many(x):
    return (
        torch.sinc(x),
        x.double().sinc(),
        torch.special.sinc(x),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.sinc, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return torch.sin(args[0]) / args[0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.sinc(x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
