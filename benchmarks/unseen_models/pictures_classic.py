"""Pictures: convolutions, measures of likeness, wavelets, text in pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from unseen_models.table import NHW, NT, T12, Part, add, add_class, features, image, load


def _piq(name: str, **options: Any) -> Callable[[], nn.Module]:
    return lambda: getattr(load("piq"), name)(reduction="none", **options)


_PAIR = lambda n, h=64, w=64: (torch.rand(n, 3, h, w), torch.rand(n, 3, h, w))  # noqa: E731

add(
    "lpips",
    "LPIPS alex",
    lambda: load("lpips").LPIPS(pretrained=False, pnet_rand=True, net="alex", verbose=False),
    lambda n, h=64, w=64: (torch.rand(n, 3, h, w), torch.rand(n, 3, h, w)),
    NHW,
    NHW,
    h=(64, 80, 71),
    w=(64, 72, 95),
)
add(
    "lpips",
    "LPIPS squeeze, spatial",
    lambda: load("lpips").LPIPS(pretrained=False, pnet_rand=True, net="squeeze", spatial=True, verbose=False),
    lambda n, h=64, w=64: (torch.rand(n, 3, h, w), torch.rand(n, 3, h, w)),
    NHW,
    NHW,
    h=(64, 80, 71),
    w=(64, 72, 95),
)
add("piq", "SSIMLoss", _piq("SSIMLoss"), _PAIR, NHW, NHW, h=(64, 80, 71), w=(64, 72, 95))
add("piq", "GMSDLoss", _piq("GMSDLoss"), _PAIR, NHW, NHW, h=(64, 80, 71), w=(64, 72, 95))
add("piq", "VIFLoss", _piq("VIFLoss"), _PAIR, NHW, NHW, h=(64, 80, 71), w=(64, 72, 95))
add("piq", "HaarPSILoss", _piq("HaarPSILoss"), _PAIR, NHW, NHW, h=(64, 80, 71), w=(64, 72, 95))
add("piq", "MDSILoss", _piq("MDSILoss"), _PAIR, NHW, NHW, h=(64, 80, 71), w=(64, 72, 95))
add_class(
    "siren-pytorch", "SirenNet", {"dim_in": 2, "dim_hidden": 16, "dim_out": 3, "num_layers": 3}, features(2), NT, t=T12
)
add(
    "siren-pytorch",
    "SirenWrapper",
    lambda: Part(
        load("siren_pytorch").SirenWrapper(
            load("siren_pytorch").SirenNet(dim_in=2, dim_hidden=16, dim_out=3, num_layers=2),
            latent_dim=8,
            image_width=8,
            image_height=6,
        ),
        lambda m, latent: m(latent=latent),
    ),
    lambda n: torch.randn(8),
    {},
)
add(
    "torchxrayvision",
    "DenseNet",
    lambda: load("torchxrayvision.models").DenseNet(
        growth_rate=8, block_config=(2, 2), num_init_features=8, apply_sigmoid=True
    ),
    image(64, 1),
    NHW,
    h=(64, 96, 71),
    w=(64, 72, 95),
)
add(
    "geffnet",
    "mixnet_s",
    lambda: load("geffnet").create_model("mixnet_s", num_classes=10),
    image(64),
    NHW,
    h=(64, 96, 71),
    w=(64, 72, 95),
)
add(
    "geffnet",
    "tf_efficientnet_es",
    lambda: load("geffnet").create_model("tf_efficientnet_es", num_classes=10),
    image(64),
    NHW,
    h=(64, 96, 71),
    w=(64, 72, 95),
)
add_class(
    "pytorch-wavelets",
    "DWTForward",
    {"J": 2, "wave": "db3", "mode": "symmetric"},
    image(32, 2),
    NHW,
    h=(32, 45, 24),
    w=(32, 24, 51),
)
add(
    "pytorch-wavelets",
    "DWTForward and DWTInverse",
    lambda: Part(
        nn.ModuleList(
            [
                load("pytorch_wavelets").DWTForward(J=2, wave="haar", mode="zero"),
                load("pytorch_wavelets").DWTInverse(wave="haar", mode="zero"),
            ]
        ),
        lambda m, x: m[1](m[0](x)),
    ),
    image(32, 2),
    NHW,
    h=(32, 48, 24),
    w=(32, 24, 56),
)
add(
    "pytorch-wavelets",
    "DTCWTForward",
    lambda: load("pytorch_wavelets").DTCWTForward(J=2),
    image(32, 2),
    NHW,
    h=(32, 48, 24),
    w=(32, 24, 56),
)
add_class(
    "transnetv2-pytorch",
    "TransNetV2",
    {"F": 4, "L": 2, "S": 1, "D": 16, "device": "cpu"},
    lambda n: torch.randint(0, 255, (n, 8, 27, 48, 3), dtype=torch.uint8),
)
add(
    "python-doctr",
    "crnn_mobilenet_v3_small",
    lambda: Part(
        load("doctr.models.recognition").crnn_mobilenet_v3_small(pretrained=False),
        lambda m, x: m(x, return_model_output=True)["out_map"],
    ),
    lambda n, w=128: torch.randn(n, 3, 32, w),
    {0: "n", 3: "w"},
    w=(128, 96, 160),
)
add(
    "python-doctr",
    "db_mobilenet_v3_large",
    lambda: Part(
        load("doctr.models.detection").db_mobilenet_v3_large(pretrained=False),
        lambda m, x: m(x, return_model_output=True)["out_map"],
    ),
    image(64),
    NHW,
    h=(64, 128, 96),
    w=(64, 96, 160),
)
add(
    "resnest",
    "resnest50 head",
    lambda: load("resnest.torch.resnet").ResNet(
        load("resnest.torch.resnet").Bottleneck,
        [1, 1, 1, 1],
        radix=2,
        groups=1,
        bottleneck_width=16,
        num_classes=10,
        deep_stem=True,
        stem_width=8,
        avg_down=True,
    ),
    image(64),
    NHW,
    h=(64, 96, 80),
    w=(64, 72, 95),
)
add(
    "pretrainedmodels",
    "nasnetamobile",
    lambda: load("pretrainedmodels").nasnetamobile(num_classes=10, pretrained=None),
    image(224),
)
add(
    "pretrainedmodels",
    "dpn68",
    lambda: load("pretrainedmodels").dpn68(num_classes=10, pretrained=None),
    image(224),
    NHW,
    h=(224, 256, 231),
    w=(224, 240, 224),
)
add(
    "pretrainedmodels",
    "bninception",
    lambda: load("pretrainedmodels").bninception(num_classes=10, pretrained=None),
    image(224),
)
add(
    "lightly",
    "MAEDecoder",
    lambda: load("lightly.models.modules").MAEDecoder(17, 1, 2, 16, 16, 32, 12),
    features(16, 17),
)
add(
    "lightly",
    "SimCLR head",
    lambda: nn.Sequential(
        load("lightly.models.modules.heads").SimCLRProjectionHead(16, 16, 8),
        load("lightly.models.modules.heads").SwaVPrototypes(8, 5),
    ),
    lambda n: torch.randn(n, 16),
)
add("byol-pytorch", "MLP", lambda: load("byol_pytorch.byol_pytorch").MLP(16, 8, 32), lambda n: torch.randn(n, 16))
