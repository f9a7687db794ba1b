"""Models of segmentation_models_pytorch: a decoder and an encoder, as ``unet-resnet18``."""

from __future__ import annotations

from dataclasses import replace

import segmentation_models_pytorch as smp
import torch

from torch_onnx_compat.errors import unknown_name
from torch_onnx_compat.zoo.sample import DEFAULT, SEED, Sample, Size, image_sample
from torch_onnx_compat.zoo.weights import PICTURES, build_with_seed

PACKAGES = ("segmentation-models-pytorch", "timm")

CLASSES = 3
_DECODERS = {
    kind.__name__.lower(): kind
    for kind in (
        smp.DPT,
        smp.FPN,
        smp.Linknet,
        smp.MAnet,
        smp.PAN,
        smp.PSPNet,
        smp.DeepLabV3,
        smp.DeepLabV3Plus,
        smp.Segformer,
        smp.UPerNet,
        smp.Unet,
        smp.UnetPlusPlus,
    )
}
_VIT = "tu-vit_tiny_patch16_224"
"""DPT takes vision transformers only, which are timm's and in none of smp's lists."""


def names() -> list[str]:
    """Every decoder with every encoder that smp ships; encoders of timm (``unet-tu-resnet18``) work too."""
    encoders = smp.encoders.get_encoder_names()
    pairs = [f"{decoder}-{encoder}" for decoder in _DECODERS if decoder != "dpt" for encoder in encoders]
    return sorted([*pairs, f"dpt-{_VIT}"])


def family(name: str) -> str:
    """The decoder."""
    return name.partition("-")[0]


def build(name: str, size: Size | None = None) -> Sample:
    """Builds one model, of `CLASSES` classes."""
    return _build(name, size, None)


def build_trained(name: str, weights: str, size: Size | None = None) -> Sample:
    """Builds one model whose encoder has the weights of a name, such as ``imagenet``, which smp downloads."""
    return replace(_build(name, size, "imagenet" if weights == DEFAULT else weights), random="the decoder's")


def _build(name: str, size: Size | None, weights: str | None) -> Sample:
    decoder, _, encoder = name.partition("-")
    if decoder not in _DECODERS or not (encoder.startswith("tu-") or encoder in smp.encoders.get_encoder_names()):
        raise unknown_name("smp model", name, names())
    images = torch.randn(PICTURES, 3, *(size or (224, 224)), generator=torch.Generator().manual_seed(SEED))

    def make() -> torch.nn.Module:
        made: torch.nn.Module = _DECODERS[decoder](encoder, encoder_weights=weights, classes=CLASSES)
        return made

    return image_sample(build_with_seed(make, (images,)), images[:1], {0: "batch"})
