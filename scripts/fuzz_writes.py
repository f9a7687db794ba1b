"""Random programs that write in place, to views too, exported without a proof: a table of verdicts.

python scripts/fuzz_writes.py --exporter torchscript --first-seed 1000 --count 400
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from fuzz.writes import INPUT, OTHER_INPUT, WriteProgram  # noqa: E402

from torch_onnx_compat import CompatError, export_compat  # noqa: E402


def judge(seed: int, exporter: str) -> str:
    """What became of one program: of every second one the results are views of one another."""
    program = WriteProgram(seed, returns_copies=seed % 2 == 0)
    if not program.runs():
        return "eager torch refuses it"
    try:
        session = export_compat(program, (INPUT.clone(),), exporter=exporter, verify=False).session()
    except CompatError:
        return "refused"
    except Exception:
        return "onnxruntime does not load it"
    for x in (INPUT, OTHER_INPUT):
        wanted = program(x.clone())
        found = session.run(None, {value.name: x.numpy() for value in session.get_inputs()})
        for one, other in zip(found, wanted, strict=True):
            if one.shape != other.shape or not torch.allclose(torch.from_numpy(one), other, rtol=1e-4, atol=1e-5):
                return "WRONG"
    return "right"


def main(
    exporter: Annotated[str, typer.Option(help="torchscript or dynamo.")] = "torchscript",
    first_seed: Annotated[int, typer.Option(help="The first program's seed.")] = 1000,
    count: Annotated[int, typer.Option(help="How many programs.")] = 100,
) -> None:
    """Judges programs; names the seeds of those whose files are wrong, or are no files."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    console, verdicts = Console(stderr=True), Counter[str]()
    for seed in track(range(first_seed, first_seed + count), "programs", console=console):
        verdict = judge(seed, exporter)
        if verdict not in ("right", "eager torch refuses it"):
            console.print(f"seed {seed}: {verdict}")
        verdicts[verdict] += 1
    table = Table("verdict", "programs", title=f"writes, {exporter}, seeds {first_seed} to {first_seed + count - 1}")
    for verdict, number in verdicts.most_common():
        table.add_row(verdict, str(number))
    Console().print(table)
    raise typer.Exit(1 if verdicts["WRONG"] else 0)


if __name__ == "__main__":
    typer.run(main)
