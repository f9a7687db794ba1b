"""Programs that compute with whole numbers, flags and mixed types: signs, ends of types, Python's scalars."""

import math
from fractions import Fraction

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="int64 batch=3 5")
class FloorDivision(nn.Module):
    def forward(self, x):
        return x // 3, x % 3, x // -4, x % -4


@program(x="int32 batch=3 5", y="int32 batch=3 5")
class DivisionOfBoth(nn.Module):
    def forward(self, x, y):
        y = y.abs() % 50 + 1
        return x // y, x % y, torch.div(x, y, rounding_mode="trunc"), torch.fmod(x, y)


@program(x="int64 batch=3 5")
class BucketHash(nn.Module):
    """Engram-like: ids hashed by multiplication and xor."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(97, 4)

    def forward(self, x):
        h = (x * 2654435761) ^ (x >> 7)
        return self.table(h % 97), h


@program(x="int64 batch=3 5")
class BigSum(nn.Module):
    def forward(self, x):
        return x.sum(-1), x.cumsum(-1), (x + x).max(-1).values, x.prod(-1)


@program(x="int32 batch=3 5")
class SumOfInt32(nn.Module):
    def forward(self, x):
        return x.sum(), x.sum(-1, dtype=torch.int32), x.cumsum(0), x.float().mean()


@program(x="uint8 batch=2 3 4")
class PixelArithmetic(nn.Module):
    def forward(self, x):
        return x + 200, x - 10, x * 3, 255 - x, -x


@program(x="uint8 batch=2 3 4")
class PixelMean(nn.Module):
    def forward(self, x):
        return x.sum((1, 2)), (x // 2 + x % 2), x.float().mean() / 255, x > 127


@program(x="uint8 batch=2 3 height=4")
class PixelShift(nn.Module):
    def forward(self, x):
        return x >> 3, x << 3, x & 0xF0, x | 1, x ^ 0xFF, ~x


@program(x="int8 batch=2 3 4")
class QuantizedAdd(nn.Module):
    def forward(self, x):
        y = x + x
        return y, x * x, torch.clamp(x.int() * 3, -128, 127).to(torch.int8), x.abs(), -x


@program(x="int8 batch=2 3 4")
class SignedShift(nn.Module):
    def forward(self, x):
        return x >> 1, x >> 7, x << 2, torch.bitwise_right_shift(x.int(), 3)


@program(x="int32 batch=3 6")
class UnpackNibbles(nn.Module):
    """GPTQ-like unpacking of 4 bits."""

    def __init__(self):
        super().__init__()
        self.register_buffer("shifts", torch.arange(0, 32, 4, dtype=torch.int32))

    def forward(self, x):
        q = (x[..., None] >> self.shifts) & 15
        return (q - 8).float().flatten(1) * 0.1


@program(x="int64 batch=3 6")
class UnpackBits(nn.Module):
    def forward(self, x):
        bits = (x.unsqueeze(-1) >> torch.arange(63, -1, -1)) & 1
        return bits.sum(-1), bits.bool().any(-2)


@program(x="int32 batch=3 5")
class TrueDivision(nn.Module):
    def forward(self, x):
        return x / 3, x / 7.0, 1.0 / (x.abs() + 1).float(), x.true_divide(4)


@program(x="int64 batch=3 5")
class FloatPrecision(nn.Module):
    """An id of int64 compared after a cast to float."""

    def forward(self, x):
        return x.double() * 0.5, x.float() == (x + 1).float(), x == x.max()


@program(x="int64 batch=3 5", y="int64 batch=3 5")
class CompareBig(nn.Module):
    def forward(self, x, y):
        return x < y, torch.maximum(x, y), torch.minimum(x, y), x.clamp(-100, 2**60), torch.where(x > y, x, y)


@program(x="int64 batch=3 length=7")
class ArgmaxBig(nn.Module):
    def forward(self, x):
        return x.argmax(-1), x.amax(-1), x.amin(0), x.max(-1).indices


@program(x="int64 batch=3 length=7")
class SortBig(nn.Module):
    def forward(self, x):
        return x.sort(-1).values, x.argsort(dim=-1, descending=True, stable=True), x.topk(1).values


@program(x="int32 batch=3 5")
class PowerOfInt(nn.Module):
    def forward(self, x):
        return x**2, x**3, 2 ** (x % 8), torch.pow(x.float(), 2), x.square()


@program(x="int64 batch=3 5")
class AbsSignNeg(nn.Module):
    def forward(self, x):
        return x.abs(), x.sign(), -x, x.neg().clamp(min=0), x.remainder(5), torch.fmod(x, 5)


@program(x="float batch=3 5")
class ToIntegers(nn.Module):
    def forward(self, x):
        return x.int(), x.long() // 2, x.to(torch.int16), (x * 10).round().long() % 7


@program(x="float batch=3 5")
class FloatFloorDivision(nn.Module):
    def forward(self, x):
        return x // 0.3, x % 0.3, torch.fmod(x, 0.3), torch.div(x, -0.7, rounding_mode="floor"), x % -0.7


@program(x="float batch=3 5", y="float batch=3 5")
class DivideFloats(nn.Module):
    def forward(self, x, y):
        y = torch.where(y.abs() < 0.1, torch.ones_like(y), y)
        return torch.div(x, y, rounding_mode="trunc"), torch.floor_divide(x, y), torch.remainder(x, y)


@program(x="int32 batch=3 5", y="float batch=3 5")
class MixedTypes(nn.Module):
    def forward(self, x, y):
        return (
            x + y,
            x * 0.5,
            x + torch.tensor(0.5),
            y + torch.tensor(3, dtype=torch.int64),
            x + torch.tensor(2.0).double(),
        )


@program(x="half batch=3 5")
class HalfPromotion(nn.Module):
    def forward(self, x):
        big = torch.tensor(2.0, dtype=torch.float32)
        return x * big, x * torch.ones(5), x + 1.5, x.float() + x


@program(x="uint8 batch=3 5", y="int8 batch=3 5")
class UnsignedWithSigned(nn.Module):
    def forward(self, x, y):
        return x + y, x * y, x > y, torch.where(x > y, x, y)


@program(x="mask batch=3 5")
class FlagArithmetic(nn.Module):
    def forward(self, x):
        return x + 1, x * 2.5, x + x, x.sum(), ~x, x ^ True, x.float() - x.float().mean(), x.int() - 1


@program(x="mask batch=3 length=5", y="mask batch=3 length=5")
class FlagOperators(nn.Module):
    def forward(self, x, y):
        return x & y, x | ~y, x ^ y, x > y, x <= y, torch.logical_xor(x, y), (x * y).any(-1), x.cumsum(-1)


@program(x="mask batch=3 length=5")
class FlagReductions(nn.Module):
    def forward(self, x):
        return x.all(), x.any(0), x.max(-1).values, x.amax(0), x.int().argmax(-1), x.nonzero().shape[0]


@program(x="float batch=3 5")
class FlagIndexWeight(nn.Module):
    def forward(self, x):
        flag = x > 0
        return x * flag, x[:, 1:] * flag[:, :-1], (flag * 2 - 1) * x, flag.to(x.dtype).cumsum(0), x + ~flag


@program(x="int64 batch=3 5")
class ZeroDimPromotion(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.25, dtype=torch.float64))
        self.register_buffer("shift", torch.tensor(3, dtype=torch.int32))

    def forward(self, x):
        return x * self.scale, x + self.shift, x.float() * self.scale, x.int() * self.shift


@program(x="int64 batch=3 5")
class LinearCongruence(nn.Module):
    def forward(self, x):
        state = x
        for _ in range(4):
            state = (state * 1103515245 + 12345) % 2147483648
        return state, state.float() / 2147483648


@program(x="int64 batch=3 5")
class WrapInt64(nn.Module):
    def forward(self, x):
        y = x * 6364136223846793005 + 1442695040888963407
        return y, (y >> 33) & 0x7FFFFFFF, y % 1000


@program(x="int32 batch=3 5")
class WrapInt32(nn.Module):
    def forward(self, x):
        y = x * 1664525 + 1013904223
        return y, y >> 5, y & 0xFFFF, y // 1000, y % 1000


@program(x="int16 batch=3 5")
class SixteenBits(nn.Module):
    def forward(self, x):
        return x + x, x * x, x // 3, x >> 2, x.float() / 32768, x.abs(), x.clamp(-5, 5), x > 0


@program(x="int64 batch=3 5")
class DigitsOfId(nn.Module):
    def forward(self, x):
        digits = [(x // 10**k) % 10 for k in range(5)]
        return torch.stack(digits, -1)


@program(x="int64 batch=3 5")
class GcdLcm(nn.Module):
    def forward(self, x):
        return torch.gcd(x, torch.full_like(x, 12))


@program(x="int64 batch=3 5")
class BinCounts(nn.Module):
    def forward(self, x):
        y = x.remainder(7)
        return (
            torch.bincount(y.flatten(), minlength=7),
            F.one_hot(y, 7),
            torch.zeros(7).index_add(0, y[0], torch.ones(5)),
        )


@program(x="float batch=3 length=6")
class RoundModes(nn.Module):
    def forward(self, x):
        return x.round(), torch.round(x, decimals=1), x.trunc(), x.frac(), x.floor(), x.ceil(), torch.round(x * 2) / 2


@program(x="float batch=3 6")
class ScaleByFraction(nn.Module):
    def forward(self, x):
        r = Fraction(x.shape[0], 3)
        return x * float(r), x * (r.numerator % 5), x + math.gcd(x.shape[0], 12)


@program(x="float batch=3 length=6")
class IntegerSizes(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return (
            x[:, : -(-n // 3)],
            x * (n % -4),
            x + ((-n) // 4),
            x * (n ^ 5),
            x + (n >> 1) + (n << 2) + (n & 3),
            x - (~n),
        )


@program(x="float batch=3 length=6")
class DivmodSizes(nn.Module):
    def forward(self, x):
        q, r = divmod(x.shape[1], 4)
        p, s = divmod(-x.shape[1], 4)
        return x * q + r, x + p * s, x * round(x.shape[1] / 4), x * int(x.shape[1] * 0.29)


@program(x="float batch=3 length=6")
class SqrtOfSize(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return x * math.isqrt(n), x / math.sqrt(n), x + math.log2(n), x[:, : int(math.sqrt(n))], x * n**-0.5


@program(x="float batch=3 length=6")
class CeilLogs(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return x * math.ceil(math.log2(n)), x + n.bit_length() if isinstance(n, int) else x


@program(x="float batch=3 length=6")
class PadToPowerOfTwo(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return F.pad(x, (0, (1 << (n - 1).bit_length()) - n)).sum(-1), x[:, : 2 ** int(math.log2(n))]


@program(x="int64 batch=3 5")
class NegativeIndex(nn.Module):
    """A table that is looked up with what may be negative."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.arange(20.0).reshape(10, 2))

    def forward(self, x):
        return self.table[x % 10 - 5], self.table[(x % 3) - 3]


@program(x="int64 batch=3 5")
class SegmentIds(nn.Module):
    def forward(self, x):
        change = F.pad((x[:, 1:] != x[:, :-1]).long(), (1, 0))
        ids = change.cumsum(1)
        return ids, (ids[:, :, None] == ids[:, None, :]).float().sum(-1)


@program(x="double batch=3 5")
class DoubleMaths(nn.Module):
    def forward(self, x):
        return x.exp().log1p(), x.sigmoid(), x.tanh(), x.erf(), x.cumsum(-1), x.softmax(-1), x.std(-1)


@program(x="double batch=3 length=5")
class DoubleSelections(nn.Module):
    def forward(self, x):
        return x.topk(1).values, x.sort(-1).values, x.argmin(-1), x.median(-1).values, x.clamp(-0.1, 0.1), x.round()


@program(x="half batch=3 length=6")
class HalfMaths(nn.Module):
    def forward(self, x):
        return (x * 0.5).sigmoid(), x.float().softmax(-1).half(), x.relu(), x.clamp(-2, 2), x.abs() + 1


@program(x="number batch=3 length=6")
class CountMissing(nn.Module):
    def forward(self, x):
        missing = x.isnan()
        return missing.sum(-1), torch.where(missing, 0, x).clamp(-9, 9), x.nan_to_num(0.5, 1.0, -1.0), x.isinf().any(-1)


@program(x="number batch=3 length=6")
class CompareMissing(nn.Module):
    def forward(self, x):
        return x == x, x != x, x > 0, x <= 0, ~(x > 0), (x < 1) | (x >= 1), x.isfinite()


@program(x="number batch=3 length=6")
class MaximumMissing(nn.Module):
    def forward(self, x):
        y = torch.maximum(x, torch.zeros(6)[: x.shape[1]]) if x.shape[1] <= 6 else x
        return torch.fmax(x, torch.zeros(())), x.relu().isnan(), x.clamp(min=0).isnan(), y.isnan()


@program(x="number batch=3 length=6")
class MissingMean(nn.Module):
    def forward(self, x):
        seen = x.isfinite()
        total = torch.where(seen, x, 0.0).sum(-1)
        return total / seen.sum(-1).clamp(min=1), torch.nanmean(torch.where(seen, x, torch.nan), -1).nan_to_num(0)


@program(x="number batch=3 length=6")
class SignOfZero(nn.Module):
    def forward(self, x):
        return torch.copysign(torch.ones(()), x), torch.signbit(x), torch.atan2(x.nan_to_num(0, 1, -1), -torch.ones(()))
