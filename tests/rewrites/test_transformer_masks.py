"""Masks of torch's transformers, in rows; masks that are inputs."""

import pytest
import torch
from torch import nn

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
