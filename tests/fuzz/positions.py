"""Random programs that add a table of positions as it is where it fits their input, and else resized, cut or repeated.

The condition asks for a product of two sizes, for each of them, for a shape, or for one of them; some ask for values
too, once the sizes are right. The branches return, add, or bind; some run at some sizes only.
"""

from __future__ import annotations

import random

TABLES = ((3, 3), (4, 4), (2, 6), (4, 3))

CONDITIONS = (
    *("h * w == {cells}", "h * w != {cells}", "t.shape[1] != table.shape[1]", "t.size(1) == {cells} and h == {rows}"),
    *("(h, w) == ({rows}, {columns})", "h != {rows} or w != {columns}", "h * w < {cells}", "t.shape[1] >= {cells}"),
    *("x.shape[:2] == ({rows}, {columns})", "t.shape == table.shape", "h == {rows} and w == {columns} or h * w == 7"),
    *("h == {rows} and bool((x[:, :{columns}, 0] > -9).all())", "t.shape == table.shape and bool((t == table).all())"),
    *("torch.equal(t, table)", "t.shape == table.shape and torch.allclose(t, table)", "max(h, w) == {rows}"),
)
"""Of a program's decision; {rows} and {columns} are the table's, {cells} their product."""

FITS = ("table", "table * 1.5", "table + t.mean()", "table[:, : t.shape[1]]", "table.expand(1, t.shape[1], 2)")
"""What is added on one side; most run only where the table is as long as the input."""

RESIZED = (
    "resize(table, h, w, 'nearest')",
    "resize(table, h, w, 'bilinear')",
    "resize(table, h, w, 'bicubic')",
    "F.interpolate(table.transpose(1, 2), size=h * w, mode='linear').transpose(1, 2)",
    "table.repeat(1, h * w // {cells} + 1, 1)[:, : h * w]",
    "F.pad(table, (0, 0, 0, h * w))[:, : h * w]",
    "table[:, torch.arange(h * w) % {cells}]",
)

FORMS = (
    "        if {condition}:\n            t = t + {one}\n        else:\n            t = t + {other}\n",
    "        p = {one} if {condition} else {other}\n        t = t + p\n",
    "        t = t + self.positions(x, t, table, h, w)\n",
    "        p = {other}\n        if {condition}:\n            p = {one}\n        t = t * 2 + p\n",
    "        if {condition}:\n            return (t + {one}).cumsum(1)\n        t = t + {other}\n",
)

HEAD = """
def resize(table, h, w, mode):
    side = table.reshape(1, {rows}, {columns}, -1).permute(0, 3, 1, 2)
    return F.interpolate(side, size=(h, w), mode=mode).flatten(2).transpose(1, 2)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, {cells}, 2))

    def positions(self, x, t, table, h, w):
        if {condition}:
            return {one}
        return {other}

    def forward(self, x):
        h, w, table = x.shape[0], x.shape[1], self.table
        t = x.reshape(1, h * w, 2)
"""


def positions_source(dice: random.Random) -> tuple[str, tuple[int, int]]:
    """The text of a program of x (h, w, 2), and the sizes of its example: the table's, or others."""
    rows, columns = dice.choice(TABLES)
    parts = {"rows": rows, "columns": columns, "cells": rows * columns}
    condition = dice.choice(CONDITIONS).format(**parts)
    one, other = dice.choice(FITS), dice.choice(RESIZED).format(**parts)
    if "!=" in condition or "<" in condition:
        one, other = other, one
    body = dice.choice(FORMS).format(condition=condition, one=one, other=other)
    pairs = {(rows, columns), (columns, rows), (1, rows * columns), (2, rows * columns // 2), (rows * 2, columns)}
    sizes = "".join(f"# of sizes {pair}\n" for pair in sorted(pairs))
    head = HEAD.format(condition=condition, one=one, other=other, **parts)
    example = dice.choice(((rows, columns), (rows, columns), (rows + 2, columns + 1), (rows - 1, columns)))
    return f"{sizes}{head}{body}        return t * {dice.choice((2, 0.5, -1))}\n", example
