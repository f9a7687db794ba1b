"""Programs whose operators are given sizes: pads, resizes, pools, windows, strides, orders, steps, layouts, cells."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=2 3 height=20 width=26")
class PadModesBySize(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        ph, pw = -h % 8, -w % 8
        return F.pad(x, (0, pw, 0, ph), value=float(h)), F.pad(x, (pw, 0, ph, 0), mode="circular")


@program(x="float batch=2 3 height=20 width=26")
class NegativePads(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        return F.pad(x, (16 - w, 0, (16 - h) // 2, 16 - h - (16 - h) // 2))


@program(x="float batch=2 3 height=20 width=26")
class CentreCropOrPad(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        top, left = max(0, (h - 16) // 2), max(0, (w - 16) // 2)
        x = x[..., top : top + 16, left : left + 16]
        dh, dw = 16 - x.shape[-2], 16 - x.shape[-1]
        return F.pad(x, (dw // 2, dw - dw // 2, dh // 2, dh - dh // 2))


@program({}, {"height": (1, 70), "width": (1, 70)}, x="float batch=2 3 height=20 width=26")
class ResizeByFactor(nn.Module):
    def forward(self, x):
        a = F.interpolate(x, scale_factor=1.3, mode="bilinear", align_corners=False)
        b = F.interpolate(x, scale_factor=(0.5, 0.75), mode="nearest")
        c = F.interpolate(x, scale_factor=0.7, mode="bicubic", recompute_scale_factor=True)
        return a, b, c


@program({}, {"height": (1, 70), "width": (1, 70)}, x="float batch=2 3 height=20 width=26")
class ResizeToOther(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        a = F.interpolate(x, size=(w, h), mode="bilinear", align_corners=True)
        b = F.interpolate(x, size=(h // 2 + 1, 2 * w - 1), mode="nearest-exact")
        c = F.interpolate(x, size=(max(h, w),) * 2, mode="area")
        return a, b, c


@program({}, {"height": (1, 70), "width": (1, 70)}, x="float batch=2 3 height=20 width=26")
class ResizeToRoot(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        factor = math.sqrt(200 / (h * w))
        size = (max(1, round(h * factor)), max(1, round(w * factor)))
        return F.interpolate(x, size, mode="bilinear", align_corners=False)


@program(x="float batch=2 3 height=20 width=26")
class PoolToPart(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        return F.adaptive_avg_pool2d(x, (h // 2, w // 3 + 1)), F.adaptive_max_pool2d(x, (4, w))


@program(x="float batch=2 3 height=20 width=26")
class PoolPyramid(nn.Module):
    def forward(self, x):
        parts = [F.adaptive_max_pool2d(x, n).flatten(1) for n in (1, 2, 3, 6)]
        return torch.cat(parts, 1)


@program(x="float batch=2 3 height=20 width=26")
class PoolsByHand(nn.Module):
    """Spatial pyramid pooling, its kernels computed from the sizes."""

    def forward(self, x):
        h, w = x.shape[-2:]
        parts = []
        for n in (1, 2, 4):
            kh, kw = math.ceil(h / n), math.ceil(w / n)
            pad = ((kh * n - h + 1) // 2, (kw * n - w + 1) // 2)
            parts.append(F.max_pool2d(x, (kh, kw), (kh, kw), pad).flatten(1))
        return torch.cat(parts, 1)


@program(x="float batch=2 length=12 6")
class LinspaceBySizes(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        ramp = torch.linspace(0, n - 1, n // 2 + 1).round().long()
        return x[:, ramp], x * torch.linspace(-1, 1, n)[:, None], torch.logspace(0, 1, n)


@program(x="float batch=2 length=12 6")
class ArangeBySizes(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        a, b, c = torch.arange(n, 0, -2), torch.arange(-n, n, 3), torch.arange(0, n, max(1, n // 4))
        return x[:, a - 1], b * 2, x[:, c], torch.arange(0.5, n)


@program(x="float batch=2 length=12 6")
class UniformSamples(nn.Module):
    """Eight frames of a video, evenly spread."""

    def forward(self, x):
        n = x.shape[1]
        places = (torch.arange(8) * n / 8 + n / 16).floor().long().clamp(0, n - 1)
        exact = torch.tensor([int(i * n / 8 + n / 16) for i in range(8)])
        return x[:, places], x[:, exact]


@program(x="float batch=2 length=12 6")
class StridedWindows(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        x = x.contiguous()
        windows = x.as_strided((x.shape[0], n - 3, 4, 6), (n * 6, 6, 6, 1))
        return windows.mean(2)


@program(x="float batch=2 length=12 6")
class StridesAsked(nn.Module):
    def forward(self, x):
        b, n, c = x.shape
        s0, s1, s2 = x.stride()
        return x.as_strided((b, n // 2, c), (s0, 2 * s1, s2)), x.T.stride()[0] + x[:, ::2].stride(1)


@program(x="float batch=2 length=12 6")
class DiagonalBand(nn.Module):
    """A band about the diagonal by a view whose rows are one longer."""

    def forward(self, x):
        n = x.shape[1]
        scores = x @ x.mT
        padded = F.pad(scores, (0, 1)).reshape(x.shape[0], -1)[:, : n * n]
        return padded.view(x.shape[0], n, n)


@program(x="float batch=2 length=12 6")
class RelativeShiftByView(nn.Module):
    def forward(self, x):
        b, n, c = x.shape
        scores = F.pad(x, (1, 0))
        return scores.view(b, c + 1, n)[:, 1:].view(b, n, c)


@program(x="float batch=2 length=12 6")
class UnfoldBySize(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        size = max(1, n // 3)
        return x.unfold(1, size, size).amax(-1)


@program(x="float batch=2 length=12 6")
class UnfoldSteps(nn.Module):
    def forward(self, x):
        y = x.unfold(1, 4, 3)
        return y.mean(-1), y.shape[1] * x, x.unfold(-1, 2, 2)


@program(x="float batch=1 4 height=12 width=15")
class PatchesAndBack(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        patches = F.unfold(F.pad(x, (1, 1, 1, 1), mode="reflect"), 3, stride=2)
        side = (h + 2 - 3) // 2 + 1
        return patches.view(x.shape[0], 4, 9, side, -1).amax(2), F.fold(F.unfold(x, 3, padding=1), (h, w), 3, padding=1)


@program(x="float batch=1 4 height=12 width=15")
class TiledByPad(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        grid = x.unfold(2, 5, 5).unfold(3, 5, 5)
        return grid.mean((-1, -2)), x[..., : h // 5 * 5, : w // 5 * 5].sum((-1, -2))


@program(x="float batch=2 length=12")
class TopHalf(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        first = x.topk(max(1, n // 2), 1).values
        return first, x.sort(1, descending=True).values[:, : (n + 1) // 2], x.kthvalue((n + 1) // 2, 1).values


@program(x="float batch=2 length=12")
class TopKAtMost(nn.Module):
    def forward(self, x):
        k = min(10, x.shape[1])
        return x.topk(k).values, x.topk(min(x.shape[1], 300), largest=False).values


@program(x="float batch=2 length=12")
class QuantileBySize(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        place = 0.9 * (n - 1)
        low, high = math.floor(place), math.ceil(place)
        s = x.sort(1).values
        return s[:, low] + (s[:, high] - s[:, low]) * (place - low), x.quantile(0.9, 1)


@program(x="float batch=2 length=12 6")
class SplitByRatio(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        first = n * 3 // 4
        a, b = x.split([first, n - first], 1)
        c, d = torch.tensor_split(x, [n // 3], 1)
        return a.sum(1) - b.sum(1), c.sum(1), d.amax(1)


@program(x="float batch=2 length=12 6")
class HalvesRotated(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, 1)
        return torch.cat([-b, a], 1)


@program(x="float batch=2 length=12 6")
class FoldHalves(nn.Module):
    def forward(self, x):
        half = x.shape[1] // 2
        return x[:, :half] + x[:, -half:].flip(1) if half else x


@program(x="float batch=2 length=12 6")
class Unflattened(nn.Module):
    def forward(self, x):
        return x.unflatten(-1, (2, -1)).flatten(0, 1), x.unflatten(1, (-1, 2 if x.shape[1] % 2 == 0 else 1))


@program(x="float batch=2 length=12 6")
class SqueezesOfMany(nn.Module):
    def forward(self, x):
        y = x.mean(-1, keepdim=True)
        return y.squeeze(-1), x.squeeze(0), y.squeeze((1, 2))


@program(x="float batch=2 length=12 6")
class BroadcastWithOne(nn.Module):
    def forward(self, x):
        rows = x.mean(1, keepdim=True).expand_as(x)
        return rows * 2, torch.broadcast_to(x[:, :1], x.shape) * x, x[:, :1].repeat(1, x.shape[1], 1)


@program(x="float batch=2 length=12 6")
class MaskByWhere(nn.Module):
    def forward(self, x):
        rows, places = torch.where(x.sum(-1) > 0)
        return x[rows, places], rows * x.shape[1] + places, torch.argwhere(x[0] > 1)


@program(x="float batch=2 length=12 6")
class TriangleBySize(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        r, c = torch.triu_indices(n, n, 1)
        return (x[:, r] * x[:, c]).sum(-1), torch.ones(n, n + 2).tril(n // 3)


@program(x="float batch=2 length=12 6")
class PairsBySize(nn.Module):
    def forward(self, x):
        pairs = torch.combinations(torch.arange(x.shape[1]), 2)
        return x[:, pairs].prod(2).sum(1)


@program(x="float batch=2 length=12 6")
class BlockDiagonal(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        block = torch.arange(n) // 4
        mask = block[:, None] == block[None]
        return (x @ x.mT).masked_fill(~mask, float("-inf")).softmax(-1) @ x


@program(x="float batch=2 length=12 6")
class DilatedMask(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        d = torch.arange(n)[:, None] - torch.arange(n)
        mask = (d >= 0) & (d < 5) & (d % 2 == 0)
        return x.mT @ mask.float() / mask.sum(0)


@program(x="float batch=2 length=12 6")
class Sinusoids(nn.Module):
    def forward(self, x):
        n, c = x.shape[1:]
        angle = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, c, 2) / c)
        table = torch.zeros(n, c)
        table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
        return x + table


@program(x="float batch=2 length=12 6")
class HannOfSize(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return x * torch.hann_window(n)[:, None] + torch.hamming_window(n, periodic=False)[:, None]


@program(x="float batch=2 length=12 6")
class EyeOfSize(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return torch.eye(n, n + 1) @ torch.ones(n + 1, 6) + x, torch.full((n // 2, 3), float(n)), x.new_empty(n, 0)


@program(x="float batch=2 4 length=32")
class TransposedBack(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv1d(4, 4, 5, 3, 1), nn.ConvTranspose1d(4, 4, 5, 3, 1)

    def forward(self, x):
        return self.up(self.down(x), output_size=x.shape[-1:])


@program(x="float batch=2 4 length=32")
class KernelFromInput(nn.Module):
    """Correlates each row with its own first part."""

    def forward(self, x):
        b, c, n = x.shape
        kernel = x[..., :5].reshape(b * c, 1, 5)
        return F.conv1d(x.reshape(1, b * c, n), kernel, padding=2, groups=b * c).view(b, c, -1)


@program(x="float batch=2 4 length=32")
class KernelAsLong(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(4, 1, 64))

    def forward(self, x):
        n = x.shape[-1]
        return F.conv1d(F.pad(x, (n - 1, 0)), self.filter[..., :n], groups=4)


@program(x="float batch=2 4 length=32")
class FourierConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(4, 16))

    def forward(self, x):
        n = x.shape[-1]
        spectrum = torch.fft.rfft(x, 2 * n) * torch.fft.rfft(self.filter, 2 * n)
        return torch.fft.irfft(spectrum, 2 * n)[..., :n]


@program(x="float batch=2 4 length=32")
class GroupsOfSteps(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        groups = torch.arange(n) * 4 // n
        return torch.zeros(x.shape[0], 4, 4).index_add(2, groups, x) / torch.bincount(groups, minlength=4)


@program({}, {"height": (1, 70), "width": (1, 70)}, x="float batch=2 3 height=20 width=26")
class GridOfSizes(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        ys, xs = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
        grid = torch.stack([xs / w * 2 - 1, ys / h * 2 - 1], -1).expand(x.shape[0], -1, -1, -1)
        return F.grid_sample(x, grid * 0.9, align_corners=False), xs.flatten() * 2


@program(x="float batch=2 3 height=20 width=26")
class IntegerGrid(nn.Module):
    """Nearest neighbours by hand, in whole numbers and in floats."""

    def forward(self, x):
        h, w = x.shape[-2:]
        rows, columns = torch.arange(16) * h // 16, (torch.arange(16) * (w / 16)).long()
        return x[:, :, rows][..., columns]


@program(x="float batch=2 3 height=20 width=26")
class Checkerboard(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        board = (torch.arange(h)[:, None] + torch.arange(w)) % 2 == 0
        y = x.clone()
        y[..., board] = 0
        y[:, :, ::2, 1::2] += 1
        return y


@program(x="float batch=2 3 height=20 width=26")
class FocusSlices(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        x = x[..., : h - h % 2, : w - w % 2]
        return torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)


@program(x="float batch=2 3 height=20 width=26")
class BorderReplaced(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[..., 0, :] = y[..., 1, :] if x.shape[-2] > 1 else 0
        y[..., -1] = x.shape[-1]
        y[..., -3:, -3:] *= -1
        return y
