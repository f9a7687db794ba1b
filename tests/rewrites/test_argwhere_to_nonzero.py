import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "argwhere_to_nonzero"
EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return torch.argwhere(x > 0), x.argwhere(), torch.argwhere(x[0, 0])


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied():
    result = assert_same_outputs(lambda x: torch.argwhere(x > 0), EXAMPLE, "torchscript", uses=(NAME,))
    assert {"NonZero"} <= set(result.nodes)


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x: torch.nonzero(x > 0), EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_equals_eager():
    body = catalogue()[NAME].body
    for x in (torch.zeros(2, 0), torch.tensor(3), torch.tensor([0.0, float("nan")]), torch.ones(2, 2) > 0):
        assert torch.equal(body(x), torch.argwhere(x))


def test_sentinel():
    @rewrite(torch.argwhere, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input):
        return torch.nonzero(input).flip(0)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.argwhere(x > 0), EXAMPLE, "torchscript", rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x: torch.argwhere(x), EXAMPLE, "torchscript", dynamic=DYNAMIC, samples=SAMPLES, exclude=[NAME]
        )


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError):
        assert_same_outputs(lambda x: torch.argwhere(x.sum()), EXAMPLE, "dynamo", exclude=[NAME])
