"""Points and molecules: what turns with its input, or does not."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, T12, N, Part, add, add_class, load


def _points(n: int, t: int = 12) -> tuple[Tensor, Tensor]:
    return torch.randn(n, t, 8), torch.randn(n, t, 3)


def _masked(n: int, t: int = 10) -> tuple[Tensor, Tensor, Tensor]:
    return *_points(n, t), torch.ones(n, t).bool()


LAYER = {"dim": 8, "pos_mlp_hidden_dim": 8, "attn_mlp_hidden_mult": 2}
add_class("point-transformer-pytorch", "PointTransformerLayer", LAYER, _points, NT, NT, t=T12)
add_class(
    "point-transformer-pytorch",
    "PointTransformerLayer",
    {**LAYER, "num_neighbors": 4},
    lambda n, t=12: _masked(n, t),
    NT,
    NT,
    NT,
    name="PointTransformerLayer, neighbours",
    t=T12,
)
add_class(
    "en-transformer",
    "EnTransformer",
    {"dim": 8, "depth": 1, "dim_head": 32, "heads": 2, "neighbors": 4},
    lambda n, t=10: _points(n, t),
    NT,
    NT,
    t=(10, 7, 19),
)


def _se3() -> nn.Module:
    options: dict[str, Any] = {"dim": 8, "heads": 2, "dim_head": 4, "depth": 1, "num_degrees": 2, "num_neighbors": 4}
    model = load("se3_transformer_pytorch").SE3Transformer(valid_radius=10, **options)
    return Part(model, lambda m, features, places, mask: m(features, places, mask, return_type=0))


def _equiformer() -> nn.Module:
    options: dict[str, Any] = {"dim": (8, 4), "dim_in": 8, "heads": (2, 2), "dim_head": (4, 4), "num_degrees": 2}
    model = load("equiformer_pytorch").Equiformer(depth=1, num_neighbors=4, l2_dist_attention=False, **options)
    return Part(model, lambda m, features, places, mask: m(features, places, mask).type0)


class _Ani(nn.Module):
    """What ANI's networks see of the atoms around each atom."""

    def __init__(self) -> None:
        super().__init__()
        self.aev = load("torchani").AEVComputer.like_1x(num_species=4)

    def forward(self, species: Tensor, coordinates: Tensor) -> Any:
        return self.aev(species, coordinates)


add("se3-transformer-pytorch", "SE3Transformer", _se3, _masked, N, N, N)
add("equiformer-pytorch", "Equiformer", _equiformer, _masked, N, N, N)
add("torchani", "AEVComputer", _Ani, lambda n: (torch.randint(0, 4, (n, 6)), torch.randn(n, 6, 3) * 2), N, N)
