import pytest
import torch
from torch import nn

from torch_onnx_compat import Ops, Value, Verify, symbolic
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs

EXACTLY = Verify(rtol=0.0, atol=0.0)
DOUBLES = torch.linspace(-3, 3, 7, dtype=torch.float64)


class Numbers(nn.Module):
    """Python numbers beside tensors of every type that has numbers of its own."""

    def forward(self, x):
        half, integers = x.half(), x.long()
        results = [
            x * 0.1,
            0.1 + x,
            x / 0.1,
            x - 1 / 3,
            1 / 3 - x,
            torch.fmod(x, 0.1),
            x > 0.1,
            torch.where(x > 0, x, 0.1),
        ]
        results += [half * 0.5, x.float() * 0.1, integers * 0.5, integers + (2**40 + 1), x + torch.scalar_tensor(0.1)]
        return (*results, x + torch.scalar_tensor(0.1, dtype=torch.float64), integers.int() * 3, x * 10**17)


def test_matches():
    assert_same_outputs(Numbers(), DOUBLES, "dynamo", uses=("scalar_tensor",))


def test_torchscript_needs_no_entry():
    result = assert_same_outputs(Numbers(), DOUBLES, "torchscript", verify=EXACTLY)
    assert not result.applied


def test_leaves_one_node():
    result = assert_same_outputs(lambda x: x * 0.1, DOUBLES, "dynamo", uses=("scalar_tensor",))
    assert set(result.nodes) - {"Constant"} == {"Mul"}


def test_declines_sizes(exporter):
    result = assert_same_outputs(
        lambda x: x * torch.scalar_tensor(x.shape[0], dtype=torch.float64),
        DOUBLES,
        exporter,
        dynamic="batch",
        include=["scalar_tensor"],
    )
    assert _reasons(result) == ["the number must be known, got a tensor"]


def test_declines_no_dtype():
    result = assert_same_outputs(lambda x: x * torch.scalar_tensor(0.5), DOUBLES, "dynamo")
    assert _reasons(result) == ["dtype must be one of ONNX's, got None"]


def _reasons(result):
    return [note.reason for note in result.declined if note.entry == "scalar_tensor"]


def test_sentinel():
    @symbolic("aten::scalar_tensor", needed_on=EXPORTERS, registry=None)
    def broken(op: Ops, s: Value) -> Value:
        return op.constant(float(torch.tensor(s).item()), torch.float64)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x * 0.1, DOUBLES, "dynamo", symbolics=[broken], verify=EXACTLY)


def test_still_needed():
    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x * 0.1, DOUBLES, "dynamo", exclude=["scalar_tensor"], verify=EXACTLY)
