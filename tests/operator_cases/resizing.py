"""Resizing and sampling."""

import torch
from torch import nn
from torch.nn import functional as F

from operator_cases import naive
from operator_cases.case import Case


def image(*size: int):
    return lambda n: (torch.randn(n, *size),)


def growing(*size: int):
    """Every axis after the channels grows with the batch."""
    return lambda n: (torch.randn(n, size[0], *(s + n for s in size[1:])),)


def to(**kwargs):
    return lambda x: F.interpolate(x, **kwargs)


def like(**kwargs):
    return lambda x, y: F.interpolate(x, size=y.shape[2:], **kwargs)


def half(**kwargs):
    return lambda x: F.interpolate(x, size=(x.shape[2] // 2, x.shape[3] * 3 // 2), **kwargs)


def matrices(rows: int, *size: int):
    """Affine maps near the identity, and a picture."""
    return lambda n: (torch.eye(rows, rows + 1) + torch.randn(n, rows, rows + 1) / 5, torch.randn(n, *size))


def byte_image(n):
    return (torch.randint(0, 256, (n, 3, 5, 6), dtype=torch.uint8),)


def pair(n):
    return torch.randn(n, 3, 5, 4), torch.randn(n, 1, 6 + n, 3 + n)


def sampled(align_corners: bool, **kwargs):
    def call(theta, x):
        grid = F.affine_grid(theta, x.shape, align_corners=align_corners)
        return F.grid_sample(x, grid, align_corners=align_corners, **kwargs)

    return call


SMOOTH_2D = ("bilinear", "bicubic")
CASES = [
    Case(
        "grid_sample",
        "bilinear",
        lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        lambda n: (torch.randn(n, 3, 32, 48), torch.rand(n, 24, 40, 2) * 2.6 - 1.3),
        naive=naive.bilinear_by_corners,
    )
]
for mode in ("nearest", "nearest-exact"):
    CASES += [
        Case("interpolate", f"{mode}, 1-D", to(size=11, mode=mode), image(3, 7)),
        Case("interpolate", f"{mode}, 3-D", to(size=(3, 9, 5), mode=mode), image(2, 5, 4, 7)),
        Case("interpolate", f"{mode}, by 2", to(scale_factor=2, mode=mode), image(3, 5, 4)),
        Case("interpolate", f"{mode}, by 2, dynamic size", to(scale_factor=2, mode=mode), growing(3, 5, 4)),
        Case("interpolate", f"{mode}, by 1.7 and 0.6", to(scale_factor=(1.7, 0.6), mode=mode), image(3, 7, 10)),
        Case("interpolate", f"{mode}, by 0.3, dynamic size", to(scale_factor=0.3, mode=mode), growing(3, 9, 12)),
        Case("interpolate", f"{mode}, to 13x4", to(size=(13, 4), mode=mode), image(3, 7, 10)),
        Case("interpolate", f"{mode}, to 13x4, dynamic size", to(size=(13, 4), mode=mode), growing(3, 5, 8)),
        Case("interpolate", f"{mode}, like another", like(mode=mode), pair),
        Case("interpolate", f"{mode}, computed size", half(mode=mode), growing(3, 5, 8)),
        Case(
            "interpolate",
            f"{mode}, by 1.7, recomputed",
            to(scale_factor=1.7, mode=mode, recompute_scale_factor=True),
            growing(3, 5, 8),
        ),
    ]
for mode in SMOOTH_2D:
    for corners in (False, True):
        kind = f"{mode}, align_corners" if corners else mode
        kwargs = {"mode": mode, "align_corners": corners}
        CASES += [
            Case("interpolate", f"{kind}, by 2", to(scale_factor=2, **kwargs), image(3, 5, 4)),
            Case("interpolate", f"{kind}, by 2, dynamic size", to(scale_factor=2, **kwargs), growing(3, 5, 4)),
            Case("interpolate", f"{kind}, by 1.7 and 0.6", to(scale_factor=(1.7, 0.6), **kwargs), image(3, 7, 10)),
            Case("interpolate", f"{kind}, by 0.3, dynamic size", to(scale_factor=0.3, **kwargs), growing(3, 9, 12)),
            Case("interpolate", f"{kind}, to 13x4", to(size=(13, 4), **kwargs), image(3, 7, 10)),
            Case("interpolate", f"{kind}, to 1x1", to(size=(1, 1), **kwargs), image(3, 7, 10)),
            Case("interpolate", f"{kind}, to 1x5, dynamic size", to(size=(1, 5), **kwargs), growing(3, 5, 8)),
            Case("interpolate", f"{kind}, from 1x3", to(size=(4, 5), **kwargs), image(3, 1, 3)),
            Case("interpolate", f"{kind}, to 13x4, dynamic size", to(size=(13, 4), **kwargs), growing(3, 5, 8)),
            Case("interpolate", f"{kind}, like another", like(**kwargs), pair),
            Case("interpolate", f"{kind}, computed size", half(**kwargs), growing(3, 5, 8)),
            Case(
                "interpolate",
                f"{kind}, by 1.7, recomputed",
                to(scale_factor=1.7, recompute_scale_factor=True, **kwargs),
                growing(3, 5, 8),
            ),
        ]
        aa = {**kwargs, "antialias": True}
        CASES += [
            Case("interpolate", f"{kind}, antialias, to 3x4", to(size=(3, 4), **aa), image(3, 9, 11)),
            Case("interpolate", f"{kind}, antialias, to 12x4", to(size=(12, 4), **aa), image(3, 9, 11)),
            Case("interpolate", f"{kind}, antialias, by 0.45", to(scale_factor=0.45, **aa), image(3, 9, 11)),
            Case("interpolate", f"{kind}, antialias, dynamic size", to(size=(3, 4), **aa), growing(3, 9, 11)),
        ]
CASES += [
    Case("interpolate", "linear, to 11", to(size=11, mode="linear"), image(3, 7)),
    Case("interpolate", "linear, by 0.6", to(scale_factor=0.6, mode="linear"), growing(3, 7)),
    Case("interpolate", "linear, align_corners", to(size=4, mode="linear", align_corners=True), growing(3, 7)),
    Case("interpolate", "trilinear, to 3x9x5", to(size=(3, 9, 5), mode="trilinear"), image(2, 5, 4, 7)),
    Case("interpolate", "trilinear, by 1.5", to(scale_factor=1.5, mode="trilinear"), growing(2, 5, 4, 7)),
    Case(
        "interpolate",
        "trilinear, align_corners",
        to(size=(3, 9, 5), mode="trilinear", align_corners=True),
        growing(2, 5, 4, 7),
    ),
    *(
        Case(
            "interpolate",
            f"{mode}{', align_corners' if corners else ''}, by 1.7, recomputed",
            to(scale_factor=1.7, mode=mode, align_corners=corners, recompute_scale_factor=True),
            growing(*((2, 5, 4, 7) if mode == "trilinear" else (3, 7))),
        )
        for mode in ("linear", "trilinear")
        for corners in (False, True)
    ),
    Case("interpolate", "area, 1-D", to(size=3, mode="area"), image(3, 7)),
    Case("interpolate", "area, to 3x2", to(size=(3, 2), mode="area"), image(3, 7, 5)),
    Case("interpolate", "area, to 3x2, dividing", to(size=(3, 2), mode="area"), image(3, 6, 4)),
    Case("interpolate", "area, up", to(size=(5, 9), mode="area"), image(3, 3, 4)),
    Case("interpolate", "area, by 0.4", to(scale_factor=0.4, mode="area"), image(3, 9, 8)),
    Case("interpolate", "area, dynamic size", to(size=(3, 2), mode="area"), growing(3, 5, 4)),
    Case("interpolate", "area, by 0.4, dynamic size", to(scale_factor=0.4, mode="area"), growing(3, 9, 8)),
    Case("interpolate", "area, like another", like(mode="area"), pair),
    Case("interpolate", "area, 3-D", to(size=(2, 3, 4), mode="area"), image(2, 5, 4, 7)),
    Case("interpolate", "nearest, bytes", to(size=(7, 3)), byte_image),
    Case("interpolate", "bilinear, bytes", to(size=(7, 3), mode="bilinear"), byte_image, "not compute what the model"),
    Case(
        "interpolate",
        "bilinear, float64",
        lambda x: to(size=(7, 3), mode="bilinear")(x.double()),
        image(3, 5, 6),
        "not find an implementation for Resize",
    ),
    Case("interpolate", "unbatched by indexing", lambda x: F.interpolate(x[None], size=(7, 3))[0], image(5, 6)),
    Case("Upsample", "nearest, by 2", nn.Upsample(scale_factor=2), growing(3, 4, 5)),
    Case("Upsample", "bilinear, by 2 and 3", nn.Upsample(scale_factor=(2, 3), mode="bilinear"), growing(3, 4, 5)),
    Case("UpsamplingBilinear2d", "by 2", nn.UpsamplingBilinear2d(scale_factor=2), growing(3, 4, 5)),
    Case("UpsamplingNearest2d", "to 7x9", nn.UpsamplingNearest2d(size=(7, 9)), growing(3, 4, 5)),
]
for corners in (False, True):
    suffix = ", align_corners" if corners else ""
    CASES += [
        Case(
            "affine_grid",
            f"4-D{suffix}",
            lambda theta, x, c=corners: F.affine_grid(theta, x.shape, align_corners=c),
            matrices(2, 3, 5, 4),
        ),
        Case(
            "affine_grid",
            f"5-D{suffix}",
            lambda theta, x, c=corners: F.affine_grid(theta, x.shape, align_corners=c),
            matrices(3, 3, 5, 4, 3),
        ),
        Case(
            "affine_grid",
            f"4-D, dynamic size{suffix}",
            lambda theta, x, c=corners: F.affine_grid(theta, x.shape, align_corners=c),
            lambda n: matrices(2, 3, 4 + n, 3 + n)(n),
        ),
        Case(
            "affine_grid",
            f"5-D, dynamic size{suffix}",
            lambda theta, x, c=corners: F.affine_grid(theta, x.shape, align_corners=c),
            lambda n: matrices(3, 3, 4 + n, 3 + n, 2 + n)(n),
        ),
        Case(
            "affine_grid",
            f"one row{suffix}",
            lambda theta, x, c=corners: F.affine_grid(theta, x.shape, align_corners=c),
            matrices(2, 3, 1, 4),
        ),
        Case(
            "affine_grid",
            f"size in numbers{suffix}",
            lambda theta, x, c=corners: F.affine_grid(theta, (x.shape[0], 3, 6, 7), align_corners=c),
            matrices(2, 3, 5, 4),
        ),
        Case("affine_grid", f"with grid_sample{suffix}", sampled(corners), matrices(2, 3, 5, 4)),
        Case(
            "affine_grid",
            f"with grid_sample, dynamic size{suffix}",
            sampled(corners, padding_mode="border"),
            lambda n: matrices(2, 3, 4 + n, 3 + n)(n),
        ),
        Case("affine_grid", f"with grid_sample, 5-D{suffix}", sampled(corners), matrices(3, 2, 3, 5, 4)),
    ]
CASES += [
    Case("interpolate", "nearest-exact, by 0.5", to(scale_factor=0.5, mode="nearest-exact"), image(3, 8, 10)),
    Case("interpolate", "nearest-exact, to 5x2", to(size=(5, 2), mode="nearest-exact"), image(3, 10, 6)),
]
