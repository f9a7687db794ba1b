"""Judges the programs written by hand (tests/fuzz/written): is the file of each right wherever eager torch runs?

    python scripts/judge_written.py --exporter torchscript --out written.jsonl --stock
    python scripts/judge_written.py --exporter dynamo --only sizes.
    python scripts/judge_written.py --exporter dynamo --example equal

Each program runs in a process of its own with a time limit. A run goes on where an earlier one with the same --out
ended.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from fuzz.judge import Judgement  # noqa: E402
from fuzz.written import all_programs  # noqa: E402
from fuzz.written.judge import judge, with_other_example  # noqa: E402
from fuzz.written.program import Written, read_input  # noqa: E402

BAD = ("WRONG", "fails-at-legal-size", "other exception", "died")


def judge_apart(written: Written, exporter: str, limit_s: float, *, stock: bool, proof: bool) -> Judgement:
    """The judgement of a program, made in a forked process; what it prints is dropped."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            with os.fdopen(theirs, "wb") as stream:
                stream.write(
                    json.dumps(dataclasses.asdict(judge(written, exporter, stock=stock, proof=proof))).encode()
                )
        finally:
            os._exit(0)
    os.close(theirs)
    deadline, data, is_late = time.monotonic() + limit_s, b"", True
    while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(ours, 1 << 20)
        if not part:
            is_late = False
            break
        data += part
    if is_late:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(ours)
    if data and not is_late:
        return Judgement(**json.loads(data))
    return Judgement("out of time") if is_late else Judgement("died", f"status {os.waitstatus_to_exitcode(status)}")


def show(console: Console, rows: list[dict[str, Any]]) -> None:
    """The tables of verdicts and of refusals, and what is wrong."""
    for exporter in dict.fromkeys(row["exporter"] for row in rows):
        own = [row for row in rows if row["exporter"] == exporter]
        table = Table("verdict", "programs", title=f"{len(own)} programs, {exporter}")
        for verdict, count in Counter(row["verdict"] for row in own).most_common():
            table.add_row(verdict, str(count))
        console.print(table)
        reasons = Table("kind of refusal", "programs", "needless")
        refused = [row for row in own if row["reason"]]
        for reason, count in Counter(row["reason"] for row in refused).most_common():
            needless = sum(row["reason"] == reason and row["verdict"] == "refused, needlessly" for row in refused)
            reasons.add_row(reason, str(count), str(needless))
        console.print(reasons)
    for row in rows:
        if row["verdict"] in BAD:
            console.print(f"{row['program']} {row['exporter']} {row['verdict']}: {row['detail']}", markup=False)


def main(
    exporter: Annotated[str, typer.Option(help="torchscript, dynamo or auto.")] = "torchscript",
    only: Annotated[str, typer.Option(help="Part of the programs' names.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="Results, a line of JSON each; those in it are not run again.")
    ] = None,
    example: Annotated[
        str, typer.Option(help="Another example: equal sizes, smallest sizes, or a draw of values, such as zeros.")
    ] = "",
    time_limit: Annotated[float, typer.Option(help="Seconds for a program.")] = 120,
    proof: Annotated[bool, typer.Option(help="Have export_compat prove each file, as users do.")] = True,
    stock: Annotated[bool, typer.Option(help="Tell which refusals are needless: stock torch's file is right.")] = False,
) -> None:
    """Judges the programs."""
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    if out is not None and out.exists():
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    known = {(row["program"], row["exporter"]) for row in rows}
    warm = Written(torch.nn.ReLU, (read_input("input", "float batch=2 3"),))
    judge(warm, exporter)
    for name, written in all_programs().items():
        if example:
            other = with_other_example(written, example) if only in name else None
            if other is None:
                continue
            name, written = f"{name} ({example})", other
        if only in name and (name, exporter) not in known:
            start = time.monotonic()
            judged = judge_apart(written, exporter, time_limit, stock=stock, proof=proof)
            rows.append({"program": name, "exporter": exporter, **dataclasses.asdict(judged)})
            rows[-1]["seconds"] = round(time.monotonic() - start, 1)
            if out is not None:
                with out.open("a") as stream:
                    stream.write(json.dumps(rows[-1]) + "\n")
    show(Console(), rows)
    raise typer.Exit(1 if any(row["verdict"] in BAD for row in rows) else 0)


if __name__ == "__main__":
    typer.run(main)
