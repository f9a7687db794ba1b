"""Fractions of sizes, which Python computes in float64: 0.7 * 90 is a little less than 63."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float length=4 3")
class KeepsSevenTenths(nn.Module):
    def forward(self, x):
        return x[: int(x.shape[0] * 0.7)]


@program(x="float length=4 3")
class RollsByAFraction(nn.Module):
    def forward(self, x):
        k = int(x.shape[0] * 0.58)
        return torch.cat([x[k:], x[:k]])


@program(x="float length=4 3")
class PadsATenth(nn.Module):
    def forward(self, x):
        return F.pad(x, (0, 0, 0, math.ceil(x.shape[0] * 0.1)))


@program(x="float length=4 3")
class TopThirtyPercent(nn.Module):
    def forward(self, x):
        return x.topk(max(1, int(x.shape[0] * 0.3)), 0).values


@program(x="float length=4 3")
class RoundedPart(nn.Module):
    def forward(self, x):
        return x[: round(x.shape[0] / 3 * 0.9) + 1]


@program(x="float length=4 3")
class LongerByATenth(nn.Module):
    def forward(self, x):
        return torch.zeros(int(x.shape[0] * 1.1) + 1, 3) + x[:1]


@program(x="float length=4 3")
class AboveThreeTenths(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] * 0.1 > 0.3 else x + 1


@program(x="float length=4 3")
class IsSevenTenths(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] / 10 == 0.7 else x + 1


@program(x="float length=4 3")
class InverseInTuple(nn.Module):
    def forward(self, x):
        return x * 2 if 1 / x.shape[0] in (0.2, 0.1) else x + 1


@program(x="float length=4 3")
class RoundedToCents(nn.Module):
    def forward(self, x):
        return x * 2 if round(x.shape[0] * 0.15, 2) >= 0.75 else x + 1


@program(x="float length=4 3")
class WholePercents(nn.Module):
    def forward(self, x):
        return x * int(x.shape[0] * 0.29 * 100)


@program(x="float length=4 3")
class IsASquare(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] ** 0.5 % 1 == 0 else x + 1


@program(x="float length=4 3")
class IsAPowerOfTwo(nn.Module):
    def forward(self, x):
        return x * 2 if math.log2(x.shape[0]) == 3 else x + 1


@program(x="float length=4 3")
class AddsTenths(nn.Module):
    def forward(self, x):
        share = x.shape[0] * 0.1
        for _ in range(3):
            share = share + 0.1
        return x * 2 if share > 0.6 else x + 1


@program(x="float height=6 width=8")
class TilesOfAFraction(nn.Module):
    def forward(self, x):
        rows, columns = math.ceil(x.shape[0] / 3.5), max(1, int(x.shape[1] * 0.35))
        return F.adaptive_avg_pool2d(x[None], (3, 2))[0], x[:rows, :columns]


@program(x="float height=6 width=8")
class KeepsTheRatio(nn.Module):
    def forward(self, x):
        height, width = x.shape
        scale = min(10 / height, 12 / width)
        return F.interpolate(x[None, None], size=(int(height * scale), int(width * scale)))[0, 0]


@program(x="float length=4 3")
class WindowsWithOverlap(nn.Module):
    def forward(self, x):
        step = math.floor(x.shape[0] * 0.45) + 1
        return x[::1][step - 1 :] + x.mean() * (x.shape[0] * 0.1)


@program(x="float length=4 3")
class WarmsUp(nn.Module):
    def forward(self, x):
        share = min(1.0, x.shape[0] / 30)
        return x * share if share < 0.7 else x[: int(share * x.shape[0] * 0.9)]


@program(x="float length=4 3")
class FloorsAgree(nn.Module):
    """A float that is just below a whole number, and one that is not: at 90 only, and then at 170."""

    def forward(self, x):
        n = x.shape[0]
        return x * 2 if math.floor(n * 0.7) == int(n * 0.7 + 1e-9) else x - 1


@program(x="float length=4 3")
class CeilingsAgree(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return x * 2 if math.ceil(n * 0.1) == round(n * 0.1 + 0.4999999) else x - 1
