"""Small random functions of if, return, loops, try, with, nested functions and containers, as source."""

import random

NAMES = ("a", "b", "c")
OPENING = """import torch
from torch import nn


class Flow(nn.Module):
    def forward(self, x):
        a, b, c = x * 1, x + 1, x.sum()
        n, d, items = 1.0, {"k": x * 1, "m": 2}, [x * 1]
"""


class Writer:
    """Writes the statements of one function."""

    def __init__(self, seed):
        self.dice, self.lines, self.number = random.Random(seed), [], 0
        self.functions = []

    def emit(self, depth, text):
        self.lines.append("    " * depth + text)

    def test(self):
        names = self.dice.choice((*NAMES, "d['k']", "items[0]"))
        return self.dice.choice(
            ("{0}.sum() > {1}", "{0}.max() < {1}", "({0} > {1}).any()", "{0}.mean() * n > {1}")
        ).format(names, self.dice.choice((-20, -1, 0, 1, 4, 50)))

    def value(self):
        parts = [
            *NAMES,
            "x",
            "n",
            "d['k']",
            "d['m']",
            "items[0]",
            *(f"{f}({self.dice.choice(NAMES)})" for f in self.functions),
        ]
        one, other = self.dice.choice(parts), self.dice.choice(parts)
        return f"x * 0 + {one} {self.dice.choice('+-*')} {self.dice.choice((other, '2', '0.5'))}"

    def assign(self, depth):
        name = self.dice.choice(NAMES)
        changes = ("d['k'] = {0}", "d['m'] = 3", "items[0] = {0}", "n = n * 2", "n += 1", "{1} += 1", "{1}.mul_(0.5)")
        text = "{1} = {0}" if self.dice.random() < 0.6 else self.dice.choice(changes)
        self.emit(depth, text.format(self.value(), name))

    def branch(self, depth, loop):
        for _ in range(self.dice.choice((0, 1, 1, 2))):
            self.statement(depth, loop)
        roll = self.dice.random()
        if roll < 0.25 and not loop:
            self.emit(depth, f"return {self.value()}")
        elif roll < 0.4 and loop:
            self.emit(depth, self.dice.choice(("break", "continue")))
        else:
            self.assign(depth)

    def decide(self, depth, loop):
        self.emit(depth, f"if {self.test()}:")
        self.branch(depth + 1, loop)
        for _ in range(self.dice.choice((0, 0, 1))):
            self.emit(depth, f"elif {self.test()}:")
            self.branch(depth + 1, loop)
        if self.dice.random() < 0.5:
            self.emit(depth, "else:")
            self.branch(depth + 1, loop)

    def loop(self, depth):
        if self.dice.random() < 0.7:
            self.emit(depth, f"for i in range({self.dice.choice((2, 3))}):")
        else:
            self.number += 1
            self.emit(depth, f"k{self.number} = 0")
            self.emit(depth, f"while {self.test()} and k{self.number} < 3:")
            self.emit(depth + 1, f"k{self.number} += 1")
        for _ in range(self.dice.choice((1, 2, 3))):
            self.statement(depth + 1, True)
        self.assign(depth + 1)

    def attempt(self, depth, loop):
        self.emit(depth, "try:")
        if self.dice.random() < 0.5:
            self.emit(depth + 1, f"if {self.test()}:")
            self.emit(depth + 2, "raise ValueError")
        (self.decide if self.dice.random() < 0.4 else lambda depth, _: self.assign(depth))(depth + 1, loop)
        self.emit(depth, f"except {self.dice.choice(('ValueError', 'KeyError'))}:")
        self.assign(depth + 1)
        for word in ("else", "finally"):
            if self.dice.random() < 0.2:
                self.emit(depth, f"{word}:")
                self.assign(depth + 1)

    def block(self, depth, loop):
        self.emit(depth, "with torch.no_grad():")
        for _ in range(self.dice.choice((1, 2, 2))):
            self.statement(depth + 1, loop)

    def function(self, depth):
        self.number += 1
        name = f"inner{self.number}"
        if self.dice.random() < 0.5:
            self.emit(depth, f"{name} = lambda t: {self.value()} + t")
        else:
            self.emit(depth, f"def {name}(t):")
            if self.dice.random() < 0.4:
                self.emit(depth + 1, f"if t.sum() > {self.dice.choice((0, 5))}:")
                self.emit(depth + 2, f"return {self.value()} - t")
            self.emit(depth + 1, f"return {self.value()} + t")
        self.functions.append(name)

    def statement(self, depth, loop=False):
        if depth > 5:
            return self.assign(depth)
        kinds = ["assign", "decide", "decide", "loop", "attempt", "block"]
        if depth == 2 and not loop:
            kinds += ["function"]
        kind = self.dice.choices(kinds, [4, 6, 6, 1.5, 1, 1] + [1.5] * (len(kinds) - 6))[0]
        if kind in ("decide", "attempt", "block"):
            return getattr(self, kind)(depth, loop)
        return getattr(self, kind)(depth)


def make_flow(seed):
    """The source of a module called Flow, whose forward takes one tensor (3,)."""
    writer = Writer(seed)
    for _ in range(writer.dice.choice((2, 3, 4))):
        writer.statement(2)
    writer.emit(2, f"return {writer.value()} + {writer.value()}")
    return OPENING + "\n".join(writer.lines) + "\n"
