"""Preprocessing that a model lacks, put before it: `preprocess=Normalize(...)`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat.errors import ArgumentError, unknown_name
from torch_onnx_compat.tracing import constant

LAYOUTS = ("NCHW", "NHWC", "HWC")
FITS = ("stretch", "letterbox")


@dataclass(frozen=True)
class Normalize:
    """Preprocessing that the file does before the network: layout, channel order, size, type, mean and deviation.

    The example is then an input of the file, e.g. a uint8 picture (1, 480, 640, 3), 0..255, for ``layout="NHWC"``.

    Args:
        mean: Mean of each channel, or of all, in the units of the picture times `scale`.
        std: Standard deviation of each channel, or of all, in the same units.
        scale: Factor before mean and deviation are applied, e.g. 1 / 255.
        layout: Layout of the file's input.
        bgr: Whether the order of the channels is reversed before the network.
        size: Height and width of the network's input, in pixels; None leaves the size.
        fit: How the picture gets that size: ``"stretch"``, or ``"letterbox"``, which keeps the proportions and fills
            the borders; a letterbox needs a picture of fixed size.
        fill: Value of the borders, in the units of the picture.
        input: The argument of forward; the first by default.
    """

    mean: float | Sequence[float] = 0.0
    std: float | Sequence[float] = 1.0
    scale: float = 1.0
    layout: Literal["NCHW", "NHWC", "HWC"] = "NCHW"
    bgr: bool = False
    size: tuple[int, int] | None = None
    fit: Literal["stretch", "letterbox"] = "stretch"
    fill: float = 114.0
    input: str | None = None

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise unknown_name("layout of Normalize", str(self.layout), LAYOUTS)
        if self.fit not in FITS:
            raise unknown_name("fit of Normalize", str(self.fit), FITS)
        self._check_numbers()

    def _check_numbers(self) -> None:
        for name in ("mean", "std"):
            if not _are_numbers(getattr(self, name)):
                value = getattr(self, name)
                raise ArgumentError(f"Normalize({name}={value!r}): wanted a number, or one for a channel.")
        for name in ("scale", "fill"):
            if not _are_numbers([getattr(self, name)]):
                raise ArgumentError(f"Normalize({name}={getattr(self, name)!r}): wanted a number.")
        if 0 in (self.std if isinstance(self.std, Iterable) else [self.std]):
            raise ArgumentError(
                f"Normalize(std={self.std!r}): wanted numbers other than 0, as pictures are divided by it."
            )
        if self.size is not None and not _is_size(self.size):
            raise ArgumentError(f"Normalize(size={self.size!r}): wanted height and width from 1, such as (480, 640).")

    def apply(self, picture: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Preprocesses a picture; returns (N, C, H, W).

        Args:
            picture: In the layout of this Normalize.
            dtype: The network's floating-point type, for pictures of integers; other pictures keep their type.

        Raises:
            CompatError: The picture has another rank.
        """
        if picture.dim() != len(self.layout):
            raise ArgumentError(
                f"preprocess: the example has the shape {tuple(picture.shape)}; Normalize(layout={self.layout!r}) "
                f"takes a picture {tuple(self.layout)}."
            )
        if self.layout != "NCHW":
            picture = picture.unsqueeze(0) if self.layout == "HWC" else picture
            picture = picture.permute(0, 3, 1, 2)
        if not picture.is_floating_point():
            picture = picture.to(dtype)
        if self.bgr:
            picture = picture.flip(1)
        if self.size is not None:
            picture = self._resize(picture, self.size)
        mean, std = (_by_channel(numbers, picture) for numbers in (self.mean, self.std))
        return (picture * self.scale - mean) / std

    def _resize(self, picture: Tensor, size: tuple[int, int]) -> Tensor:
        if self.fit == "stretch":
            return functional.interpolate(picture, size, mode="bilinear", align_corners=False)
        height, width = picture.shape[-2:]
        factor = min(size[0] / height, size[1] / width)
        inner = (round(height * factor), round(width * factor))
        picture = functional.interpolate(picture, inner, mode="bilinear", align_corners=False)
        rest = (size[0] - inner[0], size[1] - inner[1])
        top, left = rest[0] // 2, rest[1] // 2
        return functional.pad(picture, (left, rest[1] - left, top, rest[0] - top), value=self.fill)


def _are_numbers(value: Any) -> bool:
    try:
        numbers = [float(number) for number in (value if isinstance(value, Iterable) else [value])]
    except (TypeError, ValueError):
        return False
    return bool(numbers) and all(map(math.isfinite, numbers))


def _is_size(value: Any) -> bool:
    sizes = tuple(value) if isinstance(value, Iterable) else ()
    return len(sizes) == 2 and all(isinstance(size, Integral) and int(size) >= 1 for size in sizes)


def _by_channel(numbers: float | Sequence[float], picture: Tensor) -> Tensor:
    table = [numbers] if isinstance(numbers, (int, float)) else list(numbers)
    if len(table) not in (1, picture.shape[1]):
        raise ArgumentError(
            f"preprocess: {len(table)} numbers were given for a picture with {picture.shape[1]} channels."
        )
    return constant([[[[number]] for number in table]], like=picture)
