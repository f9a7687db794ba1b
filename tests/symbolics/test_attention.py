"""Attention, in rows; against eager torch at many sizes and masks; what is declined or left to torch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch_onnx_compat.symbolics.attention import attention_to_matmul, multi_head_attention_to_matmul

from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.testing import Example, assert_same_outputs

sdpa = F.scaled_dot_product_attention
Q, K, V = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 3)
OPEN = torch.rand(2, 1, 5, 6) > 0.4
OPEN[:, :, 1] = False
X = torch.randn(2, 5, 8)
PADDING = torch.tensor([[False, False, False, True, True], [False, False, False, False, True]])
BELOW_OPERATOR = {"opset": 18}


def many(q, k, v, is_open):
    added = torch.zeros(is_open.shape).masked_fill(~is_open, float("-inf"))
    k4, v4 = torch.cat((k, k), 1), torch.cat((v, v), 1)
    return (
        sdpa(q, k4, v4, is_open),
        sdpa(q, k4, v4, added),
        sdpa(q, k4, v4, scale=-0.4),
        sdpa(q, k, v, enable_gqa=True),
        sdpa(q, k, v, is_causal=True, enable_gqa=True),
        sdpa(q, k, v, added, enable_gqa=True),
        sdpa(q.double(), k4.double(), v4.double()),
        sdpa(q[:, 0], k[:, 0], v[:, 0]),
        sdpa(q.unsqueeze(1), k4.unsqueeze(1), v4.unsqueeze(1)),
    )


class ManyHeads(nn.Module):
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


class SelfAttention(nn.Module):
    """Multi-head attention of one argument, with further options."""

    def __init__(self, attention, **options):
        super().__init__()
        self.attention, self.options = attention, options

    def forward(self, x):
        return self.attention(x, x, x, **self.options)[0]


EXAMPLES = [
    Example("attention_to_matmul", many, (Q, K, V, OPEN), options=BELOW_OPERATOR),
    Example(
        "attention_to_matmul",
        lambda q: sdpa(q, q, q, scale=-0.4),
        (Q,),
        broken=lambda query, key, value, attn_mask=None, **options: (
            torch.softmax(query @ key.transpose(-2, -1), -1) @ value  # without the scale
        ),
        leaves=lambda q: sdpa(q, q, q, is_causal=True),
        options=BELOW_OPERATOR,
    ),
    Example(
        "attention_to_matmul",
        lambda q, k, v: (
            sdpa(q, k, v, is_causal=True, enable_gqa=True),
            sdpa(q, k, v, is_causal=True, enable_gqa=True, scale=-0.4),
        ),
        (Q, K, V),
        dynamic={"q": {0: "batch", 2: "length"}, "k": {0: "batch", 2: "keys"}, "v": {0: "batch", 2: "keys"}},
        options=BELOW_OPERATOR,
    ),
    Example(
        "multi_head_attention_to_matmul",
        ManyHeads().eval(),
        (X, PADDING),
        dynamic={"x": {0: "batch", 1: "length"}, "padding": {0: "batch", 1: "length"}},
        samples=[(torch.randn(3, 4, 8), torch.zeros(3, 4, dtype=torch.bool))],
        broken=lambda query, key, value, *args, **options: multi_head_attention_to_matmul(
            query, key, value * 2, *args, **options
        ),
    ),
]


# Scaled dot-product attention


def test_takes_five_nodes(exporter):
    result = assert_same_outputs(
        lambda q: sdpa(q, q, q, scale=-0.4), Q, exporter, **BELOW_OPERATOR, uses=("attention_to_matmul",)
    )
    assert {operator: count for operator, count in result.nodes.items() if operator != "Constant"} == {
        "Mul": 1,
        "Transpose": 1,
        "MatMul": 2,
        "Softmax": 1,
    }


@given(
    length=st.integers(1, 4),
    keys=st.integers(1, 4),
    times=st.integers(1, 3),
    mask=st.sampled_from((None, "bool", "float", "causal")),
    seed=st.integers(0, 99),
)
@settings(max_examples=100, deadline=None)
def test_equals_eager(length, keys, times, mask, seed):
    torch.manual_seed(seed)
    q, k, v = torch.randn(1, 2 * times, length, 4), torch.randn(1, 2, keys, 4), torch.randn(1, 2, keys, 3)
    options = {"enable_gqa": True, "is_causal": mask == "causal"}
    if mask in ("bool", "float"):
        options["attn_mask"] = torch.rand(length, keys) > 0.5
    if mask == "float":
        options["attn_mask"] = torch.randn(length, keys).masked_fill(options["attn_mask"], float("-inf"))
    torch.testing.assert_close(attention_to_matmul(q, k, v, **options), sdpa(q, k, v, **options))


def test_declines_dropout():
    with pytest.raises(Declined, match=r"dropout_p must be 0, .* got 0\.1"):
        attention_to_matmul(Q, Q, Q, torch.zeros(5, 5), 0.1)


# Multi-head attention


def test_sequences_without_keys_give_what_eager_gives():
    closed = torch.tensor([[True] * 5, [False] * 5])
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    model = SelfAttention(attention, key_padding_mask=closed, need_weights=False).eval()
    assert_same_outputs(model, X, "torchscript", uses=("multi_head_attention_to_matmul",))


def test_asks_for_no_sizes():
    model = SelfAttention(nn.MultiheadAttention(8, 2), need_weights=False).eval()
    uses = ("multi_head_attention_to_matmul",)
    result = assert_same_outputs(model, X, "torchscript", dynamic={"x": {1: "batch"}}, uses=uses)
    assert not {"Shape", "Loop", "If", "Mod"} & set(result.nodes)


def test_additional_keys_are_left_alone():
    extra = SelfAttention(nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)).eval()
    result = assert_same_outputs(extra, X, "torchscript")
    assert "multi_head_attention_to_matmul" not in {note.entry for note in (*result.applied, *result.declined)}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"static_k": torch.zeros(4, 5, 4)}, "static_k and static_v must be None"),
        ({"training": True}, r"dropout must be 0 in training mode, got 0\.1"),
    ],
)
def test_declines(options, reason):
    weight = torch.zeros(24, 8)
    options = {"training": False, **options}
    with pytest.raises(Declined, match=reason):
        multi_head_attention_to_matmul(X, X, X, 8, 2, weight, None, None, None, False, 0.1, weight[:8], None, **options)
