"""Random look-ups of sizes in dictionaries and sets: Python compares hashes first, and nobody hears with what."""

from __future__ import annotations

import random

KEYS = (
    "{n}",
    "{n}",
    "{n} // 2",
    "{n} + 1",
    "({n}, {m})",
    "({m}, {n})",
    "({n}, 'a', {m})",
    "({n}, {k})",
    "tuple({t}.shape)",
)
"""Made of sizes."""

ASKED = (
    "{key} in {table}",
    "{key} not in {table}",
    "{table}.get({key}, 1) == 1",
    "{table}.setdefault({key}, 1) == 1",
    "{table}.pop({key}, 1) == 1",
    "len({{*{table}, {key}}}) > len({table})",
    "len(set({table}) | {{{key}}}) > len({table})",
    "len({table} | dict.fromkeys([{key}])) > len({table})",
    "set({table}).isdisjoint([{key}])",
)
"""Questions about a key and a table."""

ALONE = (
    "len({{{n}, {m}}}) == 1",
    "len(set({t}.shape)) == {t}.dim()",
    "len(dict.fromkeys([{n}, {k}])) == 1",
    "max({{{n}: 1, {k}: 2, {m}: 3}}.values()) > 2",
    "{{{n}: 1, {k}: 2}}[{n}] == 1",
    "len({{size: 1 for size in {t}.shape}}) == {t}.dim()",
)
"""Questions that make a table of sizes themselves."""

USES = (
    "{t} = {t} * (2 if {q} else 3)",
    "if {q}:\n    {t} = {t} + 1",
    "{name} = {q}\n{t} = {t} * 3 if {name} else {t}",
)

CACHES = (
    "if {key} not in {table}:\n    {table}[{key}] = {value}\n{t} = {t} * {table}[{key}]",
    "{name} = {table}.get({key})\nif {name} is None:\n    {name} = {table}[{key}] = {value}\n{t} = {t} * {name}",
    "{table}[{key}] = {value}\n{t} = {t} * sum({table}.values())",
    "{t} = {t} * {table}.setdefault({key}, {value})",
)
"""What is looked up, and stored where it is missing: a cache finds what it would compute, any other table does not."""


def draw_lookup(dice: random.Random, tensor: str, sizes: tuple[str, str], numbers: list[int], name: str) -> str:
    """Statements that look a size up.

    Args:
        dice: Draws.
        tensor: Name of a tensor, which the statements may change, but for its shape.
        sizes: Two sizes, such as ``x.shape[0]``.
        numbers: Some sizes that the axes may have.
        name: A variable of their own, and the beginning of another one's.
    """
    one, other = sizes
    known = {"n": one, "m": other, "k": dice.choice(numbers), "t": tensor, "name": name, "table": f"{name}_table"}
    known["key"] = dice.choice(KEYS).format(**known)
    known["value"] = dice.choice((one, f"float({one})", f"math.sqrt({other})", str(dice.choice(numbers))))
    if dice.random() < 0.3:
        return dice.choice(USES).format(**known, q=dice.choice(ALONE).format(**known))
    count = dice.choice((0, 1, 2, 3, 20))
    drawn = [dice.choice(numbers) for _ in range(count)]
    pairs = known["key"].startswith(("(", "tuple"))
    keys = [f"({number}, {dice.choice(numbers)})" if pairs and dice.random() < 0.9 else number for number in drawn]
    table = f"{known['table']} = {{{', '.join(f'{key}: {dice.choice((1, 2.5, key))}' for key in keys)}}}\n"
    if dice.random() < 0.3:
        return table.replace(": 2.5", ": 2") + dice.choice(CACHES).format(**known)
    return table + dice.choice(USES).format(**known, q=dice.choice(ASKED).format(**known))
