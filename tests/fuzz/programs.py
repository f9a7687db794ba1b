"""Random programs for the exporters: a seed gives the source of an nn.Module, its inputs and their dynamic axes.

A program is real Python text, written to a file before it is imported, as a user's model is. It is deterministic, and
eager torch runs most of them at most sizes; where eager torch raises, the judge asks nothing of the file.
"""

from __future__ import annotations

import linecache
import random
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fuzz.errors import errors_source
from fuzz.far import far_lines
from fuzz.indices import indices_source
from fuzz.layouts import layout_lines
from fuzz.loop_states import draw_loop
from fuzz.pieces import draw_use
from fuzz.positions import positions_source
from fuzz.results import results_source
from fuzz.rounds import rounds_lines
from fuzz.tables import draw_lookup
from fuzz.texts import draw_lines

Axes = tuple[int | str, ...]  # a number where the size is fixed, a symbol where it is not; equal ones are equal sizes

SIZES = (4, 5, 6, 7, 8, 9, 12, 16, 17, 20, 32, 33)
THRESHOLDS = ("0.1", "0.7", "0", "0.5", "1", "2", "3", "5", "10", "50", "100", "-1", "-5")
HEADER = """import copy
import logging
import math
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
"""

SAME_SHAPE = (
    "{t} * 2",
    "{t} + 1",
    "{t} - 3",
    "-{t}",
    "{t} * {f}",
    "torch.relu({t})",
    "{t}.abs()",
    "{t}.clamp(-3, 3)",
    "{t}.clamp(min={t}.mean())",
    "torch.sigmoid({t})",
    "torch.tanh({t}) * 2",
    "{t} - {t}.mean()",
    "{t} / ({t}.abs().sum() + 1)",
    "{t}.softmax(-1)",
    "{t}.cumsum(-1)",
    "{t}.flip(-1)",
    "{t}.roll(1, 0)",
    "{t}.masked_fill({t} < 0, 0.5)",
    "torch.where({t} > {c}, {t}, -{t})",
    "torch.where({t}.data > {c}, {t} * 2, {t})",
    "{t}.detach() + 1",
    "torch.zeros_like({t})",
    "torch.ones_like({t}) * {f}",
    "{t} + {u}",
    "{t} * {u}",
    "torch.maximum({t}, {u})",
    "{t} + {t}.amax(-1, keepdim=True)",
    "{t} * torch.arange({t}.shape[-1])",
    "{t} + torch.arange({t}.size(-1), dtype=torch.float32).flip(0)",
    "{t} + torch.linspace(-1, 1, {t}.shape[-1])",
    "{t} * {t}.shape[-1]",
    "{t} / {t}.shape[0]",
    "{t} + {t}.numel() // 2",
    "{t} * math.sqrt({t}.shape[-1])",
    "{t}.sort(-1).values",
    "{t}.double().mul(0.5).float()",
    "{t}.to(torch.float64).float()",
    "{t}.int().float()",
    "{t}.round() + {t}.new_ones(1)",
    "{t}.view({t}.shape)",
    "{t}.reshape(-1).reshape({t}.shape)",
    "copy.deepcopy({t}) + 1",
    "torch.cat([{t}[..., -1:], {t}[..., :-1]], -1)",
    "torch.stack([{t}, {t} * 2]).sum(0)",
    "torch.stack(list({t})) + 1",
    "{t} + {t}.new_zeros({t}.shape[-1])",
    "{t}.new_full({t}.shape, {f})",
    "{t}.transpose(0, -1).contiguous().transpose(0, -1)",
    "{t} + {t}.shape.numel()",
    "torch.tril({t})",
    "{t} ** 2 / 4",
    "{t} + torch.full(({t}.shape[-1],), {t}.shape[-1] * 0.7, dtype=torch.float64).floor().float()",
    "{t} + torch.tensor({t}.shape[-1] * 0.58).floor()",
    "{t} * (torch.arange({t}.shape[-1]) / ({t}.shape[-1] * 0.1)).floor()",
    "{t} * (torch.arange({t}.shape[-1]) * round({t}.shape[-1] * 0.35, 1)).floor()",
    "({t}.double() * ({t}.shape[-1] * {f})).float()",
    "{t} + torch.tensor({t}.flatten()[0].clamp(-99, 99).round().item() * 0.7).floor()",
)

DATA_CONDITIONS = (
    "{t}.sum() > {c}",
    "{t}.max() > {c}",
    "{t}.mean() < {c}",
    "{t}.min() < -{d}",
    "{t}.abs().max() > {d}",
    "({t} > {c}).any()",
    "({t} > {c}).all()",
    "not ({t} > {c}).any()",
    "bool(({t} < {c}).all())",
    "{t}.max().item() > {c}",
    "{t}.max().item() <= {c}",
    "{t}.min().item() == {c}",
    "{t}.masked_fill({t} < {c}, -math.inf).max().item() == -math.inf",
    "-math.inf < {t}.log().sum() < math.inf",
    "math.isnan({t}.sum().sqrt().item())",
    "{t}.log().sum().item() * 0 == 0",
    "{c} < float({t}.mean())",
    "{t}.flatten()[0].item() in (0.1, {c}, 2)",
    "{t}.flatten()[-1].item() != {f}",
    "{t}.max().item() * 2 - {d} > {c}",
    "round({t}.max().clamp(-99, 99).item(), 1) == {c}",
    "{t}.clamp(0, 255).to(torch.uint8).max().item() - 300 < -{k}",
    "{t}.half().abs().max().item() > {d}",
    "math.floor({t}.mean().clamp(-9, 9).item()) % 2",
    "divmod(int({t}.sum().clamp(-99, 99)), 3)[1] == 1",
    "{c} <= {t}.min().item() <= {d}",
    "int({t}.sum().clamp(-99, 99)) in range(-7, 30, {r})",
    "abs({t}.flatten()[0].item()) >= {f}",
    "float({t}.abs().max()) > {d}",
    "int({t}.sum()) % 2 == 0",
    "torch.equal({t}, {t}.round())",
    "torch.equal({t}, torch.zeros_like({t}))",
    "torch.allclose({t}, torch.zeros_like({t}), atol=1e-3)",
    "({t} == {t}.round()).all()",
    "{t}[{t} > {d}].shape[0] == 0",
    "{t}[{t} > {d}].numel() > 3",
    "{t}[{t} < 0].size(0) > 2",
    "len({t}[{t} > {d}]) == 0",
    "({t} > {d}).nonzero().shape[0] > 2",
    "({t} > {d}).nonzero().numel() == 0",
    "len(torch.where({t} > {d})[0]) > 4",
    "torch.where({t} > {d})[0].shape[0] == 0",
    "F.max_pool1d(F.pad({t}[{t} > {d}], (0, 4))[None, None], 2).shape[-1] > {k}",
    "torch.cat([{t}[{t} > {d}], {t}.flatten()]).shape[0] > {t}.numel() + {k}",
    "torch.is_nonzero(({t} > {d}).sum())",
    "({t} > {d}).sum() > 3",
    "torch.count_nonzero({t}) == 0",
    "{t}.data.max() > {c}",
    "{t}.detach().max() > {c}",
    "{t}.detach().numpy().max() > {c}",
    "np.asarray({t}.detach()).sum() > {c}",
    "{t}.unique().shape[0] == 1",
    "torch.isnan({t}).any()",
    "torch.isfinite({t}).all() and {t}.max() > {c}",
    "{t}.abs().max() > {d} and {t}.min() < 0",
    "{t}.max() > {d} or {t}.sum() < -{d}",
    "{t}.flatten()[0] > {c}",
    "{t}.flatten().tolist()[0] > {c}",
    "copy.deepcopy({t}).max() > {c}",
    "f'{{float({t}.max()):.0f}}' == '0'",
    "max({t}.mean(), {t}.flatten()[-1]) > {c}",
    "{t}.flatten().argmax() == 0",
    "{t}.flatten().argmin().item() > 2",
    "0 < {t}.max() < {d}",
    "any(v > {d} for v in {t}.flatten().tolist())",
    "{t}.norm() < {d}",
    "({t} != 0).float().mean() > 0.5",
    "{t}.std() > {d}",
    "{{1: True}}.get(int({t}.max() > {d}), False)",
    "{t}[{t} > {d}].numel() in {{1, 2, 3}}",
    "({t} > {d}).sum().item() in {{2: 0, 4: 1}}",
    "bool({t}.max() > {d}) is True",
    "({t}.min() < -{d}).item() is not False",
    "isinstance(int({t}.sum().clamp(-99, 99)), int) and {t}.max() > {d}",
    "({t} > {d}).flatten().nonzero().squeeze().dim() == 0",
    "len(({t} > {d}).flatten().nonzero().squeeze().shape) == 1",
)

SIZE_CONDITIONS = (
    "{n} % 2 == 0",
    "{n} % 4",
    "{n} > {k}",
    "{n} <= {k}",
    "{n} == {k}",
    "{n} != {k}",
    "{n} >= {m}",
    "{n} // 2 > {m} // 3",
    "{n} * 2 != {m}",
    "{t}.shape[-2:] == ({k}, {l})",
    "min({t}.shape[-2:]) < {k}",
    "max({t}.shape) > {k}",
    "{t}.shape[-2:] != ({k}, {l})",
    "({n}, {m}) == ({k}, {l})",
    "list({t}.shape[-2:]) == [{k}, {l}]",
    "tuple({t}.shape)[-2:] > ({k}, {l})",
    "{n} in ({k}, {l})",
    "{n} not in [{k}, 1]",
    "{n} in {{{k}, {l}}}",
    "{n} in range(2, {k})",
    "{k} in {t}.shape",
    "{t}.shape.count({k}) > 0",
    "{{{k}: True}}.get({n}, False)",
    "f'{{{n}}}x{{{m}}}' == '{k}x{l}'",
    "str({n}) == '{k}'",
    "max({n}, {m}) > {k}",
    "min({n}, {m}) < {k}",
    "max({t}.shape) > {k}",
    "sorted({t}.shape)[0] > {l}",
    "{t}.stride(0) > {k}",
    "{t}.stride()[0] % 2 == 0",
    "{t}.numel() > {k} * 8",
    "{t}.nelement() % 2 == 1",
    "{t}.nbytes > 400",
    "len({t}) > {l}",
    "np.prod({t}.shape) > {k} * 10",
    "math.prod({t}.shape) % 4 == 0",
    "sum({t}.shape) > {k} + {l}",
    "{t}[..., {k}:].numel() > 0",
    "{t}[..., {k}:].shape[-1] == 0",
    "len({t}.split(4, -1)) > 2",
    "len({t}.unbind(0)) > {l}",
    "len({t}.chunk(4, -1)) == 4",
    "{t}.size() == {u}.size()",
    "{t}.shape == {u}.shape",
    "isinstance({n}, int) and {n} > {k}",
    "math.ceil({n} / 4) > 2",
    "math.log2({n}).is_integer()",
    "round({n} ** 0.5) ** 2 == {n}",
    "{n} & 1",
    "not {n} % 3",
    "divmod({n}, 4)[1] == 0",
    "{t}.data.shape[-1] > {k}",
    "{l} < {n} < {k}",
    "{n} > {k} and {m} > {l}",
    "{n} == {k} or {m} % 2 == 0",
    "abs({n} - {m}) > 2",
    "hash(tuple({t}.shape)) == hash(({k}, {l}))",
    "torch.Size([{k}]) == {t}.shape[-1:]",
    "all(s > {l} for s in {t}.shape)",
    "{t}.untyped_storage().size() > 900",
    "{t}.ndim == 3 and {n} > {k}",
)

STATIC_CONDITIONS = ("{t}.dim() == {r}", "self.training", "{t}.dtype == torch.float32", "{t}.is_floating_point()")


@dataclass(frozen=True)
class Input:
    """One input.

    Attributes:
        name: The parameter of forward.
        shape: The example's shape.
        dynamic: The name of each axis that varies; equal names are equal sizes.
        kind: The kind of its whole numbers, as in `indices.USES`; empty where it holds floats.
        of: The axis that these belong to.
    """

    name: str
    shape: tuple[int, ...]
    dynamic: dict[int, str]
    kind: str = ""
    of: str = ""

    @property
    def axes(self) -> Axes:
        return tuple(self.dynamic.get(i, size) for i, size in enumerate(self.shape))


class WithInputs:
    """What has inputs, each with a name, a shape and axes that vary."""

    inputs: tuple[Any, ...]

    @property
    def dynamic(self) -> dict[str, dict[int, str]]:
        """The axes that vary, as export_compat(dynamic=...) takes them."""
        return {i.name: dict(i.dynamic) for i in self.inputs if i.dynamic}

    @property
    def sizes(self) -> dict[str, int]:
        """The example's size of each axis that varies."""
        return {name: i.shape[axis] for i in self.inputs for axis, name in i.dynamic.items()}


@dataclass(frozen=True)
class Program(WithInputs):
    """A module called Model, and what to call it on.

    Attributes:
        seed: What it was made from; its weights and its inputs are drawn from it too.
        source: The text of the file.
        inputs: One or two.
    """

    seed: int
    source: str
    inputs: tuple[Input, ...]


@dataclass(frozen=True)
class Value:
    """A tensor of the program: its name, its axes, whether a write in place is a write into the caller's tensor."""

    name: str
    axes: Axes
    owned: bool = False


@dataclass
class Writer:
    """Writes one program, statement by statement.

    Attributes:
        dice: The source of every choice.
        inputs: What forward takes.
        lines: The lines of forward so far.
        members: The lines of __init__ so far.
        helpers: Functions at the top of the file.
        depth: Levels of indentation.
        early: Whether forward returns in the middle: then every return has the axes of the first input.
        in_loop: Whether the statement lies in a loop or a nested function, where nothing returns.
    """

    dice: random.Random
    inputs: tuple[Input, ...]
    lines: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)
    depth: int = 0
    early: bool = False
    in_loop: bool = False
    count: int = 0

    def emit(self, text: str) -> None:
        self.lines += ["    " * self.depth + line for line in textwrap.dedent(text).strip("\n").split("\n")]

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.emit(head)
        self.depth += 1
        yield
        self.depth -= 1

    @contextmanager
    def loop(self) -> Iterator[None]:
        before, self.in_loop = self.in_loop, True
        yield
        self.in_loop = before

    # What expressions are made of.

    def value(self, scope: list[Value], *, rank: int = 1) -> Value:
        """One of the tensors, the later ones more often."""
        fit = [v for v in scope if len(v.axes) >= rank] or scope[:1]
        return fit[-1] if self.dice.random() < 0.5 else self.dice.choice(fit)

    def threshold(self) -> str:
        return self.dice.choice(THRESHOLDS)

    def size(self, scope: list[Value]) -> tuple[Value, str]:
        """A size, preferably one that varies: `x.shape[-1]`, `x.size(2)`."""
        value = self.value(scope)
        varying = [i for i, axis in enumerate(value.axes) if isinstance(axis, str)]
        axis = self.dice.choice(varying or range(len(value.axes)))
        axis -= self.dice.choice((0, len(value.axes)))
        return value, f"{value.name}.{self.dice.choice((f'shape[{axis}]', f'size({axis})'))}"

    def number(self) -> int:
        """A size that the program may ask for: near the example's, or one of a few others."""
        near = [size + step for i in self.inputs for size in i.shape for step in (0, 0, 1, -1)]
        return max(1, self.dice.choice([*near, 1, 2, 3, 9, 16, 33, 64]))

    def fill(self, template: str, scope: list[Value], value: Value) -> str:
        alike = [v.name for v in scope if v.axes == value.axes] or [value.name]
        return template.format(
            t=value.name,
            u=self.dice.choice(alike),
            c=self.threshold(),
            d=self.dice.choice([c for c in THRESHOLDS if not c.startswith("-") and c != "0"]),
            f=self.dice.choice(("0.5", "1.5", "-2.0", "0.1")),
            n=self.size(scope)[1],
            m=self.size(scope)[1],
            k=self.number(),
            l=self.number() if self.dice.random() < 0.5 else self.dice.choice((1, 2, 3)),
            r=self.dice.choice((2, 3, 4)),
        )

    def same(self, scope: list[Value], value: Value) -> str:
        """An expression with the axes of the value."""
        return self.fill(self.dice.choice(SAME_SHAPE), scope, value)

    def condition(self, scope: list[Value]) -> str:
        kinds = (DATA_CONDITIONS, SIZE_CONDITIONS, STATIC_CONDITIONS)
        templates = self.dice.choices(kinds, (10, 10, 1))[0]
        value = self.value(scope, rank=2)
        return self.fill(self.dice.choice(templates), scope, value)

    def define(self, scope: list[Value], text: str, axes: Axes, *, owned: bool = True) -> Value:
        value = Value(self.fresh("v"), axes, owned)
        self.emit(f"{value.name} = {text}")
        scope.append(value)
        return value

    # Statements.

    def reassign(self, scope: list[Value]) -> None:
        value = self.value(scope)
        self.emit(f"{value.name} = {self.same(scope, value)}")

    def assign(self, scope: list[Value]) -> None:
        value = self.value(scope)
        self.define(scope, self.same(scope, value), value.axes, owned=False)

    def body(self, scope: list[Value], most: int = 2) -> None:
        """One to `most` statements in a scope of their own."""
        inner = list(scope)
        for _ in range(self.dice.randint(1, most)):
            self.statement(inner)

    def leave(self, scope: list[Value]) -> None:
        """A return in the middle of forward, with the axes that every return has."""
        first = Value(self.inputs[0].name, self.inputs[0].axes)
        alike = [v for v in scope if v.axes == first.axes]
        self.early = True
        self.emit(f"return {self.same(scope, self.dice.choice(alike))}")

    def branch_body(self, scope: list[Value], target: Value, leaving: float = 0.2) -> None:
        """A branch: perhaps some statements, then a write of the target, a return, or neither."""
        inner = list(scope)
        if self.dice.random() < 0.3 and self.depth < 4:
            self.statement(inner)
        roll = self.dice.random()
        if roll < leaving and not self.in_loop:
            self.leave(inner)
        elif roll < 0.95:
            self.emit(f"{target.name} = {self.same(inner, target)}")
        else:
            self.emit("pass")

    def if_chain(self, scope: list[Value]) -> None:
        target = self.value(scope)
        with self.block(f"if {self.condition(scope)}:"):
            self.branch_body(scope, target)
        for _ in range(self.dice.choices((0, 1, 2), (5, 3, 1))[0]):
            with self.block(f"elif {self.condition(scope)}:"):
                self.branch_body(scope, target)
        if self.dice.random() < 0.5:
            with self.block("else:"):
                self.branch_body(scope, target)

    def if_defines(self, scope: list[Value]) -> None:
        """A name that both branches bind."""
        value = self.value(scope)
        name = self.fresh("v")
        with self.block(f"if {self.condition(scope)}:"):
            self.emit(f"{name} = {self.same(scope, value)}")
        with self.block("else:"):
            if self.dice.random() < 0.3 and not self.in_loop:
                with self.block(f"if {self.condition(scope)}:"):
                    self.leave(scope)
            self.emit(f"{name} = {self.same(scope, value)}")
        scope.append(Value(name, value.axes))

    def ternary(self, scope: list[Value]) -> None:
        value = self.value(scope)
        text = f"{self.same(scope, value)} if {self.condition(scope)} else {self.same(scope, value)}"
        self.define(scope, text, value.axes, owned=False)

    def early_return(self, scope: list[Value]) -> None:
        if self.in_loop:
            return self.reassign(scope)
        with self.block(f"if {self.condition(scope)}:"):
            self.leave(scope)

    def scalar_state(self, scope: list[Value]) -> None:
        """A Python number or flag that branches set and a later line reads."""
        name, value = self.fresh("s"), self.value(scope)
        first, second, third = self.dice.sample(("0.5", "2", "-1.0", "3.5", "10", "0"), 3)
        self.emit(f"{name} = {first}")
        with self.block(f"if {self.condition(scope)}:"):
            self.emit(f"{name} = {second}")
        if self.dice.random() < 0.5:
            with self.block(f"elif {self.condition(scope)}:"):
                if self.dice.random() < 0.4 and not self.in_loop:
                    self.leave(scope)
                else:
                    self.emit(f"{name} += {third}")
        self.define(scope, f"{value.name} * {name}", value.axes)

    def kind_state(self, scope: list[Value]) -> None:
        """A name that holds a tensor after one branch and something else after the other, and code that asks which."""
        value, name = self.value(scope), self.fresh("kind")
        kinds = ["0", "1.5", "None", f"{value.name}.sum()", self.same(scope, value), self.same(scope, value)]
        self.emit(f"{name} = {self.dice.choice(kinds)}")
        with self.block(f"if {self.condition(scope)}:"):
            self.emit(f"{name} = {self.dice.choice(kinds)}")
        if self.dice.random() < 0.3:
            with self.block(f"elif {self.condition(scope)}:"):
                self.emit(f"{name} = {self.dice.choice(kinds)}")
        ask = self.dice.choice(
            ("isinstance({0}, (int, float))", "not torch.is_tensor({0})", "{0} is None", "not hasattr({0}, 'shape')")
        )
        if self.dice.random() < 0.4:
            function = self.fresh("asks")
            self.helpers.append(f"def {function}(v):\n    return {ask.format('v')}")
            ask = f"{function}({{0}})"
        text = f"{self.same(scope, value)} if {ask.format(name)} else {value.name} * 2 - {name}"
        self.define(scope, text, value.axes)

    def container_state(self, scope: list[Value]) -> None:
        """A dict or a list that branches write into."""
        name, value = self.fresh("d"), self.value(scope)
        key, opening = self.dice.choice((("'a'", "{{'a': {0}, 'b': 1}}"), ("0", "[{0}, 1]")))
        self.emit(f"{name} = {opening.format(value.name)}")
        with self.block(f"if {self.condition(scope)}:"):
            self.emit(f"{name}[{key}] = {self.same(scope, value)}")
        if self.dice.random() < 0.4:
            with self.block(f"elif {self.condition(scope)}:"):
                other = "'b'" if key == "'a'" else "1"
                self.emit(f"{name}[{other}] = 3")
        other = "'b'" if key == "'a'" else "1"
        self.define(scope, f"{name}[{key}] * {name}[{other}]", value.axes)

    def selection(self, scope: list[Value]) -> None:
        """What a mask selects, and a decision on how much that is."""
        value, name = self.value(scope), self.fresh("sel")
        self.emit(f"{name} = {value.name}[{value.name} > {self.threshold()}]")
        test = self.dice.choice(("{0}.shape[0] == 0", "{0}.numel() == 0", "len({0}) == 0", "{0}.shape[0] < 3"))
        total = self.fresh("s")
        with self.block(f"if {test.format(name)}:"):
            self.emit(f"{total} = {value.name}.sum()")
        with self.block("else:"):
            self.emit(f"{total} = {name}.{self.dice.choice(('mean()', 'max()', 'sum() / 2'))}")
        self.define(scope, f"{value.name} + {total}", value.axes)

    def loop_sizes(self, scope: list[Value]) -> None:
        value, name = self.value(scope), self.fresh("acc")
        axis = self.dice.choice(("0", "-1"))
        self.emit(f"{name} = {value.name} * 0")
        with self.block(f"for i in range({value.name}.shape[{axis}]):"), self.loop():
            picked = f"{value.name}[i].sum()" if axis == "0" else f"{value.name}[..., i].mean()"
            if self.dice.random() < 0.4:
                with self.block(f"if {picked} > {self.threshold()}:"):
                    self.emit(self.dice.choice(("break", "continue", f"{name} = {name} + i")))
            self.emit(f"{name} = {name} + {picked} * {self.dice.choice(('1', '0.5', 'i', '(i + 1)'))}")
        scope.append(Value(name, value.axes, True))

    def loop_rows(self, scope: list[Value]) -> None:
        value, name = self.value(scope, rank=2), self.fresh("rows")
        self.emit(f"{name} = []")
        with self.block(f"for row in {value.name}:"), self.loop():
            if self.dice.random() < 0.4:
                with self.block(f"if row.{self.dice.choice(('max', 'sum'))}() > {self.threshold()}:"):
                    self.emit(
                        f"row = {self.same([*scope, Value('row', value.axes[1:])], Value('row', value.axes[1:]))}"
                    )
            self.emit(f"{name}.append(row * 2)")
        self.define(scope, f"torch.stack({name})", value.axes)

    def loop_state(self, scope: list[Value]) -> None:
        """A loop that tells its first round by what there is before it."""
        value, name = self.value(scope, rank=2), self.fresh("state")
        lines, result, axis = draw_loop(self.dice, value.name, name, self.fresh("state"))
        with self.loop():
            self.emit(lines)
        # Where the first axis is counted with, the result has the other axes, whichever way the loop runs.
        axes = value.axes[:-1] if axis == "-1" and ".sum(0)" not in result else value.axes[1:]
        self.define(scope, result, axes)

    def loop_range(self, scope: list[Value]) -> None:
        value = self.value(scope)
        with self.block(f"for i in range({self.dice.choice(('2', '3', '4'))}):"), self.loop():
            roll = self.dice.random()
            if roll < 0.5:
                with self.block(f"if {self.condition(scope)}:"):
                    self.emit(self.dice.choice(("break", "continue", f"{value.name} = {value.name} / 2")))
            self.emit(f"{value.name} = {self.dice.choice((f'{value.name} + i', self.same(scope, value)))}")
        if self.dice.random() < 0.2:
            with self.block("else:"):
                self.emit(f"{value.name} = {value.name} + 1")

    def loop_while(self, scope: list[Value]) -> None:
        value, name = self.value(scope), self.fresh("n")
        if self.dice.random() < 0.5:
            self.emit(f"{name} = {self.size(scope)[1]}")
            with self.block(f"while {name} > {self.dice.choice('123')}:"), self.loop():
                self.emit(f"{name} = {name} // 2\n{value.name} = {self.same(scope, value)}")
            return
        self.emit(f"{name} = 0")
        limit = self.dice.choice(("1", "10", "100"))
        largest = f"(most := {value.name}.abs().max())" if limit == "10" else f"{value.name}.abs().max()"
        with self.block(f"while {largest} > {limit} and {name} < 4:"), self.loop():
            self.emit(f"{value.name} = {value.name} / 4\n{name} += 1")

    def windows(self, scope: list[Value]) -> None:
        """Steps over an axis whose size is no multiple of the step."""
        value, step = self.value(scope, rank=2), self.dice.choice((2, 3, 4))
        part = f"{value.name}[..., i : i + {step}]"
        shown = self.dice.choice((f"{part}.softmax(-1)", f"{part} - {part}.mean(-1, keepdim=True)", f"{part} * i"))
        text = f"torch.cat([{shown} for i in range(0, {value.name}.shape[-1], {step})], -1)"
        self.define(scope, text, value.axes)

    def pieces(self, scope: list[Value]) -> None:
        """The pieces of an axis, whose count a size decides."""
        value = self.value(scope, rank=2)
        varying = [i for i, axis in enumerate(value.axes) if isinstance(axis, str)]
        axis = self.dice.choice(varying or range(len(value.axes)))
        use = draw_use(self.dice, value.name, axis, self.fresh("cut"))
        with self.loop():
            self.emit(use.lines or "pass")
        axes = value.axes if use.keeps_axis else value.axes[:axis] + value.axes[axis + 1 :]
        self.define(scope, use.result, axes)

    def texts(self, scope: list[Value]) -> None:
        """A text of a size or of values, which is told or decides."""
        value = self.value(scope)
        name = self.define(scope, f"{value.name} * 1", value.axes).name
        self.emit(draw_lines(self.dice, name, self.size(scope)[1], self.number(), self.fresh("text")))

    def tables(self, scope: list[Value]) -> None:
        """A size that is looked up, in a table of the function's own or of the model's."""
        value = self.value(scope)
        tensor = self.define(scope, f"{value.name} * 1", value.axes).name
        sizes, name = (self.size(scope)[1], self.size(scope)[1]), self.fresh("found")
        lines = draw_lookup(self.dice, tensor, sizes, [self.number() for _ in range(6)], name)
        if lines.startswith(f"{name}_table") and self.dice.random() < 0.5:
            first, _, lines = lines.partition("\n")
            self.members.append(f"self.{first}")
            lines = lines.replace(f"{name}_table", f"self.{name}_table")
        self.emit(lines)

    def attempt(self, scope: list[Value]) -> None:
        """A try: what is raised in it is caught."""
        value = self.value(scope)
        error = self.dice.choice(("ValueError", "AssertionError", "RuntimeError"))
        with self.block("try:"):
            if error == "AssertionError":
                self.emit(f"assert {self.condition(scope)}")
            elif self.dice.random() < 0.4:
                name, local = self.fresh("check_"), Value("t", value.axes)
                test = self.fill(self.dice.choice(DATA_CONDITIONS), [local], local)
                self.helpers.append(f"def {name}(t):\n    if {test}:\n        raise {error}('bad')\n    return t * 2")
                self.emit(f"{value.name} = {name}({value.name})")
            else:
                with self.block(f"if {self.condition(scope)}:"):
                    self.emit(f"raise {error}('bad')")
            self.emit(f"{value.name} = {self.same(scope, value)}")
        with self.block(f"except {error}:"):
            if self.dice.random() < 0.2 and not self.in_loop:
                self.leave(scope)
            else:
                self.emit(f"{value.name} = {self.same(scope, value)}")

    def attempt_call(self, scope: list[Value]) -> None:
        """A try around a call of torch that fails at some sizes, or for some values."""
        value = self.value(scope, rank=2)
        t, k = value.name, self.number()
        table = self.fresh("table")
        self.members.append(f"self.register_buffer('{table}', torch.arange({k}, dtype=torch.float32))")
        call = self.dice.choice(
            (
                f"{t}[..., {k}].sum()",
                f"{t}.select(-1, {k}).sum()",
                f"{t}.narrow(-1, 0, {k}).amax()",
                f"{t}.view(-1, {k}).amax(0).sum()",
                f"({t} + self.{table}).sum()",
                f"torch.cat([{t}, {t}.flatten()[: {k}].expand_as({t}[..., :{k}])], 0).sum()",
                f"{t}.topk({k}, -1).values.sum()",
                f"F.pad({t}, ({k}, 0), mode='reflect').sum()",
                f"{t}.flatten().unfold(0, {k}, 1).amax(1).sum()",
                f"{t}.gather(-1, {t}.abs().long()).sum()",
                f"{t}[..., {t}.abs().max().long()].sum()",
                f"({t}[{t} > 0] + {t}[{t} < 0]).sum()",
            )
        )
        result = self.fresh("sum")
        with self.block("try:"):
            self.emit(f"{result} = {call}")
        with self.block(f"except {self.dice.choice(('(IndexError, RuntimeError)', 'Exception'))}:"):
            self.emit(f"{result} = {t}[..., -1].sum() * 2")
        self.define(scope, f"{t} + {result}", value.axes, owned=False)

    def legality(self, scope: list[Value]) -> None:
        """A check of the model's own, which nothing catches."""
        text = self.dice.choice(("assert {t}.dim() == {r}", "assert {n} >= 1, 'empty'", "assert {t}.shape[0] > 0"))
        value = self.value(scope)
        self.emit(text.format(t=value.name, r=len(value.axes), n=self.size(scope)[1]))

    def write(self, scope: list[Value]) -> None:
        """A write in place, on a tensor of the program's own or, now and then, on what the caller gave."""
        value = self.value(scope)
        if not value.owned and self.dice.random() < 0.85:
            value = self.define(scope, f"{value.name}.clone()", value.axes)
        place = self.dice.choice(("[0]", "[-1]", "[..., 0]", "[..., -1]", "[..., 1:]", "[..., ::2]", "[1:]", "[:, 0]"))
        if place == "[:, 0]" and len(value.axes) < 2:
            place = "[0]"
        t = value.name
        mask = f"{t}[..., 0] > {self.threshold()}"
        at_rows = (f"{t}[{mask}] = {t}[{mask}] * 2", f"{t}[{mask}] = {t}[0]", f"{t}[{mask}, :1] = {t}[{mask}, -1:]")
        self.emit(
            self.dice.choice(
                (
                    *(at_rows if len(value.axes) == 2 else ()),
                    f"{t}{place} = 0",
                    f"{t}{place} = {t}{place} * 2",
                    f"{t}{place} += 1",
                    f"{t}{place}.mul_(2)",
                    f"{t}{place}.zero_()",
                    f"{t}.add_(1)",
                    f"{t} += 1",
                    f"{t}.clamp_(-1, 1)",
                    f"{t}[{t} > {self.threshold()}] = 1",
                    f"{t}[{t} < 0] *= 0.5",
                    f"{t}.masked_fill_({t} < {self.threshold()}, 0.25)",
                    f"part = {t}{place}\npart += 2",
                    f"flat = {t}.view(-1)\nflat[0] = 7",
                )
            )
        )

    def reshape(self, scope: list[Value]) -> None:
        """A tensor of other axes."""
        value = self.value(scope, rank=2)
        t, axes = value.name, value.axes
        new = self.fresh("a")
        choices: list[tuple[str, Axes]] = [
            (f"{t}.flatten(1)", (axes[0], new)) if len(axes) > 2 else (f"{t}.flatten()", (new,)),
            (f"{t}.reshape({t}.shape[0], -1)", (axes[0], new if len(axes) > 2 else axes[1])),
            (f"{t}.view({t}.shape[0] * {t}.shape[1], -1)", (new, self.fresh("a"))),
            (f"{t}.transpose(0, -1)", (axes[-1], *axes[1:-1], axes[0])),
            (f"{t}.mean(-1)", axes[:-1]),
            (f"{t}.amax(0)", axes[1:]),
            (f"{t}.sum(-1, keepdim=True)", (*axes[:-1], 1)),
            (f"{t}.unsqueeze(1).expand(-1, 2, {', '.join(['-1'] * (len(axes) - 1))})", (axes[0], 2, *axes[1:])),
            (f"{t}[..., 1:]", (*axes[:-1], new)),
            (f"{t}[..., ::2]", (*axes[:-1], new)),
            (f"{t}[..., -3:]", (*axes[:-1], new)),
            (f"{t}[1:-1]", (new, *axes[1:])),
            (f"{t}[:, -1]", (axes[0], *axes[2:])),
            (f"{t}[:, :{t}.shape[1] // 2]", (axes[0], new, *axes[2:])),
            (f"{t}[{t}.shape[0] // 2]", axes[1:]),
            (f"torch.cat([{t}, {t} * 2], -1)", (*axes[:-1], new)),
            (f"torch.cat([{t}, {t}.flip(0)], 0)", (new, *axes[1:])),
            (f"torch.stack([{t}, {t} + 1], 1)", (axes[0], 2, *axes[1:])),
            (f"{t}.chunk(2, -1)[0]", (*axes[:-1], new)),
            (f"{t}.split(3, -1)[-1]", (*axes[:-1], new)),
            (f"F.pad({t}, (1, {t}.shape[-1] % 2))", (*axes[:-1], new)),
            (f"F.pad({t}, (0, (-{t}.shape[-1]) % 4))", (*axes[:-1], new)),
            (f"{t}.repeat({', '.join(['1'] * (len(axes) - 1))}, 2)", (*axes[:-1], new)),
            (f"{t}.topk(1, -1).values", (*axes[:-1], 1)),
            (f"torch.arange({t}.shape[-1], 0, -1) * 0.5 + {t}.sum()", (axes[-1],)),
            (f"torch.linspace(0, 1, {t}.shape[0]) + {t}.mean()", (axes[0],)),
            (f"{t}.new_zeros({t}.shape[0], 3) + {t}.max()", (axes[0], 3)),
            (f"{t}.unfold(-1, 2, 2)", (*axes[:-1], new, 2)),
            (f"{t}.flatten()[: {t}.shape[-1]]", (axes[-1],)),
            (f"{t}.double().cumsum(0).float()", axes),
        ]
        self.define(scope, *self.dice.choice(choices))

    def layer(self, scope: list[Value]) -> None:
        """A module of its own, where an axis is fixed; a picture's layers where there are four axes."""
        value = self.value(scope, rank=2)
        name = self.fresh("layer")
        channels = value.axes[1]
        if len(value.axes) == 4 and isinstance(channels, int):
            return self.picture_layer(scope, value, name, channels)
        if isinstance(value.axes[-1], int):
            width = self.dice.choice((value.axes[-1], 5))
            self.members.append(f"self.{name} = nn.Linear({value.axes[-1]}, {width})")
            self.define(scope, f"self.{name}({value.name})", (*value.axes[:-1], width))
            return None
        return self.reassign(scope)

    def picture_layer(self, scope: list[Value], value: Value, name: str, channels: int) -> None:
        stride = self.dice.choice((1, 2, 3, 4))
        layer = self.dice.choice(
            (
                f"nn.Conv2d({channels}, {channels}, 3, stride={stride}, padding=1)",
                f"nn.Conv2d({channels}, {channels}, {stride}, {stride})",
                f"nn.AvgPool2d({stride})",
                f"nn.MaxPool2d({stride}, ceil_mode=True)",
                "nn.AdaptiveAvgPool2d((2, 3))",
                f"nn.BatchNorm2d({channels})",
                "nn.Upsample(scale_factor=2)",
            )
        )
        self.members.append(f"self.{name} = {layer}")
        sizes: Axes = (self.fresh("a"), self.fresh("a"))
        kept = layer.startswith("nn.BatchNorm") or ", 3, stride=1" in layer
        made = self.define(scope, f"self.{name}({value.name})", value.axes if kept else (*value.axes[:2], *sizes))
        if self.dice.random() < 0.6:
            self.after_layer(scope, value, made)

    def after_layer(self, scope: list[Value], value: Value, made: Value) -> None:
        """A decision on the size that a layer gave."""
        y, x = made.name, value.name
        k, other = self.dice.choice((2, 3, 4, 8)), self.dice.choice((2, 3, 4, 8))
        new: Axes = (*made.axes[:2], self.fresh("a"), self.fresh("a"))
        self.emit(
            self.dice.choice(
                (
                    f"if {y}.shape[-2:] != {x}.shape[-2:]:\n    {y} = F.interpolate({y}, size={x}.shape[-2:])",
                    f"if {y}.shape[-2:] != ({k}, {other}):\n    {y} = F.interpolate({y}, size=({k}, {other}))",
                    f"if {y}.shape[2] > {k}:\n    {y} = {y} * 2",
                    f"if {y}.shape[3] % 2:\n    {y} = F.pad({y}, (0, 1))",
                    f"{y} = F.interpolate({y}, size=({y}.shape[2] * 2, {x}.shape[3]), mode='bilinear')",
                    f"if {y}.shape[2] == {k}:\n    {y} = {y} + 1\nelse:\n    {y} = {y} - 1",
                )
            )
        )
        scope[-1] = Value(y, new, True)

    def nested_function(self, scope: list[Value]) -> None:
        """A function in forward that reads its surroundings."""
        name, value = self.fresh("inner"), self.value(scope)
        with self.block(f"def {name}(t):"), self.loop():
            inner = [*scope, Value("t", value.axes)]
            with self.block(f"if {self.condition(inner)}:"):
                self.emit(f"return {self.same(inner, Value('t', value.axes))}")
            self.emit(f"return {self.same(inner, Value('t', value.axes))}")
        if self.dice.random() < 0.4:
            self.reassign(scope)
        self.define(scope, f"{name}({value.name})", value.axes)

    def helper(self, scope: list[Value]) -> None:
        """A function at the top of the file."""
        name, value = self.fresh("helper"), self.value(scope, rank=2)
        local = Value("t", value.axes)
        test, one, two = self.condition([local]), self.same([local], local), self.same([local], local)
        if "self" not in test:
            self.helpers.append(
                f"def {name}(t, factor=2):\n    if {test}:\n        return {one}\n    return ({two}) * factor"
            )
            self.define(scope, f"{name}({value.name})", value.axes)

    def attribute(self, scope: list[Value]) -> None:
        """An attribute of the module that forward writes and reads."""
        name, value = self.fresh("kept"), self.value(scope)
        self.members.append(f"self.{name} = 1.0")
        with self.block(f"if {self.condition(scope)}:"):
            self.emit(f"self.{name} = {self.dice.choice(('2.0', '0.5', f'{value.name}.mean()'))}")
        self.define(scope, f"{value.name} * self.{name}", value.axes)

    def cache(self, scope: list[Value]) -> None:
        """A table by size that the module keeps."""
        name, value = self.fresh("cache"), self.value(scope)
        filled = self.dice.choice(("{}", f"{{{self.number()}: torch.tensor(3.0)}}"))
        self.members.append(f"self.{name} = {filled}")
        key, t = self.fresh("key"), value.name
        self.emit(f"{key} = {t}.shape[-1]")
        with self.block(f"if {key} not in self.{name}:"):
            self.emit(f"self.{name}[{key}] = torch.arange({key}, dtype=torch.float32)")
        self.define(scope, f"{t} + self.{name}[{key}]", value.axes)

    def buffer(self, scope: list[Value]) -> None:
        """A buffer that has the size of the example, cut or enlarged to the input's."""
        name, value = self.fresh("table"), self.value(scope)
        length = self.number()
        self.members.append(f"self.register_buffer('{name}', torch.arange({length}, dtype=torch.float32))")
        n = f"{value.name}.shape[-1]"
        with self.block(f"if {n} <= self.{name}.shape[0]:"):
            self.emit(f"{name} = self.{name}[:{n}]")
        with self.block("else:"):
            self.emit(f"{name} = torch.arange({n}, dtype=torch.float32)")
        self.define(scope, f"{value.name} + {name}", value.axes)

    def integers(self, scope: list[Value]) -> None:
        """Integers out of values, and back into floats."""
        value = self.value(scope)
        t = value.name
        text = self.dice.choice(
            (
                f"{t} + {t}.argmax(-1, keepdim=True)",
                f"{t} * ({t} > {self.threshold()}).long()",
                f"{t} + ({t} > {self.threshold()}).sum() % 3",
                f"{t}.gather(-1, {t}.argsort(stable=True, dim=-1, descending=True))",
                f"{t} + int({t}.sum() > 0)",
                f"{t} * float({t}.mean())",
                f"{t} - min({t}.shape[-1], 7)",
                f"{t} + {t}.long() % 5",
                f"{t} + len({t})",
            )
        )
        self.define(scope, text, value.axes)

    def statement(self, scope: list[Value]) -> None:
        simple: dict[Callable[[list[Value]], None], float] = {
            self.reassign: 3,
            self.assign: 3,
            self.reshape: 5,
            self.write: 2.5,
            self.integers: 1,
            self.layer: 2,
            self.ternary: 1.5,
        }
        compound: dict[Callable[[list[Value]], None], float] = {
            self.if_chain: 5,
            self.if_defines: 2,
            self.early_return: 2,
            self.scalar_state: 1.5,
            self.container_state: 1,
            self.kind_state: 1,
            self.selection: 1.5,
            self.loop_sizes: 1,
            self.loop_rows: 1,
            self.loop_state: 1,
            self.loop_range: 1,
            self.loop_while: 1,
            self.windows: 0.5,
            self.attempt: 1.5,
            self.attempt_call: 0.7,
            self.legality: 0.5,
            self.nested_function: 1,
            self.helper: 1,
            self.attribute: 0.5,
            self.cache: 0.5,
            self.buffer: 0.5,
        }
        kinds = simple | compound if self.depth < 4 else simple
        self.dice.choices(list(kinds), list(kinds.values()))[0](scope)

    def result(self, scope: list[Value]) -> None:
        """The last return: with an early one, one tensor of the same axes; else one or two of any."""
        first = Value(self.inputs[0].name, self.inputs[0].axes)
        last = scope[-1]
        alike = [v for v in scope if v.axes == first.axes]
        if self.early:
            extra = "" if last in alike else f" + {last.name}.sum()"
            self.emit(f"return {alike[-1].name}{extra}")
        elif self.dice.random() < 0.3:
            self.emit(f"return {last.name}, {self.same(scope, self.value(scope))}")
        else:
            self.emit(f"return {last.name}" if last != first else f"return {last.name} * 1")

    def program(self, seed: int, statements: Sequence[Callable[[list[Value]], None]] = ()) -> Program:
        """A program of these statements; of one to five drawn ones without them."""
        scope = [Value(i.name, i.axes) for i in self.inputs]
        self.depth = 2
        for statement in statements or [self.statement] * self.dice.randint(1, 5):
            statement(scope)
        self.result(scope)
        parameters = ", ".join(i.name for i in self.inputs)
        text = [HEADER, *(f"\n{h}\n" for h in self.helpers), "\nclass Model(nn.Module):"]
        text += ["    def __init__(self):", "        super().__init__()"]
        text += ["        " + line for line in self.members]
        text += ["", f"    def forward(self, {parameters}):", *self.lines, ""]
        return Program(seed, "\n".join(text), self.inputs)


def draw_inputs(dice: random.Random) -> tuple[Input, ...]:
    """One or two inputs; their axes of one name have one size."""
    rank = dice.choices((2, 3, 4), (3, 3, 3))[0]
    names = {2: ("batch", "width"), 3: ("batch", "height", "width"), 4: ("batch", "", "height", "width")}[rank]
    sizes = {name: dice.choice(SIZES) for name in names} | {
        "batch": dice.choice((1, 2, 3, 4)),
        "": dice.choice((1, 2, 3)),
    }
    varying = [name for name in names if name and dice.random() < 0.65]
    first = Input("x", tuple(sizes[n] for n in names), {i: n for i, n in enumerate(names) if n in varying})
    if dice.random() < 0.7:
        return (first,)
    if dice.random() < 0.5:
        return (first, Input("y", first.shape, dict(first.dynamic)))
    own = {"boxes": dice.choice(SIZES)}
    shape = (own["boxes"], 4) if dice.random() < 0.5 else (first.shape[0], 3)
    named = {0: "boxes"} if shape[1] == 4 else {a: n for a, n in first.dynamic.items() if a == 0}
    return (first, Input("y", shape, named if dice.random() < 0.8 or shape[1] == 3 else {}))


def make_kinds(seed: int) -> Program:
    """A program of a seed, little of which but asks what kind of value a name holds, after a branch or in a loop."""
    dice = random.Random(seed)
    writer = Writer(dice, draw_inputs(dice))
    asking = writer.loop_state if seed % 2 else writer.kind_state
    return writer.program(seed, [asking] if dice.random() < 0.7 else [writer.statement, asking])


def make_pieces(seed: int) -> Program:
    """A program of a seed, little of which but uses the pieces of an axis."""
    dice = random.Random(seed)
    writer = Writer(dice, draw_inputs(dice))
    return writer.program(seed, [writer.pieces] if dice.random() < 0.7 else [writer.statement, writer.pieces])


def make_texts(seed: int) -> Program:
    """A program of a seed, little of which but makes texts of sizes and values."""
    dice = random.Random(seed)
    writer = Writer(dice, draw_inputs(dice))
    return writer.program(seed, [writer.texts] if dice.random() < 0.7 else [writer.statement, writer.texts])


def make_tables(seed: int) -> Program:
    """A program of a seed, little of which but looks sizes up in dictionaries and sets."""
    dice = random.Random(seed)
    writer = Writer(dice, draw_inputs(dice))
    return writer.program(seed, [writer.tables] if dice.random() < 0.7 else [writer.statement, writer.tables])


def make_errors(seed: int) -> Program:
    """A program of a seed that catches errors, of which a capture has more than eager torch."""
    dice = random.Random(seed)
    source = HEADER + errors_source(dice).replace("except :", "except:")
    dynamic = dice.choice(({0: "rows", 1: "columns"}, {0: "rows"}, {}))
    return Program(seed=seed, source=source, inputs=(Input("x", (dice.choice((3, 4, 6)), 5), dynamic),))


def make_far(seed: int) -> Program:
    """A program of a seed that asks for numbers which are others far from the example."""
    dice = random.Random(seed)
    body = "".join(f"        {line}\n" for line in far_lines(dice))
    source = f"import math\n\n{HEADER}\n\nclass Model(nn.Module):\n    def forward(self, x):\n{body}"
    rest = dice.choice(((4,), (3, 128, 128)))
    return Program(seed=seed, source=source, inputs=(Input("x", (dice.choice((2, 3)), *rest), {0: "rows"}),))


def make_layouts(seed: int) -> Program:
    """A program of a seed that asks how views lie in memory."""
    dice = random.Random(seed)
    body = "".join(f"        {line}\n" for line in layout_lines(dice))
    source = f"{HEADER}\n\nclass Model(nn.Module):\n    def forward(self, x):\n{body}"
    dynamic = dice.choice(({0: "rows", 1: "columns"}, {0: "rows"}))
    return Program(seed=seed, source=source, inputs=(Input("x", (dice.choice((3, 4, 6)), 5), dynamic),))


def make_rounds(seed: int) -> Program:
    """A program of a seed with a loop that has as many rounds as its input says."""
    dice = random.Random(seed)
    body = "".join(f"        {line}\n" for line in rounds_lines(dice))
    source = f"{HEADER}\n\nclass Model(nn.Module):\n    def forward(self, x):\n{body}"
    return Program(seed=seed, source=source, inputs=(Input("x", (dice.choice((3, 4, 6)), 4), {0: "rows"}),))


def make_results(seed: int) -> Program:
    """A program of a seed with a function that returns one kind of value or another."""
    dice = random.Random(seed)
    source = f"{HEADER}\n\n{results_source(dice)}"
    return Program(seed=seed, source=source, inputs=(Input("x", (dice.choice((3, 4, 6)), 4), {0: "rows"}),))


def make_positions(seed: int) -> Program:
    """A program of a seed that adds a table as it is, or resized, as its input's sizes decide."""
    source, example = positions_source(random.Random(seed))
    return Program(seed=seed, source=HEADER + source, inputs=(Input("x", (*example, 2), {0: "rows", 1: "columns"}),))


def make_indices(seed: int) -> Program:
    """A program of a seed that takes rows by whole numbers, and decides on how many rows there are."""
    dice = random.Random(seed)
    source, kind = indices_source(dice)
    shape, dynamic = ((), {}) if kind == "scalar" else ((dice.choice((2, 3, 4)),), dice.choice(({0: "picks"}, {})))
    inputs = (Input("x", (dice.choice((6, 7, 8)), 3), {0: "rows"}), Input("i", shape, dynamic, kind, "rows"))
    return Program(seed=seed, source=HEADER + source, inputs=inputs)


def make_program(seed: int) -> Program:
    """The program of a seed; the same text in every process."""
    dice = random.Random(seed)
    return Writer(dice, draw_inputs(dice)).program(seed)


MAKERS: dict[str, Callable[[int], Program]] = {
    "": make_program,
    "errors": make_errors,
    "far": make_far,
    "indices": make_indices,
    "kinds": make_kinds,
    "layouts": make_layouts,
    "pieces": make_pieces,
    "positions": make_positions,
    "results": make_results,
    "rounds": make_rounds,
    "texts": make_texts,
    "tables": make_tables,
}
"""By what its programs are about; of all kinds, the first."""


def write_program(program: Program, folder: Path) -> Path:
    """Writes the program's file; inspect and linecache find its source there."""
    path = folder / f"fuzz_{program.seed}.py"
    path.write_text(program.source)
    linecache.checkcache(str(path))
    return path


def fresh_model(program: Program, path: Path) -> nn.Module:
    """A new copy of the model: the file is run again, so nothing that an earlier call kept is there."""
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(program.seed)
        model = module.Model()
    assert isinstance(model, nn.Module)
    return model.eval()


def example_inputs(program: Program, sizes: dict[str, int] | None = None) -> tuple[Tensor, ...]:
    """Normal values at the given sizes of the axes that vary; the example's without them. Whole numbers fit the sizes.

    Of every third program they are positive: what is neutral among those, as 0 in a maximum, is not among others.
    """
    chosen = program.sizes | (sizes or {})
    generator = torch.Generator().manual_seed(program.seed + 7)
    shapes = [[chosen.get(i.dynamic.get(a, ""), size) for a, size in enumerate(i.shape)] for i in program.inputs]
    drawn = [torch.randn(shape, generator=generator) for shape in shapes]
    floats = [x.abs() + 0.1 if program.seed % 3 == 1 else x for x in drawn]
    return tuple(
        _whole_numbers(given.kind, chosen[given.of], x.shape, generator) if given.kind else x
        for given, x in zip(program.inputs, floats, strict=True)
    )


def _whole_numbers(kind: str, size: int, shape: Sequence[int], generator: torch.Generator) -> Tensor:
    if kind == "length":
        return torch.randint(1, size + 1, shape, generator=generator)
    numbers = torch.randint(0, size, shape, generator=generator)
    return torch.cat([torch.zeros_like(numbers[:1]), numbers[1:].sort().values]) if kind == "offset" else numbers
