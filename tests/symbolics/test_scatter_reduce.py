import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "scatter_reduce"
EXAMPLE = (torch.randn(3, 4), torch.randint(0, 4, (3, 6)), torch.randn(3, 6))
SAMPLES = [(torch.randn(5, 4), torch.randint(0, 4, (5, 6)), torch.randn(5, 6))]
DYNAMIC = {"x": {0: "batch"}, "i": {0: "batch"}, "v": {0: "batch"}}


def many(x, i, v):
    results = [
        x.scatter_reduce(1, i, v, kind, include_self=own) for kind in ("sum", "mean", "prod") for own in (True, False)
    ]
    whole = (x * 9).long(), (v * 9).long()
    means = [whole[0].scatter_reduce(1, i, whole[1], "mean", include_self=own) for own in (True, False)]
    longer = x.scatter_reduce(1, i[:, :2], v, "mean")
    return *results, *means, longer, x.clone().scatter_reduce_(-1, i, v, "mean")


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(lambda x, i, v: x.scatter_reduce(1, i, v, "sum"), EXAMPLE, exporter, uses=(NAME,))
    assert set(result.nodes) - {"Constant"} == {"ScatterElements"}


def test_leaves_near_misses_alone(exporter):
    result = assert_same_outputs(lambda x, i, v: x.scatter_add(1, i, v), EXAMPLE, exporter)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_extrema_without_self_need_opset_18():
    with pytest.raises(CompatError, match="needs opset 18 or later"):
        assert_same_outputs(
            lambda x, i, v: x.scatter_reduce(1, i, v, "amax", include_self=False), EXAMPLE, "torchscript", opset=17
        )


def test_extrema_at_opset_18(exporter):
    def model(x, i, v):
        whole = (x * 9).long().scatter_reduce(1, i, (v * 9).long(), "amax", include_self=False)
        own = [x.scatter_reduce(1, i, v, kind, include_self=own) for kind in ("amax", "amin") for own in (True, False)]
        return whole, *own

    assert_same_outputs(model, EXAMPLE, exporter, opset=18, uses=(NAME,), dynamic=DYNAMIC, samples=SAMPLES)


def test_sentinel(exporter):
    @symbolic("aten::scatter_reduce", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, self: Value, dim: int, index: Value, src: Value, reduce: str, include_self: bool = True):
        return op.ScatterElements(self, index, src, axis=dim)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i, v: x.scatter_reduce(1, i, v, "sum"), EXAMPLE, exporter, symbolics=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="does not support mean"):
        assert_same_outputs(
            lambda x, i, v: x.scatter_reduce(1, i, v, "mean"),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )


def test_still_needed_for_dynamo():
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, i, v: x.scatter_reduce(1, i, v, "mean"),
            EXAMPLE,
            "dynamo",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
