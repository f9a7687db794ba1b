"""Programs that decide on sizes: pictures, position tables, windows, pads, tiles."""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=2 3 height=32 width=32")
class ResizedPositions(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.pos = nn.Conv2d(3, 8, 8, 8), nn.Parameter(torch.randn(1, 17, 8))

    def forward(self, x):
        y = self.patch(x)
        h, w = y.shape[-2:]
        y = y.flatten(2).transpose(1, 2)
        if y.shape[1] == self.pos.shape[1] - 1:
            return y + self.pos[:, 1:]
        side = int((self.pos.shape[1] - 1) ** 0.5)
        grid = self.pos[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, size=(h, w), mode="bicubic", align_corners=False)
        return y + grid.flatten(2).transpose(1, 2)


@program(x="float batch=2 8 8 4")
class WindowShift(nn.Module):
    def forward(self, x):
        b, h, w, c = x.shape
        x = torch.roll(x, (-2, -2), (1, 2))
        x = x.view(b, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        x = (x @ x.transpose(1, 2)).softmax(-1) @ x
        return x.view(b, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)


@program(x="float batch=1 height=9 width=13 4")
class PaddedWindows(nn.Module):
    """Windows of 7; the picture is padded where it does not divide, and shifted where it is larger than a window."""

    def forward(self, x):
        b, h, w, c = x.shape
        ph, pw = (7 - h % 7) % 7, (7 - w % 7) % 7
        if ph > 0 or pw > 0:
            x = F.pad(x, (0, 0, 0, pw, 0, ph))
        shift = 3 if min(h, w) > 7 else 0
        if shift:
            x = torch.roll(x, (-shift, -shift), (1, 2))
        hp, wp = x.shape[1:3]
        y = x.reshape(b, hp // 7, 7, wp // 7, 7, c).transpose(2, 3).reshape(-1, 49, c)
        y = y - y.mean(1, keepdim=True)
        x = y.reshape(b, hp // 7, wp // 7, 7, 7, c).transpose(2, 3).reshape(b, hp, wp, c)
        if shift:
            x = torch.roll(x, (shift, shift), (1, 2))
        return x[:, :h, :w].contiguous()


@program(x="float batch=2 3 height=20 width=30")
class PadToMultiple(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        new_h, new_w = math.ceil(h / 16) * 16, math.ceil(w / 16) * 16
        if (new_h, new_w) != (h, w):
            x = F.pad(x, [0, new_w - w, 0, new_h - h], mode="replicate")
        return F.avg_pool2d(x, 16)


@program(x="float batch=2 3 height=20 width=30")
class ShortSide(nn.Module):
    """Detection's resize: the short side to 16, the long one no more than 40."""

    def forward(self, x):
        h, w = x.shape[-2:]
        scale = 16 / min(h, w)
        if max(h, w) * scale > 40:
            scale = 40 / max(h, w)
        return F.interpolate(x, size=(int(h * scale), int(w * scale)), mode="nearest")


@program(x="float batch=1 4 height=16 width=16")
class UNetSkip(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(4, 4, 3, 2, 1), nn.ConvTranspose2d(4, 4, 2, 2)

    def forward(self, x):
        y = self.up(self.down(x))
        dy, dx = x.size(2) - y.size(2), x.size(3) - y.size(3)
        y = F.pad(y, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return torch.cat([x, y], 1)


@program(x="float batch=1 4 height=15 width=16")
class CropToSmaller(nn.Module):
    def forward(self, x):
        a, b = F.max_pool2d(x, 2, ceil_mode=True), F.avg_pool2d(x, 2)
        if a.shape != b.shape:
            h, w = min(a.shape[2], b.shape[2]), min(a.shape[3], b.shape[3])
            a, b = a[..., :h, :w], b[..., :h, :w]
        return a - b


@program(x="float batch=1 3 height=24 width=24")
class Orientation(nn.Module):
    def forward(self, x):
        if x.shape[-1] > x.shape[-2]:
            x = x.transpose(-1, -2)
        return x.mean(-1) - x.amax(-1)


@program(x="float batch=1 3 height=24 width=24")
class Tiles(nn.Module):
    """Works on tiles of at most 16, and on the whole where it is small."""

    def forward(self, x):
        if x.shape[-1] <= 16:
            return x - x.mean(-1, keepdim=True)
        parts = []
        for start in range(0, x.shape[-1], 16):
            tile = x[..., start : start + 16]
            parts.append(tile - tile.mean(-1, keepdim=True))
        return torch.cat(parts, -1)


@program(x="float batch=1 6 width=24")
class OverlappingChunks(nn.Module):
    def forward(self, x):
        n, step, size = x.shape[-1], 4, 8
        if n < size:
            x = F.pad(x, (0, size - n))
            n = size
        starts = list(range(0, n - size + 1, step))
        if starts[-1] + size < n:
            starts.append(n - size)
        return torch.stack([x[..., s : s + size].sum(-1) for s in starts], -1).mean(-1)


@program(x="float batch=4 6")
class PadBatch(nn.Module):
    """Runs in batches of 4; the last one is filled up."""

    def forward(self, x):
        missing = -len(x) % 4
        y = torch.cat([x, x.new_zeros(missing, 6)]) if missing else x
        return y.view(-1, 4, 6).cumsum(1).view(-1, 6)[: len(x)]


@program(x="float batch=4 6")
class OddBatch(nn.Module):
    def forward(self, x):
        if len(x) & 1:
            x = x[:-1]
        a, b = x.chunk(2)
        return a * b


@program(x="float batch=3 6", y="float other=5 6")
class LongerOne(nn.Module):
    def forward(self, x, y):
        long, short = (x, y) if len(x) >= len(y) else (y, x)
        return long + F.pad(short, (0, 0, 0, len(long) - len(short)))


@program(x="float batch=3 6", y="float other=5 6")
class BroadcastOrRepeat(nn.Module):
    def forward(self, x, y):
        if y.size(0) == 1:
            return x + y * 2
        if x.size(0) == y.size(0):
            return x + y
        return x[:1] + y.mean(0, keepdim=True)


@program(x="float batch=3 6", y="float batch=3 6")
class SameSize(nn.Module):
    def forward(self, x, y):
        assert x.shape == y.shape
        return x.flip(0) if x.numel() > 60 else y


@program(x="float batch=2 width=12")
class EvenOrOddCenter(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        if n % 2 == 1:
            return x[:, n // 2]
        return (x[:, n // 2 - 1] + x[:, n // 2]) / 2


@program(x="float batch=2 width=12")
class PowerOfTwo(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        target = 1 << (n - 1).bit_length()
        if target != n:
            x = F.pad(x, (0, target - n))
        return x.reshape(x.shape[0], 2, -1).sum(1) if target > 1 else x


@program(x="float batch=2 width=12")
class RecursiveHalving(nn.Module):
    def reduce(self, x):
        if x.shape[1] == 1:
            return x
        half = (x.shape[1] + 1) // 2
        return self.reduce(x[:, :half]) + 2 * self.reduce(x[:, half:])

    def forward(self, x):
        return self.reduce(x)


@program(x="float batch=2 width=12")
class WhileHalving(nn.Module):
    def forward(self, x):
        rounds = 0
        while x.shape[1] > 1:
            if x.shape[1] % 2:
                x = F.pad(x, (0, 1))
            x = x[:, ::2] + 0.5 * x[:, 1::2]
            rounds += 1
        return x * rounds


@program(x="float batch=2 3 height=12 width=12")
class PyramidUntilSmall(nn.Module):
    def forward(self, x):
        levels = []
        while min(x.shape[-2:]) >= 4:
            levels.append(x.mean((2, 3)))
            x = F.avg_pool2d(x, 2)
        return torch.stack(levels).sum(0) if levels else x.mean((2, 3))


@program(x="float batch=2 width=12")
class TableByRange(nn.Module):
    SCALES = ((8, 1.0), (16, 0.5), (64, 0.25))

    def forward(self, x):
        for limit, scale in self.SCALES:
            if x.shape[1] <= limit:
                return x * scale
        return x * 0.125


@program(x="float batch=2 width=12")
class NextScale(nn.Module):
    def forward(self, x):
        scale = next((s for limit, s in ((8, 1.0), (16, 0.5), (64, 0.25)) if x.shape[1] <= limit), 0.125)
        return x * scale


@program(x="float batch=2 width=12")
class MatchOnSize(nn.Module):
    def forward(self, x):
        match x.shape[1]:
            case 12:
                return x
            case 1 | 2 | 3:
                return x * 2
            case n if n > 100:
                return x * 3
            case _:
                return x * 4


@program(x="float batch=2 width=12")
class MatchOnShape(nn.Module):
    def forward(self, x):
        match tuple(x.shape):
            case (1, n):
                return x * n
            case (_, 12):
                return x - 1
            case (b, n) if b == n:
                return x + b
        return x * 2


@program(x="float batch=2 width=12")
class Walrus(nn.Module):
    def forward(self, x):
        if (missing := 20 - x.shape[1]) > 0:
            x = F.pad(x, (0, missing), value=1.0)
        elif (extra := -missing) > 5:
            x = x[:, extra:]
        return x.cumsum(1)


@dataclass
class Span:
    start: int
    stop: int

    @property
    def is_long(self):
        return self.stop - self.start > 10

    def cut(self, x):
        return x[:, self.start : self.stop]


@program(x="float batch=2 width=12")
class SpanProperty(nn.Module):
    def forward(self, x):
        span = Span(1, x.shape[1])
        y = span.cut(x)
        return y.mean(1) if span.is_long else y.sum(1)


@program(x="float batch=2 width=12")
class SortedDictOfSizes(nn.Module):
    def forward(self, x):
        names = {"batch": x.shape[0], "width": x.shape[1], "five": 5}
        first, *_, last = sorted(names, key=names.get)
        x = x * 2 if first == "batch" else x
        return x + 1 if last == "five" else x


@program(x="float batch=2 width=12")
class StringKey(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = {"1x12": 3.0, "2x12": 2.0, "2x16": 4.0}

    def forward(self, x):
        return x * self.scales.get("x".join(str(n) for n in x.shape), 1.0)


@program(x="float batch=2 width=12")
class ParameterBySize(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ParameterDict({"8": torch.randn(8), "12": torch.randn(12), "16": torch.randn(16)})

    def forward(self, x):
        key = f"{x.shape[1]}"
        return x + self.tables[key] if key in self.tables else x


@program(x="float batch=2 width=12")
class LayerByBucket(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(1, 1, k, padding=k // 2) for k in (1, 3, 5))

    def forward(self, x):
        bucket = np.searchsorted([8, 24], x.shape[1])
        return self.layers[int(bucket)](x[:, None])[:, 0]


@program(x="float batch=2 width=12")
class NumpyShape(nn.Module):
    def forward(self, x):
        shape = np.array(x.shape)
        if (shape > 10).all():
            return x * 2
        return x * float(shape.max())


@program(x="float batch=2 width=12")
class NumpyPositions(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        angle = np.arange(n)[:, None] / np.power(100, np.arange(4) / 4)
        table = torch.from_numpy(np.concatenate([np.sin(angle), np.cos(angle)], 1).astype(np.float32))
        return x[..., None] + table


@program(x="float batch=2 width=12")
class GeneratorSum(nn.Module):
    def forward(self, x):
        return sum((i + 1) * x[:, i] for i in range(min(x.shape[1], 6)))


@program(x="float batch=2 width=12")
class ComprehensionFilter(nn.Module):
    def forward(self, x):
        return torch.stack([x[:, i] for i in range(x.shape[1]) if i % 3 == 0], 1)


@program(x="float batch=2 width=12")
class DivisorSearch(nn.Module):
    """The largest number of groups up to 4 that divides the width."""

    def forward(self, x):
        groups = 4
        while x.shape[1] % groups:
            groups -= 1
        return x.view(x.shape[0], groups, -1).softmax(-1).flatten(1)


@program(x="float batch=2 width=12")
class TryView(nn.Module):
    def forward(self, x):
        try:
            return x.view(x.shape[0], -1, 4).sum(-1)
        except RuntimeError:
            return x.sum(1, keepdim=True)


@program(x="float batch=2 width=12")
class TryBroadcast(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bias", torch.randn(12))

    def forward(self, x):
        try:
            return x + self.bias
        except RuntimeError:
            return x + self.bias.mean()


@program(x="float batch=2 width=12")
class TryIndex(nn.Module):
    def forward(self, x):
        try:
            return x[:, 15]
        except IndexError:
            return x[:, -1]


@program(x="float batch=2 width=12")
class TryKey(nn.Module):
    def forward(self, x):
        try:
            scale = {12: 2.0, 24: 3.0}[x.shape[1]]
        except KeyError:
            scale = 1.0
        return x * scale


@program(x="float batch=2 width=12")
class MinimumOfTopK(nn.Module):
    def forward(self, x):
        k = min(20, x.shape[1])
        return x.topk(k, 1).values.sum(1)


@program(x="float batch=2 width=12")
class ClippedSlice(nn.Module):
    def forward(self, x):
        return x[:, :16].sum(1) + x[:, 16:].sum(1) * 2 + x[:, -20:].mean(1)


@program(x="float batch=2 width=12")
class EmptyTail(nn.Module):
    def forward(self, x):
        tail = x[:, 16:]
        if tail.numel():
            return x[:, :16].sum(1) + tail.mean(1)
        return x.sum(1)


@program(x="float batch=2 width=12")
class ChunkCount(nn.Module):
    def forward(self, x):
        first, *rest = x.split(8, dim=1)
        y = first.sum(1)
        for number, part in enumerate(rest, 2):
            y = y + number * part.sum(1)
        return y


@program(x="float batch=2 width=12")
class ChunkIntoFive(nn.Module):
    def forward(self, x):
        return torch.stack([c.mean(1) for c in x.chunk(5, 1)], 1).cumsum(1)[:, -1]


@program(x="float batch=2 width=12")
class TensorSplit(nn.Module):
    def forward(self, x):
        return torch.stack([c.sum(1) for c in x.tensor_split(3, 1)], 1)


@program(x="float batch=2 width=12")
class ZipOfRows(nn.Module):
    def forward(self, x):
        total = torch.zeros(x.shape[1])
        for row, weight in zip(x, (1.0, 2.0, 4.0), strict=False):
            total = total + row * weight
        return total


@program(x="float batch=2 width=12")
class Enumerate(nn.Module):
    def forward(self, x):
        return torch.stack([row * i for i, row in enumerate(x)])


@program(x="float batch=2 width=12")
class ReversedRows(nn.Module):
    def forward(self, x):
        state, outs = torch.zeros(x.shape[1]), []
        for row in reversed(x):
            state = 0.5 * state + row
            outs.append(state)
        return torch.stack(outs[::-1])


@program(x="float batch=2 width=12")
class IsSquare(nn.Module):
    def forward(self, x):
        side = math.isqrt(x.shape[1])
        if side * side == x.shape[1]:
            return x.view(-1, side, side).transpose(1, 2).flatten(1)
        return -x


@program(x="float batch=2 width=16")
class Reshaped2d(nn.Module):
    """Tokens back to a picture; what is no square gets one more row and is cut."""

    def forward(self, x):
        n = x.shape[1]
        side = int(n**0.5)
        if side**2 < n:
            side += 1
        x = F.pad(x, (0, side * side - n))
        return x.view(-1, side, side).cumsum(2).flatten(1)[:, :n]


@program(x="float batch=2 width=12")
class LogSteps(nn.Module):
    def forward(self, x):
        steps = max(1, math.ceil(math.log2(x.shape[1])))
        for i in range(steps):
            x = x + x.roll(2**i, 1) * 0.5
        return x


@program(x="float batch=2 width=12")
class ClassCache(nn.Module):
    tables = {}  # noqa: RUF012

    def forward(self, x):
        n = x.shape[1]
        if n not in ClassCache.tables:
            ClassCache.tables[n] = torch.linspace(0, 1, n) if n > 1 else torch.zeros(1)
        return x + ClassCache.tables[n]


@program(x="float batch=2 width=12")
class GrowingBuffer(nn.Module):
    """Rotary tables that are made again where the sequence is longer."""

    def __init__(self):
        super().__init__()
        self.length = 0
        self.register_buffer("table", torch.empty(0), persistent=False)
        self.grow(16)

    def grow(self, length):
        self.length = length
        self.table = torch.arange(length).float() / 10

    def forward(self, x):
        if x.shape[1] > self.length:
            self.grow(x.shape[1] * 2)
        return x * self.table[: x.shape[1]].cos()


@program(x="float batch=2 width=12")
class DynamicNtk(nn.Module):
    """Rotary frequencies that depend on the length beyond 16."""

    def forward(self, x):
        n = x.shape[1]
        base = 100.0
        if n > 16:
            base = base * ((2.0 * n / 16) - 1.0) ** (4 / 2)
        inv = 1.0 / base ** (torch.arange(0, 4, 2) / 4)
        return x[..., None] * torch.outer(torch.arange(n).float(), inv).cos()


@program(x="float batch=2 width=12")
class LongOrShortFactor(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("short", torch.tensor([1.0, 1.1]))
        self.register_buffer("long", torch.tensor([1.0, 4.0]))

    def forward(self, x):
        position = torch.arange(x.shape[1])
        factor = self.long if position.max() + 1 > 32 else self.short
        return x[..., None] * (position[:, None] / factor).cos()


@program(x="float batch=2 3 height=16 width=16")
class AntialiasWhenSmaller(nn.Module):
    def forward(self, x):
        if x.shape[-2] > 24:
            x = F.avg_pool2d(x, 2)
        return F.interpolate(x, size=(12, 12), mode="bilinear", align_corners=x.shape[-1] > 12)


@program(x="float batch=2 3 height=16 width=16")
class ReflectOrZero(nn.Module):
    """Reflection needs more pixels than it pads."""

    def forward(self, x):
        mode = "reflect" if min(x.shape[-2:]) > 3 else "constant"
        return F.avg_pool2d(F.pad(x, (3, 3, 3, 3), mode=mode), 3, 1)


@program(x="float batch=2 3 height=16 width=16")
class KernelBySize(nn.Module):
    def forward(self, x):
        k = min(5, x.shape[2], x.shape[3])
        return F.max_pool2d(x, k, 1)


@program(x="float batch=2 3 height=16 width=16")
class AdaptiveByHand(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        sh, sw = h // 4, w // 4
        return F.avg_pool2d(x, (h - 3 * sh, w - 3 * sw), (sh, sw))


@program(x="float batch=2 3 height=16 width=16")
class DividesOrInterpolates(nn.Module):
    def forward(self, x):
        if x.shape[2] % 4 == 0 and x.shape[3] % 4 == 0:
            return F.avg_pool2d(x, 4)
        return F.interpolate(x, size=(x.shape[2] // 4 or 1, x.shape[3] // 4 or 1), mode="bilinear")


@program(x="float batch=2 3 height=16 width=16")
class StrideByArea(nn.Module):
    def forward(self, x):
        stride = 2 if x.shape[2] * x.shape[3] > 1000 else 1
        return x[..., ::stride, ::stride]


@program(x="float batch=2 3 height=16 width=16")
class ChannelsLastGuess(nn.Module):
    def forward(self, x):
        if x.shape[-1] in (1, 3, 4) and x.shape[1] not in (1, 3, 4):
            x = x.permute(0, 3, 1, 2)
        return x.mean((0, 2, 3))


@program(x="float batch=2 3 height=16 width=16")
class SqueezeAll(nn.Module):
    def forward(self, x):
        return x.mean(-1).squeeze() * 2


@program(x="float batch=2 3 height=16 width=16")
class SqueezeThenRank(nn.Module):
    def forward(self, x):
        y = x.squeeze()
        if y.dim() == 3:
            y = y.unsqueeze(0)
        return y + 1


@program(x="float batch=2 width=12")
class Contiguity(nn.Module):
    def forward(self, x):
        y = x.t()
        return y.reshape(-1)[: x.shape[1]] if y.is_contiguous() else y.sum(1)


@program(x="float batch=2 width=12")
class TypeOfLargeIndex(nn.Module):
    def forward(self, x):
        dtype = torch.int32 if x.shape[1] > 64 else torch.int64
        return x.argmax(1).to(dtype)


@program(x="float batch=2 width=12")
class DivisionOfSizes(nn.Module):
    def forward(self, x):
        ratio = x.shape[1] / x.shape[0]
        if ratio >= 6:
            return x * ratio
        return x * round(ratio)


@program(x="float batch=2 width=12")
class BoolOfSizes(nn.Module):
    def forward(self, x):
        flags = [n > 8 for n in x.shape]
        if any(flags) and not all(flags):
            return x * flags.count(True) + flags.index(True)
        return x - 1


@program(x="float batch=2 width=12")
class AndOrValues(nn.Module):
    def forward(self, x):
        n = x.shape[1] // 16 or 3
        m = x.shape[0] % 4 and 5
        return x * n + m


@program(x="float batch=2 width=12")
class FormatWidth(nn.Module):
    def forward(self, x):
        return x * len(f"{x.shape[1]:04d}{x.shape[0]}")


@program(x="float batch=2 width=12")
class DigitsOfSize(nn.Module):
    def forward(self, x):
        return x + sum(map(int, str(x.shape[1])))


@program(x="float batch=2 width=12")
class BinaryOfSize(nn.Module):
    def forward(self, x):
        return x * bin(x.shape[1]).count("1")


@program(x="float batch=2 width=12")
class SetOfSizes(nn.Module):
    def forward(self, x):
        return x * len({x.shape[0], x.shape[1], 12})


@program(x="float batch=2 width=12")
class HeapOfSizes(nn.Module):
    def forward(self, x):
        import heapq

        heap = [x.shape[1], x.shape[0], 7]
        heapq.heapify(heap)
        return x * heapq.heappop(heap)


@program(x="float batch=2 width=12")
class BisectSizes(nn.Module):
    def forward(self, x):
        import bisect

        return x * (1 + bisect.bisect([4, 16, 50], x.shape[1]))


@program(x="float batch=2 width=12")
class CumulativeOffsets(nn.Module):
    def forward(self, x):
        sizes = [x.shape[1] // 4, x.shape[1] // 3]
        sizes.append(x.shape[1] - sum(sizes))
        a, b, c = torch.split(x, sizes, 1)
        return a.sum(1) - b.sum(1) * 2 + c.sum(1) * 3


@program(x="float batch=2 width=12")
class TracedFlag(nn.Module):
    """Checks its input where nobody exports."""

    def forward(self, x):
        if not torch.jit.is_tracing() and not torch.onnx.is_in_onnx_export():
            assert x.shape[1] > 0
        return x * 2 if x.shape[1] > 40 else x


@program(x="float batch=2 width=12")
class DefaultArgument(nn.Module):
    def scale(self, x, limit=None):
        limit = x.shape[1] // 2 if limit is None else limit
        return x.clamp(max=limit) if limit < 10 else x * limit

    def forward(self, x):
        return self.scale(x)


@program(x="float batch=2 width=12")
class ClosureCounter(nn.Module):
    def forward(self, x):
        count = 0

        def step(part):
            nonlocal count
            count += 1
            return part.sum(1) * count

        return sum(step(part) for part in x.split(5, 1))


@program(x="float batch=2 width=12")
class HookScales(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Softmax(-1)
        self.layer.register_forward_hook(self.scale)

    @staticmethod
    def scale(module, args, result):
        return result * 2 if result.shape[-1] > 16 else None

    def forward(self, x):
        return self.layer(x)


@program(x="float batch=2 width=12")
class PreHookPads(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Softmax(-1)
        self.layer.register_forward_pre_hook(lambda module, args: (F.pad(args[0], (0, max(0, 16 - args[0].shape[1]))),))

    def forward(self, x):
        return self.layer(x)


@program(x="float batch=2 width=12")
class AttendsInChunks(nn.Module):
    """Attention in slices where the memory would be too large."""

    def forward(self, x):
        q = x[..., None]
        if x.shape[1] * x.shape[1] > 1000:
            rows = [(part @ q.transpose(1, 2)).softmax(-1) @ q for part in q.split(16, 1)]
            return torch.cat(rows, 1)[..., 0] + 1
        return ((q @ q.transpose(1, 2)).softmax(-1) @ q)[..., 0]


@program(x="float batch=2 width=12")
class ArangeInsteadOfSize(nn.Module):
    """Decides on the last position, which is a value made of a size."""

    def forward(self, x):
        last = torch.arange(x.shape[1])[-1]
        if last > 20:
            return x * 2
        return x + last


@program(x="float batch=2 width=12")
class OnesSum(nn.Module):
    def forward(self, x):
        count = torch.ones_like(x).sum()
        return x * 2 if count > 100 else x


@program(x="float batch=2 width=12")
class LengthFromMask(nn.Module):
    def forward(self, x):
        mask = torch.ones(x.shape[:2], dtype=torch.bool)
        lengths = mask.sum(1).tolist()
        return torch.stack([row[: n // 2].sum() for row, n in zip(x, lengths, strict=True)])


@program(x="float batch=2 width=12")
class IndexByLinspace(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        if n > 10:
            index = torch.linspace(0, n - 1, 10).round().long()
            return x[:, index]
        return F.pad(x, (0, 10 - n))


@program(x="float batch=2 width=12")
class StepSlice(nn.Module):
    def forward(self, x):
        return x[:, :: max(1, x.shape[1] // 8)].cumsum(1)[:, -1]


@program(x="float batch=2 width=12")
class TriangularCount(nn.Module):
    def forward(self, x):
        rows, cols = torch.triu_indices(x.shape[1], x.shape[1], 1)
        return (x[:, rows] * x[:, cols]).sum(1)


@program(x="float batch=2 3 height=6 width=6")
class AnchorCache(nn.Module):
    """Anchors that are kept until the grid changes."""

    def __init__(self):
        super().__init__()
        self.shape, self.anchors = None, torch.empty(0)

    def forward(self, x):
        if self.shape != x.shape[-2:]:
            h, w = self.shape = x.shape[-2:]
            y, z = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            self.anchors = torch.stack([z, y], -1).view(-1, 2)
        return x.flatten(2).mean(1)[..., None] + self.anchors
