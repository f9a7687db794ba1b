"""Exports random calls of torch's operators and compares each file with eager torch; a line of JSON for each.

    python scripts/fuzz_calls.py --count 1500 --exporter dynamo --out calls.jsonl

A second run goes on where the first ended. `--only` takes functions whose name contains the text. With `--pairs` each
file holds two calls, and what the proof refuses is shown too: one call may have changed the other. Pairs need a file
of verdicts of their own.
"""

from __future__ import annotations

import collections
import json
import logging
import multiprocessing
import os
import sys
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import onnxruntime
import torch
import typer

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from fuzz.call_judge import CAUGHT, CRASH, VERDICTS, WRONG, Judged, judge  # noqa: E402
from fuzz.call_table import make_call, make_pair  # noqa: E402
from fuzz.calls import Call  # noqa: E402

Maker = Callable[[int], Call]

LIMIT_S = 120
ROUND = 40
"""Calls that one process makes, so that none grows without end."""


def run_calls(pipe: Any, seeds: list[int], exporter: str, make: Maker) -> None:
    """Judges calls in a process of its own; sends each verdict."""
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    onnxruntime.set_default_logger_severity(4)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # torch's C++ prints past sys.stdout
    os.dup2(nowhere, 2)
    for seed in seeds:
        pipe.send(judge(seed, make(seed), exporter))  # type: ignore[arg-type]
    pipe.close()


def judge_in_process(seeds: list[int], exporter: str, make: Maker) -> Iterator[Judged]:
    """Verdicts of calls; after a hang or the end of the process the next call gets a new one."""
    context = multiprocessing.get_context("fork")
    rest = list(seeds)
    while rest:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=run_calls, args=(sender, rest[:ROUND], exporter, make))
        process.start()
        sender.close()
        try:
            for seed in rest[:ROUND]:
                if receiver.poll(LIMIT_S):
                    yield receiver.recv()
                else:
                    yield _lost(seed, make(seed), exporter, f"more than {LIMIT_S} s")
                rest.remove(seed)
                if process.exitcode not in (None, 0):
                    break
        except EOFError:
            process.join()
            yield _lost(rest[0], make(rest.pop(0)), exporter, f"the process ended with {process.exitcode}")
        finally:
            process.kill()
            process.join()


def _lost(seed: int, call: Call, exporter: str, detail: str) -> Judged:
    return Judged(seed, call.name, str(call), exporter, CRASH, detail, [], float(LIMIT_S))


def show_table(rows: list[dict[str, Any]], shown: Collection[str]) -> None:
    """Prints how often each verdict came, by exporter, and each call of the shown verdicts."""
    for exporter in sorted({row["exporter"] for row in rows}):
        counts = collections.Counter(row["verdict"] for row in rows if row["exporter"] == exporter)
        print(f"{exporter}: {counts.total()} calls; " + ", ".join(f"{v} {counts[v]}" for v in VERDICTS))
    for row in rows:
        if row["verdict"] in shown:
            print(f"{row['verdict']} {row['exporter']} {row['seed']} {row['call']}\n    {row['detail']}")


def read_rows(out: Path) -> list[dict[str, Any]]:
    """The verdicts of earlier runs."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def main(
    count: Annotated[int, typer.Option(help="How many calls.")] = 300,
    first_seed: Annotated[int, typer.Option(help="Seed of the first.")] = 0,
    exporter: Annotated[str, typer.Option(help="torchscript or dynamo.")] = "torchscript",
    only: Annotated[str, typer.Option(help="Functions whose name contains this.")] = "",
    pairs: Annotated[bool, typer.Option("--pairs", help="Two calls in each file.")] = False,
    processes: Annotated[int, typer.Option(help="Processes at a time.")] = 1,
    out: Annotated[Path, typer.Option(help="Verdicts, a line of JSON each; a second run goes on.")] = Path(
        "calls.jsonl"
    ),
) -> None:
    """Judges random calls and prints a table."""
    make = make_pair if pairs else make_call
    done = {row["seed"] for row in read_rows(out) if row["exporter"] == exporter}
    seeds = [s for s in range(first_seed, first_seed + count) if s not in done and only in make(s).name]
    judge(0, make_call(0), exporter)  # type: ignore[arg-type]  # what torch loads once, the forked processes have
    with out.open("a") as file, ThreadPoolExecutor(processes) as pool:

        def work(part: list[int]) -> None:
            for row in judge_in_process(part, exporter, make):
                file.write(json.dumps(row.as_dict()) + "\n")
                file.flush()

        list(pool.map(work, [seeds[i::processes] for i in range(processes)]))
    rows = [row for row in read_rows(out) if row["exporter"] == exporter]
    show_table(rows, (WRONG, CRASH, CAUGHT) if pairs else (WRONG, CRASH))


if __name__ == "__main__":
    typer.run(main)
