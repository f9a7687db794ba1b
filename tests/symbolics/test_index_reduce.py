import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "index_reduce"
pytestmark = pytest.mark.filterwarnings("ignore:index_reduce")
EXAMPLE = (torch.randn(6, 3), torch.tensor([0, 2, 0, 0]), torch.randn(4, 3))
SAMPLES = [(torch.randn(6, 3), torch.tensor([1, 1, 5, 1, 0]), torch.randn(5, 3))]
DYNAMIC = {"i": {0: "rows"}, "v": {0: "rows"}}


def many(x, i, v):
    second = x.index_reduce(1, torch.tensor([0, 2]), x[:, :2], "prod")
    without = x.index_reduce(0, i, v, "mean", include_self=False)
    return x.index_reduce(0, i, v, "prod"), x.index_reduce(0, i, v, "mean"), without, second


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(lambda x, i, v: x.index_reduce(0, i, v, "prod"), EXAMPLE, exporter, uses=(NAME,))
    assert {"ScatterElements"} <= set(result.nodes)


def test_leaves_near_misses_alone(exporter):
    result = assert_same_outputs(lambda x, i, v: x.index_add(0, i, v), EXAMPLE, exporter)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_extrema_need_opset_18():
    with pytest.raises(CompatError, match="needs opset 18 or later"):
        assert_same_outputs(lambda x, i, v: x.index_reduce(0, i, v, "amax"), EXAMPLE, "torchscript", opset=17)


def test_extrema_at_opset_18(exporter):
    def model(x, i, v):
        return x.index_reduce(0, i, v, "amax"), x.index_reduce(0, i, v, "amin", include_self=False)

    assert_same_outputs(model, EXAMPLE, exporter, opset=18, uses=(NAME,), dynamic=DYNAMIC, samples=SAMPLES)


def test_sentinel(exporter):
    @symbolic("aten::index_reduce", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, self: Value, dim: int, index: Value, source: Value, reduce: str, include_self: bool = True):
        return op.Mul(self, op.constant(2, op.dtype(self)))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i, v: x.index_reduce(0, i, v, "prod"), EXAMPLE, exporter, symbolics=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="is not supported"):
        assert_same_outputs(
            lambda x, i, v: x.index_reduce(0, i, v, "prod"),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError, match="No ONNX function"):
        assert_same_outputs(
            lambda x, i, v: x.index_reduce(0, i, v, "prod"),
            EXAMPLE,
            "dynamo",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
