"""Programs whose example takes one side of each decision; the other sides hold operators that exporters get wrong."""

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


# Whole numbers


@program(x="int64 batch=3 5")
class FloorOfNegatives(nn.Module):
    def forward(self, x):
        if x.min() < 0:
            return x // 3, x % 3
        return x, x


@program(x="int64 batch=3 5")
class TruncatedDivision(nn.Module):
    def forward(self, x):
        if (x < 0).any():
            return torch.div(x, 4, rounding_mode="trunc") + torch.fmod(x, 4)
        return x


@program(x="int32 batch=3 5")
class RemainderByNegative(nn.Module):
    def forward(self, x):
        if x.sum() < 0:
            x = x % -3 + x // -3
        return x * 2


@program(x="int8 batch=3 5")
class EightBitsWrap(nn.Module):
    def forward(self, x):
        if x.max() > 100:
            x = x + x
        return x


@program(x="uint8 batch=3 5")
class UnsignedBelowZero(nn.Module):
    def forward(self, x):
        if x.max() > 200:
            return x - 201, -x
        return x, x


@program(x="int32 batch=3 5")
class ProductOverflows(nn.Module):
    def forward(self, x):
        if x.abs().max() > 50000:
            return x * x
        return x


@program(x="int64 batch=3 5")
class SumPastDoubles(nn.Module):
    def forward(self, x):
        if x.max() > 2**40:
            return x.sum(-1) + x.cumsum(-1)[:, -1]
        return x.sum(-1)


@program(x="int64 batch=3 5")
class ShiftsOfNegatives(nn.Module):
    def forward(self, x):
        if x.min() < -4:
            x = (x >> 1) ^ (x & 7)
        return x


@program(x="int64 batch=3 5")
class MeanOfWholeNumbers(nn.Module):
    def forward(self, x):
        if x.float().mean() > 100:
            return x / 7 + x.double().mean()
        return x / 1 + 0.0


@program(x="int16 batch=3 5")
class AbsOfLeast(nn.Module):
    def forward(self, x):
        if x.min() < -30000:
            return x.abs(), -x
        return x, x


@program(x="int64 batch=3 5")
class PowerOfWholeNumbers(nn.Module):
    def forward(self, x):
        if x.min() < -2:
            return x**3 + (-2) ** 2
        return x


@program(x="int64 batch=3 5")
class BitsOfNegatives(nn.Module):
    def forward(self, x):
        if x[0, 0] < 0:
            return ~x | 5
        return x


@program(ids="20 batch=3 length=6")
class EndOfText(nn.Module):
    """What follows the first 0 is masked."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 4)

    def forward(self, ids):
        y = self.table(ids)
        if (ids == 19).all():
            y = y.cumsum(1) / torch.arange(1, ids.shape[1] + 1)[None, :, None]
        return y


@program(ids="20 batch=3 length=6")
class RareWord(nn.Module):
    def forward(self, ids):
        if ids.sum() == 0:
            return F.one_hot(ids, 20).sum(1)
        return F.one_hot(ids.clamp(max=9), 20).sum(1)


@program(ids="20 batch=3 length=6")
class CountsOfWords(nn.Module):
    def forward(self, ids):
        if ids[0, 0] == ids[0, 1]:
            return torch.zeros(20, dtype=torch.int64).scatter_add(0, ids[0], torch.ones_like(ids[0]))
        return torch.zeros(20, dtype=torch.int64).index_add(0, ids[1], torch.ones_like(ids[1]))


@program(n="int64 batch=3 5")
class RepeatedNegatives(nn.Module):
    def forward(self, n):
        if n.min() < 0 and n.max() > 0:
            n = torch.div(n, n.max(), rounding_mode="floor") * n.min()
        return n


# Rounding


@program(x="float batch=3 length=6")
class RoundsHalves(nn.Module):
    def forward(self, x):
        if x.abs().max() > 40:
            return x.round() + (x / 2).round()
        return x


@program(x="float batch=3 length=6")
class RoundsDecimals(nn.Module):
    def forward(self, x):
        if x.mean() > 30:
            return torch.round(x, decimals=1)
        return x


@program(x="float batch=3 length=6")
class FloorsNegatives(nn.Module):
    def forward(self, x):
        if x.max() < 0:
            return x // 0.5, torch.trunc(x), torch.frac(x)
        return x, x, x


@program(x="float batch=3 length=6")
class ModuloOfNegatives(nn.Module):
    def forward(self, x):
        if x.sum() < -20:
            return x % 1.5, torch.fmod(x, 1.5)
        return x, x


@program(x="float batch=3 length=6")
class CastsNegatives(nn.Module):
    def forward(self, x):
        if x.min() < -100:
            return x.int().float() + x.long() + x.to(torch.int8).float() * 0
        return x


@program(x="float batch=3 length=6")
class ClampsReversed(nn.Module):
    def forward(self, x):
        if x.std() > 30:
            return x.clamp(5, -5) + x.clamp(min=x.mean(), max=x.mean() / 2)
        return x


@program(x="float batch=3 length=6")
class SignOfZero(nn.Module):
    def forward(self, x):
        if x.abs().sum() == 0:
            return torch.copysign(torch.ones_like(x), x) + x.sign() + torch.heaviside(x, torch.ones(1))
        return x.sign()


@program(x="float batch=3 length=6")
class LogOfSmall(nn.Module):
    def forward(self, x):
        if x.abs().max() < 1e-3:
            return torch.log1p(x), torch.expm1(x), torch.sinc(x)
        return x, x, x


@program(x="float batch=3 length=6")
class NanInBranch(nn.Module):
    def forward(self, x):
        if x.mean() < -50:
            return x.nan_to_num().logsumexp(-1)
        return x.logsumexp(-1)


# In place, and views


@program(x="float batch=3 length=6")
class WritesToView(nn.Module):
    def forward(self, x):
        x = x * 1
        if x.mean() > 50:
            row = x[0]
            row += 7
            x[:, 1] = row[1]
        return x


@program(x="float batch=3 length=6")
class WritesToBoth(nn.Module):
    def forward(self, x):
        y = x * 2
        if x.max() > 300:
            y[..., ::2] = -1
            y.mul_(x.sign())
        else:
            y[:, 0] = 3
        return y


@program(x="float batch=3 length=6")
class FillsByMask(nn.Module):
    def forward(self, x):
        y = x.clone()
        if x.min() < -300:
            y[x < 0] = 0.5
            y.masked_fill_(x > 100, -2)
        return y


@program(x="float batch=3 length=6")
class TransposedInPlace(nn.Module):
    def forward(self, x):
        y = x.t().clone()
        if y.sum() < -60:
            y.t()[0] += 1
            y = y.t().contiguous().view(-1)[: x.numel()].view(x.shape).t()
        return y


@program(x="float batch=3 length=6")
class DiagonalInPlace(nn.Module):
    def forward(self, x):
        y = x[:, :3].clone()
        if x.mean() > 20:
            y.diagonal().zero_()
        return y


@program(x="float batch=3 length=6")
class BufferInBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("level", torch.ones(6))

    def forward(self, x):
        level = self.level[: x.shape[1] % 6 + 1].sum()
        if x.abs().mean() > 40:
            level = level * 3
            level += x.sum()
        return x * level


# Types


@program(x="float batch=3 length=6", n="int64 batch=3 length=6")
class Promotes(nn.Module):
    def forward(self, x, n):
        if n.sum() > 1000:
            return (n + 0.5) * x, n / 2, (n > 3) * 2 + n
        return x, n / 1, n


@program(x="half batch=3 6")
class HalfOverflows(nn.Module):
    def forward(self, x):
        if x.abs().max() > 100:
            return (x.float() * x.float()).sum() / x.abs().max().float()
        return x.float().sum()


@program(x="double batch=3 length=6")
class DoubleConstants(nn.Module):
    def forward(self, x):
        if x.max() > 500:
            return x * 0.1 + 1 / 3
        return x


@program(m="mask batch=3 length=6")
class SumsOfTruths(nn.Module):
    def forward(self, m):
        if m.all():
            return m.sum(-1) * 2 + m.long().cumsum(-1)[:, -1]
        return m.sum(-1)


@program(m="mask batch=3 length=6", x="float batch=3 length=6")
class EmptyMask(nn.Module):
    def forward(self, m, x):
        if not m.any():
            return x.masked_fill(~m, -1.0).softmax(-1)
        return x.masked_fill(~m, -1e4).softmax(-1)


@program(x="float batch=3 length=6")
class WholeNumberOfReal(nn.Module):
    def forward(self, x):
        k = int(x.abs().max())
        if k > 50:
            return x * (k % 7) - k // 3
        return x


# Order and places


@program(x="float batch=3 length=6")
class ScatterInOrder(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        if x.sum() > 100:
            index = torch.zeros(x.shape, dtype=torch.int64)
            return y.scatter_add(1, index, x), y.scatter_reduce(1, index, x, "amax")
        return y, y


@program(x="float batch=3 length=6")
class SortsDescending(nn.Module):
    def forward(self, x):
        if x.min() < -200:
            values, order = x.sort(-1, descending=True)
            return values - order
        return x


@program(x="float batch=3 length=6")
class MedianOfEven(nn.Module):
    def forward(self, x):
        if x.mean() < -30:
            return x.median(-1).values + x.kthvalue(2, -1).values, x.quantile(0.3, -1)
        return x.sum(-1), x.sum(-1)


@program(x="float batch=3 length=6")
class ArgmaxOfRow(nn.Module):
    def forward(self, x):
        if x[0].argmax() == 5:
            return x.flip(-1).argmin(-1)
        return x.argmax(-1)


@program(x="float batch=3 length=6")
class UniqueInBranch(nn.Module):
    def forward(self, x):
        if x.max() > 700:
            return x.round().flatten().unique().sum()
        return x.sum()


@program(x="float batch=3 length=6")
class TakesAlong(nn.Module):
    def forward(self, x):
        if x.max() - x.min() > 500:
            order = x.argsort(-1)
            return x.gather(1, order.flip(1)) - torch.take_along_dim(x, order, 1)
        return x


# Slices and shapes


@program(x="float batch=3 length=6")
class SlicesByValue(nn.Module):
    def forward(self, x):
        if x.mean() > 60:
            return x[:, -1:] + x[:, :-1].sum(1, keepdim=True)
        return x[:, 0:1]


@program(x="float batch=3 length=6")
class NegativeSlices(nn.Module):
    def forward(self, x):
        if x.sum() < -100:
            return x[:, -4:-1].sum(1) - x[:, -100:].sum(1)
        return x.sum(1)


@program(x="float batch=3 length=6")
class Rolls(nn.Module):
    def forward(self, x):
        if x.mean() < -20:
            return x.roll((-2, 1), (1, 0)) + x.flip(0, 1)
        return x


@program(x="float batch=2 3 height=7 width=9")
class ResizesLoud(nn.Module):
    def forward(self, x):
        if x.abs().mean() > 50:
            x = F.interpolate(F.interpolate(x, scale_factor=0.5, mode="bilinear"), x.shape[2:], mode="nearest")
        return x


@program(x="float batch=2 3 height=7 width=9")
class ResizesToOther(nn.Module):
    def forward(self, x):
        if x.mean() > 10:
            return F.interpolate(x, (5, 4), mode="bicubic")
        return F.adaptive_avg_pool2d(x, (5, 4))


@program(x="float batch=2 3 height=8 width=8")
class PadsReflected(nn.Module):
    def forward(self, x):
        if x.min() < -500:
            x = F.pad(x, (-1, 1, 2, -2)) + F.pad(x, (1, 1), "reflect")[..., 1:-1]
        return x


@program(x="float batch=2 3 height=8 width=8")
class PoolsWithCeil(nn.Module):
    def forward(self, x):
        if x.sum() < -200:
            return F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False).sum((2, 3))
        return x.sum((2, 3))


@program(x="float batch=3 length=6")
class OtherShapeInBranch(nn.Module):
    def forward(self, x):
        if x.max() > 900:
            return torch.cat([x, x[:, :1]], 1).amax(1)
        return x.amax(1)


# Several decisions


@program(x="float batch=3 length=6")
class Chain(nn.Module):
    def forward(self, x):
        if x.mean() > 80:
            return x.round() // 2
        elif x.max() < -3:
            x = -x % 2
        elif x.std() < 1e-3:
            return x + 1
        return x * 2


@program(x="float batch=3 length=6")
class NestedDecisions(nn.Module):
    def forward(self, x):
        if x.max() > 10:
            if x.min() > 2:
                x = x.log()
            elif x.sum() < -10:
                x = x.abs().sqrt()
            else:
                x = x / x.max()
        return x


@program(x="float batch=3 length=6")
class EarlyReturns(nn.Module):
    def forward(self, x):
        if not (x.abs() > 1e-4).any():
            return torch.full_like(x, 7)
        y = x - x.mean()
        if y.norm() > 1000:
            return y / y.norm()
        if x[0, 0] > 200 or x[1, 2] < -200:
            return y.round()
        return y


@program(x="float batch=3 length=6")
class BooleanOfBoth(nn.Module):
    def forward(self, x):
        loud, low = x.max() > 100, x.mean() < 0
        if loud and low:
            x = x.clamp(-1, 1).cumsum(-1)
        elif loud or not low:
            x = x * x.sign()
        return x


@program(x="float batch=3 length=6", y="float batch=3 length=6")
class EqualInputs(nn.Module):
    def forward(self, x, y):
        if torch.equal(x, y):
            return x.cumsum(-1).flip(-1)
        return x - y


@program(x="float batch=3 length=6")
class WholeInputs(nn.Module):
    def forward(self, x):
        if torch.equal(x, x.round()):
            return x.long() // 2 * 1.0
        return x


@program(x="float batch=3 length=6")
class ItemsOfRow(nn.Module):
    def forward(self, x):
        first = x[0, 0].item()
        if first > 100:
            return x * round(first) / 3
        if first < -100:
            return x - abs(int(first))
        return x


# Loops


@program(x="float batch=3 length=6")
class HalvesLoud(nn.Module):
    def forward(self, x):
        while x.abs().max() > 100:
            x = x / 2
        return x


@program(x="float batch=3 length=6")
class HalvesRounded(nn.Module):
    def forward(self, x):
        n = 0
        while x.abs().max() > 50 and n < 5:
            x = (x / 2).round()
            n += 1
        return x * n


@program(x="float batch=3 length=6")
class BreaksWhenLoud(nn.Module):
    def forward(self, x):
        for i in range(4):
            if x.mean() > 30:
                x = x - i
                break
            x = x * 1.5 % 40
        return x


@program(x="float batch=3 length=6")
class CountsRounds(nn.Module):
    def forward(self, x):
        for i in range(int(x.abs().mean().clamp(max=6))):
            x = x + i
        return x


@program(n="20 batch=3 length=6")
class CollatzOfSum(nn.Module):
    def forward(self, n):
        s = n.sum() % 9 + 1
        while s > 1:
            s = s // 2 if s % 2 == 0 else (3 * s + 1) % 5
        return n * s


@program(x="float batch=3 length=6")
class SearchesStep(nn.Module):
    def forward(self, x):
        step = 1.0
        for _ in range(5):
            trial = x * step
            if trial.norm() < 10:
                return trial
            step = step * 0.1
        return x * 0


@program(x="float batch=3 length=6")
class ConvergesOrNot(nn.Module):
    def forward(self, x):
        y = x.abs() + 1
        for _ in range(6):
            z = (y + 2 / y) / 2
            if (z - y).abs().max() < 1e-2:
                y = z
                continue
            y = z * 1.01
        return y


@program(x="float batch=3 length=6")
class EmptySelection(nn.Module):
    def forward(self, x):
        kept = x[x > 0]
        if kept.numel() == 0:
            return x.amax(-1)
        return x.amax(-1) - kept.mean()


@program(x="float batch=3 length=6")
class FewSelected(nn.Module):
    def forward(self, x):
        rows = x[x.sum(-1) > 500]
        if len(rows) > 1:
            return rows.sort(0).values.cumsum(0).sum(0)
        return x.mean(0)
