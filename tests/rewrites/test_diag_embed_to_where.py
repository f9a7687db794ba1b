import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "diag_embed_to_where"
EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    kinds = (x.long().diag_embed(), (x > 0).diag_embed(1))
    endless = (x / 0).diag_embed()
    return torch.diag_embed(x), x.diag_embed(-2), torch.diag_embed(x, 1, 0, -2), x.t().diag_embed(1), *kinds, endless


def test_matches(exporter):
    assert_entry(NAME, many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES)


def test_applied():
    result = assert_same_outputs(lambda x: torch.diag_embed(x), EXAMPLE, "torchscript", uses=(NAME,))
    assert {"Where"} <= set(result.nodes)


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x: x.diagonal(), EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_equals_eager():
    body = catalogue()[NAME].body
    for x, rest in [
        (torch.randn(shape), rest)
        for shape in ((3,), (2, 1), (2, 0), (2, 3))
        for rest in ((0,), (2,), (-1,), (1, 0, -1), (1, -1, 0))
    ]:
        assert torch.equal(body(x, *rest), torch.diag_embed(x, *rest))


def test_sentinel():
    @rewrite(torch.diag_embed, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, offset=0, dim1=-2, dim2=-1):
        return input.unsqueeze(-1) * torch.ones(4)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.diag_embed(x), EXAMPLE, "torchscript", rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x: torch.diag_embed(x), EXAMPLE, "torchscript", dynamic=DYNAMIC, samples=SAMPLES, exclude=[NAME]
        )
