"""Sums the results of the searches for wrong files into a page: verdicts, reasons of refusals, what is wrong.

    python benchmarks/soundness.py --out benchmarks/results/soundness-DATE.md "programs, dynamo=dynamo.jsonl" ...

The files are those that scripts/fuzz_programs.py, fuzz_calls.py and judge_written.py write with --out.
"""

from __future__ import annotations

import json
import platform
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import onnxruntime
import torch
import typer

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
    """The rows of a results file."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def describe(rows: list[Row]) -> str:
    """Seeds of a search, or the subjects of written programs."""
    seeds = sorted(row["seed"] for row in rows if "seed" in row)
    if seeds:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return ", ".join(f"`{name}`" for name in dict.fromkeys(row["program"].partition(".")[0] for row in rows))


def count_verdicts(name: str, rows: list[Row]) -> str:
    """One line of the table of verdicts."""
    counts = Counter(row["verdict"] for row in rows)
    right = counts.pop("right", 0) + counts.pop("special only", 0)
    needless = counts.pop("refused, needlessly", 0)
    refused = counts.pop("refused", 0) + counts.pop("caught", 0) + needless
    wrong = counts.pop("WRONG", 0) + counts.pop("fails-at-legal-size", 0)
    others = "; ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return f"| {name} | {describe(rows)} | {len(rows)} | {right} | {refused} ({needless}) | {wrong} | {others} |"


def count_reasons(searches: dict[str, list[Row]]) -> list[str]:
    """The table of reasons of refusals, most frequent first."""
    rows = [row for found in searches.values() for row in found if row.get("reason")]
    counts = Counter(row["reason"] for row in rows)
    needless = Counter(row["reason"] for row in rows if row["verdict"] == "refused, needlessly")
    lines = ["| reason | refused | of these needless |", "|---|---|---|"]
    return lines + [f"| {reason} | {count} | {needless[reason]} |" for reason, count in counts.most_common(15)]


def main(
    searches: Annotated[list[str], typer.Argument(help="NAME=FILE for each search.")],
    out: Annotated[Path, typer.Option(help="The page; what stands under its last heading stays.")],
) -> None:
    """Writes the page."""
    found = {name: read(Path(path)) for name, _, path in (one.partition("=") for one in searches)}
    kept = out.read_text().partition("## What was wrong")[2] if out.exists() else "\n"
    versions = f"torch {torch.__version__.split('+')[0]}, onnxruntime {onnxruntime.__version__}"
    lines = [
        "# Searches for wrong files that were verified",
        "",
        f"{date.today()}, {versions}, Python {platform.python_version()}. Written by `benchmarks/soundness.py` but for",
        "the last part. *Wrong* is a file that export_compat had verified. A refusal is *needless* where the file of",
        "torch's own exporter was right at every case; that was not asked of calls.",
        "",
        "| search | which | tried | right | refused (needless) | wrong | others |",
        "|---|---|---|---|---|---|---|",
        *(count_verdicts(name, rows) for name, rows in found.items()),
        "",
        *count_reasons(found),
        "",
        f"## What was wrong{kept.rstrip()}",
        "",
    ]
    out.write_text("\n".join(lines))


if __name__ == "__main__":
    typer.run(main)
