import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "take_along_dim_to_gather"
EXAMPLE = (torch.randn(3, 4, 5),)
SAMPLES = [(torch.randn(6, 4, 5),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    single = torch.tensor([[[3], [0]]])
    return (
        torch.take_along_dim(x, x.argsort(1), 1),
        x.take_along_dim(x.argmax(-1, keepdim=True), -1),
        x.take_along_dim(single, 1),
        x[:1].take_along_dim(x.argsort(2), 2),
        x.take_along_dim(torch.tensor([3, 0])),
    )


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(lambda x: torch.take_along_dim(x, x.argsort(1), 1), EXAMPLE, exporter, uses=(NAME,))
    assert {"GatherElements"} <= set(result.nodes)


def test_leaves_near_misses_alone(exporter):
    result = assert_same_outputs(lambda x: x.gather(1, x.argsort(1)), EXAMPLE, exporter)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_equals_eager():
    body = catalogue()[NAME].body
    for x, i, dim in [
        (torch.randn(3, 2), torch.tensor([[1, 0]]), 1),
        (torch.randn(1, 2), torch.tensor([[1], [0]]), 1),
        (torch.randn(3, 2), torch.tensor([[2], [0]]), 0),
        (torch.randn(3, 2), torch.tensor([5, 0]), None),
    ]:
        assert torch.equal(body(x, i, dim), torch.take_along_dim(x, i, dim))


def test_sentinel(exporter):
    @rewrite(torch.take_along_dim, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, indices, dim=None):
        return input.gather(dim, 3 - indices)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.take_along_dim(x, x.argsort(1), 1), EXAMPLE, exporter, rewrites=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x: torch.take_along_dim(x, x.argsort(1), 1),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError, match="came out fixed"):
        assert_same_outputs(
            lambda x: torch.take_along_dim(x, x.argsort(1), 1),
            EXAMPLE,
            "dynamo",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
