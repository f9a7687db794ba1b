import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "masked_select_to_index"
EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return torch.masked_select(x, x > 0), x.masked_select(x[:1] > 0), x[:, :1].masked_select(x < 0)


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(lambda x: torch.masked_select(x, x > 0), EXAMPLE, exporter, uses=(NAME,))
    assert {"NonZero"} <= set(result.nodes)


def test_leaves_near_misses_alone(exporter):
    result = assert_same_outputs(lambda x: x[x > 0], EXAMPLE, exporter)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @rewrite(torch.masked_select, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, mask):
        return -input[mask]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.masked_select(x, x > 0), EXAMPLE, exporter, rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="does not compute"):
        assert_same_outputs(
            lambda x: x[:, :1].masked_select(x > 0),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError, match="masked_select"):
        assert_same_outputs(
            lambda x: torch.masked_select(x, x > 0), EXAMPLE, "dynamo", dynamic=DYNAMIC, samples=SAMPLES, exclude=[NAME]
        )
