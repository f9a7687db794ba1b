"""The operator matrix as tables: on the terminal, and as docs/operator_matrix.md."""

from __future__ import annotations

import inspect
import re

from operator_cases.cells import COLUMNS, Cell
from rich.console import Console
from rich.table import Table

from torch_onnx_compat.catalogue.catalogue import catalogue

VERDICTS = {"ok": "green", "declined": "cyan", "refused": "yellow", "wrong": "red", "crashed": "magenta"}
ALONGSIDE = {"scalar_tensor", "remainder", "floor_divide", "mT"}
"""Entries that are not what makes a file larger."""


def _rows(cells: list[Cell]) -> dict[tuple[str, str], dict[tuple[str, int, str], Cell]]:
    rows: dict[tuple[str, str], dict[tuple[str, int, str], Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.family, cell.name), {})[cell.exporter, cell.opset, cell.who] = cell
    return rows


def show(cells: list[Cell], *, details: bool) -> None:
    """Prints the matrix, and what went wrong with ours."""
    console = Console()
    used = [c for c in COLUMNS if any((x.exporter, x.opset, x.who) == c for x in cells)]
    table = Table("operator", *(f"{e} {o} {w}" for e, o, w in used))
    for (_, name), row in _rows(cells).items():
        table.add_row(name, *(f"[{VERDICTS[row[c].verdict]}]{row[c]}[/]" for c in used))
    console.print(table)
    for cell in cells:
        if cell.who == "ours" and (cell.verdict not in ("ok", "declined") or details):
            where = f"{cell.name} [{cell.exporter} {cell.opset}]"
            text = f"{where} {cell.verdict}: {cell.detail} {cell.entries} {cell.operators}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)
    for line in larger(cells):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(summary(cells), markup=False, highlight=False, soft_wrap=True)


def larger(cells: list[Cell]) -> list[str]:
    """Lines for the files of ours that have more nodes than stock torch's right ones."""
    lines = []
    for (_, name), row in _rows(cells).items():
        for (exporter, opset, who), cell in row.items():
            other = row.get((exporter, opset, "stock"))
            if who == "ours" and other and (cell.verdict, other.verdict) == ("ok", "ok") and cell.nodes > other.nodes:
                lines.append(
                    f"larger than stock: {name} [{exporter} {opset}] {cell.nodes} > {other.nodes} ({cell.entries})"
                )
    return lines


def larger_table(cells: list[Cell]) -> list[str]:
    """The lines of `larger` as Markdown, and what the entries in them are for."""
    lines = larger(cells)
    named = {e for line in lines for e in re.findall(r"\w+", line.rpartition("(")[2])}
    told = [
        "",
        "## Larger than torch's own file",
        "",
        "Where torch's own file is right on the two inputs of a line, and",
    ]
    told += [
        "smaller than ours, an entry serves other inputs, other sizes or speed:",
        "",
        "| entry | what for |",
        "| --- | --- |",
    ]
    for name in sorted(named & {e.name for e in catalogue()} - ALONGSIDE):
        doc = inspect.getdoc(catalogue()[name].body) or ""
        told.append(f"| `{name}` | {' '.join(doc.partition('Declines:')[0].split())} |")
    return [*told, "", *(f"* {line.removeprefix('larger than stock: ')}" for line in lines)]


def summary(cells: list[Cell]) -> str:
    """How many of each verdict, by column."""
    lines = []
    for column in COLUMNS:
        mine = [c.verdict for c in cells if (c.exporter, c.opset, c.who) == column]
        if mine:
            counted = ", ".join(f"{mine.count(v)} {v}" for v in VERDICTS if mine.count(v))
            lines.append(f"{column[0]} {column[1]} {column[2]}: {counted}")
    return "\n".join(lines)


def page(cells: list[Cell], title: str) -> str:
    """docs/operator_matrix.md."""
    lines = [
        "# The operator matrix",
        "",
        f"Written by `python scripts/operator_matrix.py --write`: {title}.",
        "",
        "Every line is a small model with a dynamic batch axis, compared with eager torch in onnxruntime at the",
        "example's batch and at another: *ok* with the number of nodes, *wrong* numbers or a file that onnxruntime",
        "refuses, *refused* by the exporter. *declined*: refused with a reason that says what to do.",
        "",
        "```",
        summary(cells),
        "```",
    ]
    header = ["operator", *(f"{e} {o} {w}" for e, o, w in COLUMNS), "entries"]
    family = ""
    for (group, name), row in _rows(cells).items():
        if group != family:
            family = group
            title = family.replace("_", " ").capitalize()
            lines += ["", f"## {title}", "", "| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
        entries = dict.fromkeys(e for c in COLUMNS if c in row for e in row[c].entries.split())
        verdicts = [str(row[c]) if row[c].verdict == "ok" else f"**{row[c]}**" for c in COLUMNS if c in row]
        lines.append(
            "| " + " | ".join([name.replace("|", "\\|"), *verdicts, ", ".join(f"`{e}`" for e in entries)]) + " |"
        )
    return "\n".join([*lines, *larger_table(cells), ""])
