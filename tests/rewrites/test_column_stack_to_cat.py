import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "column_stack_to_cat"
EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    return torch.column_stack((x[:, 0], x)), torch.column_stack((x[0], x[1])), torch.column_stack((x[0, 0], x[0, 1]))


def test_matches(exporter):
    assert_entry(NAME, many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES)


def test_applied():
    result = assert_same_outputs(lambda x: torch.column_stack((x[:, 0], x)), EXAMPLE, "torchscript", uses=(NAME,))
    assert {"Concat"} <= set(result.nodes)


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x: torch.hstack((x, x)), EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel():
    @rewrite(torch.column_stack, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(tensors):
        return torch.cat([x.reshape(-1, 1) if x.dim() < 2 else x for x in tensors[::-1]], 1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.column_stack((x[:, 0], x)), EXAMPLE, "torchscript", rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x: torch.column_stack((x, x)),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
