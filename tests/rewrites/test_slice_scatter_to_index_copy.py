import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "slice_scatter_to_index_copy"
EXAMPLE = (torch.randn(3, 6), torch.randn(3, 6))
SAMPLES = [(torch.randn(5, 6), torch.randn(5, 6))]
DYNAMIC = {"x": {0: "batch"}, "v": {0: "batch"}}


def many(x, v):
    step, rest = torch.slice_scatter(x, v[:, :2], 1, 0, 4, 2), x.slice_scatter(v[:, :3], -1, -3)
    return (
        step,
        rest,
        x.slice_scatter(v[1:], 0, 1),
        x.slice_scatter(v[::2], 0, 0, None, 2),
        x.slice_scatter(v[:, :4], 1, 2, 99),
    )


def test_matches(exporter):
    assert_entry(NAME, many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES)


def test_applied():
    result = assert_same_outputs(
        lambda x, v: torch.slice_scatter(x, v[:, :2], 1, 0, 4, 2), EXAMPLE, "torchscript", uses=(NAME,)
    )
    assert {"ScatterElements"} <= set(result.nodes)


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x, v: torch.cat((x[:, :2], v), 1), EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_equals_eager():
    body = catalogue()[NAME].body
    for x, start, end, step in [
        (torch.randn(2, 5), a, b, s) for a in (None, 0, 1, -2, 9) for b in (None, 3, -1, 9) for s in (1, 2, 3)
    ]:
        assert torch.equal(
            body(x, x[:, start:end:step] * 2, 1, start, end, step),
            torch.slice_scatter(x, x[:, start:end:step] * 2, 1, start, end, step),
        )


def test_sentinel():
    @rewrite(torch.slice_scatter, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, src, dim=0, start=None, end=None, step=1):
        return input * 1

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, v: torch.slice_scatter(x, v[:, :2], 1, 0, 4, 2), EXAMPLE, "torchscript", rewrites=[broken]
        )


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x, v: torch.slice_scatter(x, v[:, :2], 1, 0, 4, 2),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
