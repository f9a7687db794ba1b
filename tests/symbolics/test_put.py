import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "put"
EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    places, values = torch.tensor([0, 5, -1]), x[0, :3]
    repeated = x.put(torch.tensor([[0, 5], [0, 0]]), x[:1], accumulate=True)
    return x.put(places, values), x.clone().put_(places, values), repeated


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(lambda x: x.put(torch.tensor([0, 5, -1]), x[0, :3]), EXAMPLE, exporter, uses=(NAME,))
    assert {"ScatterElements"} <= set(result.nodes)


def test_leaves_near_misses_alone(exporter):
    result = assert_same_outputs(lambda x: x.take(torch.tensor([0, 5, -1])), EXAMPLE, exporter)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel(exporter):
    @symbolic("aten::put", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, self: Value, index: Value, source: Value, accumulate: bool = False):
        return op.Neg(self)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x.put(torch.tensor([0, 5, -1]), x[0, :3]), EXAMPLE, exporter, symbolics=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x: x.put(torch.tensor([0, 5]), x[0, :2]),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError, match="No ONNX function"):
        assert_same_outputs(
            lambda x: x.put(torch.tensor([0, 5]), x[0, :2]),
            EXAMPLE,
            "dynamo",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
