"""Random loops of which no fixed number of rounds will do, as code writes them: counters, halving, suppression, slots.

A loop is left by what it computes, skips rounds while it writes in place, doubles a step until it is past a size, fills
a list that was made at its full length, puts a list together anew each round, or leaves from under a plain ``if``.
"""

from __future__ import annotations

import random

SIZES = ("x.shape[0]", "len(x)", "x.size(0)")
TESTS = (
    *("{row}.sum() < {c}", "{row}.abs().max() > {c} + 1", "{row}[0] > {c}", "not keep[i]", "{row}.mean() + {c} < 0"),
    "(i + 1) % 3 == 0",
)
CHANGES = (
    *("keep[i] = False", "keep &= x.sum(1) > {c} * i", "keep[i + 1 :] = False", "keep[: i + 1] |= x[i, 0] > {c}"),
    *("keep = torch.where({row}[0] > {c}, ~keep, keep)", "keep = keep.masked_fill(x[:, 1] > {c} * i, False)"),
)
WRITES = (
    *("total += {row}", "total[0] += {row}[0]", "total *= 0.5", "grid[i] = {row} * 2", "grid[i][1] = {c}"),
    *("grid[i][0] += {row}[1]", "grid[:, i % 3] -= {c}", "table['a'] += {row}", "table['b'] = table['a'] * 2 + {row}"),
    *("grid[i, 1:] = {row}[1:] + total[1:]", "total.clamp_(min={c})", "grid[0] -= {row}"),
)
LEAVES = (
    "if total.abs().max() > {far}: break",
    "if limit is not None:\n    if total.sum() > {far}:\n        break",
    "if limit:\n    total = total + 0.1\n    if total.norm() > {far}:\n        if verbose: print(i)\n        break",
    "if limit is not None:\n    if {row}.max() > {far}: return total * 3, grid, total, total, x",
    "pass",
)
WHILES = (
    ("k = 1", "k < {n}", "k *= 2", "x * k"),
    ("k = {n}", "k > 1", "k = (k + 1) // 2\n    x = x[:k] + x[-k:]", "x"),
    ("k = 1", "k < {n}", "x = torch.cat([x[:k], x[k:] + x[:-k]])\n    k = k * 2", "x"),
    ("i, s = 0, x.new_zeros(4)", "i < {n}", "s = s * 0.5 + x[i]\n    i += {step}", "s"),
    ("i, s = {n} - 1, x.new_zeros(4)", "i >= 0", "s = s * 0.5 + x[i]\n    i -= {step}", "s"),
    ("a, b = {n}, 12", "b", "a, b = b, a % b", "x * a"),
    ("rest, kept = x[:, 0].argsort(), []", "rest.numel() > 0", "kept.append(rest[0])\n    {drop}", "torch.stack(kept)"),
    ("rest, s = x, x.new_zeros(4)", "len(rest) > 0", "s = s + rest[0]\n    rest = rest[1:][rest[1:, 0] > {c}]", "s"),
    ("s, i = x[0], 0", "s.abs().max() < {far} and i < {n}", "s = s * 1.5 + x[i]\n    i += 1", "s"),
    ("s = x.abs().sum()", "s > 1", "s = s * 0.5", "x * s"),
)
DROPS = ("rest = rest[1:][x[rest[1:], 1] <= x[rest[0], 1] + {c}]", "rest = rest[1:][x[rest[1:], 1] > {c}]")
FILLS = (
    ("out = [None] * {n}", "out[i] = state", "torch.stack(out)"),
    ("out = {n} * [None]", "out[-i - 1] = state", "torch.cat(out)"),
    ("out = []", "out = [state] + out", "torch.stack(out)"),
    ("out = []", "out = out + [state, state * 2]", "torch.stack(out)"),
    ("out = []", "out.insert(0, state)", "torch.stack(out[::-1])"),
    ("out = x.new_zeros({n}, 4)", "out[i][:] = state", "out"),
    ("out, mask = [None] * {n}, x.sum(1) > {c}", "out[i] = state if mask[i] else row", "torch.stack(out)"),
)
ORDERS = ("range({n})", "reversed(range({n}))", "range({n} - 1, -1, -1)", "range(0, {n}, 1)")
STRIDES = ("{n} // 3 + 1", "{n}", "max({n} // 2, 1)", "-(-{n} // 4)")


def rounds_lines(dice: random.Random) -> list[str]:
    """The statements of a forward of ``x``, of four columns."""
    names = {
        "n": dice.choice(SIZES),
        "c": dice.choice(("0", "0.3", "-0.2")),
        "far": dice.choice(("2", "4", "0.5")),
        "step": dice.choice(("1", "2", "3")),
        "row": "x[i]",
    }
    names["drop"] = dice.choice(DROPS).format(**names)
    made = dice.choice((_suppression, _suppression, _while, _while, _filling, _strides))(dice)
    return made.format(**names).split("\n")


def _suppression(dice: random.Random) -> str:
    """A loop that skips rounds, and writes in place in the others."""
    body = [dice.choice((f"if {dice.choice(TESTS)}: continue", dice.choice(LEAVES), "pass"))]
    body += dice.sample((*CHANGES, *WRITES), dice.randint(1, 3))
    if dice.random() < 0.4:
        body.append(dice.choice(LEAVES))
    if dice.random() < 0.3:
        body.append(f"if {dice.choice(TESTS)}:\n    {dice.choice(WRITES)}")
    lines = "\n".join(body).replace("\n", "\n    ")
    return (
        "limit, verbose = 1, False\n"
        "keep = torch.ones({n}, dtype=torch.bool)\n"
        "total, grid = torch.zeros(4), torch.zeros({n}, 4)\n"
        "table = {{'a': torch.zeros(4), 'b': torch.ones(4)}}\n"
        f"for i in range({{n}}):\n    {lines}\n"
        "return total, grid, table['a'], table['b'], x[keep]"
    )


def _while(dice: random.Random) -> str:
    before, test, body, result = dice.choice(WHILES)
    return f"{before}\nwhile {test}:\n    {body}\nreturn {result}"


def _filling(dice: random.Random) -> str:
    """A list or a tensor that is filled by number, in one order or the other."""
    before, fill, result = dice.choice(FILLS)
    order = dice.choice(ORDERS)
    step = dice.choice(("torch.tanh(state + row)", "state * 0.5 + row", "row - state"))
    loop = f"for i in {order}:\n    row = x[i]\n    state = {step}\n    {fill}"
    return f"{before}\nstate = torch.zeros(4)\n{loop}\nreturn {result}"


def _strides(dice: random.Random) -> str:
    """A range whose step is a size."""
    stride = dice.choice(STRIDES)
    body = dice.choice(
        ("s = s + x[i] * (i + 1)", "s = torch.maximum(s, x[i : i + m].sum(0))", "s = s * 0.5 + x[i : i + m].mean(0)")
    )
    head = dice.choice(("range(0, {n}, m)", "range({n} - 1, -1, -m)"))
    return f"m = {stride}\ns = torch.zeros(4)\nfor i in {head}:\n    {body}\nreturn s"
