"""Detectors, re-identification and segmentation by prompts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NHW, N, Part, add, add_class, image, kept, load

# effdet


def _efficientdet(name: str = "tf_efficientdet_lite0", soft: bool = False, **options: Any) -> Any:
    package = load("effdet")
    config = package.get_efficientdet_config(name)
    config.update(
        {
            "image_size": (128, 128),
            "num_classes": 3,
            "fpn_channels": 16,
            "fpn_cell_repeats": 1,
            "box_class_repeats": 1,
            "max_detection_points": 60,
            "max_det_per_image": 12,
            "soft_nms": soft,
        }
        | options
    )
    return package.EfficientDet(config, pretrained_backbone=False)


def _detector(soft: bool = False) -> nn.Module:
    made: nn.Module = load("effdet").DetBenchPredict(_efficientdet(soft=soft))
    return made


def _scaled() -> nn.Module:
    return Part(_detector(), lambda m, x, scale, size: m(x, {"img_scale": scale, "img_size": size}))


add("effdet", "EfficientDet lite0", _efficientdet, image(128))
add("effdet", "EfficientDet quad fpn", lambda: _efficientdet(fpn_name="qufpn_fa"), image(128))
add("effdet", "DetBenchPredict", _detector, image(128))
add("effdet", "DetBenchPredict, soft NMS", lambda: _detector(True), image(128))
add(
    "effdet",
    "DetBenchPredict, scales",
    _scaled,
    lambda n: (torch.randn(n, 3, 128, 128), torch.rand(n) + 0.5, torch.full((n, 2), 100.0)),
    N,
    N,
    N,
)


# torchreid

REID = "torchreid.reid.models"
PEOPLE: dict[str, Sequence[int]] = {"h": (64, 128, 96), "w": (32, 64, 48)}


def _people(n: int, h: int = 64, w: int = 32) -> Tensor:
    return torch.randn(n, 3, h, w)


for each, where in (("osnet_x0_25", "osnet"), ("osnet_ain_x0_25", "osnet_ain"), ("osnet_ibn_x1_0", "osnet")):
    make = functools.partial(
        lambda name, module: getattr(load(f"{REID}.{module}"), name)(5, pretrained=False), each, where
    )
    add("torchreid", each, make, _people, NHW, **PEOPLE)


def _hacnn() -> nn.Module:
    made = load(f"{REID}.hacnn").HACNN(5, nchannels=[16, 32, 48], feat_dim=16, use_gpu=False)
    return kept(made)


add("torchreid", "HACNN", _hacnn, lambda n: torch.randn(n, 3, 160, 64))
add(
    "torchreid",
    "MLFN",
    lambda: load(f"{REID}.mlfn").MLFN(5, groups=4, channels=[8, 16, 32, 48, 64], embed_dim=16),
    _people,
)
add("torchreid", "PCB p4", lambda: load(f"{REID}.pcb").pcb_p4(5, pretrained=False), _people, NHW, **PEOPLE)


# rfdetr


def _rfdetr(name: str = "RFDETRNanoConfig", **options: Any) -> Any:
    config = getattr(load("rfdetr.config"), name)(
        num_queries=12,
        group_detr=1,
        num_select=10,
        num_classes=4,
        pretrain_weights=None,
        device="cpu",
        **{"dec_layers": 2, "resolution": 128, "positional_encoding_size": 8, **options},
    )
    return load("rfdetr.models.lwdetr").build_model_from_config(config)


def _rfdetr_found() -> nn.Module:
    process = load("rfdetr.models.postprocess").PostProcess(10)

    def call(m: nn.Module, x: Tensor, sizes: Tensor) -> Any:
        return [list(found.values()) for found in process(m(x), sizes)]

    return Part(_rfdetr(), call)


SEGMENTS = {"name": "RFDETRSegNanoConfig", "resolution": 96, "dec_layers": 1}
add("rfdetr", "RF-DETR nano", _rfdetr, image(128), NHW, h=(128, 192, 160), w=(128, 128, 192))
add(
    "rfdetr",
    "RF-DETR nano, found",
    _rfdetr_found,
    lambda n: (torch.randn(n, 3, 128, 128), torch.full((n, 2), 90)),
    N,
    N,
)
add("rfdetr", "RF-DETR segments", lambda: _rfdetr(**SEGMENTS), image(96))


def _exported() -> nn.Module:
    made = _rfdetr()
    made.export()
    return kept(made)


add("rfdetr", "RF-DETR exported", _exported, image(128))


# segment-anything-hq


def _prompted() -> nn.Module:
    parts = load("segment_anything_hq.modeling")
    two_way = load("segment_anything_hq.modeling.transformer").TwoWayTransformer(2, 16, 2, 32)
    decoder = parts.MaskDecoderHQ(transformer_dim=16, transformer=two_way, iou_head_hidden_dim=16, vit_dim=24)
    prompts = parts.PromptEncoder(16, (8, 8), (128, 128), 4)

    def call(m: Any, picture: Tensor, early: Tensor, points: Tensor, labels: Tensor) -> Any:
        sparse, dense = m[0](points=(points, labels), boxes=None, masks=None)
        return m[1](picture, m[0].get_dense_pe(), sparse, dense, True, False, early)

    return Part(nn.ModuleList([prompts, decoder]), call)


def _points(n: int, p: int = 3) -> tuple[Tensor, ...]:
    points, labels = torch.rand(n, p, 2) * 128, torch.randint(0, 2, (n, p))
    return torch.randn(1, 16, 8, 8), torch.randn(1, 1, 8, 8, 24), points, labels


HQ = {
    "img_size": 64,
    "patch_size": 8,
    "embed_dim": 24,
    "depth": 3,
    "num_heads": 2,
    "out_chans": 16,
    "use_rel_pos": True,
}
add_class(
    "segment_anything_hq",
    "ImageEncoderViT",
    {**HQ, "window_size": 3, "global_attn_indexes": (1,)},
    image(64),
    module="segment_anything_hq.modeling",
    name="HQ-SAM encoder",
)
add("segment_anything_hq", "HQ-SAM masks", _prompted, _points, {}, {}, {0: "n", 1: "p"}, {0: "n", 1: "p"}, p=(3, 1, 6))


# romatch


def _gp(**options: Any) -> nn.Module:
    matcher = load("romatch.models.matcher")
    return kept(matcher.GP(matcher.CosKernel, T=0.2, learn_temperature=True, gp_dim=8, **options))


def _refiner(radius: int | None) -> nn.Module:
    options = {"in_dim": 2 * 8 + 4, "hidden_dim": 16, "out_dim": 3, "displacement_emb": "linear"}
    if radius is not None:
        options = options | {"local_corr_radius": radius, "corr_in_other": True, "in_dim": 20 + (2 * radius + 1) ** 2}
    made = load("romatch.models.matcher").ConvRefiner(**options, hidden_blocks=1, displacement_emb_dim=4)
    return kept(made)


def _two(channels: int, size: int) -> Callable[..., tuple[Tensor, Tensor]]:
    return lambda n, h=size, w=size: (torch.randn(n, channels, h, w), torch.randn(n, channels, h, w))


def _warped(n: int, h: int = 12, w: int = 12) -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(n, 8, h, w), torch.randn(n, 8, h, w), torch.rand(n, 2, h, w) * 2 - 1


SMALL_MAPS: dict[str, Sequence[int]] = {"h": (12, 10, 14), "w": (12, 16, 9)}
add("romatch", "GP", _gp, _two(8, 8), NHW, NHW, h=(8, 6, 10), w=(8, 10, 7))
add("romatch", "GP without covariance", lambda: _gp(no_cov=True), _two(8, 8), NHW, NHW, h=(8, 6, 10), w=(8, 10, 7))
add("romatch", "ConvRefiner", lambda: _refiner(None), _warped, NHW, NHW, NHW, **SMALL_MAPS)
add("romatch", "ConvRefiner, correlation", lambda: _refiner(2), _warped, NHW, NHW, NHW, **SMALL_MAPS)
