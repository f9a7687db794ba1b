"""Random functions, rewritten as an export would, but run by Python: they have to compute what they did before.

No export is made, so thousands take minutes. Usage:

    python scripts/fuzz_flows.py --count 4500
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from control_flow.flows import make_flow  # noqa: E402
from control_flow.test_flow import difference_in_python  # noqa: E402

from torch_onnx_compat.control_flow.find.source import Unrewritable  # noqa: E402


def main(
    count: Annotated[int, typer.Option(help="How many functions.")] = 400,
    first_seed: Annotated[int, typer.Option(help="The first function's seed.")] = 0,
) -> None:
    """Counts those that are the same, that differ, and that are not rewritten, with the reasons."""
    verdicts: Counter[str] = Counter()
    differing = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in track(range(first_seed, first_seed + count), "functions"):
            try:
                other = difference_in_python(make_flow(seed), Path(folder), f"flow_{seed}")
            except Unrewritable as reason:
                verdicts[f"not rewritten: {re.sub('[0-9]+', '#', str(reason))}"] += 1
                continue
            verdicts["same" if other is None else "DIFFERENT"] += 1
            if other is not None:
                differing.append(seed)
    table = Table("verdict", "functions")
    for verdict, number in verdicts.most_common():
        table.add_row(verdict, str(number))
    console = Console()
    console.print(table)
    if differing:
        console.print(f"different: seeds {', '.join(map(str, differing))}")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
