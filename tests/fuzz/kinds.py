"""Random programs that ask what kind of value a name holds, most after branches that gave it one or another.

A file has a tensor where Python has a number that a branch decides, and where a trace has a size. Whoever asks,
``isinstance(n, int)`` or ``torch.is_tensor(n)``, has to hear what Python would say. Every decision is about a flag of
its own, so all sides of a program can be run.
"""

from __future__ import annotations

import random

from fuzz.aliases import FLAGS
from fuzz.programs import HEADER, Input, Program

VALUES = (
    *("2", "3", "-1", "0", "0.5", "-1.25", "3.0", "True", "False", "None"),
    *("x.shape[0]", "x.shape[1]", "x.size(0) + 1", "len(x)", "x.dim()", "x.numel()", "x.shape[-1] / 2"),
    *("x.sum()", "x.mean()", "x[0, 0]", "torch.tensor(3)", "torch.as_tensor(x.shape[0])", "torch.tensor(2.5)"),
    *("x[0, 0].item()", "int(x[0, 0] * 3)", "float(x.sum())", "bool(x[0, 0] > 0)", "round(x.mean().item(), 1)"),
    *("math.sqrt(abs(x[0, 0].item()))", "max(x.shape[0], 2)", "min(x[1, 0].item(), 0.5)", "x.shape[0] > 3"),
)
"""What a name may hold; of the inputs, of their sizes, and constants."""

STEPS = (
    *("{v} + 1", "{v} * 2", "-{v}", "{v} / 2", "{v} // 2", "abs({v})", "{v} ** 2", "{v} > 1", "not {v}", "{v} - 0.25"),
    *("max({v}, 2)", "min({v}, 0.5)", "int({v})", "float({v})", "bool({v})", "round({v})", "math.floor({v})"),
    *("torch.as_tensor({v})", "torch.tensor({v})", "{v} + x.shape[0]", "{v} * x.mean()", "{v} if {v} else 7"),
    *("({v}, 1)[0]", "{{'k': {v}}}['k']", "[{v}, 2][0]", "keep({v})", "{v} == 3", "{v} < x.shape[0]"),
)
"""What is computed of it; eager torch may refuse it for some kinds, and no such program is judged."""

QUESTIONS = (
    *("isinstance({v}, int)", "isinstance({v}, float)", "isinstance({v}, bool)", "isinstance({v}, torch.Tensor)"),
    *("isinstance({v}, (int, float))", "type({v}) is int", "type({v}) in (int, float)", "torch.is_tensor({v})"),
    *("hasattr({v}, 'shape')", "{v} is None", "{v} is not None", "{v} is True", "is_whole({v})", "kind_of({v}) == 2"),
    *("is_matched({v})", "is_matched({v}) == 1", "in_pool(kind_of, {v}) == 2", "in_pool(is_matched, {v}) > 1"),
)

READ = "torch.as_tensor(-4 if {v} is None else {v}).float()"
"""What a result says of the value itself."""

SHAPES = ((4, 3), (3, 5), (2, 2))
"""Of ``x``: the example's, and others."""

HELPERS = """from concurrent.futures import ThreadPoolExecutor


def keep(v):
    return v


def is_whole(v):
    return isinstance(v, int) and not isinstance(v, bool)


def kind_of(v):
    if isinstance(v, torch.Tensor):
        return v.dim()
    return 1 if type(v) is float else 2


def is_matched(v):
    match v:
        case bool():
            return 0
        case int(n) if n % 2 == 0:
            return 1
        case float(n) if n > 2:
            return 2
        case int():
            return 3
        case _:
            return 0


def in_pool(function, *values):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *values).result()


class Model(nn.Module):
    def forward(self, x, flags):
"""


def make_kinds(seed: int) -> Program:
    """A model of ``x`` (n, m) and ``flags`` (FLAGS,), whose names are given values by up to two decisions."""
    dice = random.Random(seed)
    flag = [f"flags[{place}] > 100" for place in range(FLAGS)]
    lines: list[str] = []
    results: list[str] = []
    for name in ("n", "m")[: dice.randint(1, 2)]:
        decided = flag[len(results) % FLAGS]
        one, other = dice.sample(VALUES, 2)
        if dice.random() < 0.4:
            one, other = dice.choice((("2", "3"), ("x.shape[0]", "x.shape[1]"), ("0", "x.shape[0]"), ("0.5", "1.5")))
        shape = dice.randrange(4)
        if shape == 0:
            lines.append(f"{name} = {one} if {decided} else {other}")
        elif shape == 1:
            lines += [f"{name} = {one}", f"if {decided}:", f"    {name} = {other}"]
        elif shape == 2:
            lines.append(f"{name} = {one}")
        else:
            lines += [f"if {decided}:", f"    {name} = {one}", "else:", f"    {name} = {other}"]
        for _ in range(dice.choice((0, 0, 1, 1, 2))):
            lines.append(f"{name} = {dice.choice(STEPS).format(v=name)}")
        for question in dice.sample(QUESTIONS, 2):
            results.append(f"(x * 2 if {question.format(v=name)} else x - 1)")
        results.append(f"x + {READ.format(v=name)}")
    lines.append(f"return {', '.join(results)}")
    source = HEADER + HELPERS + "".join(f"        {line}\n" for line in lines)
    dynamic = {0: "rows", 1: "columns"}
    return Program(seed=seed, source=source, inputs=(Input("x", (4, 3), dynamic), Input("flags", (FLAGS,), {})))
