"""Random texts of sizes and values: some are only told, by print, logs, errors and profiles; others decide."""

from __future__ import annotations

import random

NUMBERS = (
    *("{n}", "{n} / 2", "{n} / 4", "{n} * 0.5", "{n} // 2", "{n} % 3", "{n} - {k}", "{n} > {k}", "{n} == {k}"),
    *("{n} / 2 > 2.5", "{t}.shape", "{t}.numel()", "len({t})", "math.sqrt({n})", "round({n} / 3, 1)"),
)
"""Made of sizes."""

VALUES = (
    *("{t}.sum().item()", "{t}.max().item()", "round({t}.mean().item(), 1)", "int({t}.sum() * 10)", "{t}.mean()"),
    *("{t}.argmax().item()", "bool({t}.sum() > 0)", "({t} > 0).sum()", "float({t}.min())", "{t}.sum() > 1"),
)

FORMS = ("str({v})", "repr({v})", 'f"{{{v}}}"', 'f"<{{{v}}}>"', '"{{}}".format({v})', '"%s" % ({v},)', "format({v})")

TOLD = (
    "print({s})",
    "print('is', {v}, {s})",
    "logging.getLogger('model').info({s})",
    "logging.info('%s', {v})",
    "warnings.warn({s})",
    "{name} = {s}\nprint({name})",
    "{name} = {v}\nlogging.debug('%s', {name})",
    "{name} = {s}",
    "{name} = 'a'\n{name} += {s}\nprint({name})",
    "{name} = {s}\nif {t}.dim() == 9:\n    raise ValueError({name})",
    "assert {t}.dim() < 9, {s}",
    "with torch.profiler.record_function({s}):\n    {t} = {t} * 2",
)

QUESTIONS = (
    "{s} == {w}",
    "{s} != {w}",
    "{s}.endswith(('2', '.5', 'e', '7'))",
    "{s} in ({w}, '2', '3', 'True')",
    "'1' in {s}",
    "len({s}) > {k} % 7",
    "{{{w}: 2}}.get({s}, 1) == 2",
    "{s} < '4'",
    "hash({s}) == hash({w})",
)

DECIDES = (
    "{t} = {t} * (2 if {q} else 3)",
    "if {q}:\n    {t} = {t} + 1",
    "{name} = {s}\nprint({name})\nif {named}:\n    {t} = {t} - 2",
    "{name} = {q}\nprint({name})\n{t} = {t} * 3 if {name} else {t}",
    "{name} = {q}\ntry:\n    assert {name}\n    {t} = {t} * 2\nexcept AssertionError:\n    {t} = {t} - 1",
    "{name} = []\n{name}_none = {name}.append({s})\nif {last}:\n    {t} = {t} * 2",
    "{name} = []\nprint({name}.append({s}))\nif {last}:\n    {t} = {t} * 2",
    "{name} = {name}_too = []\n{name} += [{s}]\nprint({name})\nif {last_too}:\n    {t} = {t} * 2",
    "print({name} := {s})\nif {named}:\n    {t} = {t} * 2",
    "print({q})\n{t} = {t} + (0.5 if {q} else 0)",
    "{name} = {v}\nif type({name}) is int and {name} > {k}:\n    {t} = {t} * 2",
    "{name} = {v}\nif isinstance({name}, (int, float)) and {name} > {k}:\n    {t} = {t} * 2",
    "{name} = {v}\nif type({name}) in (bool, float) and {name}:\n    {t} = {t} * 2",
)


def draw_lines(dice: random.Random, tensor: str, size: str, number: int, name: str) -> str:
    """Statements about a text.

    Args:
        dice: Draws.
        tensor: Name of a tensor of at least one axis, which the statements may change, but for its shape.
        size: A size, such as ``x.shape[0]``.
        number: Another size.
        name: A variable of their own.
    """
    value = dice.choice(NUMBERS if dice.random() < 0.6 else VALUES).format(n=size, k=number, t=tensor)
    text = dice.choice(FORMS).format(v=value)
    wanted = dice.choice((f"str({number})", f"str({number / 2})", "'1.0'", "'True'", "'2'", f"'<{number}>'"))
    question = dice.choice(QUESTIONS)
    known = {"t": tensor, "v": value, "s": text, "k": number, "w": wanted, "name": name}
    held = {"q": text, "named": name, "last": f"{name}[-1]", "last_too": f"{name}_too[-1]"}
    asked = {key: question.format(**{**known, "s": where}) for key, where in held.items()}
    return dice.choice(TOLD if dice.random() < 0.4 else DECIDES).format(**known, **asked)
