import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "trace_to_sum"
ARGS = (torch.randn(4, 3),)
DYNAMIC = {"x": {0: "rows"}}


def many(x):
    return (
        torch.trace(x),
        x.t().trace(),
        (x * 5).long().trace(),
        torch.trace(torch.where(x == x[0, 1], torch.inf, x)),
    )


def test_matches(exporter):
    result = assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x: torch.diag(x), ARGS, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @rewrite(torch.trace, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0].sum()

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.trace(x), ARGS, exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
