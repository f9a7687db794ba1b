import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "scatter_add"
EXAMPLE = (torch.randn(3, 4), torch.randint(0, 4, (3, 6)), torch.randn(3, 6))
SAMPLES = [(torch.randn(5, 4), torch.randint(0, 4, (5, 6)), torch.randn(5, 6))]
DYNAMIC = {"x": {0: "batch"}, "i": {0: "batch"}, "v": {0: "batch"}}


def many(x, i, v):
    return (
        x.scatter_add(1, i[:, :4], v),
        x.clone().scatter_add_(-1, i[:, :1], v),
        x.scatter_add(0, torch.tensor([[0, 1], [0, 0]]), v),
    )


def test_matches(exporter):
    uses = (NAME,) if exporter == "dynamo" else ()
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=uses)


def test_applied():
    result = assert_same_outputs(lambda x, i, v: x.scatter_add(1, i[:, :4], v), EXAMPLE, "dynamo", uses=(NAME,))
    assert {"ScatterElements"} <= set(result.nodes)


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x, i, v: x.scatter_add(1, i, v), EXAMPLE, "dynamo")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel():
    @symbolic("aten::scatter_add", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, self: Value, dim: int, index: Value, src: Value):
        return op.Neg(self)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i, v: x.scatter_add(1, i[:, :4], v), EXAMPLE, "dynamo", symbolics=[broken])


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, i, v: x.scatter_add(1, i[:, :4], v),
            EXAMPLE,
            "dynamo",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
