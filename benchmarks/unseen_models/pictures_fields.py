"""Medicine and geography."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor, nn

from unseen_models.table import EVEN, NHW, SIZES, N, Part, add, features, image, kept, load

THREE = {0: "n", 2: "d", 3: "h", 4: "w"}


def _volume(channels: int, size: int = 16) -> Callable[..., Tensor]:
    """Draws volumes or clips (n, channels, d, h, w)."""
    return lambda n, d=size, h=size, w=size: torch.randn(n, channels, d, h, w)


# dynamic-network-architectures (nnU-Net)


def _nnunet(name: str, dimensions: int, deep: bool = True) -> nn.Module:
    conv, norm = (nn.Conv2d, nn.InstanceNorm2d) if dimensions == 2 else (nn.Conv3d, nn.InstanceNorm3d)
    blocks = "n_conv_per_stage" if name == "PlainConvUNet" else "n_blocks_per_stage"
    made = getattr(load("dynamic_network_architectures.architectures.unet"), name)(
        input_channels=1,
        n_stages=4,
        features_per_stage=(4, 8, 16, 16),
        conv_op=conv,
        kernel_sizes=3,
        strides=(1, 2, 2, 2),
        num_classes=3,
        n_conv_per_stage_decoder=1,
        conv_bias=True,
        norm_op=norm,
        norm_op_kwargs={"eps": 1e-5, "affine": True},
        nonlin=nn.LeakyReLU,
        nonlin_kwargs={"inplace": True},
        deep_supervision=deep,
        **{blocks: 1},
    )
    return kept(made)


def _primus() -> nn.Module:
    made = load("dynamic_network_architectures.architectures.primus").Primus(
        1, 24, (8, 8, 8), 3, eva_depth=2, eva_numheads=2, input_shape=(16, 16, 32), use_rot_pos_emb=False
    )
    return kept(made)


NNUNET = "dynamic_network_architectures"
for each in ("PlainConvUNet", "ResidualEncoderUNet"):
    add(NNUNET, f"{each} 2d", functools.partial(_nnunet, each, 2), image(32, 1), NHW, **SIZES)
    make = functools.partial(_nnunet, each, 3)
    add(NNUNET, f"{each} 3d", make, _volume(1, 16), THREE, d=(16, 24, 32), h=(16, 32, 24), w=(16, 16, 32))
add(NNUNET, "Primus", _primus, lambda n: torch.randn(n, 1, 16, 16, 32))
add(
    NNUNET,
    "ResNetD",
    lambda: load("dynamic_network_architectures.architectures.resnet").ResNetD(
        4, 3, "18_cifar", squeeze_excitation=True
    ),
    image(),
    NHW,
    **SIZES,
)


# torchgeo

GEO = "torchgeo.models"


def _dofa() -> nn.Module:
    made = load(GEO).DOFA(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, num_classes=4)
    return Part(made, lambda m, x: m(x, [0.49, 0.56, 0.66]))


def _copernicus() -> nn.Module:
    made = load(GEO).CopernicusFM(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, num_classes=4)
    call = {"wavelengths": [490, 560, 665], "bandwidths": [65, 35, 30], "kernel_size": 8}
    return Part(made, lambda m, x, about: m(x, about, **call))


def _about(n: int) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 3, 32, 32), torch.rand(n, 4) * 10 + 20


def _panopticon() -> nn.Module:
    made = load(GEO).Panopticon(attn_dim=48, embed_dim=24, img_size=28)
    return Part(made, lambda m, x, ids: m({"imgs": x, "chn_ids": ids}))


def _times(n: int, t: int = 4, h: int = 16, w: int = 16) -> Tensor:
    return torch.randn(n, t, 3, h, w)


def _two_dates(n: int, h: int = 64, w: int = 64) -> Tensor:
    return torch.randn(n, 2, 3, h, w)


CROMA = {"encoder_dim": 32, "encoder_depth": 2, "num_heads": 16, "image_size": 32}
add("torchgeo", "DOFA", _dofa, image())
add("torchgeo", "CopernicusFM", _copernicus, _about, N, N)
add(
    "torchgeo",
    "CROMA",
    lambda: load(GEO).CROMA(**CROMA),
    lambda n: (torch.randn(n, 2, 32, 32), torch.randn(n, 12, 32, 32)),
    N,
    N,
)
add(
    "torchgeo",
    "ConvLSTM",
    lambda: load(GEO).ConvLSTM(3, [4, 6], 3, 2),
    _times,
    {0: "n", 1: "t", 3: "h", 4: "w"},
    t=(4, 2, 6),
    h=(16, 12, 20),
    w=(16, 20, 12),
)
LTAE = {"in_channels": 16, "n_head": 4, "d_k": 4, "n_neurons": (32, 8), "d_model": 32, "len_max_seq": 12}
add("torchgeo", "LTAE", lambda: load(GEO).LTAE(**LTAE), features(16))
add("torchgeo", "RCF", lambda: load(GEO).RCF(3, 8, seed=1), image(), NHW, **SIZES)
TWO_DATES = {0: "n", 3: "h", 4: "w"}
SIAMESE = {"encoder_name": "resnet18", "encoder_depth": 3, "encoder_weights": None, "decoder_channels": (16, 8, 4)}
for each in ("FCSiamConc", "FCSiamDiff"):
    make = functools.partial(lambda name: getattr(load(GEO), name)(**SIAMESE), each)
    add("torchgeo", each, make, _two_dates, TWO_DATES, **EVEN)
add("torchgeo", "FarSeg", lambda: load(GEO).FarSeg("resnet18", 4, False), image(64), NHW, **EVEN)
add(
    "torchgeo",
    "ChangeStarFarSeg",
    lambda: load(GEO).ChangeStarFarSeg("resnet18", 2, False),
    _two_dates,
    TWO_DATES,
    **EVEN,
)
add("torchgeo", "EarthLoc", lambda: load(GEO).EarthLoc(3, 64, 32, "resnet50", False), image(64))
