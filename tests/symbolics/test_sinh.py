import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

ARGS = (torch.tensor([[1.5, -2.0, 0.0], [0.25, -0.5, 3.0]]), torch.tensor([[2, -3, 1], [0, 4, -1]]))


def many(x, i):
    return torch.sinh(x), (i).sinh(), ((x) * 1).sinh_()


def test_matches(exporter):
    uses = ("sinh",) if exporter == "torchscript" else ()
    assert_same_outputs(many, ARGS, exporter, dynamic={name: {0: "batch"} for name in "xi"}, uses=uses)


def test_takes_one_node(exporter):
    result = assert_same_outputs(lambda x: torch.sinh(x), ARGS[0], exporter)
    assert set(result.nodes) == {"Sinh"}


def test_sentinel():
    @symbolic("aten::sinh", needed_on=("torchscript",), registry=None)
    def broken(op: Ops, self: Value) -> Value:
        return op.Exp(self)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: torch.sinh(x), ARGS[0], "torchscript", symbolics=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="aten::sinh"):
        assert_same_outputs(many, ARGS, "torchscript", exclude=["sinh"])
