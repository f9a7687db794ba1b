import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "kthvalue_to_topk"
ARGS = (torch.tensor([[1.5, -2.0, 3.0, 0.5], [0.0, 7.0, -1.0, 2.0]]), torch.tensor([[2, -3, 4], [0, 5, 1]]))


def many(x, i):
    return (
        x.kthvalue(2).values,
        torch.kthvalue(x, 1, 0).values,
        x.gather(1, x.kthvalue(3, dim=1, keepdim=True).indices),
        i.kthvalue(3).values,
        i.kthvalue(2)[0],
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_equals_eager():
    x = torch.randn(4, 7, 3)
    for k, dim, keepdim in ((1, 0, True), (4, -3, False), (5, 1, False), (3, 2, True)):
        for found, wanted in zip(catalogue()[NAME].body(x, k, dim, keepdim), x.kthvalue(k, dim, keepdim), strict=True):
            assert torch.equal(found, wanted)


def test_declines_out():
    with pytest.raises(Declined, match="out must be None"):
        catalogue()[NAME].body(ARGS[0], 1, out=(ARGS[0], ARGS[0]))


def test_sentinel():
    @rewrite(torch.kthvalue, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, k):
        return torch.topk(input, k)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i: x.kthvalue(2)[0], ARGS, "torchscript", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
