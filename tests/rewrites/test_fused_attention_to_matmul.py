import pytest
import torch
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

layers = pytest.importorskip("timm.layers")

NAME = "fused_attention_to_matmul"
TOKENS = torch.randn(2, 9, 16)
DYNAMIC = {"x": {0: "batch", 1: "tokens"}}


def attention(**options):
    torch.manual_seed(0)
    made = layers.Attention(16, num_heads=2, **options).eval()
    made.fused_attn = True
    return made


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("options", [{}, {"qk_norm": True, "norm_layer": nn.LayerNorm}], ids=["plain", "normed"])
def test_matches(options, exporter):
    assert_entry(NAME, attention(**options), (TOKENS,), exporter, dynamic=DYNAMIC)


def test_the_callers_module_stays_fused():
    model = nn.Sequential(attention(), nn.Linear(16, 4)).eval()
    result = assert_same_outputs(model, (TOKENS,), "torchscript", dynamic="batch", uses=(NAME,))
    assert model[0].fused_attn is True
    assert result.nodes["MatMul"] >= 4


def test_with_a_mask():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = attention()

        def forward(self, x, mask):
            return self.attention(x, attn_mask=mask)

    mask = torch.zeros(9, 9).masked_fill(torch.ones(9, 9).triu(1) > 0, -1e4)
    assert_same_outputs(Masked().eval(), (TOKENS, mask), "torchscript", uses=(NAME,))


def test_left_alone_where_an_operator_exists():
    result = assert_same_outputs(attention(), (TOKENS,), "dynamo", opset=23)
    assert NAME not in {note.entry for note in result.applied}


def test_modules_that_are_not_fused_are_left_alone():
    unfused = attention()
    unfused.fused_attn = False
    assert catalogue()[NAME].body(unfused) is NotImplemented
    assert catalogue()[NAME].body(nn.Linear(2, 2)) is NotImplemented


def test_declines_hooks():
    model = attention()
    model.register_forward_hook(lambda *_: None)
    with pytest.raises(Declined, match="the module has hooks, which its copy would not run"):
        catalogue()[NAME].body(model)


def test_sentinel():
    @rewrite("module:timm.*.Attention", name=NAME, always=True, registry=None)
    def broken(block):
        return nn.Identity()

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(attention(), (TOKENS,), "torchscript", rewrites=[broken])


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_still_needed(exporter):
    assert_still_needed(NAME, attention(), (TOKENS,), exporter, dynamic=DYNAMIC)
