"""Twenty models with loops and decisions, written after the code for loops stood; see docs/decisions for the score."""

import torch
import torch.nn.functional as F
from torch import nn

from control_flow.programs import SIZES, VALUES, Program

FRESH_LOOPS: dict[str, Program] = {}


def fresh(samples=SIZES, dynamic="batch"):
    def register(made):
        torch.manual_seed(1)
        model = made() if isinstance(made, type) else type(made.__name__, (nn.Module,), {"forward": made})()
        FRESH_LOOPS[made.__name__] = Program(model.eval(), samples, dynamic)
        return made

    return register


@fresh()
class HandWrittenGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 5)

    def forward(self, x):
        h = torch.zeros(1, 5)
        outputs = []
        for step in x.split(1):
            h = self.cell(step, h)
            outputs.append(h)
        return torch.cat(outputs), h


@fresh()
class CellByNumber(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 3)

    def forward(self, x):
        h, c = torch.zeros(1, 3), torch.zeros(1, 3)
        for t in range(x.shape[0]):
            h, c = self.cell(x[t : t + 1], (h, c))
        return h, c


@fresh()
class GreedyDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(6, 4), nn.Linear(4, 6)

    def forward(self, x):
        token = torch.zeros((), dtype=torch.int64)
        tokens = []
        for row in x:
            token = self.out(self.embed(token) + row).argmax()
            tokens.append(token)
        return torch.stack(tokens)


@fresh()
def prefix_means(self, x):
    means = torch.empty_like(x)
    total = torch.zeros(4)
    for i, row in enumerate(x):
        total = total + row
        means[i] = total / (i + 1)
    return means


@fresh()
def pairwise_distances(self, x):
    rows = []
    for row in x:
        rows.append((x - row).norm(dim=1))
    return torch.stack(rows)


@fresh()
def softmax_online(self, x):
    top, mass = torch.full((4,), -1e30), torch.zeros(4)
    for row in x:
        new = torch.maximum(top, row)
        mass = mass * torch.exp(top - new) + torch.exp(row - new)
        top = new
    return top + torch.log(mass)


@fresh()
def clipped_walk(self, x):
    position = torch.zeros(4)
    for row in x:
        position = position + row
        if position.norm() > 1:
            position = position / position.norm()
    return position


@fresh()
def exponential_average(self, x):
    average = None
    decay = 0.9
    average = x[0]
    for row in x[1:]:
        average = decay * average + (1 - decay) * row
    return average


@fresh()
def dictionary_of_states(self, x):
    state = {"sum": torch.zeros(4), "count": 0}
    for row in x:
        state["sum"] = state["sum"] + row
        state["count"] = state["count"] + 1
    return state["sum"] / state["count"]


@fresh()
def reversed_rows(self, x):
    return torch.stack([x[x.shape[0] - 1 - i] for i in range(len(x))])


@fresh()
def attention_by_query(self, x):
    outputs = [F.softmax(x @ query, dim=0) @ x for query in x]
    return torch.stack(outputs, dim=0)


@fresh()
def first_positive(self, x):
    found = torch.zeros(4)
    for row in x:
        if row.sum() > 0:
            found = row
            break
    return found


@fresh()
def both_decide(self, x):
    total = torch.zeros(4)
    for i, row in enumerate(x):
        if i > 1 and row.mean() > 0:
            total = total + row
        elif row.mean() < -0.5:
            total = total - 1
    return total if x.shape[0] > 2 else total * 2


@fresh(VALUES, None)
def newton_root(self, x):
    value = x.abs().sum() + 1
    guess = value
    while (guess * guess - value).abs() > 1e-3 * value:
        guess = 0.5 * (guess + value / guess)
    return guess


@fresh(VALUES, None)
class PowerIteration(nn.Module):
    def forward(self, x):
        matrix = x.T @ x + torch.eye(4)
        vector, change = torch.ones(4) / 2, torch.ones(())
        while change > 1e-6:
            new = matrix @ vector
            new = new / new.norm()
            change = (new - vector).abs().max()
            vector = new
        return vector.abs()


@fresh(VALUES, None)
def halved_until_small(self, x):
    steps = 0
    while True:
        if x.abs().max() < 1:
            break
        x = x / 2
        steps += 1
    return x, steps


@fresh(VALUES, None)
def repeated_by_value(self, x):
    count = int(x.abs().max()) % 5 + 1
    total = torch.zeros_like(x)
    for k in range(count):
        total = total + x / (k + 1)
    return total


@fresh()
class ExpertByRow(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def route(self, row):
        return self.a(row) if row[0] > 0 else self.b(row).relu()

    def forward(self, x):
        return torch.stack([self.route(row) for row in x])


@fresh()
def nested_rows(self, x):
    outer = []
    for row in x:
        inner = torch.zeros(())
        for other in x:
            inner = inner + (row * other).sum().relu()
        outer.append(inner)
    return torch.stack(outer)


@fresh()
def counted_matches(self, x):
    n = 0
    for i in range(1, x.shape[0]):
        if (x[i] > x[i - 1]).all():
            n += 1
    return x * n


@fresh()
def two_names_of_what_is_written(self, x):
    sums = torch.zeros(4)
    last = sums * 1
    for row in x:
        sums += row
        last = sums
    return sums, last


@fresh()
def a_view_of_what_is_written(self, x):
    sums = torch.zeros(4)
    total = sums * 1
    for row in x:
        sums += row
        total = total + sums.view(2, 2).t().reshape(4)
    return sums, total
