import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "rms_norm_to_mean"
X = torch.randn(2, 3, 6)
DYNAMIC = {"x": {0: "batch", 1: "length"}}


class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(6)
        nn.init.normal_(self.norm.weight)

    def forward(self, x):
        return (
            *(self.norm(x), self.norm(x * 1e-4), F.rms_norm(x, (6,)), F.rms_norm(x, (6,), eps=0.1)),
            *(F.rms_norm(x.double(), (6,)), F.rms_norm(x.half(), (6,), self.norm.weight.half())),
            F.rms_norm(x.reshape(-1, 2, 3), (2, 3), eps=1e-3),
        )


def test_matches():
    assert_same_outputs(Many().eval(), X, "torchscript", dynamic=DYNAMIC, uses=(NAME,))


def test_applied():
    result = assert_same_outputs(nn.RMSNorm(6).eval(), X, "torchscript", uses=(NAME,))
    assert {k: n for k, n in result.nodes.items() if k != "Constant"} == {
        **{"Mul": 2, "ReduceMean": 1, "Add": 1, "Sqrt": 1, "Div": 1}
    }


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    eps=st.sampled_from((None, 0.0, 0.5)),
    dtype=st.sampled_from((torch.float32, torch.float64, torch.float16, torch.bfloat16)),
    scale=st.sampled_from((1e-4, 1.0, 300.0)),
)
@settings(max_examples=100, deadline=None)
def test_equals_eager(shape, eps, dtype, scale):
    x = (torch.randn(2, *shape) * scale + 0.01).to(dtype)
    weight = torch.randn(shape).to(dtype)
    got = catalogue()[NAME].body(x, shape, weight, eps)
    torch.testing.assert_close(got, F.rms_norm(x, shape, weight, eps))


def test_layer_norm_is_left_alone():
    assert not assert_same_outputs(nn.LayerNorm(6).eval(), X, "torchscript").applied


def test_dynamo_does_without():
    assert not assert_same_outputs(nn.RMSNorm(6).eval(), X, "dynamo").applied


def test_sentinel():
    @rewrite(torch.rms_norm, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, normalized_shape, weight=None, eps=None):
        return input / input.abs().mean(-1, keepdim=True)

    with pytest.raises(VerificationError):
        assert_same_outputs(nn.RMSNorm(6).eval(), X, "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="aten::rms_norm"):
        assert_same_outputs(nn.RMSNorm(6).eval(), X, "torchscript", exclude=[NAME])
