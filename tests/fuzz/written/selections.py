"""Programs that reduce what a mask, a threshold or a slice leaves, which may be nothing."""

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float n=6 3", m="mask n=6")
class MeanOfMasked(nn.Module):
    def forward(self, x, m):
        return x[m].mean(), x[m].mean(0), x[m].sum(0) / m.sum()


@program(x="float n=6 3", m="mask n=6")
class MeanOfSelected(nn.Module):
    def forward(self, x, m):
        return torch.masked_select(x, m[:, None]).mean()


@program(x="float n=6 3", m="mask n=6")
class MeanOfIndexed(nn.Module):
    def forward(self, x, m):
        return x[m.nonzero().squeeze(1)].mean(0), x[torch.where(m)[0]].mean(0, keepdim=True)


@program(x="float n=6 3", m="mask n=6")
class LossOfMasked(nn.Module):
    def forward(self, x, m):
        return F.mse_loss(x[m], x[m] * 2), F.l1_loss(x[m], x[m] * 2), F.smooth_l1_loss(x[m], x[m] * 2)


@program(x="float n=6 3", m="mask n=6")
class SpreadOfMasked(nn.Module):
    def forward(self, x, m):
        return x[m].var(0, unbiased=False), x[m].std(unbiased=False)


@program(x="float n=6 3", m="mask n=6")
class TruthsOfMasked(nn.Module):
    def forward(self, x, m):
        return (x[m] > 0).any(), (x[m] > 0).any(0), (x[m] > 0).all(), (x[m] > 0).all(0)


@program(x="float n=6 3", m="mask n=6")
class DecisionOfMasked(nn.Module):
    def forward(self, x, m):
        return x * 2 if (x[m] > 0).any() else x - 1


@program(x="float n=6 3", m="mask n=6")
class InMasked(nn.Module):
    def forward(self, x, m):
        return torch.isin((x[:, 0] * 3).long(), (x[m][:, 0] * 3).long())


@program(x="float n=6 3", m="mask n=6")
class NearMasked(nn.Module):
    def forward(self, x, m):
        return ((x[:, None, 0] - x[m][None, :, 0]).abs() < 0.2).any(dim=1)


@program(x="float n=6 3", m="mask n=6")
class LikenessToMasked(nn.Module):
    def forward(self, x, m):
        return (x @ x[m].t()).mean(1)


@program(x="float n=6 3")
class MeanAboveThreshold(nn.Module):
    def forward(self, x):
        return x[x > 0.5].mean(), x[x.sum(1) < 1].mean(0)


@program(x="float n=6 3", y="3 n=6")
class Prototypes(nn.Module):
    def forward(self, x, y):
        return torch.stack([x[y == k].mean(0) for k in range(3)])


@program(x="float n=6 3", y="3 n=6")
class PrototypesOfPresent(nn.Module):
    def forward(self, x, y):
        return torch.stack([x[y == k].mean(0) if (y == k).any() else torch.zeros(3) for k in range(3)])


@program(x="float n=6 3")
class MeanOfTheRest(nn.Module):
    def forward(self, x):
        return x[2:].mean(0), (x[2:] > 0).any(0)


@program(x="float n=6 3", m="mask n=6")
class MeanOfTheFirst(nn.Module):
    def forward(self, x, m):
        return x[: int(m.sum())].mean(0)


@program(x="float n=6 3", m="mask n=6")
class MeanOfBothSides(nn.Module):
    def forward(self, x, m):
        return torch.cat([x[m].mean(0), x[~m].mean(0)]), torch.cat([x[m], x[~m]]).mean(0)


@program(x="float n=2 height=12 4", m="mask n=2")
class MaskBehindPadding(nn.Module):
    def forward(self, x, m):
        rest = x.shape[1] % 4
        if rest:
            x = torch.cat([x, x.new_zeros(x.shape[0], 4 - rest, 4)], 1)
        return x.unflatten(1, (-1, 4)).amax((1, 2))[m].mean(0)


@program(x="float n=6 3")
class IntegralOfTheRest(nn.Module):
    def forward(self, x):
        return torch.trapezoid(x[2:], dim=0), x[2:].long().prod(0)


@program(x="float n=6 5", y="5 n=6")
class LossOfSelected(nn.Module):
    def forward(self, x, y):
        kept = y > 2
        return F.cross_entropy(x[kept], y[kept]), F.cross_entropy(x[kept], y[kept], label_smoothing=0.1)


@program(x="float n=6 3")
class MedianAboveThreshold(nn.Module):
    def forward(self, x):
        return x[x > 0.5].median(), x[x > 0.5].nanmedian()
