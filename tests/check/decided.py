"""Decisions on values of many kinds; the example takes one side of each. Each function says how many sides it has.

A side is an answer of a decision, or of an operand of ``and`` and ``or``; of a loop in the file, no round or several.
"""

import torch
from torch import nn

X = torch.rand(3, 4, generator=torch.Generator().manual_seed(0)) + 0.01
N = torch.tensor([[3, 1, 4], [1, 5, 2]])


def mean(x):
    return x * 2 if x.mean() > 100 else x


def mean_below(x):
    return x * 2 if x.mean() < -7.5 else x


def largest(x):
    if x.max() >= 31:
        x = x - 30
    return x


def number(x):
    peak = x.abs().max().item()
    if peak > 12:
        x = x / peak
    return x


def anything(x):
    return x.clamp(max=5) if (x > 5).any() else x


def everything(x):
    return x - 3 if (x < -2).all() else x


def nothing(x):
    return x - 3 if not (x > 0).any() else x


def counted(x):
    return x + 1 if int((x > 0.5).sum()) > 10 else x - 1


def counted_exactly(x):
    return x + 1 if (x > 2).sum() == 5 else x - 1


def place(x):
    return x + 1 if x.flatten().argmax() == 7 else x


def norm(x):
    return x if x.norm() > 1e-2 else x + 1


def deviation(x):
    return (x - x.mean()) / x.std() if x.std() > 20 else x


def element(x):
    return -x if x[1, 2] < -40 else x


def difference(x):
    return x.flip(0) if x[0, 0] > x[2, 3] + 9 else x


def window(x):
    return x * 3 if 17.25 < x.sum() < 17.5 else x


def equal(x):
    return x + 1 if torch.equal(x, x.round()) else x


def zero(x):
    return x + 1 if x.abs().sum() == 0 else x


def no_score(x):
    peak = x.masked_fill(x < 0.005, float("-inf")).max().item()
    return x * 2 if peak == float("-inf") else x - peak


def no_logarithm(x):
    return x + 1 if x.log().sum() == -torch.inf else x - 1


def odd(x):
    return x * 3 if int(x.sum()) % 2 == 1 else x


def selected(x):
    kept = x[x > 3]
    return kept.sum() if kept.shape[0] > 2 else x.mean()


def selected_none(x):
    kept = x[x > 0.5]
    return x.mean() if kept.numel() == 0 else kept.sum()


def elif_chain(x):
    if x.mean() > 50:
        return x / 50
    elif x.min() < -20:
        return x + 20
    elif x.sum() > 30:
        return x * 2
    return x


def nested(x):
    if x.mean() > 10:
        if x.std() > 40:
            x = x / x.std()
        elif x[0, 0] < 0:
            x = -x
    return x


def both(x):
    return x * 2 if x.max() > 8 and x.min() < -8 else x


def either(x):
    return x * 2 if x.max() > 8 or x.min() < -8 else x


def negated(x):
    return x * 2 if not (x.max() > 8 or x.mean() < -1) else x


def early(x):
    if x.sum() < -5:
        return torch.zeros_like(x)
    x = x * 2
    if x.max() > 90:
        return x / 90
    return x + 1


def identifier(n):
    return n * 2 if n[0, 0] == 101 else n


def any_identifier(n):
    return n * 2 if (n == 77).any() else n


def no_identifier(n):
    return n * 2 if n.sum() < -3 else n


def whole_sum(n):
    return n // 2 if n.sum() % 7 == 3 else n


def halved(x):
    while x.sum() > 1:
        x = x / 2
    return x


def grown(x):
    while x.sum() < -1:
        x = x / 2
    return x


def bounded(x):
    n = 0
    while x.max() > 2 and n < 6:
        x, n = x / 2, n + 1
    return x


def broken(x):
    for _ in range(4):
        if x.max() > 60:
            break
        x = x * 2
    return x


def counted_rounds(x):
    for _ in range(int(x[0, 0].abs() * 3)):
        x = x + 1
    return x


class Confident(nn.Module):
    """Leaves early where it is sure, which its example is not."""

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.body, self.first, self.last = nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 3)

    def forward(self, x):
        h = self.body(x).tanh()
        early = self.first(h).softmax(-1)
        if early.max(-1).values.min() > 0.6:
            return early
        return self.last(h).softmax(-1)


REALS = [
    *(mean, mean_below, largest, number, anything, everything, nothing, counted, counted_exactly, place, norm),
    *(deviation, element, difference, window, equal, zero, odd, selected, selected_none, elif_chain, nested, both),
    *(either, negated, early, halved, grown, bounded, broken, counted_rounds, no_score, no_logarithm),
]
WHOLES = [identifier, any_identifier, no_identifier, whole_sum]
ALL = [(f, (X,)) for f in REALS] + [(f, (N,)) for f in WHOLES]
