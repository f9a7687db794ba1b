import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "index"
EXAMPLE = (torch.randn(3, 4),)
SAMPLES = [(torch.randn(5, 4),)]
DYNAMIC = {"x": {0: "batch"}}


def many(x):
    i, j = torch.tensor([0, 1, -1]), torch.tensor([3, -1, 0])
    y = torch.stack((x, x * 2, x - 1), 1)
    masks = (x[x > 0], x[x[:, 0] > 0], y[..., x[0] > 0], y[y[..., 0] > 0], y[:, torch.tensor([True, False, True])])
    rows = torch.arange(x.shape[0])
    several = (x[i, j], x[i[:, None], j], y[i, :, j], y[:, i, j], x[rows, x.argmax(1)])
    mixed = (y[:, None, i], y[..., j], x.long()[i], (x > 0)[i, j])
    return *masks, *several, *mixed


def test_matches(exporter):
    assert_entry(NAME, many, EXAMPLE, exporter, dynamic=DYNAMIC, samples=SAMPLES)


def test_applied():
    result = assert_same_outputs(
        lambda x: x[torch.tensor([0, -1]), torch.tensor([-2, 3])], EXAMPLE, "torchscript", uses=(NAME,)
    )
    assert set(result.nodes) - {"Constant"} == {"GatherND"}


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x: x[1:, -1], EXAMPLE, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


def test_sentinel():
    @symbolic("aten::index", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, self: Value, indices: list[Value | None]):
        return op.GatherND(self, op.Concat(*(op.Unsqueeze(i, [-1]) for i in indices[::-1]), axis=-1))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x: x[torch.tensor([0, -1]), torch.tensor([-2, 3])], EXAMPLE, "torchscript", symbolics=[broken]
        )


def test_still_needed_for_torchscript():
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda x: x[torch.tensor([0, 1]), torch.tensor([-2, 3])],
            EXAMPLE,
            "torchscript",
            dynamic=DYNAMIC,
            samples=SAMPLES,
            exclude=[NAME],
        )
