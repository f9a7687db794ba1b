"""Networks of controlnet-aux and fastai, and distances that are learnt."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import EVEN, NHW, NT, SIZES, T12, N, Part, add, add_class, image, kept, load

# controlnet-aux

AUX = "controlnet_aux"
add(AUX, "HED", lambda: load("controlnet_aux.hed").ControlNetHED_Apache2(), image(), NHW, **SIZES)
add(AUX, "lineart", lambda: load("controlnet_aux.lineart").Generator(3, 1, 1), image(), NHW, **SIZES)
add(
    AUX,
    "MLSD tiny",
    lambda: load("controlnet_aux.mlsd.models.mbv2_mlsd_tiny").MobileV2_MLSD_Tiny(),
    image(64, 4),
    NHW,
    **EVEN,
)
add(AUX, "TEED", lambda: load("controlnet_aux.teed.ted").TED(), image(), NHW, h=(32, 48, 40), w=(32, 64, 56))
add(AUX, "PiDiNet", lambda: load("controlnet_aux.pidi.model").pidinet(), image(), NHW, **SIZES)
add(
    AUX, "anime lineart", lambda: load("controlnet_aux.lineart_anime").UnetGenerator(3, 1, 5, 4), image(64), NHW, **EVEN
)


# fastai


def _dynamic_unet(**options: Any) -> nn.Module:
    encoder = load("fastai.vision.learner").create_body(load("fastai.vision.models.xresnet").xresnet18(n_out=4), cut=-4)
    return kept(load("fastai.vision.models.unet").DynamicUnet(encoder, 3, (64, 64), **options))


def _tabular(**options: Any) -> nn.Module:
    return kept(load("fastai.tabular.model").TabularModel([(5, 3), (7, 4)], 3, 2, [16, 8], **options))


def _mixed_rows(n: int) -> tuple[Tensor, Tensor]:
    return torch.randint(0, 5, (n, 2)), torch.randn(n, 3)


def _text_classifier(name: str) -> nn.Module:
    text = load("fastai.text.models")
    config = load(f"fastai.text.models.{name.lower().replace('_', '')}")
    given = {**config.awd_lstm_clas_config, "emb_sz": 12, "n_hid": 16, "n_layers": 2}
    made = load("fastai.text.models.core").get_text_classifier(
        text.AWD_LSTM, 30, 4, seq_len=5, max_len=20, config=given
    )

    def call(m: nn.Module, x: Tensor) -> Any:
        for part in m.modules():
            if hasattr(part, "reset") and part is not m:
                part.reset()
        return m(x)[0]

    return Part(made, call)


add(
    "fastai",
    "xresnet18, attention",
    lambda: load("fastai.vision.models.xresnet").xresnet18(n_out=4, sa=True),
    image(),
    NHW,
    **SIZES,
)
add(
    "fastai",
    "xse_resnext18",
    lambda: load("fastai.vision.models.xresnet").xse_resnext18(n_out=4),
    image(),
    NHW,
    **SIZES,
)
add("fastai", "DynamicUnet", lambda: _dynamic_unet(self_attention=True), image(64), NHW, **EVEN)
add("fastai", "DynamicUnet, blur", lambda: _dynamic_unet(blur=True, y_range=(0, 1)), image(64), NHW, **EVEN)
add("fastai", "TabularModel", lambda: _tabular(y_range=(0, 2)), _mixed_rows, N, N)
add(
    "fastai",
    "AWD-LSTM classifier",
    lambda: _text_classifier("AWD_LSTM"),
    lambda n, t=13: torch.randint(2, 30, (n, t)),
    NT,
    t=(13, 8, 27),
)


# pytorch-metric-learning

METRIC = "pytorch_metric_learning"


def _labelled(n: int, t: int = 12) -> tuple[Tensor, Tensor]:
    return torch.randn(t, 8), torch.arange(t) % 3


def _queries(n: int, t: int = 6) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 8), torch.randn(t, 8)


for each in ("CosineSimilarity", "LpDistance", "SNRDistance", "DotProductSimilarity"):
    add_class("pytorch_metric_learning", each, {}, _queries, N, {0: "t"}, module=f"{METRIC}.distances", t=(6, 4, 9))
for each, options in (
    ("ContrastiveLoss", {}),
    ("TripletMarginLoss", {}),
    ("NTXentLoss", {}),
    ("MultiSimilarityLoss", {}),
    ("CircleLoss", {}),
    ("ArcFaceLoss", {"num_classes": 3, "embedding_size": 8}),
    ("ProxyAnchorLoss", {"num_classes": 3, "embedding_size": 8}),
):
    rows = {0: "t"}
    add_class("pytorch_metric_learning", each, options, _labelled, rows, rows, module=f"{METRIC}.losses", t=T12)
