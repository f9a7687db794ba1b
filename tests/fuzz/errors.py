"""Random programs that catch errors: what only a capture has must not send the file another way.

Each question is asked of what a capture has no plain number or tensor for, and many a capture cannot answer. Its error
is the model's to catch.
"""

from __future__ import annotations

import random

QUESTIONS = (
    *("{n}.bit_length() > 2", "{n}.to_bytes(2, 'big')[1] > {k}", "{n}.numerator % 2 == 0", "({n}).__index__() > {k}"),
    *("'abcdefghijklmnop'[{n} % 9] > 'd'", "'ab' * {n} > 'abababab'", "chr(60 + {n} % 9) < 'B'", "bin({n})[-1] == '1'"),
    *("math.gcd({n}, {m}) > 1", "math.isqrt({n}) > 2", "math.comb({n} % 7, 2) > 3", "pow({n}, 2, 7) > 3"),
    *(
        "[1, 2, 3, 4, 5][{n} % 5] > 2",
        "bytes(({n} % 9,)) > b'4'",
        "isinstance({n}, int)",
        "type({n}).__name__ == 'int'",
    ),
    *("{n} % 2 == 0", "{n} > {k}", "{n} / 2 > {k}", "{n}.real > {k}", "'%d' % {n} > '5'", "f'{{{n}:03d}}' > '005'"),
    *(
        "x.tolist()[0][0] > {c}",
        "x.tolist()[-1][-1] > {c}",
        "x.flatten().tolist()[0] > {c}",
        "sum(x[0].tolist()) > {c}",
    ),
    *("x.numpy().max() > {c}", "x[x > {c}].numpy().size > {k}", "x.max().item() > {c}", "x.sum().item().is_integer()"),
    *("math.floor(x.sum().clamp(-9, 9)) > {c}", "int(x.mean().clamp(-9, 9)).bit_length() > 1", "x.max() > {c}"),
    *(
        "sorted(x.flatten().tolist())[0] > {c}",
        "x.flatten().tolist().index(x.max().item()) > 0",
        "np.sum(x.numpy()) > {c}",
    ),
    *("hash(x.max().item()) == 0", "x.max().item().hex() > '0x2'", "x.storage()[0] > {c}", "x[0].data_ptr() == 0"),
    *("x.view(-1, {k}).shape[0] > 1", "x.reshape({k}, -1).max() > {c}", "torch.cat([x, x.T]).shape[0] > {k}"),
    *("12 // ({n} - {k}) > 1", "{m} % ({n} - {k}) > 1", "{m} / ({n} - {k}) > 1"),
    *("x.undefined > 1", "{{1: 2}}[{n}] > 1", "[][{k}] > 1", "int('{k}?') > 1", "x.max(dim=5).values.sum() > {c}"),
)

KINDS = (
    *("Exception", "Exception", "(RuntimeError, TypeError, AttributeError)", "(TypeError, AttributeError)"),
    *("RuntimeError", "(ValueError, TypeError, RuntimeError)", "BaseException", ""),
)
"""What is caught; the last is everything."""

WAYS = (
    "try:\n    y = {one} if {q} else {two}\nexcept {kind}:\n    y = {three}",
    "try:\n    if {q}:\n        raise RuntimeError('so')\n    y = {one}\nexcept {kind}:\n    y = {two}",
    "try:\n    if {q}:\n        y = {one}\n    else:\n        y = {two}\nexcept {kind} as error:\n    y = {three}",
    "y = {one}\ntry:\n    assert {q}\n    y = {two}\nexcept {kind}:\n    pass",
    "y = {one}\nwith contextlib.suppress(Exception):\n    y = {two} if {q} else {three}",
    "try:\n    y = {one} if self.ask(x) else {two}\nexcept {kind}:\n    y = {three}",
    "y = {one} if self.dare(x) else {two}",
    "y = {one} if getattr(self, f'dare_{{x.dim()}}')(x) else {two}",
    "y = {one}\nif x.min() > 3:\n    y = {one} if self.dare(x) else {two}",
    "for _ in (0, 1):\n    try:\n        y = {one} if {q} else {two}\n        break\n    except {kind}:\n        y = x",
    "try:\n    y = {one} if {q} else {two}\nexcept {kind}:\n    y = {three}\nelse:\n    y += 1\nfinally:\n    y = -y",
    "try:\n    try:\n        y = x if {q} else -x\n    except KeyError:\n        y = x\nexcept {kind}:\n    y = {one}",
    "y = {one} if nn.Identity()(retry(lambda: {q})) else {two}",
    # Checks of what lies beyond a condition: few sizes there may be taken.
    "y = {one}\nif {n} > {limit}:\n    if {q}:\n        raise ValueError('so')\n    y = {two}",
    "y = {one}\nif {n} > {limit}:\n    assert {q}, f'no {{{n}}}'\n    y = {two}\nelif {m} == {limit}:\n    y = {three}",
)

HELPERS = """
import contextlib


def retry(function):
    try:
        return function()
    except {kind}:
        return {default}


class Model(nn.Module):
    def ask(self, x):
        return {q}

    def dare(self, x):
        try:
            return {q}
        except {kind}:
            return {default}

    def dare_2(self, x):
        try:
            return {q}
        except {kind}:
            return {default}

    def forward(self, x):
"""

RESULTS = ("x * 2", "x - 1", "x + 0.5", "-x", "x.abs()")


def errors_source(dice: random.Random) -> str:
    """The class of a model of ``x`` with two axes, and what it calls."""

    def question() -> str:
        names = {"n": dice.choice(("x.shape[0]", "x.size(1)", "len(x)")), "m": "x.shape[1]"}
        return dice.choice(QUESTIONS).format(
            k=dice.choice("12346"), c=dice.choice(("0.5", "3", "-1", "40", "-40")), **names
        )

    helpers = HELPERS.format(q=question(), kind=dice.choice(KINDS), default=dice.choice(("True", "False")))
    lines: list[str] = []
    for _ in range(dice.choice((1, 1, 2))):
        one, two, three = dice.sample(RESULTS, 3)
        if dice.random() < 0.5:
            three = dice.choice((one, two))  # the example may go on as after the error
        values = {"one": one, "two": two, "three": three, "limit": dice.choice("2579"), "n": "x.shape[0]"}
        way = dice.choice(WAYS).format(q=question(), kind=dice.choice(KINDS), m="x.shape[1]", **values)
        lines += [*way.splitlines(), "x = y"]
    lines.append("return x")
    return helpers + "".join(f"        {line}\n" for line in lines)
