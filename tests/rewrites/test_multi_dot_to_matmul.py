import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "multi_dot_to_matmul"
ARGS = (torch.randn(2, 4), torch.randn(4, 4))
DYNAMIC = {"x": {0: "batch"}}


def many(x, y):
    return (
        torch.linalg.multi_dot([x, y, y.mT]),
        torch.linalg.multi_dot((x[0], y, y[0])),
        torch.linalg.multi_dot([x, y, y, y[0]]),
    )


def test_matches(exporter):
    result = assert_entry(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
    assert not {"If", "Loop", "NonZero"} & set(result.nodes)


@pytest.mark.filterwarnings("ignore:.*chain_matmul is deprecated")
def test_matches_chain_matmul():
    assert_same_outputs(lambda x, y: torch.chain_matmul(x, y, y), ARGS, "torchscript", uses=(NAME,))


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body([ARGS[1], ARGS[1]], out=ARGS[1])


def test_near_misses_are_left_alone():
    result = assert_same_outputs(lambda x, y: x @ y, ARGS, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @rewrite(torch.linalg.multi_dot, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*args, **options):
        return args[0][0] @ args[0][2]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, y: torch.linalg.multi_dot([x, y, y.mT]), ARGS, exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter, dynamic=DYNAMIC)
