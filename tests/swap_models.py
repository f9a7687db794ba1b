"""Small models around the modules that rewrites replace, each with the sizes at which its file has to be right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

IMAGE = {0: "batch", 2: "height", 3: "width"}
BATCH = {0: "batch"}
OTHERS = ((1, 4, 16, 12), (3, 4, 24, 28), (2, 4, 13, 17))


@dataclass(frozen=True)
class Case:
    """One model of one input `x`.

    Args:
        name: For tables.
        build: Makes the model.
        size: Of the example.
        axes: The dynamic axes and their names.
        others: Further sizes.
    """

    name: str
    build: Callable[[], nn.Module]
    size: tuple[int, ...]
    axes: Mapping[int, str] = field(default_factory=lambda: BATCH)
    others: tuple[tuple[int, ...], ...] = ()

    def model(self) -> nn.Module:
        """The model, the same each time."""
        torch.manual_seed(0)
        return self.build().eval()

    def example(self) -> Tensor:
        """The input to export with."""
        torch.manual_seed(1)
        return torch.randn(self.size)

    def sizes(self) -> list[tuple[int, ...]]:
        """The example's size, and others."""
        return [self.size, *((batch, *self.size[1:]) for batch in (1, 5)), *self.others]

    @torch.no_grad()
    def wanted(self, x: Tensor) -> Tensor:
        """What eager torch gives."""
        result: Tensor = self.model()(x.clone())
        return result


class Call(nn.Module):
    """A function of one tensor as a module."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def cases() -> Iterator[Case]:
    """All cases."""
    for name, build in {**POOLS_2D, **NORMS_2D, **ACTIVATIONS, **LAYERS_2D}.items():
        yield Case(name, build, (2, 4, 12, 16), IMAGE, OTHERS)
    for name, build in RESIZES.items():
        yield Case(name, build, (2, 4, 12, 16), IMAGE, (*OTHERS, (1, 4, 77, 37), (1, 4, 46, 71)))
    for name, build in PLAIN_1D.items():
        yield Case(name, build, (2, 4, 12), {0: "batch", 2: "length"}, ((1, 4, 15), (3, 4, 24)))
    for name, build in PLAIN_3D.items():
        others = ((1, 4, 7, 9, 8), (3, 4, 12, 6, 10))
        yield Case(name, build, (2, 4, 6, 8, 8), {0: "batch", 2: "depth", 3: "height", 4: "width"}, others)
    for name, build in ROWS.items():
        yield Case(name, build, (2, 6, 8), {0: "batch", 1: "tokens"}, ((1, 9, 8), (3, 4, 8)))
    yield Case("PReLU of (N, C)", lambda: sloped(8), (2, 8))
    yield Case("timm RepVGG block", repvgg, (2, 8, 12, 16), IMAGE, ((3, 8, 24, 28),))
    for name, build in WINDOWS.items():
        yield Case(name, build, (2, 4, 12, 16), IMAGE, OTHERS)


def sloped(count: int) -> nn.Module:
    layer = nn.PReLU(count)
    nn.init.uniform_(layer.weight, -0.5, 0.5)
    return layer


def used(layer: nn.Module) -> nn.Module:
    """Gives running statistics and affine parameters values that show."""
    for tensor in (*layer.parameters(), *layer.buffers()):
        if tensor.is_floating_point():
            nn.init.uniform_(tensor, 0.5, 1.5)
    return layer


def repvgg() -> nn.Module:
    from timm.models.byobnet import RepVggBlock

    return used(RepVggBlock(8, 8))


def drop_path() -> nn.Module:
    from timm.layers import DropPath

    return nn.Sequential(nn.Conv2d(4, 4, 1), DropPath(0.5))


def mean_over(size: int | tuple[int | None, ...] | None) -> Callable[[], nn.Module]:
    return lambda: nn.AdaptiveAvgPool2d(size)  # type: ignore[arg-type]


POOLS_2D: dict[str, Callable[[], nn.Module]] = {
    "AdaptiveAvgPool2d(1)": mean_over(1),
    "AdaptiveAvgPool2d((3, 5))": mean_over((3, 5)),
    "AdaptiveAvgPool2d((None, 7))": mean_over((None, 7)),
    "AdaptiveMaxPool2d(1)": lambda: nn.AdaptiveMaxPool2d(1),
    "AdaptiveMaxPool2d((3, 5))": lambda: nn.AdaptiveMaxPool2d((3, 5)),
    "AvgPool2d, ceil_mode": lambda: nn.AvgPool2d(3, 2, ceil_mode=True),
    "AvgPool2d, ceil_mode, padding": lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True),
    "AvgPool2d, ceil_mode, padding not counted": lambda: nn.AvgPool2d(3, 2, 1, True, False),
    "AvgPool2d, padding not counted": lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False),
    "AvgPool2d, divisor_override": lambda: nn.AvgPool2d(3, 2, 1, divisor_override=5),
    "MaxPool2d, ceil_mode": lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True),
    "LPPool2d": lambda: nn.LPPool2d(2, 3, 2),
}

NORMS_2D: dict[str, Callable[[], nn.Module]] = {
    "InstanceNorm2d": lambda: nn.InstanceNorm2d(4),
    "InstanceNorm2d, affine, eps": lambda: used(nn.InstanceNorm2d(4, eps=1e-2, affine=True)),
    "InstanceNorm2d, running statistics": lambda: used(nn.InstanceNorm2d(4, track_running_stats=True)),
    "GroupNorm": lambda: used(nn.GroupNorm(2, 4)),
    "GroupNorm, not affine": lambda: nn.GroupNorm(4, 4, affine=False),
    "BatchNorm2d": lambda: used(nn.BatchNorm2d(4)),
    "BatchNorm2d without running statistics": lambda: used(nn.BatchNorm2d(4, track_running_stats=False)),
    "BatchNorm2d, not affine": lambda: nn.BatchNorm2d(4, affine=False),
    "LocalResponseNorm": lambda: nn.LocalResponseNorm(3),
}

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "PReLU, one slope": lambda: sloped(1),
    "PReLU, a slope for each channel": lambda: sloped(4),
    "Hardswish": nn.Hardswish,
    "Hardsigmoid": nn.Hardsigmoid,
    "Mish": nn.Mish,
    "SiLU": nn.SiLU,
    "GELU": nn.GELU,
    "GELU, tanh": lambda: nn.GELU("tanh"),
    "ReLU6": nn.ReLU6,
    "GLU": lambda: nn.GLU(1),
}


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.layer, self.reentrant = nn.Conv2d(4, 4, 1), reentrant

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = checkpoint(self.layer, x, use_reentrant=self.reentrant)
        return result


class ToSizeOf(nn.Module):
    """Up again to the size from before a stride."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(4, 4, 3, 2, 1), nn.ConvTranspose2d(4, 4, 3, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.up(self.down(x), output_size=x.shape[-2:])
        return result


LAYERS_2D: dict[str, Callable[[], nn.Module]] = {
    "Conv2d, BatchNorm2d": lambda: nn.Sequential(nn.Conv2d(4, 4, 3), used(nn.BatchNorm2d(4))),
    "ConvTranspose2d, BatchNorm2d": lambda: nn.Sequential(nn.ConvTranspose2d(4, 4, 3, 2), used(nn.BatchNorm2d(4))),
    "ConvTranspose2d, output_padding": lambda: nn.ConvTranspose2d(4, 4, 3, 2, 1, output_padding=1),
    "ConvTranspose2d, output_size": ToSizeOf,
    "ConvTranspose2d, groups, dilation": lambda: nn.ConvTranspose2d(4, 4, 3, 2, 1, 1, groups=2, dilation=2),
    "Conv2d, padding same": lambda: nn.Conv2d(4, 4, 3, padding="same"),
    "Conv2d, reflected padding": lambda: nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"),
    "Conv2d, circular padding": lambda: nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"),
    "PixelShuffle": lambda: nn.PixelShuffle(2),
    "PixelUnshuffle of even sizes": lambda: Call(
        lambda x: functional.pixel_unshuffle(functional.pixel_shuffle(x, 2), 2)
    ),
    "ChannelShuffle": lambda: nn.ChannelShuffle(2),
    "Dropout": lambda: nn.Sequential(nn.Conv2d(4, 4, 1), nn.Dropout(0.5)),
    "Dropout2d": lambda: nn.Sequential(nn.Conv2d(4, 4, 1), nn.Dropout2d(0.5)),
    "timm DropPath": drop_path,
    "checkpoint": lambda: Checkpointed(False),
    "checkpoint, reentrant": lambda: Checkpointed(True),
    "Softmax2d": nn.Softmax2d,
    "Unfold": lambda: nn.Unfold(3, padding=1),
}


def at_size(mode: str, scales: Callable[[Tensor], object], **more: bool | None) -> Callable[[], nn.Module]:
    """interpolate by scales that are computed from the sizes of x."""
    corners = {} if mode == "nearest" or "align_corners" in more else {"align_corners": False}

    def resize(x: Tensor) -> Tensor:
        return functional.interpolate(x, scale_factor=scales(x), mode=mode, **corners, **more)  # type: ignore[arg-type]

    return lambda: Call(resize)


def by_ratio(x: Tensor) -> tuple[float, float]:
    return 20 / x.shape[2], 10 / x.shape[3]


def by_odd_ratio(x: Tensor) -> tuple[float, float]:
    """Scales that no size is a multiple of."""
    return (1.5 * x.shape[2] + 0.7) / x.shape[2], (2 * x.shape[3] - 0.3) / x.shape[3]


def by_shorter_side(x: Tensor) -> float:
    """As detectors do."""
    return 24 / min(x.shape[-2:])


class Positions(nn.Module):
    """Adds a table of positions (1, C, 7, 7), resized to the image as ViTs do."""

    def __init__(self, mode: str, by_scale: bool, antialias: bool = False) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, 4, 7, 7))
        self.mode, self.by_scale, self.antialias = mode, by_scale, antialias

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        how: dict[str, object] = {"size": (height, width)}
        if self.by_scale:
            how = {"scale_factor": ((height + 0.1) / 7, (width + 0.1) / 7)}
        table = functional.interpolate(self.table, mode=self.mode, antialias=self.antialias, align_corners=False, **how)  # type: ignore[arg-type]
        return x + table


RESIZES: dict[str, Callable[[], nn.Module]] = {
    "Upsample, nearest, 2": lambda: nn.Upsample(scale_factor=2),
    "Upsample, bilinear, 1.5": lambda: nn.Upsample(scale_factor=1.5, mode="bilinear"),
    "Upsample, bicubic, 0.7, recomputed": lambda: nn.Upsample(
        scale_factor=0.7, mode="bicubic", recompute_scale_factor=True
    ),
    "Upsample, bilinear, corners": lambda: nn.Upsample((9, 14), mode="bilinear", align_corners=True),
    **{
        f"interpolate, {mode}, scale {name}{', recomputed' if recompute else ''}": at_size(
            mode, scales, recompute_scale_factor=recompute
        )
        for mode in ("nearest", "bilinear", "bicubic")
        for name, scales in (
            ("20 / H, 10 / W", by_ratio),
            ("(1.5 H + 0.7) / H", by_odd_ratio),
            ("24 / min(H, W)", by_shorter_side),
        )
        for recompute in (None, True)
    },
    "interpolate, bilinear, corners, scale (1.5 H + 0.7) / H": at_size("bilinear", by_odd_ratio, align_corners=True),
    "interpolate to half the size": lambda: Call(
        lambda x: functional.interpolate(x, (x.shape[2] // 2, x.shape[3] // 2), mode="bilinear")
    ),
    "positions, bicubic, by size": lambda: Positions("bicubic", False),
    "positions, bicubic, by scale": lambda: Positions("bicubic", True),
    "positions, bicubic, antialiased": lambda: Positions("bicubic", False, antialias=True),
}


def partition(x: Tensor, size: int) -> Tensor:
    batch, height, width, channels = x.shape
    x = x.view(batch, height // size, size, width // size, size, channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size, channels)


def window_reverse(windows: Tensor, window_size: int, H: int, W: int) -> Tensor:
    batch = int(windows.shape[0] / (H * W / window_size / window_size))
    x = windows.view(batch, H // window_size, W // window_size, window_size, window_size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(batch, H, W, -1)


class Windows(nn.Module):
    """A block of Swin: padded, shifted windows of 4, with a mask and a relative-position bias."""

    def __init__(self, shift: int = 2, padded: bool = True, conditional: bool = False) -> None:
        super().__init__()
        self.shift, self.padded, self.conditional = shift, padded, conditional
        self.bias = nn.Parameter(torch.randn(7 * 7, 2))
        y, x = (grid.flatten() for grid in torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij"))
        self.register_buffer("index", (y[:, None] - y + 3) * 7 + x[:, None] - x + 3)
        self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 4)

    def mask(self, height: int, width: int, like: Tensor) -> Tensor:
        regions, number = torch.zeros((1, height, width, 1), device=like.device), 0
        for rows in (slice(0, -4), slice(-4, -self.shift), slice(-self.shift, None)):
            for columns in (slice(0, -4), slice(-4, -self.shift), slice(-self.shift, None)):
                regions[:, rows, columns, :] = number
                number += 1
        windows = partition(regions, 4).squeeze(-1)
        return (windows[:, None] != windows[:, :, None]).to(like.dtype) * -100

    def pad(self, x: Tensor) -> Tensor:
        down, right = (4 - x.shape[1] % 4) % 4, (4 - x.shape[2] % 4) % 4
        if self.conditional and down == 0 and right == 0:
            return x
        return functional.pad(x, (0, 0, 0, right, 0, down))

    def forward(self, x: Tensor) -> Tensor:
        x = x.permute(0, 2, 3, 1)
        _, height, width, _ = x.shape
        y = self.pad(x)
        _, rows, columns, _ = y.shape
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        windows = partition(y, 4)
        q, k, v = self.qkv(windows).reshape(windows.shape[0], 16, 3, 2, 2).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) + self.bias[self.index.flatten()].reshape(16, 16, 2).permute(2, 0, 1)
        if self.shift:
            mask = self.mask(rows, columns, x)
            scores = scores.view(x.shape[0], mask.shape[0], 2, 16, 16) + mask[None, :, None]
            scores = scores.view(-1, 2, 16, 16)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, 16, 4)
        y = window_reverse(self.out(y).view(-1, 4, 4, 4), 4, rows, columns)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        return y[:, :height, :width].permute(0, 3, 1, 2)


class RelativeBias(nn.Module):
    """Attention over all pixels, with a bias by relative position whose table is resized to the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, 1, 13, 13))

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        table = functional.interpolate(self.table, (2 * height - 1, 2 * width - 1), mode="bilinear")[0, 0]
        rows, columns = torch.arange(height, device=x.device), torch.arange(width, device=x.device)
        down = rows[:, None] - rows + height - 1
        right = columns[:, None] - columns + width - 1
        bias = table[down[:, None, :, None], right[None, :, None, :]].reshape(height * width, height * width)
        pixels = x.flatten(2).transpose(1, 2)
        scores = (pixels @ pixels.transpose(1, 2) + bias).softmax(-1)
        return (scores @ pixels).transpose(1, 2).reshape(batch, channels, height, width)


WINDOWS: dict[str, Callable[[], nn.Module]] = {
    "Swin windows": lambda: Windows(0),
    "Swin windows, shifted, mask": lambda: Windows(2),
    "Swin windows, shifted, padded by a decision": lambda: Windows(2, conditional=True),
    "relative-position bias, resized": RelativeBias,
}

PLAIN_1D: dict[str, Callable[[], nn.Module]] = {
    "AdaptiveAvgPool1d(5)": lambda: nn.AdaptiveAvgPool1d(5),
    "AdaptiveMaxPool1d(5)": lambda: nn.AdaptiveMaxPool1d(5),
    "AvgPool1d, ceil_mode, padding": lambda: nn.AvgPool1d(3, 2, 1, ceil_mode=True),
    "InstanceNorm1d, affine": lambda: used(nn.InstanceNorm1d(4, affine=True)),
    "BatchNorm1d": lambda: used(nn.BatchNorm1d(4)),
    "GroupNorm of (N, C, L)": lambda: used(nn.GroupNorm(2, 4)),
    "ConvTranspose1d, output_padding": lambda: nn.ConvTranspose1d(4, 4, 3, 2, 1, output_padding=1),
    "Upsample, linear, 1.5": lambda: nn.Upsample(scale_factor=1.5, mode="linear"),
}

PLAIN_3D: dict[str, Callable[[], nn.Module]] = {
    "AdaptiveAvgPool3d((2, 3, 5))": lambda: nn.AdaptiveAvgPool3d((2, 3, 5)),
    "AdaptiveMaxPool3d((2, 3, 5))": lambda: nn.AdaptiveMaxPool3d((2, 3, 5)),
    "AvgPool3d, ceil_mode, padding": lambda: nn.AvgPool3d(3, 2, 1, ceil_mode=True),
    "MaxPool3d, ceil_mode": lambda: nn.MaxPool3d(3, 2, 1, ceil_mode=True),
    "InstanceNorm3d": lambda: nn.InstanceNorm3d(4),
    "BatchNorm3d without running statistics": lambda: used(nn.BatchNorm3d(4, track_running_stats=False)),
    "ConvTranspose3d, output_padding": lambda: nn.ConvTranspose3d(4, 4, 3, 2, 1, output_padding=1),
    "Upsample, trilinear, 1.5": lambda: nn.Upsample(scale_factor=1.5, mode="trilinear"),
}

ROWS: dict[str, Callable[[], nn.Module]] = {
    "LayerNorm": lambda: used(nn.LayerNorm(8)),
    "LayerNorm, no bias": lambda: used(nn.LayerNorm(8, bias=False)),
    "LayerNorm, not affine": lambda: nn.LayerNorm(8, elementwise_affine=False),
    "RMSNorm": lambda: used(nn.RMSNorm(8)),
    "RMSNorm, eps, not affine": lambda: nn.RMSNorm(8, eps=1e-3, elementwise_affine=False),
    "MultiheadAttention": lambda: SelfAttention(),
    "AlphaDropout": lambda: nn.Sequential(nn.Linear(8, 8), nn.AlphaDropout(0.5)),
}


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return result
