"""Masks of torch's transformers, in rows; masks that are inputs."""

import pytest
import torch
from torch import nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

from torch_onnx_compat import export_compat
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

NAME = "causal_mask_unasked"
CAUSAL = nn.Transformer.generate_square_subsequent_mask(4)
OTHER = torch.randn(4, 4)
ARGS = (torch.randn(2, 4, 8), torch.randn(2, 5, 8))


class Decoder(nn.Module):
    def __init__(self, mask, **hint):
        super().__init__()
        layer = nn.TransformerDecoderLayer(8, 2, 12, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, 2)
        self.register_buffer("mask", mask)
        self.hint = hint

    def forward(self, target, memory):
        return self.decoder(target, memory, tgt_mask=self.mask, **self.hint)


class Encoder(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), 2)
        self.register_buffer("mask", mask)

    def forward(self, x):
        return self.encoder(x, mask=self.mask)


class Given(Decoder):
    def forward(self, target, memory, mask):
        return self.decoder(target, memory, tgt_mask=mask)


def clear_mask(mask, is_causal=None, size=None):
    return mask.fill_(0) is None


# On dynamo first, which alone needs the entry: there it leaves alone what it should.
EXAMPLES = [
    Example(
        NAME,
        Decoder(mask).eval(),
        ARGS,
        broken=clear_mask,
        leaves=Decoder(CAUSAL, tgt_is_causal=True).eval(),
        exporters=("dynamo", "torchscript"),
    )
    for mask in (CAUSAL, OTHER)
] + [
    Example(
        NAME,
        Given(None).eval(),
        (*ARGS, OTHER),
        dynamic={"target": {0: "b"}, "memory": {0: "b"}},
        broken=clear_mask,
        samples=[(*ARGS, CAUSAL)],
        exporters=("dynamo",),
    ),
]


@pytest.mark.parametrize("mask", [CAUSAL, OTHER], ids=["causal", "other"])
def test_encoders_match(exporter, mask):
    assert_entry(NAME, Encoder(mask).eval(), ARGS[:1], exporter, dynamic="batch")


def test_no_mask_is_left_alone():
    result = assert_same_outputs(Decoder(None).eval(), ARGS, "dynamo", dynamic="batch")
    assert NAME not in {note.entry for note in result.applied}


class UpperLeft(nn.Module):
    """Attention with torch's own causal bias, of varying lengths, or of fixed ones."""

    def __init__(self, *size):
        super().__init__()
        self.size = size

    def forward(self, query, key):
        bias = causal_upper_left(*(self.size or (query.shape[2], key.shape[2])))
        return nn.functional.scaled_dot_product_attention(query, key, key, attn_mask=bias)


class LowerRight(UpperLeft):
    def forward(self, query, key):
        bias = causal_lower_right(*(self.size or (query.shape[2], key.shape[2])))
        return nn.functional.scaled_dot_product_attention(query, key, key, attn_mask=bias)


QUERY, KEY = torch.randn(2, 2, 3, 8), torch.randn(2, 2, 5, 8)
LENGTHS = {"query": {0: "b", 2: "n"}, "key": {0: "b", 2: "m + n"}}

# TorchScript's own trace is right; ours asks whether the lengths are equal.
EXAMPLES += [
    Example(
        name,
        kind(),
        (QUERY, KEY),
        dynamic=LENGTHS,
        samples=[(QUERY[:, :, :1], KEY), (QUERY, torch.randn(2, 2, 7, 8))],
        broken=lambda *size: torch.arange(size[1]) < torch.arange(size[0]).unsqueeze(-1) + 2,
        leaves=UpperLeft(3, 5),
        claims=("dynamo",),
    )
    for name, kind in (("upper_left_as_mask", UpperLeft), ("lower_right_as_mask", LowerRight))
]


class Kept(nn.Module):
    """A bias that the model keeps as an attribute, with what it knows of itself."""

    def __init__(self, bias):
        super().__init__()
        self.bias = bias

    def forward(self, query, key):
        return nn.functional.scaled_dot_product_attention(query, key, key, attn_mask=self.bias)


@pytest.mark.parametrize("kind", [UpperLeft, LowerRight])
def test_biases_of_varying_lengths(kind, exporter):
    result = export_compat(kind(), (QUERY, KEY), dynamic=LENGTHS, exporter=exporter)
    for queries, keys in ((1, 4), (3, 5), (4, 4), (2, 9)):
        inputs = torch.randn(2, 2, queries, 8), torch.randn(2, 2, keys, 8)
        torch.testing.assert_close(result(*inputs)[0], kind()(*inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [UpperLeft(3, 5), LowerRight(3, 5), Kept(causal_upper_left(3, 5)), Kept(causal_lower_right(3, 5))],
    ids=["upper left", "lower right", "kept upper left", "kept lower right"],
)
def test_biases_of_fixed_lengths(model, exporter):
    result = export_compat(model, (QUERY, KEY), dynamic={"query": {0: "b"}, "key": {0: "b"}}, exporter=exporter)
    for batch in (1, 2, 5):
        inputs = torch.randn(batch, 2, 3, 8), torch.randn(batch, 2, 5, 8)
        torch.testing.assert_close(result(*inputs)[0], model(*inputs), rtol=1e-4, atol=1e-5)
