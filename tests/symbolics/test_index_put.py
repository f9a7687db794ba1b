import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "index_put"
EXAMPLE = (torch.randn(6, 3), torch.tensor([0, 2, 0, 0]), torch.randn(4, 3))
SAMPLES = [(torch.randn(6, 3), torch.tensor([1, 1, 5, 1, 0]), torch.randn(5, 3))]
DYNAMIC = {"i": {0: "rows"}, "v": {0: "rows"}}


def many(x, i, v):
    y, z, w = x.clone(), x.clone(), x.clone()
    y.index_put_((i,), v, accumulate=True)
    z[z > 0.3] = -1.0
    w[w[:, 0] > 0] = v.mean()
    j = torch.tensor([0, -1, 2])
    several = (
        x.index_put((i, i.flip(0) % 3), v[:, 0], accumulate=True),
        x.index_put((i[:, None], j), v, accumulate=True),
    )
    number = x.index_put((i,), torch.tensor(1.0), accumulate=True), x.long().index_put((i,), v.long(), accumulate=True)
    rows = x.index_put((torch.tensor([[0, -1], [-1, 0]]),), v[:1], accumulate=True)
    return y, z, w, *several, *number, rows, x.index_put((x > 0,), torch.tensor(2.0), accumulate=True)


def test_matches(exporter):
    assert_same_outputs(many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(lambda x, i, v: x.index_put((i,), v, accumulate=True), EXAMPLE, exporter, uses=(NAME,))
    assert {"ScatterElements"} <= set(result.nodes)
    assert "ScatterND" not in result.nodes


def test_leaves_near_misses_alone(exporter):
    result = assert_same_outputs(lambda x, i, v: x.index_put((torch.tensor([0, 2, 1, 5]),), v), EXAMPLE, exporter)
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_a_number_at_a_mask_is_one_where(exporter):
    def model(x):
        y = x.clone()
        y[y > 0] = 2.0
        return y

    result = assert_same_outputs(model, (torch.randn(3, 4),), exporter)
    assert not {"NonZero", "ScatterND"} & set(result.nodes)


def test_declines_sums_of_truth_values():
    with pytest.raises(CompatError):
        assert_same_outputs(
            lambda x, i, v: (x > 0).index_put((i,), v > 0, accumulate=True), EXAMPLE, "torchscript", dynamic=DYNAMIC
        )


def test_sentinel(exporter):
    @symbolic("aten::index_put", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, self: Value, indices: list[Value | None], values: Value, accumulate: bool = False):
        return op.ScatterND(self, op.Unsqueeze(indices[0], [-1]), values)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, i, v: x.index_put((i,), v, accumulate=True), EXAMPLE, exporter, symbolics=[broken]
        )


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x, i, v: x.index_put((i,), v, accumulate=True),
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )


def test_still_needed_for_dynamo():
    result = assert_same_outputs(
        lambda x, i, v: x.index_put((i,), v, accumulate=True), EXAMPLE, "dynamo", dynamic=DYNAMIC, exclude=[NAME]
    )
    assert "ScatterND" in result.nodes  # whose threads race where places repeat
