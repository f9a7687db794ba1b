"""Random programs that compute with sizes as Python does: bits, quotients, comparisons, lists of what sizes decide.

A size is a whole number of Python's in eager torch, a tensor in a TorchScript trace and a symbol in torch.export. Each
program computes with sizes, and with what it made of them, and uses the results as values, as shapes and as decisions.
"""

from __future__ import annotations

import random

from fuzz.aliases import FLAGS
from fuzz.programs import HEADER, Input, Program

SIZES = ("x.shape[0]", "x.shape[1]", "x.size(-1)", "len(x)", "x.numel()", "(x.shape[1] - 5)", "(4 - x.shape[0])")
NUMBERS = ("1", "2", "3", "5", "8", "12", "-1", "-4", "-8")
POSITIVE = ("2", "3", "4", "5", "8", "x.shape[0]", "x.shape[1]")
COUNTS = ("0", "1", "2", "3")

BINARY = ("+", "-", "*", "&", "|", "^")
QUOTIENTS = ("{a} // {p}", "{a} % {p}", "divmod({a}, {p})[0]", "divmod({a}, {p})[1]", "-(-{a} // {p})")
SHIFTS = ("{a} >> {k}", "{a} << {k}", "{a} >> {k} & 1", "1 << ({p} % 4)")
CALLS = (
    *("abs({a})", "max({a}, {b})", "min({a}, {b})", "~{a}", "-{a}", "+{a}", "int({a} / {p})", "math.ceil({a} / {p})"),
    *("math.floor({a} / {p})", "round({a} / {p})", "int({a} * 0.7)", "({a}) ** 2", "({a} if {c} else {b})"),
    *("sum([{a}, {b}])", "sum(k for k in range(4) if {p} >> k & 1)", "len([k for k in range(3) if k < {p} % 3])"),
    *("({a}, {b})[{c}]", "[{a}, {b}][-1]", "({c}) * {a}", "int({c})"),
    *("(2, 2, 2, 5)[({a}) % 4]", "'aab'.find('aab'[({a}) % 3])", "len(range(({a}) % 5))"),
    *("(({a}).bit_length() if isinstance({a}, int) else 3)", "(1 if isinstance({a}, torch.SymInt) else {b})"),
    *("({a} if hasattr({a}, 'bit_length') else 3)", "(3 if torch.is_tensor({a}) else {b})"),
)
TESTS = (
    *("{a} == {b}", "{a} != {b}", "{a} < {b}", "{a} >= {b}", "{a} & 1", "{a} & ({a} - 1) == 0", "not {a} % {p}"),
    *("{a} < {b} < 9", "{a} in (2, 4, 6)", "{a} % 2 == 0 and {b} > 2", "{a} > 6 or {b} & 2", "not {a}"),
)
USES = (
    "results.append(x.sum() + ({a}))",
    "results.append(torch.tensor(float({a})))",
    "results.append(x * 2 if {c} else x - 1)",
    "results.append(x[:, : ({a}) % 5])",
    "results.append(x[({a}) % x.shape[0]])",
    "results.append(torch.zeros(({a}) % 7 + 1) + x.mean())",
    "results.append(F.pad(x, (0, ({a}) % 4)))",
    "results.append(torch.arange(({a}) % 6) * x.sum())",
    "results.append(x + sum(2 * k + 1 for k in torch.arange(x.shape[{k} % 2] // 8).tolist()))",
    "results.append(x * 2 if torch.zeros(({a}) % 7 // 4).tolist() else x)",
    "results.append(torch.stack([x.sum() * k for k in (1, 2, 3) if k != ({a}) % 4]))",
    "results.append(x.sum() * sum(1.0 if ({a}) >> k & 1 else -0.5 for k in range(3)))",
)

SHAPES = ((4, 6), (3, 5), (2, 8), (5, 7), (1, 4), (8, 9), (6, 16), (7, 1))
"""Of ``x``: the example's, and others."""


class _Maker:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.names: list[str] = []

    def number(self, depth: int) -> str:
        """An expression of a whole number."""
        pick = self.dice.choice
        if depth == 0:
            return pick((*SIZES, *SIZES, *self.names, *self.names, pick(NUMBERS)))
        kind = pick(("binary", "binary", "quotient", "shift", "call"))
        if kind == "binary":
            return f"({self.number(depth - 1)} {pick(BINARY)} {self.number(depth - 1)})"
        form = pick({"quotient": QUOTIENTS, "shift": SHIFTS, "call": CALLS}[kind])
        return f"({self.fill(form, depth)})"

    def fill(self, form: str, depth: int) -> str:
        below = depth - 1
        test = self.fill(self.dice.choice(TESTS), 1) if "{c}" in form else ""
        return form.format(
            a=self.number(below),
            b=self.number(below),
            c=f"({test})",
            p=self.dice.choice(POSITIVE),
            k=self.dice.choice(COUNTS),
        )


def make_sizes(seed: int) -> Program:
    """A model of ``x`` (n, m), which computes numbers of its sizes; it does not read ``flags`` (FLAGS,)."""
    maker = _Maker(seed)
    dice = maker.dice
    lines = ["results = []"]
    for name in ("n", "m")[: dice.randint(1, 2)]:
        lines.append(f"{name} = {maker.number(dice.randint(1, 2))}")
        maker.names.append(name)
        if dice.random() < 0.3:
            lines += [f"if {maker.fill(dice.choice(TESTS), 1)}:", f"    {name} = {maker.number(1)}"]
    lines += [maker.fill(use, dice.randint(1, 3)) for use in dice.sample(USES, 3)]
    lines.append("return tuple(results)")
    source = HEADER + "\n\nclass Model(nn.Module):\n    def forward(self, x, flags):\n"
    source += "".join(f"        {line}\n" for line in lines)
    dynamic = {0: "rows", 1: "columns"}
    return Program(seed=seed, source=source, inputs=(Input("x", (4, 6), dynamic), Input("flags", (FLAGS,), {})))
