"""Programs that halve, recur, accumulate and look up: what algorithms do with sizes and with numbers from values."""

import functools
import itertools
import math
import operator
from collections import Counter, deque

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=2 length=12 3")
class PooledToOne(nn.Module):
    """Halves the length until it is short, and pads an odd one."""

    def forward(self, x):
        rounds = 0
        while x.shape[1] > 2:
            if x.shape[1] & 1:
                x = F.pad(x, (0, 0, 0, 1))
            x = x[:, ::2] + x[:, 1::2]
            rounds += 1
        return x.mean(1) * rounds


@program(x="float rows=5 4")
class SumByHalves(nn.Module):
    """Adds rows as a tree."""

    def forward(self, x):
        return self.total(x)

    def total(self, x):
        if x.shape[0] == 1:
            return x[0]
        middle = x.shape[0] // 2
        return self.total(x[:middle]) + self.total(x[middle:])


@program(x="float batch=2 length=11")
class LastOfRest(nn.Module):
    """Takes as many as the remainder from the end, which may be none: ``x[:, -0:]`` is all."""

    def forward(self, x):
        rest = x.shape[1] % 3
        return x[:, -rest:].sum(1), x[:, x.shape[1] - rest :].sum(1)


@program(x="float batch=3 length=9")
class StepsByLevel(nn.Module):
    def forward(self, x):
        levels = int(math.log2(x.shape[1]))
        out = x.new_zeros(x.shape[0])
        for level in range(levels):
            out = out + x[:, :: 2**level].mean(1) / (level + 1)
        return out, torch.tensor(levels)


@program(x="float batch=3 length=9")
class BitsOfLength(nn.Module):
    def forward(self, x):
        length = x.shape[1]
        weights = [1.0 if length >> bit & 1 else -1.0 for bit in range(4)]
        return x.sum(1) * sum(weight * 2**bit for bit, weight in enumerate(weights))


@program(x="float batch=3 length=8")
class Divisors(nn.Module):
    """The largest group that divides the length."""

    def forward(self, x):
        groups = next(g for g in (4, 3, 2, 1) if x.shape[1] % g == 0)
        return x.reshape(x.shape[0], groups, -1).amax(2).sum(1)


@program(x="float rows=4 6")
class Accumulated(nn.Module):
    def forward(self, x):
        sums = list(itertools.accumulate(x.unbind(0), lambda a, b: a * 0.5 + b))
        return torch.stack(sums), functools.reduce(torch.maximum, sums)


@program(x="float rows=4 6")
class PairsOfRows(nn.Module):
    def forward(self, x):
        rows = list(x)
        return sum((a - b).abs().sum() for a, b in itertools.pairwise([*rows, rows[0]]))


@program(x="float rows=4 3")
class ByPythonsMax(nn.Module):
    """max and sorted of Python, over rows."""

    def forward(self, x):
        best = max(x, key=lambda row: row.sum().item())
        return best * 2, sum(x)


@program(x="float batch=2 length=7")
class ByMatch(nn.Module):
    def forward(self, x):
        match tuple(x.shape):
            case (1, length):
                return x.sum(1) * length
            case (batch, length) if length > 8:
                return x[:, :8].sum(1) + batch
            case (_, length):
                return x.mean(1) - length


@program(x="float batch=2 4")
class ByName(nn.Module):
    """Looks a function up by what values say."""

    def forward(self, x):
        return getattr(torch, "sin" if x.mean() > 0 else "cos")(x)


@program(x="float batch=2 4")
class ByTable(nn.Module):
    def forward(self, x):
        steps = {0: torch.neg, 1: torch.abs, 2: torch.tanh}
        return steps[int((x > 0).sum()) % 3](x)


@program(x="float batch=2 6")
class ChainedComparison(nn.Module):
    def forward(self, x):
        if -0.5 < (middle := x.mean()) < 0.5:
            return x - middle
        elif not 0 <= x.std() <= 5:
            return x / x.std()
        return x + 1


@program(x="float batch=3 5")
class SomeAndAll(nn.Module):
    def forward(self, x):
        if any(v > 2 for v in x.amax(0)):
            x = x.clamp(max=2)
        if all(row.sum() > 0 for row in x):
            x = -x
        return x


@program(x="float batch=2 5")
class RoundsByData(nn.Module):
    def forward(self, x):
        for _ in range(int((x > 0).sum()) % 4):
            x = torch.cat([x[:, 1:], x[:, :1]], 1) * 0.5
        return x


@program(x="float batch=2 8")
class BothEnds(nn.Module):
    """Two pointers that meet."""

    def forward(self, x):
        low, high = 0, x.shape[1] - 1
        out = x.new_zeros(x.shape[0])
        while low < high:
            out = out + x[:, low] * x[:, high]
            low, high = low + 1, high - 1
        return out + x[:, low] if low == high else out


@program(x="float batch=2 length=9")
class QueueOfParts(nn.Module):
    """Splits what is longer than 3, in a queue."""

    def forward(self, x):
        queue, sums = deque([x]), []
        while queue:
            part = queue.popleft()
            if part.shape[1] > 3:
                queue.extend(part.chunk(2, 1))
            else:
                sums.append(part.prod(1))
        return sum(sums)


@program(x="float batch=4 5")
class CountedSigns(nn.Module):
    def forward(self, x):
        counts = Counter(bool(row.sum() > 0) for row in x)
        return x * counts[True] - counts[False]


@program(x="float batch=2 length=6")
class GreatestCommon(nn.Module):
    def forward(self, x):
        step = math.gcd(x.shape[1], 4)
        return x.unfold(1, step, step).sum(2)


@program(x="float batch=2 length=10")
class WindowsThatOverlap(nn.Module):
    def forward(self, x):
        size = max(2, x.shape[1] // 3)
        starts = range(0, x.shape[1] - size + 1, max(1, size // 2))
        return torch.stack([x[:, s : s + size].mean(1) for s in starts], 1).amax(1)


@program(x="float batch=2 length=9")
class Binary(nn.Module):
    """The place of a number in a sorted row, by bisection."""

    def forward(self, x):
        row = x[0].sort().values
        low, high = 0, row.shape[0]
        while low < high:
            middle = (low + high) // 2
            if row[middle] < 0.25:
                low = middle + 1
            else:
                high = middle
        return x + low


@program(x="float batch=2 length=7")
class DotOfHalves(nn.Module):
    def forward(self, x):
        half, odd = divmod(x.shape[1], 2)
        left, right = x[:, :half], x[:, half + odd :]
        return functools.reduce(operator.mul, [left.sum(1), right.sum(1), x[:, half] if odd else left.new_ones(len(x))])


@program(x="float batch=2 length=6")
class TriangleOfPairs(nn.Module):
    def forward(self, x):
        pairs = torch.tensor([(i, j) for i in range(x.shape[1]) for j in range(i)], device=x.device).reshape(-1, 2)
        return (x[:, pairs[:, 0]] * x[:, pairs[:, 1]]).sum(1)


@program(x="float batch=2 length=6")
class RepeatedToFit(nn.Module):
    def forward(self, x):
        times = -(-8 // x.shape[1])
        return x.repeat(1, times)[:, :8]
