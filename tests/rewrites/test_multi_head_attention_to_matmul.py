import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "multi_head_attention_to_matmul"
X = torch.randn(2, 5, 8)
PADDING = torch.tensor([[False, False, False, True, True], [False, False, False, False, True]])
DYNAMIC = {"x": {0: "batch", 1: "length"}, "padding": {0: "batch", 1: "length"}}


class Many(nn.Module):
    """With and without weights, with each mask and both, bool and float, batch and time first, other key widths."""

    def __init__(self):
        super().__init__()
        self.plain = nn.MultiheadAttention(8, 2, batch_first=True)
        self.time_first = nn.MultiheadAttention(8, 4, bias=False)
        self.other = nn.MultiheadAttention(8, 2, kdim=6, vdim=4, batch_first=True)

    def forward(self, x, padding):
        length = x.shape[1]
        steps = torch.arange(length)
        later = steps > steps.unsqueeze(-1)
        added = torch.zeros(later.shape).masked_fill(later, float("-inf"))
        return (
            *self.plain(x, x, x),
            *self.plain(x, x, x, key_padding_mask=padding, average_attn_weights=False),
            self.plain(x, x, x, key_padding_mask=padding, attn_mask=later, need_weights=False)[0],
            self.plain(x, x, x, attn_mask=added, is_causal=True, need_weights=False)[0],
            *self.time_first(*[x.transpose(0, 1)] * 3, attn_mask=added),
            *self.other(x, x[..., :6], x[..., :4], key_padding_mask=padding),
        )


class One(nn.Module):
    """Self-attention with further arguments."""

    def __init__(self, attention, **options):
        super().__init__()
        self.attention, self.options = attention, options

    def forward(self, x):
        return self.attention(x, x, x, **self.options)[0]


def test_matches():
    assert_same_outputs(
        Many().eval(),
        (X, PADDING),
        "torchscript",
        dynamic=DYNAMIC,
        samples=[(torch.randn(3, 4, 8), torch.zeros(3, 4, dtype=torch.bool))],
        uses=(NAME,),
    )


def test_sequences_without_keys_give_what_eager_gives():
    closed = torch.tensor([[True] * 5, [False] * 5])
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    model = One(attention, key_padding_mask=closed, need_weights=False).eval()
    assert_same_outputs(model, X, "torchscript", uses=(NAME,))


def test_applied():
    model = One(nn.MultiheadAttention(8, 2), need_weights=False).eval()
    result = assert_same_outputs(model, X, "torchscript", dynamic={"x": {1: "batch"}}, uses=(NAME,))
    assert not {"Shape", "Loop", "If", "Mod"} & set(result.nodes)


def test_additional_keys_are_left_alone():
    extra = One(nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)).eval()
    result = assert_same_outputs(extra, X, "torchscript")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"static_k": torch.zeros(4, 5, 4)}, "static_k and static_v must be None"),
        ({"training": True}, r"dropout must be 0 in training mode, got 0\.1"),
    ],
)
def test_declines(options, reason):
    weight = torch.zeros(24, 8)
    with pytest.raises(Declined, match=reason):
        catalogue()[NAME].body(
            X, X, X, 8, 2, weight, None, None, None, False, 0.1, weight[:8], None, **{"training": False, **options}
        )


def test_sentinel():
    @rewrite(F.multi_head_attention_forward, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(query, key, value, *args, **options):
        return catalogue()[NAME].body(query, key, value * 2, *args, **options)

    with pytest.raises(VerificationError):
        assert_same_outputs(Many().eval(), (X, PADDING), "torchscript", rewrites=[broken])


def test_still_needed():
    model = One(nn.MultiheadAttention(8, 2, batch_first=True)).eval()
    with pytest.raises(CompatError):
        assert_same_outputs(model, X, "torchscript", dynamic={"x": {1: "length"}}, exclude=[NAME])
