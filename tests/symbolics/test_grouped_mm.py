import pytest
import torch
from torch import nn

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "grouped_mm"
pytestmark = pytest.mark.skipif(not hasattr(nn.functional, "grouped_mm"), reason="this torch has no grouped_mm")


class Experts(nn.Module):
    """The first rows are multiplied by the first expert's matrix, as many as ask for that expert, and so on."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 16, 8, generator=torch.Generator().manual_seed(0)))

    def forward(self, x, expert):
        ends = (expert[:, None] == torch.arange(4)).sum(0).cumsum(0).to(torch.int32)
        up = nn.functional.grouped_mm(x, self.weight.transpose(1, 2), offs=ends)
        return up, nn.functional.grouped_mm(up, self.weight, offs=ends)


def rows(*experts):
    return torch.randn(len(experts), 8, generator=torch.Generator().manual_seed(0)), torch.tensor(experts)


EXAMPLE = rows(3, 0, 2, 2, 0)
OTHERS = [rows(1), rows(3, 3, 3, 3), rows(0, 0), rows(*range(4), *range(4), 1)]
DYNAMIC = {"x": {0: "rows"}, "expert": {0: "rows"}}


@pytest.mark.parametrize("opset", [11, None])
def test_matches(exporter, opset):
    result = assert_same_outputs(
        Experts(), EXAMPLE, exporter, dynamic=DYNAMIC, samples=OTHERS, opset=opset, uses=(NAME,)
    )
    assert result.nodes["MatMul"] == 8


def test_operands_of_three_axes(exporter):
    model = nn.functional.grouped_mm
    example = (torch.randn(3, 4, 8), torch.randn(3, 8, 16))
    result = assert_same_outputs(model, example, exporter, uses=(NAME,), dynamic={"mat_a": {1: "rows"}})
    assert set(result.nodes) - {"Constant"} == {"MatMul"}


def test_declines_groups_of_columns():
    def model(x, y):
        return nn.functional.grouped_mm(x, y, offs=torch.tensor([4, 8], dtype=torch.int32))

    with pytest.raises(CompatError, match="groups must be of rows"):
        assert_same_outputs(model, (torch.randn(4, 8), torch.randn(8, 4)), "torchscript")


def test_a_plain_product_is_left_alone(exporter):
    result = assert_same_outputs(lambda x, y: x @ y, (torch.randn(4, 8), torch.randn(8, 4)), exporter)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @symbolic("aten::_grouped_mm", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(
        op: Ops,
        self: Value,
        mat2: Value,
        offs: Value | None = None,
        bias: Value | None = None,
        out_dtype: int | None = None,
    ) -> Value:
        return op.MatMul(self, op.Gather(mat2, op.constant(0, torch.int64), axis=0))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Experts(), EXAMPLE, "torchscript", symbolics=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError, match=r"_grouped_mm|Grouped matmul"):
        assert_same_outputs(Experts(), EXAMPLE, exporter, exclude=[NAME])
