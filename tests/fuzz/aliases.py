"""Random programs in which tensors get second names on one side of decisions and are written in place afterwards.

Every decision is about a flag of its own, so all sides of a program can be run: at the example all flags are down.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fuzz.programs import HEADER, Input, Program

FLAGS = 3

NEW = ("{a} * 1.5", "{a} + 0", "{a}.clone()", "{a} - {b}", "torch.maximum({a}, {b})", "-{a}")
"""Tensors of their own."""

SAME = ("{a}", "{a}[:]", "{a}.view(4, 3)", "{a}.t().t()", "{a}.detach()", "{a}.contiguous()", "{a}.reshape(4, 3)")
"""Other names of a tensor."""

WRITES = (
    "{a} += 1",
    "{a}.mul_(2)",
    "{a}[0] = 3",
    "{a}[1:] += {b}[1:]",
    "{a}[:, 0].sub_(1)",
    "{a} -= {b}",
    "{a}.copy_({b} + 1)",
    "{a} = F.relu({a}, inplace=True)",
    "torch.add({a}, 1, out={a})",
    "{a}.view(-1)[2:5].fill_(7)",
    "{a}.masked_fill_({b} > 0, 2)",
)

HOLDERS = (
    "held = [{a}, {b}]\nheld[0] += 1\n{v} = held[1]",
    "held = {{'k': {a}}}\nif {flag}:\n    held['k'] = {b}\nheld['k'] *= 2\n{v} = held['k'] + 0",
    "held = ({a}, {b})\n{v} = held[0] if {flag} else held[1] * 1\n{v}.add_(2)",
    "held = []\nif {flag}:\n    held.append({a})\nheld.append({b} * 1)\n{v} = held[0]\n{v} += 1",
    "{v} = [{a}, {b} + 0][0 if {flag} else 1]",
    "def pick(one, other):\n    if {flag}:\n        return one\n    return other * 2\n\n{v} = pick({a}, {b})",
    "for step in range(2):\n    {v} = {a} if {flag} else {new}\n    {v} += 1",
    "{v} = {new}\nfor step in range(3):\n    if {flag}:\n        {v} = {a}\n        break\n    {v} = {v} + 1",
    "{v} = {a}\nif {flag}:\n    {a}.add_(1)\n    {v} = {v} * 1",
    "{v} = {new}\nif {flag}:\n    {v} = {a}\n    {b}.add_(1)\nelse:\n    {b} = {b} * 2",
)


@dataclass
class Writer:
    """Writes one program.

    Attributes:
        dice: What it draws from.
        names: The tensors that the program has, of shape (4, 3).
    """

    dice: random.Random
    names: list[str] = field(default_factory=lambda: ["a", "b"])
    lines: list[str] = field(default_factory=lambda: ["a = x * 2", "b = x - 1"])

    def fill(self, template: str, **more: str) -> str:
        """A template with names, a flag and, for {v}, a name that is bound."""
        a, b = self.dice.choice(self.names), self.dice.choice(self.names)
        flag = f"flags[{self.dice.randrange(FLAGS)}] > 100"
        new = self.dice.choice(NEW).format(a=a, b=b)
        return template.format(a=a, b=b, flag=flag, new=new, **more)

    def bound(self) -> str:
        """A name to bind: a new one, or one that is there."""
        if len(self.names) < 6 and self.dice.random() < 0.7:
            return f"v{len(self.names)}"
        return self.dice.choice(self.names)

    def emit(self, text: str, name: str = "") -> None:
        """Adds statements, and the name that they bind."""
        self.lines += text.splitlines()
        if name and name not in self.names:
            self.names.append(name)

    def statement(self) -> None:
        """Adds one statement."""
        name = self.bound()
        kind = self.dice.randrange(6)
        if kind == 0:
            self.emit(f"{name} = {self.fill(self.dice.choice(SAME))}", name)
        elif kind == 1:
            either = [self.fill(self.dice.choice((*SAME, *NEW))) for _ in range(2)]
            self.emit(self.fill("{v} = {one} if {flag} else {two}", v=name, one=either[0], two=either[1]), name)
        elif kind == 2 and name in self.names:
            self.emit(self.fill("if {flag}:\n    {v} = {one}", v=name, one=self.fill(self.dice.choice(SAME))))
        elif kind == 3:
            write = self.fill(self.dice.choice(WRITES))
            self.emit(f"{self.fill('if {flag}:')}\n    {write}" if self.dice.random() < 0.3 else write)
        elif kind == 4:
            self.emit(self.fill(self.dice.choice(HOLDERS), v=name), name)
        else:
            self.emit(self.fill(self.dice.choice(WRITES)))


def make_aliases(seed: int) -> Program:
    """A model of ``x`` (4, 3) and ``flags`` (FLAGS,), which returns three of its tensors."""
    writer = Writer(random.Random(seed))
    for _ in range(writer.dice.randint(3, 8)):
        writer.statement()
    results = ", ".join(writer.dice.choice(writer.names) for _ in range(3))
    body = "\n".join(f"        {line}" for line in [*writer.lines, f"return {results}"])
    source = f"{HEADER}\n\nclass Model(nn.Module):\n    def forward(self, x, flags):\n{body}\n"
    inputs = Input("x", (4, 3), {}), Input("flags", (FLAGS,), {})
    return Program(seed=seed, source=source, inputs=inputs)


def all_flags() -> Iterator[Tensor]:
    """All ways in which the flags may be up or down; the first is the example's."""
    for up in itertools.product((0.0, 200.0), repeat=FLAGS):
        yield torch.tensor(up)


Side = tuple[Tensor, Tensor, list[Tensor]]


def run_sides(make: Callable[[], nn.Module], shapes: Sequence[tuple[int, int]] = ((4, 3),)) -> list[Side]:
    """The inputs of all sides that eager torch accepts, the example's first, with what it makes of them.

    Args:
        make: Makes the model anew for each side: it may keep something.
        shapes: Of ``x``, the example's first; the sides take turns.
    """
    generator = torch.Generator().manual_seed(1)
    found = []
    for flags, shape in zip(all_flags(), itertools.cycle(shapes), strict=False):
        x = torch.randn(shape, generator=generator)
        with suppress(Exception):  # whatever the program does on this side
            results = make()(x.clone(), flags.clone())
            found.append((x, flags, [torch.as_tensor(result).clone() for result in results]))
    return found


def first_difference(session: Any, sides: list[Side]) -> str:
    """Where a file computes something else than eager torch; empty if nowhere."""
    names = [one.name for one in session.get_inputs()]
    for x, flags, wanted in sides:
        found = session.run(None, {name: {"x": x, "flags": flags}[name].numpy() for name in names})
        for number, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
            wanted_here = theirs.detach().numpy()
            is_alike = ours.shape == wanted_here.shape and np.allclose(ours, wanted_here, 1e-4, 1e-4, equal_nan=True)
            if not is_alike:
                return f"output {number} at {flags.tolist()}"
    return ""
