import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.take import operator, take
from torch_onnx_compat.testing import assert_same_outputs

X = torch.randn(2, 5, 4)
TABLE = torch.tensor([[0, 4, 2], [3, 3, 1]])
DYNAMIC = {"x": {0: "batch", 2: "width"}}


def many(x, table):
    return take(x, table, 1), take(x, table[0], 1), take(x[:, :, 0], table, 1), take((x * 9).long(), table, 1)


def test_eager_is_indexing():
    assert torch.equal(take(X, TABLE, 1), X[:, TABLE])
    assert torch.equal(take(X, TABLE % 4, 2), X[..., TABLE % 4])
    assert torch.equal(take(X, TABLE[0, 0] % 2, 0), X[0])


def test_operator_is_well_formed():
    torch.library.opcheck(operator, (X, TABLE, 1), test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("opset", [11, None])
def test_matches(exporter, opset):
    result = assert_same_outputs(many, (X, TABLE), exporter, dynamic=DYNAMIC, opset=opset, uses=("take",))
    assert not result.custom_nodes


def test_takes_one_node(exporter):
    result = assert_same_outputs(lambda x: take(x, TABLE, 1), (X,), exporter, dynamic=DYNAMIC, uses=("take",))
    assert set(result.nodes) - {"Constant"} == {"Gather"}


def test_index_select_is_left_alone():
    result = assert_same_outputs(lambda x: x.index_select(1, TABLE[0]), (X,), "torchscript")
    assert "take" not in {note.entry for note in result.applied}


def test_sentinel():
    @symbolic("torch_onnx_compat::take", name="take", needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, x: Value, table: Value, axis: int) -> Value:
        return op.Gather(op.Neg(x), table, axis=axis)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: take(x, TABLE, 1), (X,), "torchscript", symbolics=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError, match=r"namespace|torch_onnx_compat"):
        assert_same_outputs(lambda x: take(x, TABLE, 1), (X,), exporter, exclude=["take"])
