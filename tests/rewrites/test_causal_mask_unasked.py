import pytest
import torch
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "causal_mask_unasked"
CAUSAL = nn.Transformer.generate_square_subsequent_mask(4)
OTHER = torch.randn(4, 4)


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


ARGS = (torch.randn(2, 4, 8), torch.randn(2, 5, 8))


@pytest.mark.parametrize("mask", [CAUSAL, OTHER], ids=["causal", "other"])
def test_matches(exporter, mask):
    assert_entry(NAME, Decoder(mask).eval(), ARGS, exporter, dynamic="batch")
    assert_entry(NAME, Encoder(mask).eval(), ARGS[:1], exporter, dynamic="batch")


def test_matches_a_mask_that_is_an_input():
    class Given(Decoder):
        def forward(self, target, memory, mask):
            return self.decoder(target, memory, tgt_mask=mask)

    samples = [(*ARGS, CAUSAL)]
    assert_entry(
        NAME,
        Given(None).eval(),
        (*ARGS, OTHER),
        "dynamo",
        dynamic={"target": {0: "b"}, "memory": {0: "b"}},
        samples=samples,
    )


def test_leaves_hints_and_no_mask_alone():
    for model in (Decoder(CAUSAL, tgt_is_causal=True), Decoder(None)):
        result = assert_same_outputs(model.eval(), ARGS, "dynamo", dynamic="batch")
        assert NAME not in {note.entry for note in result.applied}


def test_sentinel():
    @rewrite("torch.nn.modules.transformer._detect_is_causal_mask", name=NAME, needed_on=("dynamo",), registry=None)
    def broken(mask, is_causal=None, size=None):
        return mask.fill_(0) is None

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(Decoder(OTHER).eval(), ARGS, "dynamo", rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, Decoder(CAUSAL).eval(), ARGS, exporter)
