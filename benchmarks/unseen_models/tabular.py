"""Models of tables."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unseen_models.table import N, add, add_class, load


def _mixed(n: int) -> tuple[Tensor, Tensor]:
    """Two categories and five numbers a row."""
    return torch.stack([torch.randint(0, kinds, (n,)) for kinds in (4, 3)], 1), torch.randn(n, 5)


def _numbers(n: int) -> Tensor:
    return torch.randn(n, 5)


add_class(
    "tab-transformer-pytorch",
    "FTTransformer",
    {"categories": (4, 3), "num_continuous": 5, "dim": 8, "depth": 1, "heads": 2},
    _mixed,
    N,
    N,
    name="tab_transformer FTTransformer",
)
add(
    "rtdl-revisiting-models",
    "FT-Transformer",
    lambda: load("rtdl_revisiting_models").FTTransformer(
        n_cont_features=5,
        cat_cardinalities=[4, 3],
        d_out=2,
        n_blocks=2,
        d_block=16,
        attention_n_heads=2,
        attention_dropout=0.1,
        ffn_d_hidden=None,
        ffn_d_hidden_multiplier=2.0,
        ffn_dropout=0.1,
        residual_dropout=0.0,
    ),
    lambda n: _mixed(n)[::-1],
    N,
    N,
)
add(
    "rtdl-revisiting-models",
    "rtdl ResNet",
    lambda: load("rtdl_revisiting_models").ResNet(
        d_in=5, d_out=2, n_blocks=2, d_block=8, d_hidden_multiplier=2.0, dropout1=0.1, dropout2=0.0
    ),
    _numbers,
)
add_class("rtdl-num-embeddings", "PeriodicEmbeddings", {"n_features": 5, "d_embedding": 8, "lite": False}, _numbers)


def _piecewise() -> nn.Module:
    package = load("rtdl_num_embeddings")
    bins = package.compute_bins(torch.randn(100, 5), n_bins=6)
    made: nn.Module = package.PiecewiseLinearEmbeddings(bins, 8, activation=False, version="B")
    return made


add("rtdl-num-embeddings", "PiecewiseLinearEmbeddings", _piecewise, _numbers)


def _tabnet(mask: str) -> nn.Module:
    categories = {"cat_idxs": [0, 1], "cat_dims": [4, 3], "cat_emb_dim": [2, 2]}
    network: nn.Module = load("pytorch_tabnet.tab_network").TabNet(
        6, 2, n_d=4, n_a=4, mask_type=mask, group_attention_matrix=torch.eye(6), **categories
    )
    return network


def _row(n: int) -> Tensor:
    return torch.cat([_mixed(n)[0].float(), torch.randn(n, 4)], 1)


for each in ("sparsemax", "entmax"):
    add("pytorch-tabnet", f"TabNet {each}", lambda mask=each: _tabnet(mask), _row)  # type: ignore[misc]
