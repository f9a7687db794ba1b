import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "triu_indices_to_nonzero"
EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    size = x.shape[0]
    return torch.triu_indices(size, size), torch.triu_indices(size, 4, 1), torch.triu_indices(4, size, offset=-2)


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied():
    result = assert_same_outputs(lambda x: torch.triu_indices(x.shape[0], 4), EXAMPLE, "torchscript", uses=(NAME,))
    assert {"NonZero"} <= set(result.nodes)


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x: x[torch.triu_indices(3, 3)[0]], EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel():
    @rewrite(torch.triu_indices, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(row, col, offset=0, **options):
        return torch.ones(row, col).nonzero().t()

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.triu_indices(x.shape[0], 4), EXAMPLE, "torchscript", rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x: torch.triu_indices(x.shape[0], 4),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError, match="came out fixed at"):
        assert_same_outputs(
            lambda x: torch.triu_indices(x.shape[0], 4), EXAMPLE, "dynamo", dynamic=DYNAMIC, exclude=[NAME]
        )
