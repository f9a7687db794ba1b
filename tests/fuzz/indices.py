"""Random programs that take rows by whole numbers of an input, and decide on how many rows there are.

Eager torch refuses few rows with the example's numbers, and takes them with others: what it decides there, a file has
to decide too.
"""

from __future__ import annotations

import random

USES = {
    "index": (
        *("x[i]", "x.index_select(0, i)", "F.embedding(i, x)", "x.gather(0, i[:, None].expand(-1, 3))", "x.T[:, i].T"),
        *("torch.zeros(n, 3).index_add(0, i, torch.ones(i.shape[0], 3)) + x", "x.cumsum(0)[i]", "x[:, :2][i, i % 2]"),
        *("torch.zeros(i.shape[0], n).scatter_(1, i[:, None], 1.0) @ x", "x[torch.stack([i, i.flip(0)])].sum(0)"),
        *("torch.zeros(n).scatter_add_(0, i, torch.ones(i.shape[0]))[:, None] * x", "table(n)[i]", "checked(x, i)"),
        *("x.index_put((i,), torch.ones(3))", "x.index_fill(0, i, 2.0)", "x[i.long().tolist()]", "x.repeat(2, 1)[i]"),
        *("x.index_put((i[:, None], torch.tensor([0, 2])), torch.ones(2))", "x.index_put((i, i % 3), torch.ones(()))"),
    ),
    "scalar": ("x[int(i)]", "x[: int(i) + 1].sum(0)", "x.narrow(0, int(i), 1)", "x[i]", "x.select(0, i.item())"),
    "length": (
        *("x[i - 1]", "torch.stack([x[int(i[0]) - 1], x.sum(0)])", "torch.cat([x.new_zeros(1, 3), x.cumsum(0)])[i]"),
        *("x.split([int(i[0]), n - int(i[0])])[0].sum(0)", "checked(x, i - 1)", "packed(x, i)", "x[: int(i.max())]"),
    ),
    "offset": (
        *("F.embedding_bag(torch.arange(n), x, i, mode='sum')", "F.embedding_bag(torch.arange(n), x, i, mode='max')"),
        "F.pad(x.cumsum(0), (0, 0, 1, 0))[i[1:]] - F.pad(x.cumsum(0), (0, 0, 1, 0))[i[:-1]]",
    ),
}
"""What is computed, by the kind of whole number: below the number of rows, or up to it, or rising from 0."""

CONDITIONS = (
    *("n == {a}", "n != {a}", "n < {a}", "n > {a}", "n % {a} == 1", "n in ({a}, {b})", "n == {a} or n == {b}"),
    *("n > 1", "n == 1", "x.shape[0] == {a} and x.shape[1] == 3", "n // 2 == {a}", "min(n, {b}) == {a}", "not n - {a}"),
)

ANSWERS = ("y * 7", "-y", "y - x.mean(0)", "y + x.std(0)", "y * 0 + n", "y + x.amax(0)", "y.flip(-1) + x[-1]")

FORMS = (
    "        if {condition}:\n            return {one}\n        return {other}\n",
    "        if {condition}:\n            y = {one}\n        return y * 2\n",
    "        return {one} if {condition} else {other}\n",
    "        for k in range(2):\n            y = y + k\n            if {condition}:\n                y = {one}\n"
    "        return y\n",
)

HEAD = """
def table(n):
    return torch.linspace(0, 1, n)[:, None] * torch.ones(3)


def checked(x, i):
    assert int(i.max()) < x.shape[0], "no such row"
    return x[i]


def packed(x, lengths):
    x = x[None].expand(lengths.shape[0], -1, -1)
    rows = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(rows, batch_first=True, total_length=x.shape[1])[0].sum(1)


class Model(nn.Module):
    def forward(self, x, i):
        n = x.shape[0]
"""


def indices_source(dice: random.Random) -> tuple[str, str]:
    """The text of a program of x (n, 3) and whole numbers i, and their kind."""
    kind = dice.choice(("index", "index", "index", "length", "scalar", "offset"))
    small = dice.sample(range(2, 6), 2)
    condition = dice.choice(CONDITIONS).format(a=small[0], b=small[1])
    one, other = dice.sample(ANSWERS, 2)
    use = f"        y = {dice.choice(USES[kind])}\n"
    if dice.random() < 0.2:  # the rows are taken on one side only
        use, one = "        y = x.sum(0)\n", one.replace("y", f"({dice.choice(USES[kind])}).sum(0)")
    return f"{HEAD}{use}{dice.choice(FORMS).format(condition=condition, one=one, other=other)}", kind
