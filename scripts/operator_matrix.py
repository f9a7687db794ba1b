"""Operator x exporter x {stock, ours}: ok, wrong or refused, with node counts; writes docs/operator_matrix.md.

Every line is exported with its batch axis dynamic and compared with eager torch in onnxruntime at the example's batch
and at another. Each export runs in a process of its own. Usage:

    python scripts/operator_matrix.py [--family indexing] [--only scatter] [--jobs 2] [--write]
"""

from __future__ import annotations

import datetime
import importlib.metadata
import inspect
import json
import logging
import multiprocessing
import os
import re
import sys
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnx
import onnxruntime
import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from operator_cases import families  # noqa: E402
from operator_cases.case import Case  # noqa: E402
from operator_cases.exports import ours, stock  # noqa: E402

from torch_onnx_compat import CompatError  # noqa: E402
from torch_onnx_compat.catalogue import catalogue  # noqa: E402
from torch_onnx_compat.check.compare import compare  # noqa: E402

Column = tuple[str, int, str]

PAGE = ROOT / "docs" / "operator_matrix.md"
DATA = ROOT / "docs" / "operator_matrix.jsonl"
PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime")
COLUMNS = (
    ("torchscript", 17, "stock"),
    ("torchscript", 17, "ours"),
    ("dynamo", 18, "stock"),
    ("dynamo", 18, "ours"),
    ("dynamo", 20, "stock"),
    ("dynamo", 20, "ours"),
)
VERDICTS = {"ok": "green", "declined": "cyan", "refused": "yellow", "wrong": "red", "crashed": "magenta"}
LIMIT_S = 180
SHORT = 240
ALONGSIDE = {"scalar_tensor", "remainder", "floor_divide", "mT"}
"""Entries that are not what makes a file larger."""


@dataclass(frozen=True)
class Cell:
    """One export of one case."""

    family: str
    name: str
    exporter: str
    opset: int
    who: str
    verdict: str
    nodes: int = 0
    operators: str = ""
    entries: str = ""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.verdict} {self.nodes}" if self.verdict == "ok" else self.verdict


def judge(case: Case, data: bytes) -> str:
    """What is wrong with the file's numbers; empty if nothing."""
    session = onnxruntime.InferenceSession(data)
    for args in (case.example(), case.other()):
        with torch.no_grad():
            wanted = case.model()(*[a.clone() for a in args])
        wanted = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
        feeds = {f"input{i}": a.numpy() for i, a in enumerate(args)}
        found = session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})
        if len(found) != len(wanted):
            return f"{len(found)} outputs, wanted {len(wanted)}"
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            row = compare(f"batch {args[0].shape[0]}", str(i), np.asarray(a), b)
            if not row.ok:
                return f"output {i} at {[tuple(a.shape) for a in args]}: {row.detail or row.max_abs}"
    return ""


def run(family: str, case: Case, exporter: str, opset: int, who: str) -> Cell:
    """One cell."""
    cell = {"family": family, "name": case.name, "exporter": exporter, "opset": opset, "who": who}
    entries = ""
    try:
        if who == "stock":
            data = stock(case, exporter, opset)
        else:
            result = ours(case, exporter, opset)
            data, entries = result.model_bytes, " ".join(sorted({note.entry for note in result.applied}))
    except BaseException as error:
        text = " ".join(str(error).split()) or type(error).__name__
        declined = who == "ours" and case.declined and case.declined in text and isinstance(error, CompatError)
        return Cell(
            **cell, verdict="declined" if declined else "refused", detail=text if who == "ours" else text[:SHORT]
        )
    model = onnx.load_model_from_string(data)
    counts: dict[str, int] = {}
    _count(model.graph.node, counts)
    for function in model.functions:
        _count(function.node, counts)
    nodes = sum(n for op, n in counts.items() if op != "Constant")
    operators = " ".join(f"{op}:{n}" for op, n in sorted(counts.items()))
    try:
        detail = judge(case, data)
    except Exception as error:  # whatever onnxruntime raises is a verdict on the file
        detail = f"onnxruntime: {' '.join(str(error).split())[:SHORT]}"
    return Cell(
        **cell, verdict="wrong" if detail else "ok", nodes=nodes, operators=operators, entries=entries, detail=detail
    )


def _count(nodes: Any, counts: dict[str, int]) -> None:
    for node in nodes:
        counts[node.op_type] = counts.get(node.op_type, 0) + 1
        for attribute in node.attribute:
            _count(attribute.g.node, counts)


def _quiet() -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(4)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # torch's C++ prints graphs past sys.stdout
    os.dup2(nowhere, 2)


def _child(pipe: Any, family: str, case: Case, columns: Sequence[Column]) -> None:
    _quiet()
    for column in columns:
        pipe.send(run(family, case, *column))
    pipe.close()


def in_process(job: tuple[str, Case, Sequence[Column]]) -> list[Cell]:
    """Runs one line's cells in a forked process; after a crash or a hang the next cell gets a new one."""
    family, case, columns = job
    cells: list[Cell] = []
    context = multiprocessing.get_context("fork")
    while len(cells) < len(columns):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_child, args=(sender, family, case, columns[len(cells) :]))
        process.start()
        sender.close()
        detail = ""
        try:
            while len(cells) < len(columns) and not detail:
                if receiver.poll(LIMIT_S):
                    cells.append(receiver.recv())
                else:
                    detail = f"more than {LIMIT_S} s"
        except EOFError:
            process.join()
            detail = f"exit status {process.exitcode}"
        finally:
            process.kill()
            process.join()
        if detail:
            cells.append(Cell(family, case.name, *columns[len(cells)], "crashed", detail=detail))
    return cells


def warm_up() -> None:
    """Fills what torch computes once in a process, so that the forked ones find it done."""
    saved = os.dup(1), os.dup(2)
    _quiet()
    case = Case("relu", "", lambda x: x.relu(), lambda n: (torch.randn(n, 3),))
    for column in COLUMNS:
        run("", case, *column)
    for number, copy in enumerate(saved, start=1):
        os.dup2(copy, number)
    logging.disable(logging.NOTSET)


def measure(jobs: list[tuple[str, Case, Sequence[Column]]], workers: int) -> list[Cell]:
    """All cells, in the order of the jobs."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    cells: list[Cell] = []
    with Progress(*columns, console=Console(stderr=True)) as progress, ThreadPoolExecutor(workers) as pool:
        task = progress.add_task("operators", total=len(jobs))
        for line in pool.map(in_process, jobs):
            cells += line
            progress.update(task, advance=1, description=line[0].name[:40])
    return cells


def kept(cells: list[Cell]) -> list[Cell]:
    """These cells, and those of the last written result that they do not replace, in the order of the cases."""
    last = [Cell(**json.loads(line)) for line in DATA.read_text(encoding="utf-8").splitlines()] if DATA.exists() else []
    table = {(c.family, c.name, c.exporter, c.opset, c.who): c for c in (*last, *cells)}
    keys = [(group, case.name, *c) for group, cases in families().items() for case in cases for c in COLUMNS]
    return [table[key] for key in keys if key in table]


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


def main(
    family: Annotated[str, typer.Option(help="Only this family.")] = "",
    only: Annotated[str, typer.Option(help="Only lines whose name contains this.")] = "",
    exporter: Annotated[str, typer.Option(help="Only this exporter.")] = "",
    opset: Annotated[int, typer.Option(help="Only this opset.")] = 0,
    who: Annotated[str, typer.Option(help="Only 'stock' or 'ours'.")] = "",
    jobs: Annotated[int, typer.Option(help="Processes at a time.")] = 2,
    details: Annotated[bool, typer.Option(help="Print entries and operators of every file of ours.")] = False,
    write: Annotated[bool, typer.Option(help="Renew these lines of docs/operator_matrix.md and .jsonl.")] = False,
) -> None:
    """Measures, prints, and on request keeps the operator matrix."""
    torch.set_num_threads(1)
    columns = [c for c in COLUMNS if exporter in c[0] and opset in (0, c[1]) and who in c[2]]
    work = [
        (group, case, columns)
        for group, cases in families().items()
        if family in group
        for case in cases
        if only in case.name
    ]
    start = time.perf_counter()
    warm_up()
    cells = measure(work, jobs)
    show(cells, details=details)
    if write:
        versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in PACKAGES)
        title = f"{datetime.date.today()}, {versions}"
        console = Console(stderr=True)
        console.print(f"{time.perf_counter() - start:.0f} s with {jobs} processes")
        everything = kept(cells)
        PAGE.write_text(page(everything, title), encoding="utf-8")
        DATA.write_text("".join(json.dumps(asdict(c)) + "\n" for c in everything), encoding="utf-8")
    if any(c.who == "ours" and c.verdict not in ("ok", "declined") for c in cells):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
