"""Readers of text in pictures, and learned compression of pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from unseen_models.table import NHW, N, add, image, load

COMPRESSORS = {
    "FactorizedPrior": (8, 12),
    "ScaleHyperprior": (8, 12),
    "MeanScaleHyperprior": (8, 12),
    "JointAutoregressiveHierarchicalPriors": (8, 12),
    "Cheng2020Anchor": (8,),
    "Cheng2020Attention": (8,),
}


def _compressor(name: str) -> None:
    add(
        "compressai",
        name,
        lambda: getattr(load("compressai.models"), name)(*COMPRESSORS[name]),
        image(64),
        NHW,
        h=(64, 128),
        w=(64, 192),
    )


for each in COMPRESSORS:
    _compressor(each)


def _line(n: int, w: int = 64) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 1, 32, w), torch.zeros(n, 5)


for label, module in (("VGG-BiLSTM", "easyocr.model.vgg_model"), ("ResNet-BiLSTM", "easyocr.model.model")):
    add(
        "easyocr",
        label,
        lambda module=module: load(module).Model(1, 32, 16, 20),  # type: ignore[misc]
        _line,
        {0: "n", 3: "w"},
        N,
        w=(64, 100, 48),
    )
add("easyocr", "easyocr CRAFT", lambda: load("easyocr.craft").CRAFT(), image(64), NHW, h=(64, 96), w=(64, 128))

WITHOUT_BACKBONE = ("parseq", "vitstr_small")


def _doctr(name: str, draw: Callable[..., Tensor], *axes: Mapping[int, str], label: str = "", **sizes: Any) -> None:
    own = {} if name in WITHOUT_BACKBONE else {"pretrained_backbone": False}
    add(
        "python-doctr",
        label or name,
        lambda: getattr(load("doctr.models"), name)(pretrained=False, exportable=True, **own),
        draw,
        *axes,
        **sizes,
    )


def _words(n: int, w: int = 128) -> Tensor:
    return torch.rand(n, 3, 32, w)


for each in ("crnn_vgg16_bn", "vitstr_small", "parseq", "viptr_tiny", "sar_resnet31", "master"):
    _doctr(each, _words, N)
_doctr("crnn_vgg16_bn", _words, {0: "n", 3: "w"}, label="crnn_vgg16_bn, any width", w=(128, 96, 200))
for each in ("linknet_resnet18", "fast_tiny"):
    _doctr(each, image(64), NHW, h=(64, 128), w=(64, 96))
