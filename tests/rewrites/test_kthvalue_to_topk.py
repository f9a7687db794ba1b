import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "kthvalue_to_topk"
NEEDED_ON = ("torchscript", "dynamo")
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
    assert_same_outputs(many, ARGS, exporter, uses=(NAME,) if exporter in NEEDED_ON else ())


def test_matches_any_batch(exporter):
    names = ["x", "i"]
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in names})


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
    if exporter not in NEEDED_ON:
        result = assert_same_outputs(many, ARGS, exporter)
        assert NAME not in {note.entry for note in result.applied}
        return
    with pytest.raises(CompatError):
        assert_same_outputs(many, ARGS, exporter, exclude=[NAME])
