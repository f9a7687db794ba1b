"""What eager inference computes on torch's fast path of attention, and the file does not, is told in a note."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.fast_path import FastPath

X = torch.randn(2, 5, 8)
PADDING = torch.tensor([[False] * 5, [False, False, True, True, True]])


def layer(**options):
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)


class Encoder(nn.Module):
    def __init__(self, *, is_nested=False, layers=1):
        super().__init__()
        self.layers = nn.TransformerEncoder(layer(), layers, enable_nested_tensor=is_nested)

    def forward(self, x, padding):
        return self.layers(x, src_key_padding_mask=padding)


class Biased(nn.Module):
    """Attention with a bias that falls with the distance, as ALiBi's."""

    def __init__(self, slope=0.5):
        super().__init__()
        self.layer, self.slope = layer(), slope

    def forward(self, x):
        at = torch.arange(x.shape[1])
        return self.layer(x, src_mask=-self.slope * (at[:, None] - at).abs().float())


class Learned(nn.Module):
    """Attention with a learned bias: no score of the example's is without one."""

    def __init__(self):
        super().__init__()
        self.layer, self.bias = layer(norm_first=True), nn.Embedding(64, 1)

    def forward(self, x):
        at = torch.arange(x.shape[1])
        return self.layer(x, src_mask=self.bias((at[:, None] - at).abs())[..., 0])


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = layer()

    def forward(self, x, mask):
        return self.layer(x, src_key_padding_mask=mask)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, lengths):
        padding = torch.arange(x.shape[1]) >= lengths[:, None]
        return self.attention(x, x, x, key_padding_mask=padding, need_weights=False)[0]


class Drawing(nn.Module):
    """Draws nothing in the end, but has numbers of its own in each run; the fast path is no reason for these."""

    def __init__(self):
        super().__init__()
        self.layer = layer()

    def forward(self, x):
        return self.layer(x) + 0 * torch.rand_like(x)


def told(result):
    return [note for note in result.notes if "fast path" in note]


def as_without_fast_path(model, *args):
    """What eager torch computes with gradients, and without any."""
    with torch.enable_grad():
        computed = model(*args).detach()
    return computed


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        (Biased(), ((2, 5, 8), (1, 3, 8), (3, 7, 8))),
        (Learned(), ((2, 5, 8), (1, 3, 8), (3, 7, 8))),
        (nn.Sequential(Biased(), Biased()), ((2, 5, 8),)),
    ],
    ids=["distances", "learned", "two"],
)
def test_float_masks_are_added(model, sizes, exporter):
    """Inference leaves out what a float mask is not zero at, or is NaN; the file has what torch documents."""
    model = model.eval()
    dynamic = {"x": {0: "b", 1: "t"}} if isinstance(model, Biased | Learned) else None
    result = export_compat(model, (X,), dynamic=dynamic, exporter=exporter)
    (note,) = told(result)
    assert ("in layer, " if dynamic else "in 0.layer, 1.layer, ") in note
    assert "at 'example'" in note
    for size in sizes:
        x = torch.randn(size)
        torch.testing.assert_close(result(x)[0], as_without_fast_path(model, x), rtol=1e-4, atol=1e-5)
        with torch.no_grad():
            assert not torch.allclose(result(x)[0], model(x), atol=1e-2)


@pytest.mark.parametrize("is_nested", [False, True])
def test_padded_rows(is_nested, exporter):
    """Zeros, or no rows, where tensors are nested; NaN where a whole item is padded."""
    model = Encoder(is_nested=is_nested, layers=2).eval()
    result = export_compat(model, (X, PADDING), dynamic="batch", exporter=exporter)
    (note,) = told(result)
    assert ("at 'example'" in note) == is_nested
    assert ("booleans that are all True" in note) != is_nested
    torch.testing.assert_close(result(X, PADDING)[0], as_without_fast_path(model, X, PADDING), rtol=1e-4, atol=1e-5)


def test_masks_of_other_numbers_than_the_examples(exporter):
    """Where a mask has two values, the proof draws no other ones; the fast path is asked about them all the same."""
    result = export_compat(Masked().eval(), (X, torch.zeros(2, 5).masked_fill(PADDING, -1e4)), exporter=exporter)
    (note,) = told(result)
    assert "real numbers drawn anew" in note


def test_lengths_of_nothing(exporter):
    result = export_compat(Attention().eval(), (X, torch.tensor([5, 3])), exporter=exporter)
    (note,) = told(result)
    assert "whole numbers that are all 0" in note


@pytest.mark.parametrize("model", [layer(), nn.Linear(8, 8)], ids=["no mask", "no attention"])
def test_nothing_is_told_where_inference_computes_the_same(model, exporter):
    assert not told(export_compat(model.eval(), (X,), dynamic="batch", exporter=exporter))


def test_random_numbers_are_not_the_fast_path(exporter):
    result = export_compat(Drawing().eval(), (X,), exporter=exporter)
    assert not told(result)


def test_a_caller_without_the_fast_path_is_told_nothing(exporter):
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        assert not told(export_compat(Biased().eval(), (X,), exporter=exporter))
        assert torch.backends.mha.get_fastpath_enabled() is False
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_the_setting_is_put_back_after_an_error():
    before = torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(KeyboardInterrupt), FastPath(is_on=True):
        raise KeyboardInterrupt
    assert torch.backends.mha.get_fastpath_enabled() is before


@pytest.mark.parametrize("is_on", [False, True])
def test_who_asked(is_on):
    """Without masks an encoder leaves it to its layers; a layer that is told no asks its attention to decide."""
    model = Encoder(layers=2).eval()
    fast_path = FastPath(is_on=is_on)
    with torch.no_grad(), fast_path:
        model(X, PADDING)
    part = "" if is_on else ".self_attn"
    assert fast_path.askers(model) == (f"layers.layers.0{part}", f"layers.layers.1{part}")


class AsksMode(nn.Module):
    def forward(self, x):
        return x * 2 if torch.is_grad_enabled() else x


class AsksTensor(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x):
        y = x * self.weight
        return y * 3 if y.requires_grad else y


class AsksInVain(AsksTensor):
    def forward(self, x):
        y = x * self.weight
        return y * 1 if y.requires_grad else y


@pytest.mark.parametrize(("kind", "is_told"), [(AsksMode, True), (AsksTensor, True), (AsksInVain, False)])
def test_what_depends_on_gradients_is_told(kind, is_told, exporter):
    model = kind().eval()
    result = export_compat(model, X, exporter=exporter)
    notes = [note for note in result.notes if "under torch.no_grad()" in note]
    assert len(notes) == is_told
    with torch.no_grad():
        torch.testing.assert_close(result(X)[0], model(X))
    assert all(parameter.requires_grad for parameter in model.parameters())
