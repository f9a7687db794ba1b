"""Numbers that Python computes in float64 from sizes and values, and that meet tensors: torch rounds them once."""

import math

import torch
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float 3 length=20")
class FilledWithAFraction(nn.Module):
    def forward(self, x):
        return x[:, :1] + torch.full((3, 1), x.shape[1] * 0.7, dtype=torch.float64).floor()


@program(x="float 3 length=20")
class FilledAndRounded(nn.Module):
    def forward(self, x):
        return x[:, :1] + torch.full((3, 1), x.shape[1] * 0.7).floor()


@program(x="float 3 length=20")
class OnesTimesAFraction(nn.Module):
    def forward(self, x):
        return x[:, :1] + (torch.ones(3, 1, dtype=torch.float64) * (x.shape[1] * 0.7)).floor()


@program(x="float 3 length=20")
class FilledInPlace(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x, dtype=torch.float64).fill_(x.shape[1] * 0.58).floor() + x


@program(x="float 3 length=20")
class FilledLike(nn.Module):
    def forward(self, x):
        return torch.full_like(x, x.shape[1] * 0.29 * 10, dtype=torch.float64).ceil()


@program(x="float 3 length=20")
class ScaledInPlace(nn.Module):
    def forward(self, x):
        scale = torch.ones(3, 1, dtype=torch.float64)
        scale *= x.shape[1] * 0.7
        return x[:, :1] + scale.floor()


@program(x="float 3 length=20")
class BinnedPositions(nn.Module):
    def forward(self, x):
        return x * torch.floor(torch.arange(x.shape[1]) / (x.shape[1] * 0.1))


@program(x="float 3 length=20")
class ScaledPositions(nn.Module):
    def forward(self, x):
        return x * torch.floor(torch.arange(x.shape[1]) * (x.shape[1] * 0.1))


@program(x="float 3 length=20")
class ShiftedPositions(nn.Module):
    def forward(self, x):
        return x * torch.floor(torch.arange(x.shape[1]) - x.shape[1] * 0.7)


@program(x="float 3 length=20")
class NearestByRatio(nn.Module):
    def forward(self, x):
        size = int(x.shape[1] * 0.35) + 1
        return x[:, (torch.arange(size) * (x.shape[1] / size)).long().clamp(max=x.shape[1] - 1)]


@program(x="float 3 length=20")
class FractionsInAList(nn.Module):
    def forward(self, x):
        parts = torch.tensor([x.shape[1] * 0.7, x.shape[1] * 0.1], dtype=torch.float64)
        return parts.floor() + x[:, :1]


@program(x="float 3 length=20")
class ASingleFraction(nn.Module):
    def forward(self, x):
        return x[:, :1] + torch.tensor(x.shape[1] * 0.7).floor()


@program(x="float 3 length=20")
class BelowAFraction(nn.Module):
    def forward(self, x):
        return x * (torch.arange(x.shape[1]) >= x.shape[1] * 0.7)


@program(x="float 3 length=20")
class MaskedWithAFraction(nn.Module):
    def forward(self, x):
        return x.masked_fill(x > 0, x.shape[1] * 0.7).floor()


@program(x="float 3 length=20")
class PowerOfASize(nn.Module):
    def forward(self, x):
        return (torch.ones(3, 1, dtype=torch.float64) * x.shape[1] ** 0.5).floor() + x[:, :1]


@program(x="float 3 length=20")
class RootOfASize(nn.Module):
    def forward(self, x):
        return x[:, : int(math.sqrt(x.shape[1]) * 0.7) + 1] * math.sqrt(x.shape[1])


@program(x="float 3 4")
class ValueInATensor(nn.Module):
    def forward(self, x):
        return torch.full((3, 1), x[0, 0].round().item() * 0.7, dtype=torch.float64).floor() + x * 0


@program(x="float 3 4")
class TensorOfAValue(nn.Module):
    def forward(self, x):
        return torch.tensor(x[0, 0].round().item() * 0.7).floor() + x * 0


@program(x="float 3 4")
class OnesTimesAValue(nn.Module):
    def forward(self, x):
        return (torch.ones(3, 1, dtype=torch.float64) * (x[0, 0].round().item() * 0.7)).floor() + x * 0


@program(x="float 3 4")
class PositionsByAValue(nn.Module):
    def forward(self, x):
        return (torch.arange(4) * (x[0, 0].round().item() * 0.1)).floor() + x * 0
