"""Measures of pictures, sounds and predictions, and kornia's operations on pictures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NHW, NT, T12, N, Part, add, add_class, load

SIZES = {"h": (32, 48, 40), "w": (32, 40, 56)}


def _function(module: str, name: str, *args: Any, takes: int = 1, **options: Any) -> Callable[[], nn.Module]:
    """A module that calls a function on its first arguments."""

    def call(_: nn.Module, *tensors: Tensor) -> Any:
        return getattr(load(module), name)(*tensors[:takes], *args, **options)

    return functools.partial(Part, nn.Identity(), call)


def _pair(n: int, h: int = 32, w: int = 32) -> tuple[Tensor, Tensor]:
    return torch.rand(n, 3, h, w), torch.rand(n, 3, h, w)


def _picture(n: int, h: int = 32, w: int = 32) -> Tensor:
    return torch.rand(n, 3, h, w)


SSIM = {"data_range": 1.0, "size_average": False}
add_class("pytorch-msssim", "SSIM", SSIM, _pair, NHW, NHW, name="pytorch-msssim SSIM", **SIZES)
add_class("pytorch-msssim", "MS_SSIM", {**SSIM, "win_size": 3}, _pair, NHW, NHW, h=(64, 96, 80), w=(64, 80, 96))
IMAGE = "torchmetrics.functional.image"
for each in ("structural_similarity_index_measure", "spectral_angle_mapper", "universal_image_quality_index"):
    add("torchmetrics", each, _function(IMAGE, each, takes=2), _pair, NHW, NHW, **SIZES)
each = "peak_signal_noise_ratio"
add("torchmetrics", each, _function(IMAGE, each, takes=2, data_range=1.0), _pair, NHW, NHW, **SIZES)
add("torchmetrics", "total_variation", _function(IMAGE, "total_variation"), _pair, NHW, NHW, **SIZES)
for each in (
    "signal_noise_ratio",
    "scale_invariant_signal_distortion_ratio",
    "scale_invariant_signal_noise_ratio",
):
    make = _function("torchmetrics.functional.audio", each, takes=2)
    add("torchmetrics", each, make, lambda n, t=64: (torch.randn(n, t), torch.randn(n, t)), NT, NT, t=(64, 48, 100))
for each in (
    *("pearson_corrcoef", "spearman_corrcoef", "r2_score", "cosine_similarity", "explained_variance"),
    *("concordance_corrcoef", "kendall_rank_corrcoef"),
):
    make = _function("torchmetrics.functional", each, takes=2)
    rows = {0: "t"}
    add("torchmetrics", each, make, lambda n, t=12: (torch.randn(t, 3), torch.randn(t, 3)), rows, rows, t=T12)

# kornia

FILTERS: dict[str, tuple[Any, ...]] = {
    "gaussian_blur2d": ((5, 5), (1.5, 1.5)),
    "median_blur": ((3, 3),),
    "bilateral_blur": ((5, 5), 0.1, (1.5, 1.5)),
    "unsharp_mask": ((5, 5), (1.5, 1.5)),
    "canny": (),
    "sobel": (),
    "laplacian": (3,),
    "box_blur": ((3, 3),),
}
COLOURS = (
    *("rgb_to_hsv", "rgb_to_lab", "rgb_to_luv", "rgb_to_hls", "rgb_to_xyz", "rgb_to_ycbcr", "hsv_to_rgb"),
    *("rgb_to_yuv420", "rgb_to_linear_rgb"),
)
for each, args in FILTERS.items():
    add("kornia", f"filters {each}", _function("kornia.filters", each, *args), _picture, NHW, **SIZES)
for each in COLOURS:
    add("kornia", f"color {each}", _function("kornia.color", each), _picture, NHW, **SIZES)
add(
    "kornia",
    "warp_perspective",
    _function("kornia.geometry", "warp_perspective", (24, 20), takes=2),
    lambda n, h=32, w=32: (torch.rand(n, 3, h, w), torch.eye(3) + 0.01 * torch.randn(n, 3, 3)),
    NHW,
    N,
    **SIZES,
)
add(
    "kornia",
    "rotate",
    _function("kornia.geometry", "rotate", takes=2),
    lambda n, h=32, w=32: (torch.rand(n, 3, h, w), torch.rand(n) * 90),
    NHW,
    N,
    **SIZES,
)


def _corners(n: int) -> tuple[Tensor, Tensor]:
    square = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]]) + 0.1 * torch.rand(n, 4, 2)
    return square, square + 0.1 * torch.rand(n, 4, 2)


def _scores(channels: int) -> Callable[..., Tensor]:
    return lambda n, h=32, w=32: torch.rand(n, channels, h, w)


def _patches(n: int) -> Tensor:
    return torch.rand(n, 1, 32, 32)


GEOMETRY = "kornia.geometry"
add("kornia", "homography from points", _function(GEOMETRY, "get_perspective_transform", takes=2), _corners, N, N)
add("kornia", "soft argmax", _function(GEOMETRY, "spatial_soft_argmax2d"), _scores(2), NHW, **SIZES)
add(
    "kornia",
    "NonMaximaSuppression2d",
    lambda: load("kornia.geometry.subpix").NonMaximaSuppression2d((3, 3)),
    _scores(1),
    NHW,
    **SIZES,
)
CLAHE = _function("kornia.enhance", "equalize_clahe", 2.0, (4, 4))
add("kornia", "equalize_clahe", CLAHE, _picture, NHW, h=(32, 64), w=(32, 48))
add("kornia", "morphology", _function("kornia.morphology", "opening", torch.ones(3, 3)), _picture, NHW, **SIZES)
add(
    "kornia",
    "distance_transform",
    _function("kornia.contrib", "distance_transform"),
    lambda n: (torch.rand(n, 1, 16, 16) > 0.9).float(),
)
for each in ("HardNet", "TFeat"):
    make = functools.partial(lambda name: getattr(load("kornia.feature"), name)(False), each)
    add("kornia", each, make, _patches)
add("kornia", "SIFTDescriptor", lambda: load("kornia.feature").SIFTDescriptor(32), _patches)
add("kornia", "BlobHessian", lambda: load("kornia.feature").BlobHessian(), _scores(1), NHW, **SIZES)
