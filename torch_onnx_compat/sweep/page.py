"""A sweep as one HTML file that asks for nothing from outside."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.sweep.against import Change
from torch_onnx_compat.sweep.job import Row
from torch_onnx_compat.sweep.summary import TITLES, Count, best_of_stock, causes_of_failure, count, group_rows


def write_page(path: str | os.PathLike[str], rows: Sequence[Row], changed: Sequence[Change] = ()) -> Path:
    """Writes the page.

    Args:
        path: Where to.
        rows: What it shows.
        changed: What has changed since an earlier sweep.

    Raises:
        CompatError: The file cannot be written.
    """
    destination = Path(path)
    try:
        destination.write_text(page(rows, changed), encoding="utf-8")
    except OSError as error:
        raise CompatError(f"{destination}: cannot be written: {error.strerror or error}.") from error
    return destination


def page(rows: Sequence[Row], changed: Sequence[Change] = ()) -> str:
    """The page: counts by zoo and family, what has changed, failures by cause, and every model."""
    style = resources.files("torch_onnx_compat.report").joinpath("style.css").read_text(encoding="utf-8")
    parts = [
        f"<header><h1>Sweep</h1><p>{escape(told_when(rows))}</p></header>",
        _section("Zoos", _table(COUNTED, count_verdicts(rows, lambda row: row.zoo))),
    ]
    if changed:
        cells = [(c.kind, c.spec, TITLES[c.by], c.text) for c in changed]
        parts.append(_section("Changes", _table(("change", "model", "exported by", "what"), cells)))
    causes = [
        (v, TITLES[held[0].by], str(len(held)), reason, ", ".join(row.spec for row in held))
        for by in group_rows(rows, lambda row: row.by).values()
        for v, reason, held in causes_of_failure(by)
    ]
    parts.append(_section("Failures", _table(("verdict", "exported by", "models", "reason", "which"), causes)))
    parts += [
        _section(f"{source}: families", _table(COUNTED, count_verdicts(held, lambda row: row.family)))
        for source, held in group_rows(rows, lambda row: row.zoo).items()
    ]
    parts.append(_section("Models", _table(_MODELS, [_model(row) for row in sorted(rows, key=lambda r: r.name)])))
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>Sweep</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def told_when(rows: Sequence[Row]) -> str:
    """Days, targets and versions of the rows."""
    days = sorted({row.date for row in rows if row.date})
    packages = sorted({package for row in rows for package in row.versions.split(", ") if package})
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "never"
    targets = ", ".join(sorted({row.target for row in rows}))
    return f"Measured {when} for {targets}, with {', '.join(packages)}."


COUNTED = (
    "of",
    "exported by",
    "models",
    "verified",
    "wrong",
    "refused",
    "other",
    "median s",
    "median nodes",
    "median MB",
)
"""Columns of `count_verdicts`."""


def count_verdicts(rows: Iterable[Row], key: Callable[[Row], str]) -> list[tuple[str, ...]]:
    """One line for each group and exporter, and one for the best of torch's two."""
    lines: list[tuple[str, ...]] = []
    for name, held in group_rows(rows, key).items():
        lines += [(name, *_cells(c)) for c in count(held)]
        best = list(best_of_stock(held).values())
        if best:
            good, wrong, refused = (best.count(v) for v in ("verified", "wrong", "refused"))
            other = len(best) - good - wrong - refused
            cells = (str(len(best)), str(good), str(wrong), str(refused), str(other), "", "", "")
            lines.append((name, "torch.onnx.export, better of both", *cells))
    return lines


def _cells(c: Count) -> tuple[str, ...]:
    known = [c.verdicts.get(v, 0) for v in ("verified", "wrong", "refused")]
    numbers = [str(n) for n in (c.total, *known, c.total - sum(known))]
    return (TITLES[c.by], *numbers, f"{c.export_s:.1f}", f"{c.nodes:.0f}", f"{c.memory:.0f}")


_MODELS = ("model", "size", "exported by", "verdict", "exporter", "opset", "nodes", "s", "MB", "reason")


def _model(row: Row) -> tuple[str, ...]:
    numbers = (str(row.opset or ""), str(row.nodes or ""), f"{row.export_s:.1f}", str(row.memory))
    return (row.spec, row.size, TITLES[row.by], row.verdict, row.exporter, *numbers, row.reason)


def _section(title: str, inner: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{inner}</section>"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    if not body:
        return "<p>None.</p>"
    return f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'
