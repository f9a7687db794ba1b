"""Interrupts exports at random lines of the package, and kills some; prints what was not as before.

Each scenario runs in processes of its own. Usage:

    python scripts/fuzz_faults.py [--faults 600] [--kills 100] [--only dynamo] [--first 0] [--jobs 2]
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

CHUNK = 10
"""Faults that a process makes before a fresh one takes over."""

Task = tuple[str, str, int, int]
"""Scenario or "kill", exception, first seed, how many."""


def work(task: Task) -> list[Any]:
    """Makes a few faults of one kind; a process makes no others."""
    from fuzz.faults import Injector, Killer

    name, exception, first, count = task
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = os.path.join(folder, "tmp")
        os.mkdir(tempfile.tempdir)
        if name == "kill":
            killer = Killer(Path(folder))
            return [killer.kill(number) for number in range(first, first + count)]
        injector = Injector(name, Path(folder))
        return [injector.inject(exception, seed) for seed in range(first, first + count)]


def tasks(names: list[str], exceptions: list[str], faults: int, kills: int, first: int) -> Iterator[Task]:
    """The work, in pieces, spread evenly over scenarios and exceptions."""
    pairs = [(name, exception) for name in names for exception in exceptions]
    each = -(-faults // len(pairs))
    for name, exception in pairs:
        for start in range(0, each, CHUNK):
            yield name, exception, first + start, min(CHUNK, each - start)
    for start in range(0, kills, CHUNK):
        yield "kill", "", first + start, min(CHUNK, kills - start)


def main(
    faults: Annotated[int, typer.Option(help="How many exceptions to inject.")] = 600,
    kills: Annotated[int, typer.Option(help="How many processes to kill.")] = 100,
    only: Annotated[str, typer.Option(help="Part of the name of the scenarios.")] = "",
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    jobs: Annotated[int, typer.Option(help="How many processes at once.")] = 2,
) -> None:
    """Interrupts exports, and prints a table."""
    from fuzz.faults import EXCEPTIONS, SCENARIOS, Outcome

    names = [name for name in SCENARIOS if only in name]
    done: list[Any] = []
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=1) as pool:
        for results in pool.imap_unordered(work, list(tasks(names, list(EXCEPTIONS), faults, kills, first))):
            done += results
            for result in results:
                if not result.is_fine:
                    print(result, flush=True)
            print(f"{len(done)} done, {sum(not x.is_fine for x in done)} not as before", file=sys.stderr)
    outcomes = [x for x in done if isinstance(x, Outcome)]
    print_table(outcomes)
    killed = [x for x in done if not isinstance(x, Outcome)]
    print(
        f"\nkilled: {len(killed)}, as it should be: {sum(x.is_fine for x in killed)}, {Counter(x.file for x in killed)}"
    )
    raise typer.Exit(any(not x.is_fine for x in done))


def print_table(outcomes: list[Any]) -> None:
    """Prints a line for each scenario and exception."""
    header = ("scenario", "exception", "faults", "old", "new", "swallowed", "not as before")
    print("".join(f"{title:<18}" for title in header))
    for pair in sorted({(x.scenario, x.exception) for x in outcomes}):
        these = [x for x in outcomes if (x.scenario, x.exception) == pair]
        files = Counter(x.file for x in these)
        swallowed = sum(x.is_swallowed for x in these)
        bad = sum(not x.is_fine for x in these)
        print("".join(f"{cell!s:<18}" for cell in (*pair, len(these), files["old"], files["new"], swallowed, bad)))
    for place, count in Counter(x.place.partition(" ")[0] for x in outcomes if x.is_swallowed).most_common():
        print(f"swallowed at {place}: {count}")


if __name__ == "__main__":
    typer.run(main)
