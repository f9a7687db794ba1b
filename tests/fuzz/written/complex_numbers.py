"""Programs that decide and loop over complex tensors, which a file holds as pairs of real ones."""

import torch
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()

SIZES = {"batch": (1, 9), "length": (2, 20)}


def polar(x):
    return torch.polar(x.abs().clamp(max=9) + 0.1, x.clamp(-9, 9))


def parts(*values):
    return tuple(torch.view_as_real(value.resolve_conj()) for value in values)


@program({}, SIZES, x="float batch=2 length=7")
class WrittenInBranch(nn.Module):
    def forward(self, x):
        s = polar(x)
        if x.sum() > 0:
            s[:, 0] = 0
        return parts(s)


@program({}, SIZES, x="float batch=2 length=7")
class WrittenThroughView(nn.Module):
    def forward(self, x):
        s = polar(x)
        t = s[:, 1:]
        if x.sum() > 0:
            t.mul_(2)
        return parts(s)


@program({}, SIZES, x="float batch=2 length=7")
class SecondName(nn.Module):
    """Which of two a write goes to is decided by values."""

    def forward(self, x):
        s, u = polar(x), polar(x * 2)
        y = s if x.sum() > 0 else u
        y[:, 0] = 0
        return parts(s, u, y)


@program({}, SIZES, x="float batch=2 length=7")
class RealPartOfWritten(nn.Module):
    def forward(self, x):
        s = polar(x)
        real = s.real
        if x.sum() > 0:
            s.mul_(2)
        return real + 1, *parts(s)


@program({}, SIZES, x="float batch=2 length=7")
class DetachedAndConjugate(nn.Module):
    def forward(self, x):
        s = polar(x)
        d, c = s.detach(), s.conj()
        if x.sum() > 0:
            d.add_(1)
        return parts(s, c)


@program({}, {"batch": (2, 9), "length": (2, 20)}, x="float batch=2 length=7")
class CopiedIntoRow(nn.Module):
    def forward(self, x):
        s = polar(x)
        p = s[0]
        if x.sum() > 0:
            p.copy_(s[1] * 2)
        return parts(s)


@program({}, SIZES, x="float batch=2 length=7")
class RowsInPlace(nn.Module):
    def forward(self, x):
        s = polar(x)
        for i in range(x.shape[0]):
            s[i] = s[i] * 2
        return parts(s)


@program({}, SIZES, x="float batch=2 length=7")
class Iterated(nn.Module):
    """Carries a complex tensor, and reads another one from outside."""

    def forward(self, x):
        z, c = polar(x * 0.1), polar(x * 0.5)
        for _ in range(x.shape[0]):
            z = z * z * 0.05 + c
        return z.abs()


@program({}, SIZES, x="float batch=2 length=7")
class RowByRow(nn.Module):
    def forward(self, x):
        z = polar(x)
        found = []
        for i in range(x.shape[0]):
            found.append(z[i].abs() + z[i].angle())
        return torch.stack(found)


@program({}, SIZES, x="float batch=2 length=7")
class LeakySum(nn.Module):
    def forward(self, x):
        z = polar(x)
        h = torch.zeros(x.shape[1], dtype=torch.complex64)
        for i in range(x.shape[0]):
            h = h * 0.5 + z[i]
        return parts(h)


@program({}, SIZES, x="float batch=2 length=7")
class UntilSmall(nn.Module):
    def forward(self, x):
        z = polar(x)
        n = 0
        while z.abs().max() > 0.35 and n < 20:
            z = z * torch.exp(torch.complex(-torch.ones_like(x) * 0.2, x.clamp(-9, 9)))
            n += 1
        return parts(z)


@program({}, SIZES, x="float batch=2 length=7")
class ReturnedEarly(nn.Module):
    def forward(self, x):
        z = polar(x)
        if x.sum() > 0:
            return parts(z.conj())
        return parts(z * 2)


@program({}, SIZES, x="float batch=2 length=7")
class ChosenOfThree(nn.Module):
    def forward(self, x):
        z, w = polar(x), None
        if x.sum() > 3:
            w = z * 2
        elif x.sum() < -3:
            w = z * 3j
        if w is None:
            w = z
        return parts(w + z)


@program({}, SIZES, x="float batch=2 length=7")
class CutBySize(nn.Module):
    def forward(self, x):
        z = polar(x)
        if x.shape[0] > 2:
            z = z[:2]
        return parts(z.sum(0))


@program({}, SIZES, x="float batch=2 length=7")
class TransformedBySize(nn.Module):
    def forward(self, x):
        z = torch.polar(torch.ones_like(x), x.clamp(-9, 9))
        z = z[:3].sum(0) if x.shape[0] > 3 else torch.fft.fft(z, dim=1).sum(0)
        return parts(z)


@program({}, SIZES, x="float batch=2 length=7")
class GrowingList(nn.Module):
    def forward(self, x):
        found = [polar(x), polar(x * 2)]
        if x.sum() > 0:
            found.append(polar(x * 3))
        return parts(torch.stack(found).sum(0))


@program({}, SIZES, x="float batch=2 length=7")
class LowFrequencies(nn.Module):
    """As many as there are, three at most, are weighted."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, dtype=torch.complex64))

    def forward(self, x):
        s = torch.fft.rfft(x, dim=1)
        kept = min(3, s.shape[1])
        out = torch.zeros_like(s)
        out[:, :kept] = s[:, :kept] * self.weight[:kept]
        return torch.fft.irfft(out, n=x.shape[1], dim=1)
