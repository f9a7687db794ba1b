"""Videos, and predictions that are averaged over flips and tiles."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NHW, SIZES, N, Part, add, add_class, image, load, small_classifier

# pytorchvideo


def _slowfast() -> nn.Module:
    made = load("pytorchvideo.models").create_slowfast(
        model_num_class=5,
        dropout_rate=0.0,
        stem_dim_outs=(16, 2),
        head_pool_kernel_sizes=((2, 2, 2), (8, 2, 2)),
    )
    return Part(made, lambda m, slow, fast: m([slow, fast]))


def _x3d() -> nn.Module:
    made: nn.Module = load("pytorchvideo.models.x3d").create_x3d(
        input_clip_length=4, input_crop_size=64, model_num_class=5, dropout_rate=0.0, head_dim_out=32
    )
    return made


def _mvit(**options: Any) -> nn.Module:
    made: nn.Module = load("pytorchvideo.models").create_multiscale_vision_transformers(
        spatial_size=32,
        temporal_size=4,
        depth=3,
        patch_embed_dim=16,
        head_num_classes=5,
        dropout_rate_block=0.0,
        embed_dim_mul=[[1, 2.0]],
        atten_head_mul=[[1, 2.0]],
        pool_q_stride_size=[[1, 1, 2, 2]],
        pool_kv_stride_adaptive=[1, 4, 4],
        pool_kvq_kernel=[3, 3, 3],
        **options,
    )
    return made


def _csn() -> nn.Module:
    made: nn.Module = load("pytorchvideo.models").create_csn(
        model_num_class=5, stem_dim_out=16, head_pool_kernel_size=(1, 2, 2)
    )
    return made


def _two_paths(n: int) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 3, 2, 64, 64), torch.randn(n, 3, 8, 64, 64)


add("pytorchvideo", "SlowFast", _slowfast, _two_paths, N, N)
add("pytorchvideo", "X3D", _x3d, lambda n: torch.randn(n, 3, 4, 64, 64))
add("pytorchvideo", "MViT", _mvit, lambda n: torch.randn(n, 3, 4, 32, 32))
add("pytorchvideo", "MViT, no class token", lambda: _mvit(cls_embed_on=False), lambda n: torch.randn(n, 3, 4, 32, 32))
add("pytorchvideo", "CSN", _csn, lambda n: torch.randn(n, 3, 8, 64, 64))


# pytorch-toolbelt

TTA = "pytorch_toolbelt.inference.tta"


def _small_masks() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), nn.ReLU(), nn.Conv2d(8, 2, 3, 1, 1))


def _augmented(name: str, *args: Any) -> nn.Module:
    model = _small_masks() if name.endswith("mask") else small_classifier()
    return Part(model, lambda m, x: getattr(load(TTA), name)(m, x, *args))


def _multiscale() -> nn.Module:
    made: nn.Module = load(TTA).MultiscaleTTA(_small_masks(), [16, -16])
    return made


def _general() -> nn.Module:
    tta = load(TTA)
    made: nn.Module = tta.GeneralizedTTA(_small_masks(), tta.d4_image_augment, tta.d4_image_deaugment)
    return made


for each in ("fliplr_image2mask", "d4_image2mask", "fliplr_image2label", "d4_image2label"):
    square = {"h": (32, 48, 64), "w": (32, 48, 64)} if each.startswith("d4") else SIZES
    add("pytorch_toolbelt", each, functools.partial(_augmented, each), image(), NHW, **square)
for each in ("fivecrop_image2label", "tencrop_image2label"):
    add("pytorch_toolbelt", each, functools.partial(_augmented, each, (24, 24)), image(), NHW, **SIZES)
add("pytorch_toolbelt", "MultiscaleTTA", _multiscale, image(), NHW, **SIZES)
add("pytorch_toolbelt", "GeneralizedTTA", _general, image(), NHW, h=(32, 48, 64), w=(32, 48, 64))


def _padded() -> nn.Module:
    def call(m: nn.Module, x: Tensor) -> Any:
        package = load("pytorch_toolbelt.inference.functional")
        padded, pad = package.pad_image_tensor(x, 32)
        return package.unpad_image_tensor(m(padded), pad)

    return Part(_small_masks(), call)


add("pytorch_toolbelt", "pad and unpad", _padded, image(), NHW, h=(32, 40, 50), w=(32, 45, 70))


def _tiles() -> nn.Module:
    def call(m: nn.Module, x: Tensor) -> Any:
        package = load("pytorch_toolbelt.inference.tiles")
        slicer = package.ImageSlicer((40, 40, 3), tile_size=(16, 16), tile_step=(12, 12), weight="pyramid")
        pictures = []
        for picture in x:
            merger = package.TileMerger(slicer.target_shape, 2, slicer.weight, device="cpu")
            padded = nn.functional.pad(
                picture, (slicer.margin_left, slicer.margin_right, slicer.margin_top, slicer.margin_bottom)
            )
            tiles = torch.stack([padded[:, b : b + 16, a : a + 16] for a, b, _, _ in slicer.crops])
            merger.integrate_batch(m(tiles), slicer.crops)
            pictures.append(merger.merge())
        return torch.stack(pictures)

    return Part(_small_masks(), call)


add("pytorch_toolbelt", "tiles and merger", _tiles, image(40))
LOSSES = "pytorch_toolbelt.losses"


def _masks(n: int, h: int = 16, w: int = 16) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 1, h, w), (torch.rand(n, 1, h, w) > 0.6).float()


def _classes(n: int, h: int = 16, w: int = 16) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 4, h, w), torch.randint(0, 4, (n, h, w))


PIXELS = {0: "n", 1: "h", 2: "w"}
SMALL: dict[str, Sequence[int]] = {"h": (16, 20, 24), "w": (16, 12, 30)}
for each, options in (
    ("BinaryFocalLoss", {"alpha": 0.25, "ignore_index": -100}),
    ("BinaryLovaszLoss", {"per_image": True}),
    ("SoftBCEWithLogitsLoss", {"smooth_factor": 0.1}),
    ("BalancedBCEWithLogitsLoss", {}),
    ("WingLoss", {}),
    ("QualityFocalLoss", {}),
):
    add_class("pytorch_toolbelt", each, options, _masks, NHW, NHW, module=LOSSES, **SMALL)
for each, options in (
    ("LovaszLoss", {}),
    ("DiceLoss", {"mode": "multiclass", "ignore_index": 2}),
    ("JaccardLoss", {"mode": "multiclass"}),
    ("CrossEntropyFocalLoss", {}),
    ("SoftCrossEntropyLoss", {"smooth_factor": 0.1}),
):
    add_class("pytorch_toolbelt", each, options, _classes, NHW, PIXELS, module=LOSSES, name=f"toolbelt {each}", **SMALL)


def _tempered() -> nn.Module:
    made: nn.Module = load(LOSSES).BiTemperedLogisticLoss(0.8, 1.2, smoothing=0.05)
    return made


add(
    "pytorch_toolbelt",
    "BiTemperedLogisticLoss",
    _tempered,
    lambda n: (torch.randn(n, 4), torch.eye(4)[:1].repeat(n, 1)),
    N,
    N,
)
