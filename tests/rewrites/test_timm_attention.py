"""timm's attention, in rows; masks; what is left alone and what is declined."""

import pytest
import torch
from torch import nn

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.testing import Example, assert_same_outputs

layers = pytest.importorskip("timm.layers")

NAME = "fused_attention_to_matmul"
TOKENS = torch.randn(2, 9, 16)


def attention(fused=True, **options):
    torch.manual_seed(0)
    made = layers.Attention(16, num_heads=2, **options).eval()
    made.fused_attn = fused
    return made


EXAMPLES = [
    Example(
        NAME,
        attention(**options),
        (TOKENS,),
        dynamic={"x": {0: "batch", 1: "tokens"}},
        broken=lambda block: nn.Identity() if isinstance(block, layers.Attention) else NotImplemented,
        leaves=attention(fused=False, **options),
    )
    for options in ({}, {"qk_norm": True, "norm_layer": nn.LayerNorm})
]


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


@pytest.mark.parametrize("module", [attention(fused=False), nn.Linear(2, 2)], ids=["unfused", "other"])
def test_others_are_left_alone(module):
    assert catalogue()[NAME].body(module) is NotImplemented


def test_declines_hooks():
    model = attention()
    model.register_forward_hook(lambda *_: None)
    with pytest.raises(Declined, match="the module has hooks, which its copy would not run"):
        catalogue()[NAME].body(model)
