import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.catalogue.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_same_outputs

X = torch.randn(3, 4)


def test_a_list_of_values_comes_as_a_list(exporter):
    seen = []

    @symbolic("aten::index", name="index", needed_on=EXPORTERS, registry=None)
    def reading(op: Ops, self: Value, indices: list[Value | None]) -> Value:
        seen.append([index is None for index in indices])
        return op.Gather(self, indices[1], axis=1)

    assert_same_outputs(lambda x: x[:, torch.tensor([2, -1])], X, exporter, symbolics=[reading], uses=("index",))
    assert seen == [[True, False]]


def test_not_implemented_leaves_the_operator_to_torch(exporter):
    @symbolic("aten::tanh", name="nothing", needed_on=EXPORTERS, registry=None)
    def nothing(op: Ops, self: Value) -> Value:
        return NotImplemented

    result = assert_same_outputs(lambda x: x.tanh(), X, exporter, symbolics=[nothing])
    assert "nothing" not in {note.entry for note in (*result.applied, *result.declined)}


def test_not_implemented_where_torch_has_nothing_is_an_error():
    @symbolic("aten::igamma", name="nothing", needed_on=EXPORTERS, registry=None)
    def nothing(op: Ops, self: Value) -> Value:
        return NotImplemented

    with pytest.raises(CompatError, match="torch has nothing for the operator"):
        assert_same_outputs(lambda x: torch.igamma(x.abs(), x.abs()), X, "torchscript", symbolics=[nothing])
