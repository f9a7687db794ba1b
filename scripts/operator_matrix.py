"""Operator x exporter x {stock, ours}: ok, wrong or refused, with node counts; writes docs/operator_matrix.md.

Every line is exported with its batch axis dynamic and compared with eager torch in onnxruntime at the example's batch
and at another. Each export runs in a process of its own. Usage:

    python scripts/operator_matrix.py [--family indexing] [--only scatter] [--jobs 2] [--write]
"""

from __future__ import annotations

import datetime
import importlib.metadata
import logging
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnx
import onnxruntime
import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from operator_cases import families  # noqa: E402
from operator_cases.case import Case  # noqa: E402
from operator_cases.cells import COLUMNS, Cell, Column, kept, told, write_cells  # noqa: E402
from operator_cases.exports import ours, stock  # noqa: E402
from operator_page import page, show  # noqa: E402

from torch_onnx_compat import CompatError  # noqa: E402
from torch_onnx_compat.check.compare import compare  # noqa: E402

PAGE = ROOT / "docs" / "operator_matrix.md"
PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime")
LIMIT_S = 180
SHORT = 240


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
        text = told(error)
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
        detail = f"onnxruntime: {told(error)[:SHORT]}"
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
        write_cells(everything)
    if any(c.who == "ours" and c.verdict not in ("ok", "declined") for c in cells):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
