"""Recommenders."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, T12, N, Part, add, load

# deepctr-torch

FIELDS = ("user", "item", "place")


def _columns(*, history: bool = False) -> list[Any]:
    inputs = load("deepctr_torch.inputs")
    made = [inputs.SparseFeat(name, 10, embedding_dim=4) for name in FIELDS] + [inputs.DenseFeat("price", 2)]
    if history:
        past = inputs.SparseFeat("hist_item", 10, embedding_dim=4, embedding_name="item")
        made.append(inputs.VarLenSparseFeat(past, maxlen=6, length_name="length"))
    return made


def _clicks(n: int) -> Tensor:
    return torch.cat([torch.randint(0, 10, (n, 3)).float(), torch.randn(n, 2)], 1)


def _clicks_with_history(n: int) -> Tensor:
    """Fields in the order in which deepctr lays them out: names, dense, the history, its length."""
    return torch.cat([_clicks(n), torch.randint(1, 10, (n, 6)).float(), torch.randint(1, 7, (n, 1)).float()], 1)


def _click_model(cls: str, *, history: bool = False, multitask: bool = False, **options: Any) -> nn.Module:
    columns = _columns(history=history)
    where = load("deepctr_torch.models.multitask" if multitask else "deepctr_torch.models")
    args = (columns, ["item"]) if cls in ("DIN", "DIEN") else (columns,) if multitask else (columns, columns)
    made: nn.Module = getattr(where, cls)(*args, **options)
    for parameter in made.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.3)  # some are 0.0001 small
    return made


HIDDEN = {"dnn_hidden_units": (16, 8)}
EXPERTS = {f"{part}_dnn_hidden_units": (8,) for part in ("expert", "gate", "tower")}
CLICKS: dict[str, dict[str, Any]] = {
    "DeepFM": HIDDEN,
    "xDeepFM": {**HIDDEN, "cin_layer_size": (8, 4)},
    "DCN": {**HIDDEN, "cross_parameterization": "matrix"},
    "DCNMix": {**HIDDEN, "low_rank": 4, "num_experts": 2},
    "AutoInt": {**HIDDEN, "att_layer_num": 2},
    "FiBiNET": HIDDEN,
    "ONN": HIDDEN,
    "AFN": {"ltl_hidden_size": 8, "afn_dnn_hidden_units": (16, 8)},
    "IFM": HIDDEN,
    "MMOE": {**EXPERTS, "multitask": True},
    "PLE": {**EXPERTS, "multitask": True},
}
for each, options in CLICKS.items():
    add("deepctr-torch", f"deepctr {each}", functools.partial(_click_model, each, **options), _clicks)
for each in ("DeepFM", "DIN", "DIEN"):
    options = {**HIDDEN, "history": True}
    if each == "DIEN":
        options |= {"gru_type": "AUGRU"}
    make = functools.partial(_click_model, each, **options)
    add("deepctr-torch", f"deepctr {each}, history", make, _clicks_with_history)


# recbole


class _Items:
    """As much of a data set as models ask for: how many users and items there are."""

    user_num, item_num = 10, 30
    field2seqlen: Mapping[str, int] = {"item_list": 20}

    def num(self, _: str) -> int:
        return 30


class _Settings(dict[str, Any]):
    """Settings, None where there are none."""

    def __missing__(self, _: str) -> None:
        return None


SETTINGS = {"hidden_size": 16, "inner_size": 16, "embedding_size": 16, "n_layers": 1, "n_heads": 2, "loss_type": "CE"}
SETTINGS |= {"hidden_dropout_prob": 0.0, "attn_dropout_prob": 0.0, "hidden_act": "gelu", "layer_norm_eps": 1e-12}
SETTINGS |= {"initializer_range": 0.3, "dropout_prob": 0.0, "dropout_probs": [0.0, 0.0], "device": torch.device("cpu")}
SETTINGS |= {"MAX_ITEM_LIST_LENGTH": 20, "ITEM_ID_FIELD": "item", "LIST_SUFFIX": "_list", "NEG_PREFIX": "neg_"}
SETTINGS |= {"ITEM_LIST_LENGTH_FIELD": "item_length", "USER_ID_FIELD": "user", "reg_weight": 0.0}
EACH: dict[str, dict[str, Any]] = {
    "SASRec": {},
    "GRU4Rec": {"num_layers": 1},
    "BERT4Rec": {"mask_ratio": 0.2},
    "NARM": {},
    "STAMP": {},
    "NextItNet": {"kernel_size": 3, "block_num": 1, "dilations": [1, 2]},
    "CORE": {"dnn_type": "trm", "sess_dropout": 0.0, "item_dropout": 0.0, "temperature": 0.07},
    "SRGNN": {"step": 1},
    "LightSANs": {"k_interests": 3},
    "SINE": {"prototype_size": 8, "interest_size": 3, "tau_ratio": 0.1},
    "RepeatNet": {},
    "Caser": {"nv": 2, "nh": 2},
    "HGN": {"pooling_type": "max", "reg_weight": [0.0, 0.0]},
}
FIXED = ("LightSANs", "SINE", "RepeatNet", "Caser", "HGN")
"""Those whose weights are as long as the history."""


def _recommender(cls: str, **options: Any) -> nn.Module:
    settings = _Settings({**SETTINGS, **options} | {"MAX_ITEM_LIST_LENGTH": 12 if cls in FIXED else 20})
    model = getattr(load(f"recbole.model.sequential_recommender.{cls.lower()}"), cls)(settings, _Items())
    return Part(model, _recommend)


def _recommend(model: Any, items: Tensor, lengths: Tensor, user: Tensor) -> Any:
    return model.full_sort_predict({"item_list": items, "item_length": lengths, "user": user})


def _histories(n: int, t: int = 12) -> tuple[Tensor, Tensor, Tensor]:
    lengths = t - 2 * torch.arange(n)
    items = torch.randint(1, 30, (n, t)) * (torch.arange(t) < lengths[:, None])
    return items, lengths, torch.randint(1, 10, (n,))


for each, options in EACH.items():
    make = functools.partial(_recommender, each, **options)
    if each in FIXED:
        add("recbole", f"recbole {each}", make, _histories, N, N, N)
    else:
        add("recbole", f"recbole {each}", make, _histories, NT, N, N, t=T12)
