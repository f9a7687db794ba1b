"""Attention, the norms beside it, and rotary embedding."""

import torch
from torch import nn
from torch.nn import functional as F

from operator_cases.case import Case


def tensors(*sizes):
    """Sizes per example; -1 stands for a length that follows the batch."""
    return lambda n: tuple(torch.randn(n, *(n + 3 if s == -1 else s for s in size)) for size in sizes)


QKV = tensors((2, 5, 8), (2, 5, 8), (2, 5, 8))
CROSS = tensors((2, 3, 8), (2, 6, 8), (2, 6, 4))
LONG = tensors((2, -1, 8), (2, -1, 8), (2, -1, 8))
GROUPED = tensors((4, 5, 8), (2, 6, 8), (2, 6, 8))


def padding(n, length):
    """True where a key is padding: some sequences are whole, none is empty."""
    return torch.arange(length) >= torch.randint(1, length + 1, (n, 1)).index_fill(0, torch.tensor([0]), length)


def sequence(width, length=4):
    return lambda n: (torch.randn(n, length, width),)


def time_first(width, length=4):
    return lambda n: (torch.randn(length, n, width),)


def padded(width, length=5):
    return lambda n: (torch.randn(n, length, width), padding(n, length))


def bool_mask(n):
    mask = torch.rand(n, 1, 5, 5) > 0.4
    mask[..., 0] = True
    return (*QKV(n), mask)


def empty_rows(n):
    mask = torch.rand(n, 1, 5, 5) > 0.4
    mask[:, :, 2] = False
    return (*QKV(n), mask)


sdpa = F.scaled_dot_product_attention


class Mha(nn.Module):
    def __init__(self, *, mask=None, causal=False, weights=True, average=True, cross=False, **options):
        super().__init__()
        options = {"embed_dim": 8, "num_heads": 2, "batch_first": True, **options}
        self.attention = nn.MultiheadAttention(**options)
        self.register_buffer("mask", mask)
        self.options = {"need_weights": weights, "average_attn_weights": average, "is_causal": causal}
        self.cross = cross

    def forward(self, query, *more):
        key = value = query
        if self.cross:
            key, value, *more = more
        output, weights = self.attention(query, key, value, *more, attn_mask=self.mask, **self.options)
        return output if weights is None else (output, weights)


class Encoder(nn.Module):
    def __init__(self, layers=1, mask=None, causal=False, norm=False, nested=True, **options):
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            **{"d_model": 8, "nhead": 2, "dim_feedforward": 12, "batch_first": True, **options}
        )
        self.encoder = nn.TransformerEncoder(
            layer, layers, nn.LayerNorm(8) if norm else None, enable_nested_tensor=nested
        )
        self.register_buffer("mask", mask)
        self.causal = causal

    def forward(self, x, padding=None):
        return self.encoder(x, mask=self.mask, src_key_padding_mask=padding, is_causal=self.causal)


class Valid(nn.Module):
    """Only what is no padding: there the fast path gives zeros and the file what the layers give."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, x, padding):
        return self.encoder(x, padding).masked_fill(padding.unsqueeze(-1), 0.0)


class Decoder(nn.Module):
    def __init__(self, **options):
        super().__init__()
        options = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "batch_first": True, **options}
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**options), 2)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(4))

    def forward(self, target, memory, padding):
        return self.decoder(target, memory, tgt_mask=self.mask, memory_key_padding_mask=padding)


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.Transformer(8, 2, 1, 1, 12, batch_first=True)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.transformer(source, target, tgt_mask=mask, tgt_is_causal=True)


class Rotary(nn.Module):
    """As LLaMA's apply_rotary_emb; `where` says how the table is kept."""

    def __init__(self, where="buffer", positions=16, half=4):
        super().__init__()
        self.where = where
        frequencies = 10000 ** (-torch.arange(half) / half)
        table = torch.outer(torch.arange(positions).float(), frequencies)
        self.register_buffer("angles", table)
        self.register_buffer("frequencies", frequencies)
        if where == "buffer":
            self.register_buffer("table", torch.polar(torch.ones_like(table), table))
        elif where == "attribute":
            self.table = torch.polar(torch.ones_like(table), table)

    def freqs_cis(self, length):
        if self.where == "polar":
            return torch.polar(torch.ones_like(self.angles), self.angles)[:length]
        if self.where == "exp":
            return torch.exp(1j * self.angles[:length])
        if self.where == "complex":
            return torch.complex(self.angles.cos(), self.angles.sin())[:length]
        if self.where == "positions":
            angles = torch.outer(torch.arange(length).float(), self.frequencies)
            return torch.polar(torch.ones_like(angles), angles)
        return self.table[:length]

    def forward(self, query, key):
        pairs = [torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) for x in (query, key)]
        freqs_cis = self.freqs_cis(query.shape[1]).view(1, query.shape[1], 1, -1)
        return tuple(torch.view_as_real(pair * freqs_cis).flatten(3).type_as(query) for pair in pairs)


def heads(n):
    return torch.randn(n, n + 3, 2, 8), torch.randn(n, n + 3, 1, 8)


def fixed_heads(n):
    return torch.randn(n, 4, 2, 8), torch.randn(n, 4, 1, 8)


CAUSAL = torch.triu(torch.full((4, 4), float("-inf")), 1)
CAUSAL_BOOL = torch.ones(4, 4).triu(1).bool()

CASES = [
    Case("scaled_dot_product_attention", "", sdpa, QKV),
    Case("scaled_dot_product_attention", "cross, other value width", sdpa, CROSS),
    Case("scaled_dot_product_attention", "causal", lambda q, k, v: sdpa(q, k, v, is_causal=True), QKV),
    Case("scaled_dot_product_attention", "causal, dynamic length", lambda q, k, v: sdpa(q, k, v, is_causal=True), LONG),
    Case("scaled_dot_product_attention", "causal, fewer queries", lambda q, k, v: sdpa(q, k, v, is_causal=True), CROSS),
    Case(
        "scaled_dot_product_attention",
        "causal, more queries",
        lambda q, k, v: sdpa(q, k, v, is_causal=True),
        tensors((2, 6, 8), (2, 3, 8), (2, 3, 8)),
    ),
    Case("scaled_dot_product_attention", "bool mask", sdpa, bool_mask),
    Case("scaled_dot_product_attention", "bool mask, rows without a key", sdpa, empty_rows),
    Case(
        "scaled_dot_product_attention",
        "-inf mask, rows without a key",
        sdpa,
        lambda n: (*empty_rows(n)[:3], torch.zeros(n, 1, 5, 5).masked_fill(~empty_rows(n)[3], float("-inf"))),
    ),
    Case("scaled_dot_product_attention", "float mask", sdpa, lambda n: (*QKV(n), torch.randn(n, 2, 5, 5))),
    Case("scaled_dot_product_attention", "mask (L, S)", sdpa, lambda n: (*QKV(n), torch.randn(5, 5))),
    Case("scaled_dot_product_attention", "scale", lambda q, k, v: sdpa(q, k, v, scale=0.3), QKV),
    Case("scaled_dot_product_attention", "negative scale", lambda q, k, v: sdpa(q, k, v, scale=-0.3), QKV),
    Case("scaled_dot_product_attention", "dropout_p 0", lambda q, k, v: sdpa(q, k, v, dropout_p=0.0), QKV),
    Case("scaled_dot_product_attention", "3-D", sdpa, tensors((3, 8), (4, 8), (4, 8))),
    Case("scaled_dot_product_attention", "5-D", sdpa, tensors((2, 3, 5, 8), (2, 3, 5, 8), (2, 3, 5, 8))),
    Case("scaled_dot_product_attention", "float64", sdpa, lambda n: tuple(t.double() for t in QKV(n))),
    Case("scaled_dot_product_attention", "GQA", lambda q, k, v: sdpa(q, k, v, enable_gqa=True), GROUPED),
    Case(
        "scaled_dot_product_attention",
        "GQA, causal",
        lambda q, k, v: sdpa(q, k, v, is_causal=True, enable_gqa=True),
        GROUPED,
    ),
    Case(
        "scaled_dot_product_attention",
        "GQA, float mask",
        lambda q, k, v, m: sdpa(q, k, v, m, enable_gqa=True),
        lambda n: (*GROUPED(n), torch.randn(n, 1, 5, 6)),
    ),
    Case("MultiheadAttention", "weights", Mha(), sequence(8)),
    Case("MultiheadAttention", "no weights", Mha(weights=False), sequence(8)),
    Case("MultiheadAttention", "weights of each head", Mha(average=False), sequence(8)),
    Case("MultiheadAttention", "time first", Mha(batch_first=False), time_first(8)),
    Case("MultiheadAttention", "time first, no weights", Mha(batch_first=False, weights=False), time_first(8)),
    Case("MultiheadAttention", "key_padding_mask", Mha(cross=True), lambda n: (*[padded(8)(n)[0]] * 3, padding(n, 5))),
    Case(
        "MultiheadAttention",
        "key_padding_mask, no weights",
        Mha(cross=True, weights=False),
        lambda n: (*[padded(8)(n)[0]] * 3, padding(n, 5)),
    ),
    Case("MultiheadAttention", "float attn_mask", Mha(mask=CAUSAL), sequence(8)),
    Case("MultiheadAttention", "bool attn_mask, no weights", Mha(mask=CAUSAL_BOOL, weights=False), sequence(8)),
    Case("MultiheadAttention", "causal", Mha(mask=CAUSAL, causal=True, weights=False), sequence(8)),
    Case("MultiheadAttention", "kdim, vdim", Mha(kdim=6, vdim=7, cross=True), tensors((3, 8), (5, 6), (5, 7))),
    Case("MultiheadAttention", "add_bias_kv", Mha(add_bias_kv=True), sequence(8)),
    Case("MultiheadAttention", "add_zero_attn", Mha(add_zero_attn=True, weights=False), sequence(8)),
    Case("MultiheadAttention", "no bias", Mha(bias=False, weights=False), sequence(8)),
    Case("MultiheadAttention", "dynamic length", Mha(), tensors((-1, 8))),
    Case("TransformerEncoderLayer", "", Encoder(), sequence(8)),
    Case("TransformerEncoderLayer", "norm_first, gelu", Encoder(norm_first=True, activation="gelu"), sequence(8)),
    Case("TransformerEncoderLayer", "time first", Encoder(batch_first=False), time_first(8)),
    Case("TransformerEncoderLayer", "dynamic length", Encoder(2, norm=True), tensors((-1, 8))),
    Case("TransformerEncoder", "padding, 2 layers", Valid(Encoder(2)), padded(8)),
    Case("TransformerEncoder", "padding, not nested", Valid(Encoder(2, nested=False)), padded(8)),
    Case("TransformerEncoder", "padding, norm_first", Valid(Encoder(2, norm_first=True)), padded(8)),
    Case("TransformerEncoder", "causal mask", Encoder(2, mask=CAUSAL, causal=True), sequence(8)),
    Case(
        "TransformerDecoder",
        "padding",
        Decoder(),
        lambda n: (torch.randn(n, 4, 8), torch.randn(n, 5, 8), padding(n, 5)),
    ),
    Case(
        "TransformerDecoder",
        "norm_first, gelu",
        Decoder(norm_first=True, activation="gelu"),
        lambda n: (torch.randn(n, 4, 8), torch.randn(n, 5, 8), padding(n, 5)),
    ),
    Case("Transformer", "", Seq2Seq(), tensors((5, 8), (4, 8))),
    Case("Transformer", "dynamic lengths", Seq2Seq(), tensors((-1, 8), (-1, 8))),
    Case("rms_norm", "weight", lambda x: F.rms_norm(x, (6,), torch.linspace(-1, 2, 6)), tensors((3, 6))),
    Case("rms_norm", "no weight, 2 axes, eps", lambda x: F.rms_norm(x, (3, 6), eps=0.1), tensors((3, 6))),
    Case("RMSNorm", "", nn.RMSNorm(6), tensors((3, 6))),
    Case("RMSNorm", "small numbers", nn.RMSNorm(6), lambda n: (torch.randn(n, 3, 6) * 1e-4,)),
    Case("RMSNorm", "float64", nn.RMSNorm(6).double(), lambda n: (torch.randn(n, 3, 6).double(),)),
    Case("layer_norm", "", nn.LayerNorm(6), tensors((3, 6))),
    Case("layer_norm", "2 axes, no weight", lambda x: F.layer_norm(x, (3, 6)), tensors((3, 6))),
    Case("layer_norm", "dynamic axes before", nn.LayerNorm((4, 6)), tensors((-1, 4, 6))),
    Case("group_norm", "", nn.GroupNorm(2, 6), tensors((6, 3, 4))),
    Case("group_norm", "dynamic size", nn.GroupNorm(3, 6), tensors((6, -1, -1))),
    Case("group_norm", "no weight, 2-D", lambda x: F.group_norm(x, 3), tensors((6,))),
    Case("group_norm", "volume", nn.GroupNorm(1, 4, affine=False), tensors((4, 2, 3, 2))),
    Case("instance_norm", "", lambda x: F.instance_norm(x), tensors((3, 4, 5))),
    Case("instance_norm", "affine", nn.InstanceNorm2d(3, affine=True), tensors((3, 4, 5))),
    Case("instance_norm", "dynamic size", nn.InstanceNorm2d(3), tensors((3, -1, -1))),
    Case("instance_norm", "running statistics", nn.InstanceNorm1d(3, track_running_stats=True), tensors((3, 4))),
    Case("instance_norm", "volume", nn.InstanceNorm3d(2), tensors((2, 3, 2, 4))),
    *[
        Case("complex rotary embedding", where, Rotary(where), fixed_heads)
        for where in ("buffer", "attribute", "polar", "exp", "complex", "positions")
    ],
    Case("complex rotary embedding", "positions, dynamic length", Rotary("positions"), heads),
]
