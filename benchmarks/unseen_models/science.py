"""Physics, molecules, proteins and time series."""

from __future__ import annotations

import torch
from torch import nn

from unseen_models.table import NHW, NT, T12, N, Part, add, add_class, features, image, load, tokens


def _e3nn() -> nn.Module:
    o3, layers = load("e3nn.o3"), load("e3nn.nn")
    gate = layers.Gate("4x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
    return nn.Sequential(o3.Linear("8x0e + 3x1o", gate.irreps_in), gate)


add_class("ncps", "CfC", {"input_size": 4, "units": 8}, features(4, 5), module="ncps.torch")
add_class("ncps", "LTC", {"input_size": 4, "units": 8, "ode_unfolds": 2}, features(4, 3), module="ncps.torch")
add_class(
    "ncps",
    "CfC",
    {"input_size": 4, "units": 8, "mode": "pure"},
    features(4, 5),
    NT,
    module="ncps.torch",
    name="CfC, any length",
    t=(5, 3, 8),
)
add(
    "fair-esm",
    "ESM2",
    lambda: Part(
        load("esm").ESM2(num_layers=2, embed_dim=32, attention_heads=4),
        lambda m, x: m(x, repr_layers=[1], need_head_weights=True, return_contacts=True),
    ),
    tokens(30),
    NT,
    t=T12,
)
add(
    "fair-esm",
    "ESM2, padded",
    lambda: Part(load("esm").ESM2(num_layers=2, embed_dim=32, attention_heads=4), lambda m, x: m(x)["logits"]),
    lambda n, t=12: torch.randint(0, 4, (n, t)) * 8 + 1,
    NT,
    t=T12,
)
add_class("entmax", "Entmax15", {"dim": -1}, features(9), NT, t=T12)
add_class("entmax", "Sparsemax", {"dim": 1, "k": 4}, features(9, 12), N, module="entmax")
add(
    "invariant-point-attention",
    "InvariantPointAttention",
    lambda: Part(
        load("invariant_point_attention").InvariantPointAttention(dim=16, heads=2, require_pairwise_repr=False),
        lambda m, x, rotations, moves: m(x, rotations=rotations, translations=moves),
    ),
    lambda n, t=12: (
        torch.randn(n, t, 16),
        torch.linalg.qr(torch.randn(n, t, 3, 3))[0].contiguous(),
        torch.randn(n, t, 3),
    ),
    NT,
    NT,
    NT,
    t=T12,
)
add_class(
    "iTransformer",
    "iTransformer",
    {
        "num_variates": 5,
        "lookback_len": 16,
        "depth": 1,
        "dim": 16,
        "heads": 2,
        "dim_head": 8,
        "pred_length": (4, 8),
        "use_reversible_instance_norm": True,
    },
    features(5, 16),
)
add(
    "neuraloperator",
    "FNO 2d",
    lambda: load("neuralop.models").FNO(n_modes=(6, 6), in_channels=2, out_channels=1, hidden_channels=8, n_layers=2),
    image(16, 2),
    NHW,
    h=(16, 24, 20),
    w=(16, 32, 18),
)
add(
    "neuraloperator",
    "FNO 1d",
    lambda: load("neuralop.models").FNO(
        n_modes=(6,), in_channels=2, out_channels=1, hidden_channels=8, n_layers=2, positional_embedding=None
    ),
    lambda n, t=16: torch.randn(n, 2, t),
    {0: "n", 2: "t"},
    t=(16, 24, 32),
)
add(
    "egnn-pytorch",
    "EGNN",
    lambda: load("egnn_pytorch").EGNN(dim=8, edge_dim=3, fourier_features=2),
    lambda n, t=6: (torch.randn(n, t, 8), torch.randn(n, t, 3), torch.randn(n, t, t, 3)),
    NT,
    NT,
    {0: "n", 1: "t", 2: "t"},
    t=(6, 4, 9),
)
add(
    "egnn-pytorch",
    "EGNN_Network, nearest",
    lambda: load("egnn_pytorch").EGNN_Network(num_tokens=9, dim=8, depth=2, num_nearest_neighbors=3, norm_coors=True),
    lambda n, t=6: (torch.randint(0, 9, (n, t)), torch.randn(n, t, 3)),
    NT,
    NT,
    t=(6, 5, 9),
)
add("e3nn", "linear and gate", lambda: _e3nn(), features(17), NT, t=T12)
add(
    "tft-torch",
    "GatedResidualNetwork",
    lambda: load("tft_torch.tft").GatedResidualNetwork(8, 16, 4, context_dim=3),
    lambda n, t=12: (torch.randn(n, t, 8), torch.randn(n, t, 3)),
    NT,
    NT,
    t=T12,
)


def _enformer() -> nn.Module:
    kind = load("enformer_pytorch").Enformer
    heads = {"human": 5}
    model = kind.from_hparams(dim=384, depth=1, heads=2, output_heads=heads, target_length=-1, num_downsamples=3)
    return Part(model, lambda m, x: m(x))


add("enformer-pytorch", "Enformer", _enformer, lambda n, t=128: torch.randn(n, t, 4).softmax(2), NT, t=(128, 256, 192))
