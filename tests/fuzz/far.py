"""Random programs that make another number of a size, or go another way, only far from the example.

Half of them take pictures, of which a proof cannot try many: what it leaves out is where such a file is wrong.
"""

from __future__ import annotations

import random

STEPS = (20, 32, 40, 50, 64)

NUMBERS = (
    *("math.ceil({n} / {k})", "({n} + {k} - 1) // {k}", "{n} // {k} + 1", "max({n} // {k}, 1)", "int({n} / {k}) + 1"),
    *("round({n} / {k}) + 1", "len(x.split({k}))", "len(range(0, {n}, {k}))", "-(-{n} // {k})"),
)

USES = (
    *("x * {m}", "torch.cat([x] * ({m}), 1)", "x.repeat(1, {m})", "x.roll({m}, 0)", "x[:, : {m}]", "x[{m} - 1 :]"),
    *("torch.cat([p.flip(0) for p in x.split({k})])", "torch.cat([p.flip(0) for p in x.chunk({m})])"),
    *("torch.cat([p.flip(0) for p in torch.tensor_split(x, {m})])", "(x, x * 2, x * 3)[min({m}, 3) - 1]"),
    *("x * 2 if {m} > 1 else x - 1", "x[:{k}] if {n} > {k} else x * 3", "x * sum(range({m}))"),
    *(
        "torch.stack([x * i for i in range({m})]).sum(0)",
        "torch.cat([x[i : i + {k}].flip(0) for i in range(0, {n}, {k})])",
    ),
    *("(x * 2 if {n} < {k} else x.flip(0))", "x * {{1: 5, 2: 7}}.get({m}, 9)", "x.unfold(1, min({m}, 2), 1).mean(-1)"),
)

LOOPS = (
    "y, i = x, 0\nwhile i < {n}:\n    y, i = y * 2 + 1, i + {k}",
    "out = []\nfor i in range(0, {n}, {k}):\n    out.append(x[i : i + {k}].cumsum(0))\ny = torch.cat(out)",
    "y = x\nfor _ in range({m}):\n    y = y.flip(1) + 1",
    "out = []\nfor p in x.split({k}):\n    out.append(p - p.mean(0))\ny = torch.cat(out)",
    "out = [p.sum(0) for p in x.chunk({m})]\ny = torch.stack(out)",
)


def far_lines(dice: random.Random) -> list[str]:
    """The statements of a forward of ``x``, which has few rows at the example."""
    k = dice.choice(STEPS)
    n = dice.choice(("x.shape[0]", "len(x)", "x.size(0)"))
    m = dice.choice(NUMBERS).format(n=n, k=k)
    if dice.random() < 0.4:
        made = dice.choice(LOOPS).format(n=n, k=k, m=m)
        return [*made.split("\n"), "return y"]
    return [f"return {dice.choice(USES).format(n=n, k=k, m=m)}"]
