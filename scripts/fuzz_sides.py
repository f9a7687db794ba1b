"""Random programs whose decisions are about flags, exported without a proof and run on all sides: a table of verdicts.

python scripts/fuzz_sides.py --programs aliases --exporter torchscript --first-seed 1000 --count 400
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from fuzz.aliases import first_difference, make_aliases, run_sides  # noqa: E402
from fuzz.effects import make_effects  # noqa: E402
from fuzz.programs import Program, fresh_model, write_program  # noqa: E402

from torch_onnx_compat import CompatError, export_compat  # noqa: E402

MAKERS = {"aliases": make_aliases, "effects": make_effects}


def judge(program: Program, exporter: str, folder: Path) -> str:
    """What became of one program; of a wrong file also where."""
    make = partial(fresh_model, program, write_program(program, folder))
    sides = run_sides(make)
    if not sides or sides[0][1].any():
        return "eager torch refuses the example"
    x, flags, _ = sides[0]
    try:
        session = export_compat(make(), (x, flags), exporter=exporter, verify=False).session()
    except CompatError as error:
        return "refused, second name" if "second name" in str(error) else "refused"
    difference = first_difference(session, sides)
    return f"WRONG: {difference}" if difference else "right"


def main(
    programs: Annotated[str, typer.Option(help="aliases or effects.")] = "aliases",
    exporter: Annotated[str, typer.Option(help="torchscript or dynamo.")] = "torchscript",
    first_seed: Annotated[int, typer.Option(help="The first program's seed.")] = 1000,
    count: Annotated[int, typer.Option(help="How many programs.")] = 100,
) -> None:
    """Judges programs; prints the sources of those whose files are wrong."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    console, verdicts = Console(stderr=True), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in track(range(first_seed, first_seed + count), "programs", console=console):
            program = MAKERS[programs](seed)
            verdict = judge(program, exporter, Path(folder))
            if verdict.startswith("WRONG"):
                console.print(f"seed {seed}, {verdict}\n{program.source}", markup=False)
            verdicts[verdict.partition(":")[0]] += 1
    table = Table(
        "verdict", "programs", title=f"{programs}, {exporter}, seeds {first_seed} to {first_seed + count - 1}"
    )
    for verdict, number in verdicts.most_common():
        table.add_row(verdict, str(number))
    Console().print(table)
    raise typer.Exit(1 if verdicts["WRONG"] else 0)


if __name__ == "__main__":
    typer.run(main)
