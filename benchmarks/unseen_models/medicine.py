"""Pictures of medicine: the networks of monai."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from unseen_models.table import NHW, NT, T12, N, Part, add, image, load, tokens

SIZES = {"h": (32, 48, 40), "w": (32, 40, 64)}
LARGE = {"h": (64, 96), "w": (64, 128)}
FLAT: dict[str, Any] = {"spatial_dims": 2, "in_channels": 1}


def _network(
    name: str,
    inputs: Callable[..., Any],
    *axes: Mapping[int, str],
    sizes: Mapping[str, Sequence[int]],
    call: Callable[..., Any] | None = None,
    **options: Any,
) -> None:
    def make() -> nn.Module:
        made: nn.Module = getattr(load("monai.networks.nets"), name)(**options)
        return made if call is None else Part(made, call)

    add("monai", name, make, inputs, *axes, **sizes)


def _of_any_size(name: str, size: int = 32, image_channels: int = 1, **options: Any) -> None:
    sizes = SIZES if size == 32 else LARGE
    _network(name, image(size, image_channels), NHW, sizes=sizes, **options)


def _of_one_size(name: str, *shape: int, **options: Any) -> None:
    _network(name, lambda n: torch.rand(n, *shape), N, sizes={}, **options)


_of_any_size("UNet", out_channels=2, channels=(4, 8, 16), strides=(2, 2), num_res_units=2, **FLAT)
_of_any_size("AttentionUnet", out_channels=2, channels=(4, 8, 16), strides=(2, 2), **FLAT)
_of_any_size("BasicUNetPlusPlus", spatial_dims=2, features=(8, 8, 8, 16, 16, 8))
_of_any_size(
    "DynUNet",
    out_channels=2,
    kernel_size=[3, 3, 3],
    strides=[1, 2, 2],
    upsample_kernel_size=[2, 2],
    filters=[8, 16, 16],
    **FLAT,
)
_of_any_size("SegResNet", spatial_dims=2, init_filters=8)
_of_any_size("SegResNetDS", init_filters=8, out_channels=2, **FLAT)
_of_any_size("HighResNet", out_channels=2, **FLAT)
_of_any_size("DenseNet121", out_channels=2, **FLAT)
_of_any_size("EfficientNetBN", 64, 3, model_name="efficientnet-b0", pretrained=False, num_classes=4)
_of_any_size("RegUNet", num_channel_initial=4, depth=2, **FLAT)
_of_any_size("MedNeXt", out_channels=2, init_filters=8, **FLAT)
_of_any_size("Quicknat", num_classes=4, num_channels=1, num_filters=8)
_of_any_size("PatchDiscriminator", channels=8, out_channels=1, num_layers_d=2, **FLAT)
_of_any_size(
    "VQVAE",
    out_channels=1,
    channels=(8, 8),
    num_res_channels=(8, 8),
    num_embeddings=16,
    embedding_dim=8,
    downsample_parameters=((2, 4, 1, 1),) * 2,
    upsample_parameters=((2, 4, 1, 1, 0),) * 2,
    **FLAT,
)
_of_any_size(
    "AutoencoderKL",
    call=lambda m, x: m.reconstruct(x),
    out_channels=1,
    num_res_blocks=(1, 1),
    channels=(8, 8),
    attention_levels=(False, True),
    latent_channels=3,
    norm_num_groups=4,
    **FLAT,
)
_network(
    "DiffusionModelUNet",
    lambda n, h=32, w=32: (torch.rand(n, 1, h, w), torch.randint(0, 1000, (n,))),
    NHW,
    N,
    sizes=SIZES,
    out_channels=1,
    channels=(8, 8),
    attention_levels=(False, True),
    num_res_blocks=1,
    num_head_channels=4,
    norm_num_groups=4,
    **FLAT,
)
_network(
    "AHNet",
    image(128, 1),
    NHW,
    sizes={"h": (128, 160), "w": (128, 192)},
    spatial_dims=2,
    upsample_mode="bilinear",
    layers=(1, 1, 1, 1),
    psp_block_num=0,
)
_network(
    "VNet",
    lambda n, h=16, w=16: torch.rand(n, 1, 16, h, w),
    {0: "n", 3: "h", 4: "w"},
    sizes={"h": (16, 32), "w": (16, 48)},
)
_network(
    "SwinUNETR",
    image(64, 1),
    NHW,
    sizes={"h": (64, 96, 128), "w": (64, 128, 96)},
    in_channels=1,
    out_channels=2,
    feature_size=12,
    spatial_dims=2,
)
_network(
    "DecoderOnlyTransformer",
    tokens(20),
    NT,
    sizes={"t": T12},
    num_tokens=20,
    max_seq_len=32,
    attn_layers_dim=16,
    attn_layers_depth=2,
    attn_layers_heads=2,
)
PATCHES: dict[str, Any] = {
    "img_size": 32,
    "patch_size": 8,
    "hidden_size": 24,
    "mlp_dim": 32,
    "num_heads": 2,
    "num_layers": 2,
    **FLAT,
}
_of_one_size("ViT", 1, 32, 32, classification=True, **PATCHES)
_of_one_size("SegResNetVAE", 1, 32, 32, spatial_dims=2, init_filters=8, input_image_size=(32, 32))
_of_one_size(
    "UNETR",
    *(1, 32, 32),
    in_channels=1,
    out_channels=2,
    img_size=(32, 32),
    spatial_dims=2,
    hidden_size=24,
    mlp_dim=32,
    num_heads=2,
    feature_size=8,
)
_of_one_size("Generator", 8, latent_shape=8, start_shape=(4, 4, 4), channels=[8, 4, 1], strides=[2, 2, 1])
_of_one_size(
    "VarAutoEncoder",
    *(1, 32, 32),
    call=lambda m, x: m.decode_forward(m.encode_forward(x)[0]),
    spatial_dims=2,
    in_shape=(1, 32, 32),
    out_channels=1,
    latent_size=2,
    channels=(4, 8),
    strides=(2, 2),
)
_of_any_size(
    "FlexibleUNet", 64, 3, in_channels=3, out_channels=2, backbone="resnet18", spatial_dims=2, pretrained=False
)
_network(
    "BasicUNet",
    lambda n, d=16, h=32, w=16: torch.randn(n, 1, d, h, w),
    {0: "n", 2: "d", 3: "h", 4: "w"},
    sizes={"d": (16, 16, 32), "h": (32, 48, 40), "w": (16, 32, 24)},
    spatial_dims=3,
    in_channels=1,
    out_channels=2,
    features=(8, 8, 16, 16, 16, 8),
)
add(
    "monai",
    "Restormer",
    lambda: load("monai.networks.nets.restormer").Restormer(
        spatial_dims=2,
        in_channels=3,
        out_channels=3,
        dim=8,
        num_blocks=(1, 1, 1, 1),
        heads=(1, 1, 2, 2),
        num_refinement_blocks=1,
    ),
    image(64),
    NHW,
    **LARGE,
)


def _searched_network() -> nn.Module:
    networks = load("monai.networks.nets.dints")
    space = networks.TopologyInstance(channel_mul=0.25, num_blocks=4, num_depths=3, use_downsample=True, spatial_dims=2)
    made: nn.Module = networks.DiNTS(
        dints_space=space, in_channels=1, num_classes=2, use_downsample=True, spatial_dims=2
    )
    return made


add("monai", "DiNTS", _searched_network, image(64, 1), NHW, **LARGE)
