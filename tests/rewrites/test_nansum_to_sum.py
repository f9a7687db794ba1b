import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "nansum_to_sum"
INF, NAN = float("inf"), float("nan")
ARGS = (torch.tensor([[1.5, NAN, 0.0, 0.25], [-0.5, 7.0, NAN, 3.0]]),)


def many(x):
    return (
        torch.nansum(x),
        x.nansum(1),
        x.nansum((0, 1), True),
        torch.nansum(x.double(), 0),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_sentinel():
    @rewrite(torch.nansum, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0].sum()

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.nansum(x), ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
