"""Programs that few sizes answer otherwise: squares, primes, digits, remainders of polynomials, sizes tied together."""

import cmath
import decimal
import fractions
import functools
import math
import operator
import struct

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=3 4")
class RemainderOfPolynomial(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return x * 2 if (n * n + 7 * n + 3) % 101 == 2 else x


@program(x="float batch=3 4")
class ModularPower(nn.Module):
    def forward(self, x):
        return x - 1 if pow(x.shape[0], 3, 17) == 5 else x + 1


@program(x="float batch=3 4")
class IsPrime(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        prime = n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))
        return x.cumsum(0) if prime else x


@program(x="float batch=3 4")
class SieveTable(nn.Module):
    primes = (2, 3, 5, 7, 11, 13)

    def forward(self, x):
        for p in self.primes:
            if x.shape[0] % p == 0:
                return x * p
        return x


@program(x="float batch=3 4")
class PerfectSquare(nn.Module):
    def forward(self, x):
        side = round(math.sqrt(x.shape[0]))
        if side * side == x.shape[0]:
            return x.reshape(side, side, 4).transpose(0, 1).reshape(-1, 4)
        return x


@program(x="float length=16 4")
class SquareOrPadded(nn.Module):
    """A sequence made into a grid: cut to the next square, with what is missing filled with the last row."""

    def forward(self, x):
        side = math.ceil(math.sqrt(x.shape[0]))
        missing = side * side - x.shape[0]
        if missing:
            x = torch.cat([x, x[-1:].expand(missing, -1)])
        return x.view(side, side, 4).mean(0)


@program(x="float batch=3 4")
class BitCount(nn.Module):
    def forward(self, x):
        return x * 3 if bin(x.shape[0]).count("1") == 3 else x


@program(x="float batch=3 4")
class BitLength(nn.Module):
    def forward(self, x):
        return F.pad(x, (0, 0, 0, 2 ** x.shape[0].bit_length() - x.shape[0]))


@program(x="float batch=3 4")
class BitXor(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return x[: (n ^ 5) % 3 + 1] * (n & 6) + (n | 1) + (n >> 1) + (n << 2) + ~n


@program(x="float batch=3 4")
class FirstDigit(nn.Module):
    def forward(self, x):
        return x * int(str(x.shape[0])[0])


@program(x="float batch=3 4")
class DigitSum(nn.Module):
    def forward(self, x):
        n, total = x.shape[0], 0
        while n:
            n, digit = divmod(n, 10)
            total += digit
        return x + total


@program(x="float batch=3 4")
class Palindrome(nn.Module):
    def forward(self, x):
        text = str(x.shape[0])
        return x if text == text[::-1] else -x


@program(x="float batch=3 4")
class HashOfSize(nn.Module):
    def forward(self, x):
        return x * (hash(x.shape[0]) % 3 + 1)


@program(x="float batch=3 4")
class HashOfShape(nn.Module):
    def forward(self, x):
        return x * (hash(tuple(x.shape)) % 5 + 1)


@program(x="float height=6 width=8")
class CommonDivisor(nn.Module):
    def forward(self, x):
        h, w = x.shape
        g = math.gcd(h, w)
        return F.avg_pool2d(x[None, None], (h // g, w // g))[0, 0]


@program(x="float height=6 width=8")
class CommonDivisorDecides(nn.Module):
    def forward(self, x):
        return x.T if math.gcd(x.shape[0], x.shape[1]) == 1 else x.flip(0).T


@program(x="float height=6 width=8")
class AreaDecides(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] * x.shape[1] == 91 else x


@program(x="float height=6 width=8")
class AspectRatio(nn.Module):
    """Buckets of aspect ratios, as training of picture models has them."""

    ratios = ((1, 1), (4, 3), (16, 9), (3, 4), (9, 16))

    def forward(self, x):
        h, w = x.shape
        best = min(self.ratios, key=lambda r: abs(r[0] / r[1] - w / h))
        return x * best[0] + best[1]


@program(x="float height=6 width=8")
class ExactRatio(nn.Module):
    def forward(self, x):
        if fractions.Fraction(x.shape[1], x.shape[0]) == fractions.Fraction(16, 9):
            return x.mean(1)
        return x.mean(1) + 1


@program(x="float height=6 width=8")
class RatioOfIntegers(nn.Module):
    def forward(self, x):
        return x.mean(1) if x.shape[1] * 9 == x.shape[0] * 16 else x.sum(1)


@program(x="float height=6 width=8")
class SumOfSquares(nn.Module):
    def forward(self, x):
        h, w = x.shape
        return x if h**2 + w**2 != 625 else x.exp()


@program(x="float height=6 width=8")
class Diagonally(nn.Module):
    def forward(self, x):
        return x * 2 if math.hypot(*x.shape) > 25 else x


@program(x="float batch=3 4")
class DecimalOfSize(nn.Module):
    def forward(self, x):
        return x * float(decimal.Decimal(x.shape[0]) / 3)


@program(x="float batch=3 4")
class NumpyOfSize(nn.Module):
    def forward(self, x):
        n = np.int64(x.shape[0])
        return x * float(np.sqrt(n)) + int(np.ceil(n / 3)) + int(np.floor_divide(n, 2))


@program(x="float batch=3 4")
class NumpyByteOfSize(nn.Module):
    """Eight bits hold no size of 256."""

    def forward(self, x):
        return x * int(np.asarray(x.shape[0]).astype(np.uint8))


@program(x="float batch=3 4")
class TensorByteOfSize(nn.Module):
    def forward(self, x):
        n = torch.tensor(x.shape[0])
        return x * n.to(torch.uint8), x + n.to(torch.int8) * 2


@program(x="float batch=3 4")
class HalfOfSize(nn.Module):
    """Half floats hold no odd size above 2048."""

    def forward(self, x):
        return x * torch.tensor(x.shape[0], dtype=torch.float16), x.sum(0) / torch.tensor(float(x.shape[0])).bfloat16()


@program(x="float batch=3 4")
class StructOfSize(nn.Module):
    def forward(self, x):
        return x + struct.pack("<I", x.shape[0])[0]


@program(x="float batch=3 4")
class ComplexOfSize(nn.Module):
    def forward(self, x):
        return x * cmath.exp(2j * math.pi / x.shape[0]).real


@program(x="float batch=3 4")
class CombinationsOfSize(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return x / math.comb(n + 2, 2) + math.factorial(min(n, 5)) + math.perm(n % 4 + 2, 2)


@program(x="float batch=3 4")
class ReduceOfShape(nn.Module):
    def forward(self, x):
        return x + functools.reduce(operator.mul, x.shape, 1) + math.prod(x.shape) + sum(x.shape) + max(*x.shape)


@program(x="float batch=3 4")
class LastOfRange(nn.Module):
    def forward(self, x):
        steps = range(0, x.shape[0], 3)
        return x[steps[-1]] * len(steps) + (2 if 9 in steps else 1)


@program(x="float batch=3 4")
class IndexIntoRange(nn.Module):
    def forward(self, x):
        evens = list(range(x.shape[0]))[::2]
        return x[evens] + len(evens)


@program(x="float batch=3 4")
class TruthTable(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        a, b, c = n % 2 == 0, n % 3 == 0, n > 30
        if (a and not b) or (b and c and not a):
            return x + 1
        return x - (1 if a ^ b else 2) - sum((a, b, c))


@program(x="float batch=3 4")
class CollatzSteps(nn.Module):
    def forward(self, x):
        n, steps = x.shape[0], 0
        while n != 1 and steps < 200:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return x * steps


@program(x="float batch=3 4")
class EuclidByHand(nn.Module):
    def forward(self, x):
        a, b = x.shape[0], 36
        while b:
            a, b = b, a % b
        return x[::a]


@program(x="float batch=3 4")
class NextMultiple(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        while n % 7:
            n += 1
        return F.pad(x, (0, 0, 0, n - x.shape[0]))


@program(x="float batch=3 4", y="float other=3 4")
class SameLength(nn.Module):
    def forward(self, x, y):
        if x.shape[0] == y.shape[0]:
            return (x * y).sum(0)
        return x.sum(0) * y.sum(0)


@program(x="float batch=3 4", y="float other=5 4")
class TwiceAsLong(nn.Module):
    def forward(self, x, y):
        if 2 * x.shape[0] == y.shape[0] + 1:
            return x.sum(0) - y.sum(0)
        return x.sum(0) + y.sum(0)


@program(x="float batch=3 4", y="float other=7 4")
class SumIsTwenty(nn.Module):
    def forward(self, x, y):
        z = torch.cat([x, y])
        return z[::2] if len(z) == 20 else z[1::2]


@program(x="float batch=3 4", y="float other=7 4", z="float third=2 4")
class ThreeSizes(nn.Module):
    def forward(self, x, y, z):
        a, b, c = len(x), len(y), len(z)
        if a < b < c:
            return torch.cat([x, y, z])
        if a == c:
            return torch.cat([z, x])
        return x[: min(a, b, c)] + 1


@program(x="float batch=3 4", y="float batch=3 6")
class SharedAxis(nn.Module):
    def forward(self, x, y):
        joined = torch.cat([x, y], 1)
        if x.shape[0] != y.shape[0]:
            joined = joined * 0
        return joined * (1 if x.shape[0] % 5 else 2)


@program(x="float batch=3 length=5 4", y="float batch=3 other=7 4", mask="mask batch=3 length=5 other=7")
class CrossAttention(nn.Module):
    def forward(self, x, y, mask):
        scores = (x @ y.mT / math.sqrt(x.shape[-1])).masked_fill(mask, -1e9)
        weights = scores.softmax(-1) if y.shape[1] > 1 else torch.ones_like(scores)
        return weights @ y


@program(x="float batch=3 4")
class DistanceToTwentyOne(nn.Module):
    def forward(self, x):
        return x / (1 + abs(x.shape[0] - 21)) if abs(x.shape[0] - 21) < 3 else x


@program(x="float batch=3 4")
class SignOfDifference(nn.Module):
    def forward(self, x):
        d = x.shape[0] - 10
        return x * ((d > 0) - (d < 0))


@program(x="float batch=3 4")
class NegativeRemainders(nn.Module):
    def forward(self, x):
        d = 5 - x.shape[0]
        return x * (d // 3), x + d % 3, x - math.fmod(d, 3), x + int(d / 3), x * divmod(d, -4)[0], x + d % -4


@program(x="float batch=3 4")
class TensorRemainders(nn.Module):
    """The same with tensors: Python's and C's remainders of negative numbers differ."""

    def forward(self, x):
        d = 5 - torch.tensor(x.shape[0])
        return x * (d // 3), x + d % 3, x - torch.fmod(d, 3), x + torch.div(d, 3, rounding_mode="trunc")


@program(x="float batch=3 length=4 5")
class ProductOfAxesDecides(nn.Module):
    def forward(self, x):
        tokens = x.shape[0] * x.shape[1]
        capacity = max(4, math.ceil(tokens * 1.25 / 8))
        flat = x.reshape(tokens, 5)
        kept = flat[:capacity] if capacity < tokens else flat
        return kept.sum(0) / capacity
