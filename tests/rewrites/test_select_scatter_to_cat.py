import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "select_scatter_to_cat"
EXAMPLE = (torch.randn(2, 4, 3), torch.randn(2, 3))
SAMPLES = [(torch.randn(5, 4, 3), torch.randn(5, 3))]
DYNAMIC = {"x": {0: "batch"}, "v": {0: "batch"}}


def many(x, v):
    first, last = torch.select_scatter(x, v, 1, 0), torch.select_scatter(x, v, -2, -1)
    return first, last, x.select_scatter(v, 1, 2), x.select_scatter(v, 1, -3), x.select_scatter(x[0], 0, 1)


def test_matches(exporter):
    assert_entry(NAME, many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES)


def test_applied():
    result = assert_same_outputs(lambda x, v: torch.select_scatter(x, v, 1, -2), EXAMPLE, "torchscript", uses=(NAME,))
    assert set(result.nodes) - {"Constant"} == {"Slice", "Concat", "Unsqueeze"}


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x, v: torch.cat((x, v.unsqueeze(1)), 1), EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_equals_eager():
    body = catalogue()[NAME].body
    for x, dim, index in [(torch.randn(3, 2, 1), dim, index) for dim in (0, 1, 2, -1) for index in (0, -1)]:
        assert torch.equal(
            body(x, x.select(dim, 0) * 2, dim, index), torch.select_scatter(x, x.select(dim, 0) * 2, dim, index)
        )


def test_sentinel():
    @rewrite(torch.select_scatter, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, src, dim, index):
        return input + src.unsqueeze(dim)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, v: torch.select_scatter(x, v, 1, -2), EXAMPLE, "torchscript", rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x, v: torch.select_scatter(x, v, 1, -2),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
