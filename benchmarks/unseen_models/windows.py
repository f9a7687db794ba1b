"""Networks for pictures of any height and width, which pad to multiples and cut into windows: timm and torchvision."""

from __future__ import annotations

from torch import nn

from unseen_models.table import NHW, add, image, kept, load

SIZES = {"h": (96, 100, 75), "w": (96, 64, 83)}
"""Multiples of the strides, and what has to be padded at every stage."""


def _timm(name: str) -> nn.Module:
    return kept(load("timm").create_model(name, num_classes=7))


for name in (
    *("davit_tiny", "nextvit_small", "efficientvit_b0", "repvit_m1", "convnext_atto", "hrnet_w18_small"),
    *("fastvit_t8", "edgenext_xx_small", "poolformerv2_s12", "mobilenetv4_conv_small", "focalnet_tiny_srf"),
):
    add("timm", name, lambda name=name: _timm(name), image(96), NHW, **SIZES)  # type: ignore[misc]
add("torchvision", "swin_t", lambda: kept(load("torchvision").models.swin_t(num_classes=7)), image(96), NHW, **SIZES)
