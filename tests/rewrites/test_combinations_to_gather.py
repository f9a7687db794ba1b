import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "combinations_to_gather"
EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    dynamic = x[:, 0]
    fixed = [torch.combinations(x[0], r, again) for r in (1, 2, 3) for again in (False, True)]
    return *fixed, *(torch.combinations(dynamic, r, again) for r in (1, 2, 3) for again in (False, True))


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied():
    result = assert_same_outputs(lambda x: torch.combinations(x[0]), EXAMPLE, "torchscript", uses=(NAME,))
    assert "NonZero" not in result.nodes


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x: x[0][torch.tensor([[0, 1], [0, 2]])], EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_equals_eager():
    body = catalogue()[NAME].body
    for size, r, again in [(n, r, b) for n in (0, 1, 2, 5) for r in (1, 2, 3) for b in (False, True)]:
        assert torch.equal(body(torch.arange(size), r, again), torch.combinations(torch.arange(size), r, again))


def test_sentinel():
    @rewrite(torch.combinations, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, r=2, with_replacement=False):
        return torch.stack((input[1:], input[:-1]), 1).repeat(2, 1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.combinations(x[0]), EXAMPLE, "torchscript", rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x: torch.combinations(x[0]), EXAMPLE, "torchscript", dynamic=DYNAMIC, samples=SAMPLES, exclude=[NAME]
        )


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError, match="nonzero_static"):
        assert_same_outputs(lambda x: torch.combinations(x[0]), EXAMPLE, "dynamo", dynamic=DYNAMIC, exclude=[NAME])
