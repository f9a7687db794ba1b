"""Random programs, exported without a proof and compared with eager torch: a table of verdicts.

python scripts/fuzz_unproven.py --programs aliases --exporter torchscript --first-seed 1000 --count 400

aliases: tensors with second names. effects: what branches change. Their decisions are about flags, and all sides are
run. kinds: numbers, sizes and tensors that branches decide between, and what asks which of them a name holds. sizes:
Python's arithmetic on sizes. writes: writes in place, to views too.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
import typer
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, NotImplemented
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from fuzz.aliases import first_difference, make_aliases, run_sides  # noqa: E402
from fuzz.effects import make_effects  # noqa: E402
from fuzz.kinds import SHAPES, make_kinds  # noqa: E402
from fuzz.programs import Program, fresh_model, write_program  # noqa: E402
from fuzz.size_arithmetic import SHAPES as MANY_SHAPES  # noqa: E402
from fuzz.size_arithmetic import make_sizes  # noqa: E402
from fuzz.writes import INPUT, OTHER_INPUT, WriteProgram  # noqa: E402

from torch_onnx_compat import CompatError, export_compat  # noqa: E402


def judge_sides(
    make: Callable[[int], Program],
    seed: int,
    exporter: str,
    folder: Path,
    shapes: Sequence[tuple[int, int]] = ((4, 3),),
) -> str:
    """What became of a program whose decisions are about flags; of a wrong file also where, and the source."""
    program = make(seed)
    fresh = partial(fresh_model, program, write_program(program, folder))
    sides = run_sides(fresh, shapes)
    if not sides or sides[0][1].any():
        return "eager torch refuses the example"
    x, flags, _ = sides[0]
    dynamic = {one.name: one.dynamic for one in program.inputs if one.dynamic}
    try:
        session = export_compat(fresh(), (x, flags), exporter=exporter, dynamic=dynamic, verify=False).session()
    except CompatError as error:
        return "refused, second name" if "second name" in str(error) else "refused"
    difference = first_difference(session, sides)
    return f"WRONG: {difference}\n{program.source}" if difference else "right"


def judge_writes(seed: int, exporter: str, folder: Path) -> str:
    """What became of a program of writes; the results of every second one are views of one another."""
    program = WriteProgram(seed, returns_copies=seed % 2 == 0)
    if not program.runs():
        return "eager torch refuses the example"
    try:
        session = export_compat(program, (INPUT.clone(),), exporter=exporter, verify=False).session()
    except CompatError:
        return "refused"
    except (Fail, InvalidGraph, NotImplemented) as error:
        return f"onnxruntime does not load it: {error}"
    for x in (INPUT, OTHER_INPUT):
        wanted = program(x.clone())
        found = session.run(None, {value.name: x.numpy() for value in session.get_inputs()})
        for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
            if one.shape != other.shape or not torch.allclose(torch.from_numpy(one), other, rtol=1e-4, atol=1e-5):
                return f"WRONG: output {place}"
    return "right"


JUDGES: dict[str, Callable[[int, str, Path], str]] = {
    "aliases": partial(judge_sides, make_aliases),
    "effects": partial(judge_sides, make_effects),
    "kinds": partial(judge_sides, make_kinds, shapes=SHAPES),
    "sizes": partial(judge_sides, make_sizes, shapes=MANY_SHAPES),
    "writes": judge_writes,
}


def main(
    programs: Annotated[str, typer.Option(help="aliases, effects, kinds, sizes or writes.")] = "aliases",
    exporter: Annotated[str, typer.Option(help="torchscript or dynamo.")] = "torchscript",
    first_seed: Annotated[int, typer.Option(help="The first program's seed.")] = 1000,
    count: Annotated[int, typer.Option(help="How many programs.")] = 100,
) -> None:
    """Judges programs; tells more of those whose files are wrong or do not load."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    console, verdicts = Console(stderr=True), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in track(range(first_seed, first_seed + count), "programs", console=console):
            verdict = JUDGES[programs](seed, exporter, Path(folder))
            name, _, more = verdict.partition(":")
            if more:
                console.print(f"seed {seed}, {verdict}", markup=False)
            verdicts[name] += 1
    table = Table(
        "verdict", "programs", title=f"{programs}, {exporter}, seeds {first_seed} to {first_seed + count - 1}"
    )
    for name, number in verdicts.most_common():
        table.add_row(name, str(number))
    Console().print(table)
    raise typer.Exit(1 if verdicts["WRONG"] else 0)


if __name__ == "__main__":
    typer.run(main)
