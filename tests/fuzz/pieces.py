"""Random uses of as many pieces as a size says: of split and chunk, the rows of a tensor, and repeated lists."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Use:
    """Lines that use pieces, and what they yield.

    Attributes:
        lines: Statements before the result.
        result: The expression of the result.
        keeps_axis: Whether the result has the axis along which the tensor was cut.
    """

    lines: str
    result: str
    keeps_axis: bool


def draw_use(dice: random.Random, tensor: str, axis: int, name: str) -> Use:
    """Pieces of a tensor along an axis, and what is made of them; `name` and those that begin with it are its own."""
    cut = _draw_cut(dice, tensor, axis)
    if dice.random() < 0.6:
        return _joined(dice, cut, tensor, axis, name)
    return _reduced(dice, cut, axis, name)


def _draw_cut(dice: random.Random, tensor: str, axis: int) -> str:
    number = dice.choice((1, 2, 3, 4, 5, 100))
    forms = (f"{tensor}.split({number}, {axis})", f"torch.split({tensor}, {number}, dim={axis})")
    chunks = (f"{tensor}.chunk({min(number, 5)}, dim={axis})", f"torch.chunk({tensor}, {min(number, 5)}, {axis})")
    mean = f"{tensor}.mean({axis}, keepdim=True)"
    repeats = (f"([{mean}] * {tensor}.shape[{axis}])", f"(({mean}, {mean} * 2) * {tensor}.shape[{axis}])")
    return dice.choice((*forms, *forms, *chunks, *repeats))


def _joined(dice: random.Random, cut: str, tensor: str, axis: int, name: str) -> Use:
    changed = dice.choice(
        (
            f"p.softmax({axis})",
            f"p - p.mean({axis}, keepdim=True)",
            f"p.cumsum({axis})",
            f"p.flip({axis}) * 2",
            f"p / p.shape[{axis}]",
        )
    )
    loops = (
        f"{name} = []\nfor p in {cut}:\n    {name}.append({changed})",
        f"{name} = []\nfor k, p in enumerate({cut}):\n    {name}.append({changed} + k)",
        f"{name}_cut = {cut}\n{name} = []\nfor k in range(len({name}_cut)):\n    p = {name}_cut[k]\n"
        f"    {name}.append({changed})",
        f"{name} = [{changed} for p in {cut}]",
        f"{name} = list(map(lambda p: {changed}, {cut}))",
        f"{name} = tuple({changed} for p in {cut})",
        f"{name} = [{changed} for p in reversed({cut})]",
        f"{name}_cut = {cut}\n{name} = [{changed} for p in {name}_cut[1:]] + [{name}_cut[0]]",
        f"{name}_cut = {cut}\n{name} = [*{name}_cut[:-1], {name}_cut[-1] * 2]",
        f"{name} = [p * q.mean() for p, q in zip({cut}, {cut.replace(tensor, f'{tensor}.flip({axis})')})]",
        f"{name} = {cut}",
    )
    return Use(dice.choice(loops), f"torch.cat({name}, {axis})", True)


def _reduced(dice: random.Random, cut: str, axis: int, name: str) -> Use:
    inner = dice.choice(("sum", "mean"))
    whole = f"p.{inner}({axis})"
    uses = (
        (f"{name} = {cut}", f"{name}[-1].{inner}({axis}) + {name}[0].{inner}({axis})"),
        (f"{name} = {cut}", f"{name}[0].{inner}({axis}) * len({name})"),
        ("", f"sum({whole} for p in {cut})"),
        ("", f"sum([{whole} for p in {cut}], 1.0)"),
        ("", f"torch.stack([{whole} for p in {cut}]).amax(0)"),
        (f"{name} = 0.0\nfor p in {cut}:\n    {name} = {name} * 0.5 + {whole}", name),
        (f"{name} = {cut}", f"{name}[0].sum({axis}) * max(p.mean() for p in {name})"),
        (f"{name} = {cut}", f"{name}[0].sum({axis}) * (2 if any(p.mean() > 0.1 for p in {name}) else 3)"),
        (f"{name} = {cut}", f"{name}[0].sum({axis}) * (2 if all(p.mean() < 0.3 for p in {name}) else 3)"),
        (
            f"{name} = 0.0\nfor p in {cut}:\n    if p.mean() > 0.2:\n        break\n    {name} = {name} + p.sum()",
            f"{cut}[0].sum({axis}) + {name}",
        ),
        (
            f"{name} = {cut}[0].sum({axis})\nfor p in {cut}:\n    if p.shape[{axis}] < 3:\n"
            f"        {name} = {name} + {whole}\n    else:\n        {name} = {name} - {whole}",
            name,
        ),
    )
    lines, result = dice.choice(uses)
    return Use(lines, result, False)
