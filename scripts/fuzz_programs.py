"""Random programs through export_compat, judged against eager torch; a table of verdicts, and every wrong program.

Each program runs in a forked process with a time limit; torch is imported once. The results file grows by a line for
each program, and a second run with the same file goes on where the first stopped. Usage:

    python scripts/fuzz_programs.py --count 1000 --first-seed 0 --exporter torchscript --out results.jsonl
    python scripts/fuzz_programs.py --exporter dynamo --shrink 17
"""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import Progress
from rich.syntax import Syntax
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from fuzz.judge import Judgement, judge_program  # noqa: E402
from fuzz.programs import MAKERS, Input, Program, write_program  # noqa: E402

Row = dict[str, Any]

ORDER = ("right", "rounding", "WRONG", "fails-at-legal-size", "refused", "refused, needlessly", "other exception")
BAD = ("WRONG", "fails-at-legal-size", "other exception", "died")


@dataclass
class Worker:
    """A forked process that judges one program.

    Attributes:
        seed: The program's.
        pid: The process.
        pipe: Where its judgement comes from.
        deadline: When it is ended, on time.monotonic()'s clock.
        data: What has come so far.
    """

    seed: int
    pid: int
    pipe: int
    deadline: float
    data: bytes = b""


@dataclass(frozen=True)
class Task:
    """How programs are judged."""

    exporter: str
    stock: bool
    limit_s: float
    folder: Path
    make: Callable[[int], Program]
    """The program of a seed."""


def judge_here(program: Program, task: Task) -> Row:
    """The judgement of a program as a line of the results file."""
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(dir=task.folder))
    judged = judge_program(program, write_program(program, folder), task.exporter, stock=task.stock)
    row = {"seed": program.seed, "exporter": task.exporter, **dataclasses.asdict(judged)}
    return row | {"seconds": round(time.monotonic() - begun, 2)}


def warm_up(task: Task) -> None:
    """Imports what an export imports, once for all processes."""
    source = "from torch import nn\n\n\nclass Model(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
    judge_here(Program(-1, source, (Input("x", (2, 3), {0: "batch"}),)), task)


def start(program: Program, task: Task) -> Worker:
    """Forks a process for a program; what it prints is dropped."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid:
        os.close(theirs)
        return Worker(program.seed, pid, ours, time.monotonic() + task.limit_s)
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        row = judge_here(program, task)
        with os.fdopen(theirs, "wb") as stream:
            stream.write(json.dumps(row).encode())
    finally:
        os._exit(0)


def finish(worker: Worker, task: Task, *, late: bool) -> Row:
    """The row of a process that ended, or that is ended now because its time is over."""
    if late:
        os.kill(worker.pid, signal.SIGKILL)
    _, status = os.waitpid(worker.pid, 0)
    os.close(worker.pipe)
    if worker.data and not late:
        row: Row = json.loads(worker.data)
        return row
    verdict = "out of time" if late else "died"
    detail = "" if late else f"exit status {os.waitstatus_to_exitcode(status)}"
    return {"seed": worker.seed, "exporter": task.exporter, **dataclasses.asdict(Judgement(verdict, detail))}


def collect(workers: list[Worker], task: Task) -> Iterator[Row]:
    """Waits for something to happen, and gives the rows of the processes that are over."""
    ready, _, _ = select.select([w.pipe for w in workers], [], [], 0.2)
    for worker in list(workers):
        ended = False
        if worker.pipe in ready:
            part = os.read(worker.pipe, 1 << 20)
            worker.data += part
            ended = not part
        late = not ended and time.monotonic() > worker.deadline
        if ended or late:
            workers.remove(worker)
            yield finish(worker, task, late=late)


def judge_all(seeds: list[int], task: Task, processes: int) -> Iterator[Row]:
    """The rows of all programs, as they come."""
    left, workers = list(reversed(seeds)), list[Worker]()
    while left or workers:
        while left and len(workers) < processes:
            workers.append(start(task.make(left.pop()), task))
        yield from collect(workers, task)


def drop_statements(source: str) -> Iterator[str]:
    """The source without one of its statements, for each of them; the larger ones first."""
    tree = ast.parse(source)
    places = []
    for node in ast.walk(tree):
        for name in ("body", "orelse", "handlers", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                places += [(node, name, i, len(ast.unparse(block[i]))) for i in range(len(block))]
    for node, name, i, _ in sorted(places, key=lambda place: -place[3]):
        block = getattr(node, name)
        kept = block[:i] + block[i + 1 :]
        setattr(node, name, kept or ([ast.Pass()] if name == "body" and not isinstance(node, ast.Module) else []))
        yield from unparse(tree)
        if isinstance(block[i], ast.If | ast.For | ast.While | ast.Try):
            setattr(node, name, block[:i] + block[i].body + block[i + 1 :])
            yield from unparse(tree)
        setattr(node, name, block)


def unparse(tree: ast.Module) -> Iterator[str]:
    """The text of a tree; nothing if it is no program."""
    try:
        text = ast.unparse(tree)
        compile(text, "<dropped>", "exec")
    except (SyntaxError, ValueError, TypeError):
        return
    yield text


def shrink(program: Program, task: Task) -> tuple[Program, Row]:
    """Drops statements for as long as the verdict stays the same."""
    row = next(iter(judge_one(program, task)))
    wanted = row["verdict"]
    changed = True
    while changed:
        changed = False
        for source in drop_statements(program.source):
            smaller = dataclasses.replace(program, source=source)
            tried = next(iter(judge_one(smaller, task)))
            if tried["verdict"] == wanted:
                program, row, changed = smaller, tried, True
                break
    return program, row


def judge_one(program: Program, task: Task) -> Iterator[Row]:
    """The row of one program, judged in a process of its own."""
    workers = [start(program, task)]
    while workers:
        yield from collect(workers, task)


def read_rows(path: Path | None, exporter: str) -> list[Row]:
    """The rows of an earlier run."""
    if path is None or not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return [row for row in rows if row["exporter"] == exporter]


def show_program(console: Console, program: Program, row: Row) -> None:
    """A program with its inputs and what came of it."""
    shapes = ", ".join(f"{i.name} {i.shape} dynamic {i.dynamic}" for i in program.inputs)
    console.rule(f"seed {program.seed}: {row['verdict']}, {row['exporter']}")
    console.print(f"{shapes}\n{row['detail']}", markup=False, highlight=False)
    console.print(Syntax(program.source[program.source.find("from torch import nn") + 21 :].strip("\n"), "python"))


def show(console: Console, rows: list[Row], task: Task, *, sources: bool) -> None:
    """The table of verdicts, the kinds of refusal, and the programs whose files are wrong."""
    table = Table("verdict", "programs", "%", title=f"{len(rows)} programs, {rows[0]['exporter'] if rows else ''}")
    verdicts = Counter(row["verdict"] for row in rows)
    for verdict in sorted(verdicts, key=lambda v: ORDER.index(v) if v in ORDER else len(ORDER)):
        table.add_row(verdict, str(verdicts[verdict]), f"{100 * verdicts[verdict] / len(rows):.1f}")
    console.print(table)
    reasons = Table("kind of refusal", "programs", "needless")
    refused = [row for row in rows if row["reason"]]
    for reason, count in Counter(row["reason"] for row in refused).most_common(20):
        needless = sum(row["reason"] == reason and row["verdict"] == "refused, needlessly" for row in refused)
        reasons.add_row(reason, str(count), str(needless))
    console.print(reasons)
    bad = [row for row in rows if row["verdict"] in BAD]
    for row in bad if sources else []:
        show_program(console, task.make(row["seed"]), row)
    if bad:
        console.print("seeds: " + ", ".join(f"{row['seed']} {row['verdict']}" for row in bad), markup=False)


def main(
    count: Annotated[int, typer.Option(help="How many programs.")] = 100,
    first_seed: Annotated[int, typer.Option(help="The first program's seed.")] = 0,
    exporter: Annotated[str, typer.Option(help="torchscript, dynamo or auto.")] = "torchscript",
    processes: Annotated[int, typer.Option(help="Programs at a time.")] = 2,
    out: Annotated[
        Path | None, typer.Option(help="Results, a line of JSON each; those in it are not run again.")
    ] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for a program.")] = 30,
    stock: Annotated[bool, typer.Option(help="Tell which refusals are needless: stock torch's file is right.")] = False,
    about: Annotated[
        str,
        typer.Option(
            help="About one thing: caught errors, far (sizes), indices, kinds (of values), layouts, pieces (of an "
            "axis), positions (tables of), results (of functions), rounds (of loops), texts, tables."
        ),
    ] = "",
    sources: Annotated[bool, typer.Option(help="Print the programs whose files are wrong.")] = True,
    shrink_seed: Annotated[int | None, typer.Option("--shrink", help="Make this seed's program smaller.")] = None,
) -> None:
    """Judges random programs."""
    if about not in MAKERS:
        raise typer.BadParameter(f"{about!r} is none of {', '.join(filter(None, MAKERS))}.", param_hint="--about")
    console = Console()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        task = Task(exporter, stock, time_limit, Path(folder), MAKERS[about])
        warm_up(task)
        if shrink_seed is not None:
            show_program(console, *shrink(task.make(shrink_seed), task))
            return
        seeds = range(first_seed, first_seed + count)
        rows = [row for row in read_rows(out, exporter) if row["seed"] in seeds]
        left = [seed for seed in seeds if seed not in {row["seed"] for row in rows}]
        with Progress(console=console, disable=not console.is_terminal) as progress:
            bar = progress.add_task("programs", total=len(left))
            for row in judge_all(left, task, processes):
                rows.append(row)
                progress.advance(bar)
                if out is not None:
                    with out.open("a") as stream:
                        stream.write(json.dumps(row) + "\n")
    show(console, sorted(rows, key=lambda row: int(row["seed"])), task, sources=sources)
    raise typer.Exit(1 if any(row["verdict"] in BAD for row in rows) else 0)


if __name__ == "__main__":
    typer.run(main)
