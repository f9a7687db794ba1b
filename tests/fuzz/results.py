"""Random programs with functions that return one kind of value or another, and callers that find out which.

None or a tensor, tuples of several lengths, texts, dictionaries with other keys; decided by a size or by values; called
in an assignment, an argument, a test, a round of a loop, a block, through another function, a property or a module.
"""

from __future__ import annotations

import random

CONDITIONS = (
    *("x.shape[0] == 1", "len(x) > 4", "x.size(0) % 2 == 0", "x.mean() > {c}", "x[0, 0] > {c}", "x.sum() < {c}"),
    *("x.shape[0] > 2 and x.max() > {c}", "not x.shape[0] > 3", "x.norm() > 3 or x.min() > {c}"),
)
TENSORS = ("x[:, 0]", "x.abs().sum(-1)", "x.cumsum(0)[:, 1]", "torch.arange(x.shape[0]).float()")

# A kind: what is returned on either side, and the statements that use it, of which each binds y.
OPTIONAL = (
    ("None", "{t}"),
    (
        "y = y if r is None else y + r[:, None]",
        "if r is not None:\n    y = y * r[:, None]",
        "if r is None:\n    y = y - 1\nelse:\n    y[:, 1] = r",
        "r = y[:, 2] if r is None else r\ny = y + r[:, None]",
        "y = mixed(y, r)",
        "y = mixed(y * 2, w=r) + 1",
        "if r is not None and y.shape[0] > 2:\n    y = y + r[:, None]",
        "found = [one for one in (r, y[:, 1]) if one is not None]\ny = y + torch.stack(found).sum(0)[:, None]",
    ),
)
WITH_WEIGHTS = (
    ("(x * 2, None)", "(x, {t})"),
    (
        "z, w = r\ny = y + (z if w is None else z * w[:, None])",
        "y = r[0] - y\nif r[1] is not None:\n    y = y * r[1][:, None]",
        "z, w = r\nif w is None:\n    y = z\nelse:\n    y = y + w[:, None]",
    ),
)
LENGTHS = (
    ("(x,)", "(x, -x * 2)"),
    (
        "y = y + sum(r)",
        "y = torch.stack(r).amax(0) - y",
        "y = y * r[-1] if len(r) > 1 else y + r[0]",
        "first, *others = r\nfor one in others:\n    y = y + one\ny = y + first",
        "y = torch.cat(r)[: y.shape[0]] + y",
    ),
)
TEXTS = (
    ("'relu'", "'tanh'"),
    (
        "y = y.relu() if r == 'relu' else y.tanh()",
        "y = getattr(torch, r)(y)",
        "y = {'relu': y * 2, 'tanh': y - 1}[r]",
        "if r.startswith('t'):\n    y = y + 1",
    ),
)
OPTIONS = (
    ("{{}}", "{{'w': {t}}}"),
    (
        "y = mixed(y, **r)",
        "if 'w' in r:\n    y = y + r['w'][:, None]",
        "w = r.get('w')\ny = y if w is None else y * w[:, None]",
        "for name, w in r.items():\n    y = y - w[:, None]",
    ),
)
TYPES = (
    ("x.long()", "x * 0.5"),
    ("y = y + r.float()", "y = y * 2 if r.dtype == torch.int64 else y - r"),
)
KINDS = (OPTIONAL, OPTIONAL, OPTIONAL, WITH_WEIGHTS, WITH_WEIGHTS, LENGTHS, TEXTS, OPTIONS, TYPES)

AGAIN = (
    *("", "", "\nif y.sum() > 5: break"),
    "\nif y.sum() > 5:\n    if y.max() > 2: continue\n    y = y * 0.5",
    "\nif y.sum() > 5:\n    y = y - 1\n    if y.min() < -2: break\nelse:\n    if y.max() < 1: return y * 3",
)
"""What a round does at its end: it leaves the loop from within decisions."""

MIXED = "def mixed(x, w=None):\n    return x if w is None else x * w[:, None]\n"
BY_STATEMENTS = "def chosen(x):\n    if {test}:\n        r = {one}\n    else:\n        r = {other}\n    return r\n"
BY_RETURNS = "def chosen(x):\n    if {test}:\n        return {one}\n    return {other}\n"
BY_CHOICE = "def chosen(x):\n    return {one} if {test} else {other}\n"
OF_THREE = (
    "def chosen(x):\n    if {test}:\n        return {one}\n    elif {more}:\n        return {other}\n    return {one}\n"
)
THROUGH = "def asked(x):\n    return chosen(x)\n"
AROUND = "def asked(x):\n    r = chosen(x * 0.5)\n    return r\n"
PROPERTY = "    @property\n    def now(self):\n        return chosen(self.x)\n"


def results_source(dice: random.Random) -> str:
    """The functions, and a class Model whose forward takes ``x``, of four columns."""
    (one, other), uses = dice.choice(KINDS)
    if dice.random() < 0.5:
        one, other = other, one
    c = dice.choice(("0", "0.2", "-0.3"))
    names = {"test": dice.choice(CONDITIONS).format(c=c), "more": dice.choice(CONDITIONS).format(c=c)}
    names |= {"one": one.format(t=dice.choice(TENSORS)), "other": other.format(t=dice.choice(TENSORS))}
    chosen = dice.choice((BY_STATEMENTS, BY_RETURNS, BY_RETURNS, BY_CHOICE, OF_THREE)).format(**names)
    through = dice.choice(("", "", THROUGH, AROUND))
    name = "asked" if through else "chosen"
    body, has_property = _body(dice, name, uses)
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    functions = "\n\n".join(part for part in (MIXED, chosen, through) if part)
    more = f"{PROPERTY}\n" if has_property else ""
    return f"{functions}\n\nclass Model(nn.Module):\n{more}    def forward(self, x):\n{lines}"


def _body(dice: random.Random, name: str, uses: tuple[str, ...]) -> tuple[str, bool]:
    """The statements of forward, and whether they read a property."""
    has_property = dice.random() < 0.1
    parts = {
        "use": dice.choice(uses),
        "other_use": dice.choice(uses),
        "call": "self.now" if has_property else f"{name}({dice.choice(('x', 'x', '-x', 'y'))})",
        "name": name,
        "again": dice.choice(AGAIN),
        "test": dice.choice(("y.sum() > 1", "len(y) > 3")),
        "skip": dice.choice(("if y.mean() > 0.3: continue", "if y.mean() > 0.3: break", "if len(y) > 3: continue")),
    }
    inside, head, end = dice.choice(FORMS)
    for part, text in parts.items():
        inside, end = inside.replace(f"<{part}>", text), end.replace(f"<{part}>", text)
    if head:
        inside = head + "\n    " + inside.replace("\n", "\n    ")
    return f"self.x = x\ny = x.clone()\n{inside}\n{end}", has_property


ROWS = "y = x[i : i + 1]\nr = <name>(y)\n<use>\nout.append(y)"
FORMS = (
    *(("r = <call>\n<use>", "", "return y"), ("r = <call>\n<use>", "", "return y")),
    ("held = {'x': y, 'r': <call>}\ny, r = held['x'], held['r']\n<use>", "", "return y"),
    ("r = <call>\n<use>\nr = <name>(-y)\n<other_use>", "", "return y * 2"),
    ("r = <name>(y * sign)\n<use><again>\ny = y * 0.5", "for sign in (1, -1, 0.5):", "return y"),
    (ROWS, "out = []\nfor i in range(x.shape[0]):", "return torch.cat(out)"),
    ("r = <call>\n<use>", "with torch.no_grad():", "return y - 1"),
    ("if <test>:\n    return y * 2\nr = <call>\n<use>", "with torch.no_grad():", "return y - 1"),
    ("r = <call>\nif <test>:\n    return y * 3\n<use>", "", "return y"),
    ("r = <name>(y + step)\n<skip>\n<use>", "for step in range(3):", "return y"),
    ("if <test>:\n    return y - 2\nr = <call>\n<use>", "try:", "except KeyError:\n    y = x\nreturn y"),
)
"""What forward does: statements, what they stand in, and the end."""
