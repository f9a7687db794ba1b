import pytest
import torch
import torch.nn.functional as F

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "huber_loss"
ARGS = (torch.tensor([[0.0, 1.5, -3.0], [2.0, 0.5, 100.0]]), torch.tensor([[0.5, 0.5, 1.0], [1.0, 0.5, float("inf")]]))


def many(x, y):
    finite = y[:, :2]
    return (
        *(
            F.huber_loss(x, y, reduction="none"),
            F.huber_loss(x[:, :2], finite),
            torch.nn.HuberLoss(delta=0.3)(x, x * 2),
        ),
        *(F.huber_loss(x, x * 2, reduction="sum", delta=2.5), F.huber_loss(x.double(), x, reduction="none")),
    )


def test_matches(exporter):
    assert_entry(NAME, many, ARGS, exporter)


def test_matches_any_batch(exporter):
    assert_entry(NAME, many, ARGS, exporter, dynamic="batch")


def test_applied():
    result = assert_entry(NAME, lambda x, y: F.huber_loss(x, y), ARGS, "torchscript")
    assert result.nodes["Where"] == result.nodes["ReduceMean"] == 1


def test_leaves_near_misses_alone():
    result = assert_same_outputs(lambda x, y: F.mse_loss(x, y), ARGS, "torchscript")
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @symbolic("aten::huber_loss", name=NAME, needed_on=("torchscript", "dynamo"), registry=None)
    def broken(op: Ops, self: Value, target: Value, reduction: int = 1, delta: float = 1.0) -> Value:
        return op.Abs(op.Sub(self, target))

    with pytest.raises(VerificationError):
        assert_same_outputs(lambda x, y: F.huber_loss(x, y, reduction="none"), ARGS, exporter, symbolics=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, many, ARGS, exporter)
