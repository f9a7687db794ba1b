"""Parts of an HTML page that asks for nothing from outside: for a report, and for a sweep."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

_SLIM = 36
"""Characters of a table's widest row up to which a phone shows it as a table."""
_BREAKS = re.compile(r"([_./:])(?=[^\W\d])")
"""Where names may be broken into lines: before a part."""
BREAK = r"\1<wbr>"


def document(title: str, body: str, script: str = "", *, wide: bool = False) -> str:
    """A whole page: light and dark, for a phone, a desk and A4 paper.

    Args:
        title: Plain text.
        body: HTML.
        script: JavaScript that runs when the page is there.
        wide: Whether it holds tables of many columns.
    """
    style = resources.files("torch_onnx_compat.report").joinpath("style.css").read_text(encoding="utf-8")
    start = '<main class="wide">' if wide else "<main>"
    code = f"<script>\n{script}</script>\n" if script else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<meta name="description" content="{escape(title)}">\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n{start}\n{body}\n</main>\n{code}</body>\n</html>\n"
    )


def section(title: str, body: str, name: str = "") -> str:
    """A part of the page under a heading; `name` is its anchor."""
    anchor = f' id="{escape(name)}"' if name else ""
    return f"<section{anchor}><h2>{escape(title)}</h2>{body}</section>"


def scrolling(label: str, body: str) -> str:
    """What may be wider than a phone scrolls by itself, by keyboard too."""
    return f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">{body}</div>'


def table(
    label: str,
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    attributes: Sequence[Mapping[str, str]] = (),
    sortable: bool = False,
) -> str:
    """A table, on a phone a card for each row where it is wide; empty without rows.

    Args:
        label: What it shows, for those who do not see it.
        head: Plain texts, twelve at most.
        rows: Texts and numbers; a `Markup` stands as it is.
        attributes: Of each row, by the names after ``data-``.
        sortable: Whether a script lets the reader sort it.
    """
    cells = [list(row) for row in rows]
    if not cells:
        return ""
    lines = map(_row, cells, attributes or [{}] * len(cells))
    widths = (max(map(len, map(str, column))) for column in zip(head, *cells, strict=True))
    kinds = ["slim"] * (sum(widths) <= _SLIM) + ["sortable"] * sortable
    kind = f' class="{" ".join(kinds)}"' if kinds else ""
    names = "".join(f'<th scope="col">{escape(cell)}</th>' if cell else "<td></td>" for cell in head)
    columns = ";".join(f"--column{i}:{json.dumps(name)}" for i, name in enumerate(head, 1))
    return scrolling(
        label,
        f'<table{kind} aria-label="{escape(label)}" style="{escape(columns)}"><thead><tr>{names}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>",
    )


class Markup(str):
    """A cell that is HTML already."""

    __slots__ = ()


def _row(cells: Sequence[Any], data: Mapping[str, str]) -> str:
    told = "".join(f' data-{name}="{escape(value)}"' for name, value in data.items())
    return f"<tr{told}>{''.join(map(_cell, cells))}</tr>"


def _cell(value: Any) -> str:
    return f"<td>{value if isinstance(value, Markup) else _BREAKS.sub(BREAK, escape(str(value)))}</td>"
