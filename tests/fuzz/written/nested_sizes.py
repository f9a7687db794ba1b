"""Programs that ask about sizes only on the side of a decision on values that the example does not take."""

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=3 width=20")
class ChunksOnTheOtherSide(nn.Module):
    def forward(self, x):
        if x.max() > 5:
            return x * 2 if len(x.chunk(4, -1)) == 4 else x * 3
        return x


@program(x="float batch=3 width=20")
class WidthOnTheOtherSide(nn.Module):
    def forward(self, x):
        if x.abs().max() > 5:
            x = x / x.shape[1]
            if x.shape[1] > 40:
                x = x[:, ::2].sum(1, keepdim=True) + x
        return x


@program(x="float batch=3 width=20")
class RemainderOnTheOtherSide(nn.Module):
    def forward(self, x):
        y = x.clamp(-1, 1)
        if x.sum() > 100:
            if x.shape[0] % 7 == 4:
                y = y.flip(0)
            elif x.shape[1] % 5:
                y = y + x.amax()
        return y


@program(x="float batch=3 width=20")
class FixedOnTheOtherSide(nn.Module):
    """No statement asks of a size there, but an exporter may fix the count of parts."""

    def forward(self, x):
        if x.min() < -6:
            return torch.stack([part.sum() for part in x.chunk(5, 1)]).sum() + x
        return x


@program(x="float batch=3 width=20")
class SplitOnTheOtherSide(nn.Module):
    def forward(self, x):
        if x.min() < -6:
            return sum(part.sum(1) * i for i, part in enumerate(x.split(8, 1)))
        return x.sum(1)


@program(x="float batch=3 width=20")
class BothSidesAsk(nn.Module):
    def forward(self, x):
        if (x > 4).any():
            return x * (2 if x.shape[1] > 30 else 1)
        return x * (3 if x.shape[1] > 60 else 1)


@program(x="float batch=3 width=20")
class ThreeDeep(nn.Module):
    def forward(self, x):
        if x.max() > 4:
            y = x * 2
            if x.shape[1] > 24:
                y = y + 1
                if x.min() < -4:
                    return y[:, :: 2 if x.shape[0] > 5 else 1].sum(1)
                return y.mean(1)
        return x.amax(1)


@program(x="float batch=3 width=20")
class LoopOnTheOtherSide(nn.Module):
    def forward(self, x):
        if x.mean() > 3:
            y = torch.zeros(x.shape[0])
            for i in range(0, x.shape[1], 8):
                y = torch.maximum(y, x[:, i : i + 8].sum(1))
            return y
        return x.sum(1)


@program(x="float batch=3 width=20")
class PadOnTheOtherSide(nn.Module):
    def forward(self, x):
        if x.mean() > 3:
            missing = -x.shape[1] % 8
            if missing:
                x = F.pad(x, (0, missing))
            return x.reshape(x.shape[0], -1, 8).sum((1, 2))
        return x.sum(1)


@program(x="float batch=3 width=20")
class RootOnTheOtherSide(nn.Module):
    def forward(self, x):
        if x.std() > 9:
            n = int(x.shape[1] * 0.7)
            return x[:, :n].sum(1)
        return x.sum(1)


@program(x="float batch=3 width=20")
class HelperOnTheOtherSide(nn.Module):
    def _cut(self, x):
        return x[:, :16] if x.shape[1] > 16 else F.pad(x, (0, 16 - x.shape[1]))

    def forward(self, x):
        return self._cut(x) if torch.isfinite(x).all() and x.abs().sum() > 400 else x[:, :1].expand(-1, 16)


@program(x="float batch=3 width=20", y="float batch=3 other=6")
class OtherInputOnTheOtherSide(nn.Module):
    def forward(self, x, y):
        if y.max() > 8:
            return x.sum(1) if y.shape[1] > x.shape[1] else y.sum(1)
        return x.amax(1)
