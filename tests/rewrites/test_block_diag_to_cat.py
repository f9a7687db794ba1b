import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "block_diag_to_cat"
EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return (
        torch.block_diag(x, torch.ones(2, 3), x[:1]),
        torch.block_diag(x[0], torch.tensor(3.0), x),
        torch.block_diag(x),
    )


def test_matches(exporter):
    assert_entry(NAME, many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES)


def test_applied():
    result = assert_same_outputs(lambda x: torch.block_diag(x, 2 * x), EXAMPLE, "torchscript", uses=(NAME,))
    assert {"Concat"} <= set(result.nodes)


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x: torch.cat((x, x)), EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_equals_eager():
    body = catalogue()[NAME].body
    for blocks in (
        [torch.ones(2, 3), torch.ones(2).long()],
        [torch.ones(0), torch.ones(2, 2)],
        [torch.tensor(float("inf"))],
    ):
        assert torch.equal(body(*blocks), torch.block_diag(*blocks))


def test_sentinel():
    @rewrite(torch.block_diag, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*tensors):
        return torch.cat([torch.cat((t, 0 * t), 1) for t in tensors])

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.block_diag(x, 2 * x), EXAMPLE, "torchscript", rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x: torch.block_diag(x, x), EXAMPLE, "torchscript", dynamic=DYNAMIC, samples=SAMPLES, exclude=[NAME]
        )
