import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "index_add"
EXAMPLE = (torch.randn(6, 3), torch.tensor([0, 2, 0, 0]), torch.randn(4, 3))
SAMPLES = [(torch.randn(6, 3), torch.tensor([1, 1, 5, 1, 0]), torch.randn(5, 3))]
DYNAMIC = {"i": {0: "rows"}, "v": {0: "rows"}}


def many(x, i, v):
    wide, places = torch.stack((x, x), 1), torch.tensor([0, 1, 0])
    second = wide.index_add(1, places, wide[:, :1].repeat(1, 3, 1))
    last = torch.index_add(wide, -1, places.int(), wide * 2, alpha=-2.5)
    vector, whole = x[:, 0].index_add(0, i, v[:, 1]), x.long().index_add(0, i, v.long(), alpha=3)
    return x.index_add(0, i, v), x.clone().index_add_(0, i, v), second, last, vector, whole


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(lambda x, i, v: x.index_add(0, i, v), EXAMPLE, exporter, uses=(NAME,))
    assert {"ScatterElements"} <= set(result.nodes)
    assert "ScatterND" not in result.nodes


def test_leaves_near_misses_alone(exporter):
    result = assert_same_outputs(lambda x, i, v: x.index_copy(0, torch.tensor([0, 2, 1, 5]), v), EXAMPLE, exporter)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


RACE = (torch.zeros(1), torch.zeros(2**20, dtype=torch.int64), torch.ones(2**20))


def test_many_updates_of_one_place_all_count(exporter):
    result = assert_same_outputs(
        lambda x, i, v: x.index_add(0, i, v),
        EXAMPLE,
        exporter,
        uses=(NAME,),
        dynamic={"x": {0: "places", 1: "columns"}, "i": {0: "rows"}, "v": {0: "rows", 1: "columns"}},
    )
    x, i, v = (t.numpy() for t in (RACE[0][:, None], RACE[1], RACE[2][:, None]))
    (total,) = result.session().run(None, {"x": x, "i": i, "v": v})
    assert total.item() == 2**20


def test_sentinel(exporter):
    @symbolic("aten::index_add", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, self: Value, dim: int, index: Value, source: Value, alpha: Value = 1):
        return op.ScatterND(self, op.Unsqueeze(index, [-1]), source)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x, i, v: x.index_add(0, i, v), EXAMPLE, exporter, symbolics=[broken])


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, i, v: x.index_add(0, i, v),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )


def test_still_needed_for_dynamo():
    result = assert_same_outputs(
        lambda x, i, v: x.index_add(0, i, v), EXAMPLE, "dynamo", dynamic=DYNAMIC, exclude=[NAME, "index_put"]
    )
    assert "ScatterND" in result.nodes  # whose threads race where places repeat
