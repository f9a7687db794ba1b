"""Latency in onnxruntime of what the catalogue writes, over torch's own forms that are right, operator by operator.

The lines are those of the operator matrix (docs/operator_matrix.jsonl says which stock files are right) where an entry
was applied. Every form of a line is exported once and runs in turn on one thread until the time is up; a form's figure
is its best run. Ours is divided by the stock form of the same exporter and opset; where that is not right, by the
fastest right one that its opset allows. Lines with a naive form, the same computation as people commonly write it, are
compared with that too. Usage:

    python benchmarks/operators.py [--only scatter] [--batch 32] [--seconds 0.5] [--write]
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import logging
import math
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any

import onnxruntime
import torch
import typer
from rich.console import Console
from rich.progress import track

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from operator_cases import families  # noqa: E402
from operator_cases.case import Case  # noqa: E402
from operator_cases.cells import Cell, read_cells  # noqa: E402
from operator_cases.exports import ours, stock  # noqa: E402

RESULT = ROOT / "benchmarks" / "results" / "operators.md"
PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime")
LIMIT = 1.3
_BITS = "the stock form that is right here, TorchScript's, leaves shifts by eight bits or more undefined"
_DIGITS = "stock loses digits near 0 or in the tails"
REASONS = {
    "attention_to_matmul": "stock gives NaN where a mask leaves a query without keys",
    "bitwise_left_shift": _BITS,
    "bitwise_right_shift": _BITS,
    "erfc_to_polynomial": _DIGITS,
    "erfcx_to_polynomial": _DIGITS,
    "expm1_to_tanh": _DIGITS,
    "index_put": "stock adds what falls on one place in a race, or overwrites it",
    "log_ndtr_to_polynomial": _DIGITS,
    "logdet_to_elimination": "stock's determinant runs over where its logarithm does not",
    "ndtr_to_erfc": _DIGITS,
    "tensor_unfold_to_take": "one node for any number of windows, where stock has a Slice for each",
}
"""Why a file with this entry may be more than 1.3 times as slow as a stock form that is right on the line's values."""


def best_times(files: dict[str, bytes], case: Case, batch: int, seconds: float) -> dict[str, float]:
    """Best run of each file, in ms."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    torch.manual_seed(batch)
    tensors = {f"input{i}": t.numpy() for i, t in enumerate(case.inputs(batch))}
    running = {name: onnxruntime.InferenceSession(data, options) for name, data in files.items()}
    feeds = {name: {i.name: tensors[i.name] for i in s.get_inputs()} for name, s in running.items()}
    for name, session in running.items():
        session.run(None, feeds[name])
    best = dict.fromkeys(running, math.inf)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, session in running.items():
            start = time.perf_counter()
            session.run(None, feeds[name])
            best[name] = min(best[name], 1e3 * (time.perf_counter() - start))
    return best


def naive_files(case: Case) -> dict[str, bytes]:
    """The naive form through both exporters, as far as they take it."""
    files = {}
    if case.naive is not None:
        for exporter, opset in (("torchscript", 17), ("dynamo", 20)):
            try:
                files[f"naive {exporter}"] = stock(dataclasses.replace(case, call=case.naive), exporter, opset)
            except Exception as error:  # torch's exporters raise anything
                print(f"{case.name}: the naive form does not export through {exporter}: {type(error).__name__}")
    return files


def measure(case: Case, cells: list[Cell], batch: int, seconds: float) -> list[dict[str, Any]]:
    """One row for each file of ours with entries in it."""
    mine = [c for c in cells if c.who == "ours" and c.verdict == "ok" and (c.entries or case.naive)]
    theirs = [c for c in cells if c.who == "stock" and c.verdict == "ok"]
    if not mine or not (theirs or case.naive):
        return []
    files = {f"stock {c.exporter} {c.opset}": stock(case, c.exporter, c.opset) for c in theirs}
    files |= naive_files(case)
    for cell in mine:
        files[f"ours {cell.exporter} {cell.opset}"] = ours(case, cell.exporter, cell.opset).model_bytes
    times = best_times(files, case, batch, seconds)
    naive = min((t for n, t in times.items() if n.startswith("naive")), default=None)
    return [
        {
            "case": case.name,
            "form": f"{cell.exporter} {cell.opset}",
            "entries": cell.entries,
            "ours": times[f"ours {cell.exporter} {cell.opset}"],
            "stock": comparable(cell, theirs, times) if cell.entries else None,
            "naive": naive,
        }
        for cell in mine
    ]


def comparable(mine: Cell, theirs: list[Cell], times: dict[str, float]) -> float | None:
    """The time of the stock form to compare a file of ours with."""
    own = [c for c in theirs if (c.exporter, c.opset) == (mine.exporter, mine.opset)]
    allowed = own or [c for c in theirs if c.opset <= mine.opset]
    return min((times[f"stock {c.exporter} {c.opset}"] for c in allowed), default=None)


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def _answering(row: dict[str, Any]) -> list[str]:
    """The entries of a file that its time is put down to: of a slow one, those that say why."""
    entries: list[str] = row["entries"].split()
    explained = [entry for entry in entries if entry in REASONS]
    return explained if explained and row["ours"] > LIMIT * row["stock"] else entries


def report(rows: list[dict[str, Any]], title: str) -> str:
    """The figures by entry, then the lines over the limit, as Markdown."""
    by_entry: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for entry in _answering(row) if row["stock"] else ():
            by_entry[entry].append(row["ours"] / row["stock"])
    ratios = [row["ours"] / row["stock"] for row in rows if row["stock"]]
    naive = [row["ours"] / row["naive"] for row in rows if row["naive"]]
    lines = [
        f"{title}. Ours over a stock form that is right: geometric mean **{geometric_mean(ratios):.2f}** of "
        f"{len(ratios)} files; over the naive form: **{geometric_mean(naive):.2f}** of {len(naive)}.",
        "",
        "| entry | files | ours / stock | note |",
        "| --- | --- | --- | --- |",
    ]
    for entry, values in sorted(by_entry.items()):
        mean = geometric_mean(values)
        note = REASONS.get(entry, "**unexplained**") if mean > LIMIT else ""
        lines.append(f"| `{entry}` | {len(values)} | {mean:.2f} | {note} |")
    lines += ["", "Lines with a naive form:", "", "| line | form | ours, ms | naive, ms | ratio |", "|" + " --- |" * 5]
    for row in rows:
        if row["naive"]:
            ratio = row["ours"] / row["naive"]
            lines.append(f"| {row['case']} | {row['form']} | {row['ours']:.3f} | {row['naive']:.3f} | {ratio:.2f} |")
    lines += [
        "",
        f"Lines over {LIMIT}:",
        "",
        "| line | form | entries | ours, ms | stock, ms | ratio | why |",
        "|" + " --- |" * 7,
    ]
    for row in sorted(rows, key=lambda r: -(r["ours"] / r["stock"] if r["stock"] else 0)):
        if row["stock"] and row["ours"] / row["stock"] > LIMIT:
            figures = f"{row['ours']:.3f} | {row['stock']:.3f} | {row['ours'] / row['stock']:.2f}"
            why = "; ".join(dict.fromkeys(REASONS[e] for e in row["entries"].split() if e in REASONS))
            figures += f" | {why or '**unexplained**'}"
            lines.append(f"| {row['case']} | {row['form']} | {row['entries']} | {figures} |")
    return "\n".join([*lines, ""])


def main(
    only: Annotated[str, typer.Option(help="Only lines whose name contains this.")] = "",
    batch: Annotated[int, typer.Option(help="Batch size that is timed.")] = 32,
    seconds: Annotated[float, typer.Option(help="Time for each line.")] = 0.5,
    write: Annotated[bool, typer.Option(help="Write benchmarks/results/operators.md.")] = False,
) -> None:
    """Measures and prints the table."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    cells: dict[str, list[Cell]] = defaultdict(list)
    for cell in read_cells():
        cells[cell.name].append(cell)
    chosen = [case for cases in families().values() for case in cases if only in case.name]
    rows: list[dict[str, Any]] = []
    for case in track(chosen, "operators", console=Console(stderr=True)):
        try:
            rows += measure(case, cells[case.name], batch, seconds)
        except Exception as error:  # one line less, and said so
            print(f"{case.name}: not measured: {type(error).__name__}: {str(error)[:200]}")
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in PACKAGES)
    text = report(rows, f"Measured {datetime.date.today()} with {versions}, CPU, one thread, batch {batch}")
    if write:
        RESULT.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    typer.run(main)
