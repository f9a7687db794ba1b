# ruff: noqa: SIM108 - the statements are what is tested
"""Small models whose loops run as often as the inputs say."""

import torch
from torch import nn

from control_flow.programs import SIZES, VALUES, Program

LOOPS: dict[str, Program] = {}


def loop(samples=SIZES, dynamic="batch"):
    """Registers a forward function, or a module class, under its name."""

    def register(made):
        torch.manual_seed(0)
        model = made() if isinstance(made, type) else type(made.__name__, (nn.Module,), {"forward": made})()
        LOOPS[made.__name__] = Program(model.eval(), samples, dynamic)
        return made

    return register


by_size = loop()
by_value = loop(VALUES, None)


class WithLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)


@by_size
class RecurrenceFromSecondRow(WithLayer):
    def forward(self, x):
        total = x[0]
        for i in range(1, x.shape[0]):
            total = total * 0.5 + self.layer(x[i])
        return total


@by_size
class RowsAppended(WithLayer):
    def forward(self, x):
        rows = []
        for row in x:
            rows.append(self.layer(row).relu())
        return torch.stack(rows)


@by_size
class RowsInComprehension(WithLayer):
    def forward(self, x):
        return torch.cat([self.layer(row[None]) for row in x.unbind(0)], 0)


@by_size
class StatesAppended(WithLayer):
    def forward(self, x):
        state, states = torch.zeros(4), []
        for i in range(x.size(0)):
            state = torch.tanh(self.layer(x[i]) + state)
            states.append(state)
        return torch.stack(states, dim=1), state


@by_size
def list_begun_before(self, x):
    rows = [x[0] * 0]
    for row in x:
        rows.append(row + 1)
    return torch.stack(rows)


@by_size
def two_appended_a_round(self, x):
    rows = []
    for row in x:
        rows.append(row)
        rows.append(-row)
    return torch.stack(rows)


@by_size
def total_from_zero(self, x):
    total = 0
    for row in x:
        total = total + row * row
    return total


@by_size
def added_in_place(self, x):
    total = torch.zeros(4)
    alias = total
    for row in x:
        total += row
    return total, alias * 2


@by_size
class WrittenByNumber(WithLayer):
    def forward(self, x):
        out = torch.zeros_like(x)
        for i in range(x.shape[0]):
            out[i] = self.layer(x[i])
        return out


@by_size
def written_from_the_row_before(self, x):
    out = x.clone()
    for i in range(1, x.shape[0]):
        out[i] = out[i - 1] * 0.5 + x[i]
    return out


@by_size
def number_and_row(self, x):
    total = torch.zeros(4)
    for i, row in enumerate(x):
        total = total + row * i
    return total


@by_size
def number_decides(self, x):
    total = torch.zeros(4)
    for i, row in enumerate(x):
        if i % 2 == 0:
            total = total + row
        else:
            total = total - row * 2
    return total


@by_size
def row_decides(self, x):
    kept = torch.zeros(4)
    count = 0
    for row in x:
        if row.sum() > 0:
            kept = kept + row
            count += 1
    return kept / max(count, 1)


@by_size
def two_tensors_zipped(self, x):
    y = x.flip(1)
    total = torch.zeros(())
    for a, b in zip(x, y):  # noqa: B905 - of one length
        total = total + (a * b).sum()
    return total


@by_size
def left_by_break(self, x):
    total = torch.zeros(4)
    for i in range(x.shape[0]):
        total = total + x[i]
        if total.sum() > 1:
            break
    return total, i


@by_size
def rounds_skipped(self, x):
    total = torch.zeros(4)
    for row in x:
        if row.sum() < 0:
            continue
        total = total + row
    return total


@by_size
def loop_in_loop(self, x):
    total = torch.zeros(())
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            total = total + (x[i] * x[j]).sum() / (1 + i + j)
    return total


@by_size
def fixed_loop_inside(self, x):
    total = torch.zeros(())
    for row in x:
        for k in range(3):
            total = total + row[k] * (k + 1)
    return total


@by_size
def backwards(self, x):
    state, states = torch.zeros(4), []
    for i in range(x.shape[0] - 1, -1, -1):
        state = state * 0.5 + x[i]
        states.append(state)
    return torch.stack(states)


@by_size
def every_second(self, x):
    total = torch.zeros(4)
    for i in range(0, x.shape[0], 2):
        total = total + x[i]
    return total


@by_size
def state_in_tuple(self, x):
    state = (torch.zeros(4), torch.ones(4))
    for row in x:
        state = (state[0] + row, state[1] * row)
    return state


@by_size
def running_maximum(self, x):
    best, place = x[0].sum(), 0
    for i in range(1, x.shape[0]):
        if x[i].sum() > best:
            best, place = x[i].sum(), i
    return best, place


def summed(rows):
    """In a function that the model calls."""
    total = rows[0]
    for row in rows[1:]:
        total = total * 0.9 + row
    return total


@by_size
def in_a_helper(self, x):
    return summed(x.relu())


@by_size
class ColumnsOfAttribute(WithLayer):
    def forward(self, x):
        self.seen = x * 2
        total = torch.zeros(4)
        for i in range(x.shape[0]):
            total = total + self.layer(self.seen[i])
        return total


@by_value
def as_often_as_a_value(self, x):
    for _ in range(int(x.abs().sum()) % 7):
        x = x + 1
    return x


@by_value
def while_norm(self, x):
    while x.norm() < 1e6:
        x = x * 1.5
    return x


@by_value
def while_with_counter(self, x):
    n = 0
    while x.abs().max() > 1e-3:
        x = x / 2
        n += 1
    return x, n


@by_value
def while_left_by_break(self, x):
    n = 0
    while x.norm() < 1e6:
        x = x * 1.5
        n += 1
        if x.sum() > 100:
            break
    return x, n


@by_value
class FixedPoint(WithLayer):
    def forward(self, x):
        y, error = x, torch.ones(())
        while error > 1e-5:
            new = torch.tanh(self.layer(y)) * 0.5
            error = (new - y).abs().max()
            y = new
        return y


@by_value
def collatz(self, x):
    n, steps = x.abs().sum().long() + 1, 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else n * 3 + 1
        steps = steps + 1
    return steps


# Lists that a loop reads, or appends to now and then


@by_size
def last_item_read(self, x):
    states = [x[0]]
    for row in x:
        states.append(states[-1] * 0.5 + row)
    return torch.stack(states)


@by_size
def length_read(self, x):
    rows = []
    for row in x:
        if len(rows) > 2:
            break
        rows.append(row * len(rows))
    return torch.stack(rows)


@by_size
def ends_of_the_list(self, x):
    rows = []
    for row in x:
        rows.append(row * 2)
    return rows[0] + rows[-1]


@by_size
def backwards_and_back(self, x):
    rows, found = [], []
    for row in x:
        rows.append(row.cumsum(0))
    total = torch.zeros(4)
    for row in reversed(rows):
        total = total * 0.5 + row
        found.append(total)
    found.reverse()
    found.append(x[0])
    return torch.stack(found)


@by_size
def put_in_front(self, x):
    rows, total = [], torch.zeros(4)
    for i in reversed(range(x.shape[0])):
        total = total * 0.5 + x[i]
        rows.insert(0, total)
    return torch.stack(rows)


@by_size
def grown_by_plus(self, x):
    rows = []
    for row in x:
        rows += [row]
        rows += [-row]
    return torch.cat(rows)


@by_size
def appended_sometimes(self, x):
    rows = [x[0]]
    for row in x:
        if row.sum() > 0:
            rows.append(row)
    return torch.stack(rows)


@by_size
def appended_in_either_branch(self, x):
    rows = [x[0]]
    for row in x:
        if row.sum() > 0:
            rows.append(row * 2)
            rows.append(row)
        else:
            rows.append(-row)
    return torch.stack(rows)


@by_value
def list_in_an_unrolled_loop(self, x):
    rows = []
    for k in range(3):
        if x[k].sum() > 0:
            rows.append(x[k])
    rows.append(x.sum(0))
    return torch.stack(rows), len(rows) + x[0]


@by_value
def empty_or_not(self, x):
    rows = []
    for k in range(3):
        if x[k].sum() > 0.5:
            rows.append(x[k])
        if len(rows) == 2:
            break
    return torch.stack(rows) if rows else torch.zeros(0, 4)


@by_value
def left_early_with_a_list(self, x):
    tokens = []
    for _ in range(5):
        x = x * 0.5 + 0.1
        tokens.append(x.sum(1))
        if x.abs().max() < 0.6:
            break
    return torch.stack(tokens, 1), torch.cat(tokens)


@by_size
def filtered(self, x):
    rows = [row * 2 for row in x if row.sum() > 0]
    return torch.stack([x[0], *rows]) if rows else x[:1]


@by_value
def filtered_of_a_fixed_list(self, x):
    rows = [row for row in x.unbind(0) if row.max() < 1 if row.min() > 0.2]
    return torch.stack([x[0] * 3, *rows]), len(rows) + x[1]


# Ways out of a loop


@by_size
def returns(self, x):
    for row in x:
        if row.sum() > 0:
            return row
    return x[0]


@by_value
def returns_a_pair(self, x):
    n = torch.tensor(0)
    y = x.sum(0)
    while y.abs().sum() > 0.01:
        y = y * 0.8
        n = n + 1
        if y.max() > 1:
            return y, n
    return y * 0, n + 100


@by_value
def otherwise_of_a_loop(self, x):
    for _ in range(4):
        x = x * 0.5 + 0.1
        if x.sum() > 1:
            break
    else:
        x = x - 10
    return x


@by_size
def otherwise_of_a_loop_in_the_file(self, x):
    total = torch.zeros(4)
    for row in x:
        total = total + row
        if total.sum() > 2:
            break
    else:
        total = total - 10
    return total


@by_size
def continues_twice(self, x):
    total = torch.zeros(4)
    for k in range(3):
        y = x * (k - 1)
        if y.sum() > 0:
            continue
        y = y + 1
        if y.max() > 2:
            continue
        total = total + y.sum(0)
    return total


# Rounds of which the first is another


@by_size
def none_before_the_first(self, x):
    total = None
    for row in x:
        total = row if total is None else total + row
    return total


@by_size
def first_by_number(self, x):
    made = x.new_zeros(x.shape[0], 4)
    for i in range(x.shape[0]):
        if i > 0:
            made[i] = x[i] - x[i - 1]
        else:
            made[i] = x[i]
    return made


@by_size
def last_by_number(self, x):
    n = x.shape[0]
    total = torch.zeros(4)
    for i in reversed(range(n)):
        following = x[0] if i == n - 1 else x[i + 1]
        total = total * 0.5 + x[i] * following
    return total


# Lists that are zipped, or have a star


@by_size
def zipped_with_fixed(self, x):
    total = torch.zeros(4)
    for row, factor in zip(x, (1, 2, 3)):  # noqa: B905
        total = total + row * factor
    return total


@by_size
def star_of_a_range(self, x):
    total = torch.zeros(4)
    for i in [*range(0, x.shape[0], 2), 0]:
        total = total * 0.5 + x[i]
    return total


@by_size
def sum_of_a_generator(self, x):
    return sum(row.relu() * (k + 1) for k, row in enumerate(x))


@by_size
def sum_of_conditions(self, x):
    return sum((row > 0 for row in x), 2)


@by_size
def sum_of_some_rows(self, x):
    return sum([row for row in x if row.mean() > 0], torch.ones(4))


@by_size
def rows_mapped(self, x):
    return torch.stack(list(map(torch.nn.Softmax(0), x)))


@by_size
def asked_of_any_and_all_rows(self, x):
    if any(row.mean() > 0.1 for row in x):
        x = x * 2
    if all(row.mean() < 0.3 for row in x):
        x = x + 1
    return x * max(row.mean() for row in x) + min(row.max() for row in x)


@by_size
def pieces_counted(self, x):
    cut = x.split(2)
    return cut[-1].sum(0) * len(cut) + cut[0].sum(0)


@by_size
def pieces_joined_again(self, x):
    cut = torch.split(x, 2, dim=0)
    return torch.cat([*cut[:-1], cut[-1] * 2])


@by_size
def numel_of_a_shape(self, x):
    return x / x.shape.numel() + x.shape[:1].numel()


GROWING: dict[str, Program] = {}
"""Loops that carry or append tensors whose sizes differ from round to round, which torch's own loops cannot."""


def growing(samples=SIZES, dynamic="batch"):
    """Registers a forward function."""

    def register(forward):
        model = type(forward.__name__, (nn.Module,), {"forward": forward})()
        GROWING[forward.__name__] = Program(model.eval(), samples, dynamic)
        return forward

    return register


@growing(VALUES, None)
def tokens_joined(self, x):
    ids = torch.zeros(x.shape[0], 1, dtype=torch.int64)
    for _ in range(6):
        following = (x[:, :1] * 3 + ids.sum(1, keepdim=True)).long() % 5
        ids = torch.cat([ids, following], 1)
        if (following == 4).any():
            break
    return ids


@growing(VALUES, None)
def tokens_until_a_length(self, x):
    ids = torch.zeros(x.shape[0], 1, dtype=torch.int64)
    while ids.shape[1] < 6:
        following = (x[:, :1] * 3 + ids.sum(1, keepdim=True)).long() % 5
        ids = torch.cat([ids, following], 1)
        if (following == 4).any():
            break
    return ids


@growing()
def pieces(self, x):
    return torch.cat([x[i : i + 2] * 2 for i in range(0, x.shape[0], 2)])


@growing()
def pieces_on_another_axis(self, x):
    found = []
    for i in range(0, x.shape[0], 2):
        found.append(x[i : i + 2].t())
    return torch.cat(found, dim=1)


@growing()
def pieces_of_two_loops(self, x):
    found = [x[:1]]
    for i in range(0, x.shape[0], 2):
        found.append(x[i : i + 2] * 2)
    for i in range(0, x.shape[0], 3):
        found.append(x[i : i + 3] * 3)
    return torch.cat(found)


@growing()
def list_of_two_loops(self, x):
    rows = []
    for row in x:
        for k in range(x.shape[0]):
            rows.append(row + k)
    return torch.stack(rows)


@growing()
def shifted_by_the_number(self, x):
    made = x.new_zeros(x.shape[0], x.shape[0], 4)
    for i in range(x.shape[0]):
        if i > 0:
            made[i, i:] = x[i:] * x[:-i]
        else:
            made[i] = x * x
    return made


@growing()
def pieces_of_split(self, x):
    made = []
    for k, piece in enumerate(x.split(3, dim=0)):
        made.append(piece.softmax(0) + k)
    return torch.cat(made), sum(piece.mean(0) for piece in torch.split(x, 2))


@growing()
def pieces_of_chunk(self, x):
    cut = x.chunk(3)
    return torch.stack([piece.mean(0) for piece in cut], -1).sum(-1) / len(cut)


@growing()
def pieces_by_number(self, x):
    cut = list(x.split(2))
    made = [cut[k].cumsum(0) for k in range(len(cut))]
    return torch.cat([piece.flip(0) for piece in reversed(x.split(3))]), torch.cat(made)


@growing()
def pieces_with_another_list(self, x):
    return torch.cat([a * b.mean() for a, b in zip(x.split(2), x.flip(0).split(2), strict=True)])


@growing()
def pieces_until_a_decision(self, x):
    total = x[0] * 0
    for piece in x.split(2):
        if piece.mean() > 0.3:
            break
        total = total + (piece.sum(0) if piece.shape[0] < 2 else piece.mean(0))
    return total


@growing()
def pieces_but_the_first(self, x):
    return torch.cat([*x.split(2)[1:], x])


@growing()
def pieces_by_keyword(self, x):
    cut = torch.split(tensor=x, split_size_or_sections=2)
    halves = torch.chunk(input=x, chunks=2)
    return sum(piece.mean(0) for piece in cut), len(halves) * halves[0].sum(0) + x.split(split_size=3)[-1].sum(0)


@growing()
def pieces_and_more_after_a_branch(self, x):
    cut = list(x.split(2))
    if x.mean() > 0:
        cut.append(x[:1] * 3)
    else:
        cut.append(x[:1])
    return torch.cat(cut)
