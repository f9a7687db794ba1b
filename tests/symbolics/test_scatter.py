import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "scatter"
EXAMPLE = (torch.randn(3, 4), torch.randint(0, 4, (3, 6)), torch.randn(3, 6))
SAMPLES = [(torch.randn(5, 4), torch.randint(0, 4, (5, 6)), torch.randn(5, 6))]
DYNAMIC = {"x": {0: "batch"}, "i": {0: "batch"}, "v": {0: "batch"}}


def many(x, i, v):
    whole = x.long().scatter(1, i, 3, reduce="add")
    longer = x.scatter(1, torch.tensor([[1, 0]]), v), x.scatter(-1, i[:, :1], v)
    return x.scatter(1, i, v, reduce="add"), x.scatter(-1, i, v, reduce="multiply"), whole, *longer


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(lambda x, i, v: x.scatter(1, i, v, reduce="add"), EXAMPLE, exporter, uses=(NAME,))
    assert set(result.nodes) - {"Constant"} == {"ScatterElements"}


def test_leaves_near_misses_alone(exporter):
    result = assert_same_outputs(lambda x, i, v: (x.scatter(1, i, 2.0), x.scatter(1, i[:, :4], x)), EXAMPLE, exporter)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @symbolic("aten::scatter", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, self: Value, dim: int, index: Value, src: Value, reduce: str | None = None):
        return op.ScatterElements(self, index, src, axis=dim)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i, v: x.scatter(1, i, v, reduce="add"), EXAMPLE, exporter, symbolics=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="number of arguments"):
        assert_same_outputs(
            lambda x, i, v: x.scatter(1, i, v, reduce="add"),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, i, v: x.scatter(-1, i[:, :1], v),
            EXAMPLE,
            "dynamo",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
