"""Random programs that ask how a view lies in memory: torch answers in C++, of sizes that a file does not ask."""

from __future__ import annotations

import random

VIEWS = (
    *("{v}", "{v}.t()", "{v}[: {n} // 3]", "{v}[: {n} // 2]", "{v}[:, : {n} // 2]", "{v}[{k}:]", "{v}[:, {k}:]"),
    *("{v}[::2]", "{v}[:, ::2]", "{v}[:{k}]", "{v}[:, :{k}]", "{v}.flip(0)", "{v}.contiguous()", "{v}.clone()"),
    *("{v}.reshape(-1, {v}.shape[0])", "{v}.narrow(1, 0, 1)", "{v}[:1].expand({n}, -1)", "{v}.t().contiguous()"),
    *("torch.cat([{v}, {v}])", "{v}.roll(1, 0)", "({v} + {v}.t().t())", "{v}.t() * 2", "{v}.select(0, 0)[None]"),
)

QUESTIONS = (
    *("{v}.is_contiguous()", "{v}.is_contiguous()", "not {v}.is_contiguous()", "{v}.t().is_contiguous()"),
    *("{v}.stride(0) == {v}.shape[1]", "{v}.stride()[1] > 1", "{v}.stride(0) > {k}", "{v}.stride() == ({k}, 1)"),
    *("{v}.storage_offset() > {k}", "{v}.storage_offset() == 0", "{v}.is_same_size(x)", "{v}.shape == x.shape"),
    *("{v}[None].squeeze().dim() == 2", "{v}.is_contiguous() and {v}.shape[0] > {k}", "{v}.numel() == x.numel()"),
    *("{v}.reshape(-1)._is_view()", "{v}.reshape(-1).data_ptr() == {v}.data_ptr()", "{v}.data_ptr() == x.data_ptr()"),
    *("{v}.contiguous() is {v}", "{v}.reshape(-1)._base is None", "{v}.contiguous().is_set_to({v})"),
)


def layout_lines(dice: random.Random) -> list[str]:
    """The statements of a forward of ``x`` with two axes."""
    lines = ["v = x"]
    results: list[str] = []
    for _ in range(dice.randint(1, 3)):
        lines.append(f"v = {_fill(dice, dice.choice(VIEWS))}")
    for _ in range(dice.choice((1, 1, 2))):
        results.append(f"(x * 2 if {_fill(dice, dice.choice(QUESTIONS))} else x - 1)")
    return [*lines, f"return {' + '.join(results)}"]


def _fill(dice: random.Random, text: str) -> str:
    return text.format(v="v", n=dice.choice(("x.shape[0]", "x.shape[1]", "v.shape[0]")), k=dice.choice("12345"))
