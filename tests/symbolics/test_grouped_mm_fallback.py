import pytest
import torch

from torch_onnx_compat import Ops, Value, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "grouped_mm_fallback"


def products(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    """What transformers' operator computes: rows after the last group are zero."""
    group = (torch.arange(len(input))[:, None] >= offs).sum(1)
    padded = torch.cat((weight, torch.zeros_like(weight[:1])))
    return (input[:, None] @ padded[group])[:, 0]


@pytest.fixture(autouse=True, scope="module")
def operator():
    """Defines the operator where transformers, which is not needed here, has not."""
    try:
        torch.ops.transformers.grouped_mm_fallback  # noqa: B018
    except AttributeError:
        define = torch.library.custom_op(f"transformers::{NAME}", products, mutates_args=())
        define.register_fake(lambda input, weight, offs: input.new_empty(input.shape[0], weight.shape[2]))


def model(x, weight, expert):
    ends = (expert[:, None] == torch.arange(4)).sum(0).cumsum(0)
    return torch.ops.transformers.grouped_mm_fallback(x, weight, ends)


def rows(*experts):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(len(experts), 8, generator=generator)
    return x, torch.randn(4, 8, 3, generator=generator), torch.tensor(experts)


EXAMPLE = rows(3, 0, 2, 4, 2, 0)  # no expert is number 4: the last row is none's
OTHERS = [rows(1), rows(4, 4), rows(3, 3, 3, 3)]
DYNAMIC = {"x": {0: "rows"}, "expert": {0: "rows"}}


@pytest.mark.parametrize("opset", [11, None])
def test_matches(exporter, opset):
    assert_same_outputs(model, EXAMPLE, exporter, dynamic=DYNAMIC, samples=OTHERS, opset=opset, uses=(NAME,))


def test_declines_a_number_of_groups_that_varies():
    def direct(x, weight, ends):
        return torch.ops.transformers.grouped_mm_fallback(x, weight, ends)

    example = (torch.randn(5, 8), torch.randn(4, 8, 3), torch.tensor([1, 2, 3, 5]))
    with pytest.raises(CompatError, match="the number of groups must be fixed"):
        assert_same_outputs(direct, example, "torchscript", dynamic={"weight": {0: "groups"}, "ends": {0: "groups"}})


def test_sentinel():
    @symbolic(f"transformers::{NAME}", name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, input: Value, weight: Value, offs: Value) -> Value:
        return op.MatMul(input, op.Gather(weight, op.constant(0, torch.int64), axis=0))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(model, EXAMPLE, "torchscript", symbolics=[broken])


def test_still_needed(exporter):
    with pytest.raises(CompatError, match=r"grouped_mm_fallback|unrecognized namespace"):
        assert_same_outputs(model, EXAMPLE, exporter, exclude=[NAME])
