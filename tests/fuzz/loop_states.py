"""Loops that hand something on from round to round, and tell their first round by what it is before.

Code asks ``best is None``, ``not parts`` or ``count == 0`` of what no round has made yet. A file whose loop carries
tensors has to start from something else, and may not take that for what a round has made.
"""

from __future__ import annotations

import random

HEADS = (
    ("for row in {t}:", "0"),
    ("for i, row in enumerate({t}):", "0"),
    ("for row, other in zip({t}, {t}.flip(0)):", "0"),
    ("for i in range({t}.shape[0]):\n    row = {t}[i]", "0"),
    ("for i in range({t}.shape[-1]):\n    row = {t}[..., i]", "-1"),
    ("for i in reversed(range({t}.shape[0])):\n    row = {t}[i]", "0"),
    ("for i in range(1, {t}.shape[0]):\n    row = {t}[i] - {t}[i - 1]", "0"),
    ("for row in {t}.unbind(-1):", "-1"),
    ("for row in {t}[:3]:", "0"),
)
"""Heads of loops over an axis, and that axis."""

STEPS = (
    "torch.maximum({s}, row)",
    "torch.minimum({s}, row * 2)",
    "{s} * 0.5 + row",
    "row - {s}",
    "{s} * row",
    "torch.where(row > {s}, row, {s} - 1)",
    "row",
)
"""What a round makes of what the one before has made."""

BETTER = ("row.sum() > {s}.sum()", "row.max() <= {s}.max()", "row.flatten()[0] > {s}.flatten()[0]")
"""When a round takes the place of the one before."""

STATES = (
    ("{b} = None", "if {b} is None:\n    {b} = row\nelse:\n    {b} = {step}", "{b}"),
    ("{b} = None", "{b} = row if {b} is None else {step}", "{b}"),
    ("{b} = None", "{b} = {step} if {b} is not None else row + 1", "{b}"),
    ("{b} = None", "if {b} is None or {better}:\n    {b} = row", "{b}"),
    ("{b} = None", "if {b} is not None and not {better}:\n    continue\n{b} = row", "{b}"),
    ("{b} = None", "if {b} is not None:\n    row = {step}\n{b} = row", "{b}"),
    ("{b} = None", "if isinstance({b}, torch.Tensor):\n    row = {step}\n{b} = row * 2", "{b}"),
    ("{b}, {c} = None, 0", "if {b} is None or {better}:\n    {b} = row\n    {c} = {c} + 1", "{b} * {c}"),
    ("{b} = {c} = None", "{c} = {b}\n{b} = row if {b} is None else {step}", "{b}"),
    ("{b} = None\n{c} = True", "if {c}:\n    {b} = row\n    {c} = False\nelse:\n    {b} = {step}", "{b}"),
    ("{b} = []", "if not {b}:\n    {b}.append(row)\nelse:\n    {b}.append({last})", "{b}[-1]"),
    ("{b} = []", "{b}.append({last} if {b} else row)", "torch.stack({b}).sum(0)"),
    ("{b} = []", "if len({b}) == 0 or {better_last}:\n    {b}.append(row)", "{b}[-1] * len({b})"),
    ("{b} = []", "if {b} and {better_last}:\n    row = {last}\n{b}.append(row)", "torch.stack({b}).amax(0)"),
    ("{b} = {{}}", "if 'a' not in {b}:\n    {b}['a'] = row\nelse:\n    {b}['a'] = {item}", "{b}['a']"),
    ("{b} = {{}}", "{b}['a'] = row if {b}.get('a') is None else {item}", "{b}['a']"),
    ("{b} = {{'a': None}}", "if {b}['a'] is None:\n    {b}['a'] = row\nelse:\n    {b}['a'] = {item}", "{b}['a']"),
    ("{b} = (None, 0)", "{b} = (row, 1) if {b}[0] is None else (row - {b}[0], {b}[1] + 1)", "{b}[0] * {b}[1]"),
    ("{b} = -1.0", "if row.sum() > {b}:\n    {b} = row.sum()", "{t}.sum(0) * {b}"),
    ("{b} = float('inf')", "{b} = min({b}, row.max())", "{t}.sum(0) - {b}"),
    ("{b} = 0", "{b} = row if isinstance({b}, int) else {step}", "{b}"),
    ("{b} = 0.0", "{b} = {step} if hasattr({b}, 'shape') else row", "{b}"),
    ("{b} = 1", "{b} = {step} if torch.is_tensor({b}) and {b}.dim() else row", "{b}"),
    ("{b} = 0\n{c} = lambda v: isinstance(v, (int, float))", "{b} = row if {c}({b}) else {step}", "{b}"),
    ("{b} = 0\n{c} = None", "{c} = row if {b} == 0 else {c} - row\n{b} += 1", "{c} / {b}"),
    ("{b} = {t}.new_zeros(0)", "{b} = row if {b}.numel() == 0 else {step}", "{b}"),
    ("self.{b} = None", "if self.{b} is None:\n    self.{b} = row\nelse:\n    self.{b} = {own}", "self.{b}"),
    ("{b} = None", "try:\n    {b} = {step}\nexcept TypeError:\n    {b} = row", "{b}"),
)
"""What there is before the loop, what a round does, and what follows of it; an axis shorter than the tensor."""


def draw_loop(dice: random.Random, t: str, b: str, c: str) -> tuple[str, str, str]:
    """A loop over a tensor.

    Args:
        dice: The source of every choice.
        t: The tensor's name.
        b: A name for what the loop hands on.
        c: A name for something else that it hands on.

    Returns:
        The lines of it, the expression of its result, and the axis that it runs along, 0 or -1.
    """
    head, axis = dice.choice(HEADS)
    opening, update, result = dice.choice(STATES)
    step, better = dice.choice(STEPS), dice.choice(BETTER)
    filled = {
        "step": step.format(s=b),
        "last": step.format(s=f"{b}[-1]"),
        "item": step.format(s=f"{b}['a']"),
        "own": step.format(s=f"self.{b}"),
        "better": better.format(s=b),
        "better_last": better.format(s=f"{b}[-1]"),
    }
    lines = [opening.format(t=t, b=b, c=c), head.format(t=t)]
    lines += ["    " + line for line in update.format(t=t, b=b, c=c, **filled).split("\n")]
    return "\n".join(lines), result.format(t=t, b=b, c=c), axis
