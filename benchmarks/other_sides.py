"""What the search for values on the other sides of decisions finds, and what it costs.

Sides: of the decisions on values in tests/check/decided.py and tests/fuzz/written/rare_branches.py, how many answers
the cases without the search take, and how many with it. Cost: processor time of the proof with the search over that
without it, both in one process, in turns.

    python benchmarks/other_sides.py [--repeats 3] [--exporter torchscript]
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from check import decided  # noqa: E402
from fuzz.written import rare_branches  # noqa: E402

from torch_onnx_compat import CompatError, attempt, export_compat  # noqa: E402
from torch_onnx_compat.check.other_sides import OtherSides  # noqa: E402

Export = Callable[[], Any]


class Gated(nn.Module):
    """A small convolutional network that normalises what is loud."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Conv2d(c, 16, 3, padding=1) for c in (3, 16, 16, 16)))

    def forward(self, x: Any) -> Any:
        if x.abs().max() > 10:
            x = x / x.abs().max()
        return self.layers(x).mean((2, 3))


def models() -> dict[str, tuple[nn.Module, tuple[torch.Tensor, ...], dict[str, Any]]]:
    """Five models without decisions on values, then five with some."""
    image, row = torch.rand(2, 3, 64, 64), torch.rand(3, 4)
    plain = {
        "convolutions": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3)), (image,)),
        "transformer": (nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (torch.rand(2, 9, 32),)),
        "lstm": (nn.LSTM(8, 16, batch_first=True), (torch.rand(2, 7, 8),)),
        "perceptron": (nn.Sequential(nn.Linear(4, 32), nn.GELU(), nn.Linear(32, 2)), (row,)),
        "pyramid": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(4), nn.Flatten()), (image,)),
    }
    deciding = {
        "gated convolutions": (Gated(), (image,)),
        "early exit": (decided.Confident(), (decided.X,)),
        "chain": (rare_branches.Chain(), (torch.randn(3, 6),)),
        "early returns": (rare_branches.EarlyReturns(), (torch.randn(3, 6),)),
        "loop": (rare_branches.HalvesLoud(), (torch.randn(3, 6),)),
    }
    fixed = {"lstm", "early exit"}
    return {
        name: (model.eval(), args, {} if name in fixed else {"dynamic": "batch"})
        for name, (model, args) in {**plain, **deciding}.items()
    }


@contextmanager
def without_search() -> Iterator[None]:
    plain = OtherSides.search
    OtherSides.search = lambda self, bases: iter(())  # type: ignore[method-assign]
    try:
        yield
    finally:
        OtherSides.search = plain  # type: ignore[method-assign]


def seconds_of_proof(export: Export) -> float:
    """Processor time of the proof in one export."""
    spent = 0.0
    plain = attempt.verify_file

    def verify(*args: Any) -> Any:
        nonlocal spent
        start = time.process_time()
        try:
            return plain(*args)
        finally:
            spent += time.process_time() - start

    attempt.verify_file = verify
    try:
        export()
    finally:
        attempt.verify_file = plain
    return spent


def measure_cost(exporter: str, repeats: int) -> list[str]:
    """A row of a table for each model."""
    rows = []
    for name, (model, args, options) in models().items():

        def export(model: nn.Module = model, args: Any = args, options: Any = options) -> Any:
            return export_compat(model, args, exporter=exporter, **options)

        export()
        ours, theirs = [], []
        for _ in range(repeats):
            ours.append(seconds_of_proof(export))
            with without_search():
                theirs.append(seconds_of_proof(export))
        one, other = statistics.median(ours), statistics.median(theirs)
        rows.append(f"| {name} | {other:.3f} | {one:.3f} | {one / other:.2f} |")
    return rows


def measure_sides(exports: Sequence[tuple[str, Export]]) -> tuple[int, int, int, int, list[str]]:
    """Programs, all sides, those taken without the search, those taken with it, and the decisions that are left."""
    found: list[OtherSides] = []
    before: list[int] = []
    plain = OtherSides.search

    def search(self: OtherSides, bases: Any) -> Any:
        before.append(count(self))
        found.append(self)
        return plain(self, bases)

    def count(search: OtherSides) -> int:
        return sum(len(search._seen.get(site, ())) for site in search.decisions.sites)

    programs = total = first = last = 0
    left: list[str] = []
    OtherSides.search = search  # type: ignore[method-assign]
    try:
        for _, export in exports:
            found.clear()
            before.clear()
            try:
                export()
            except CompatError:
                continue
            if not found:
                continue
            programs += 1
            total += 2 * len(found[-1].decisions.sites)
            first, last = first + before[-1], last + count(found[-1])
            left += [note.partition("; ")[0] for note in found[-1].untaken]
    finally:
        OtherSides.search = plain  # type: ignore[method-assign]
    return programs, total, first, last, left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--exporter", default="torchscript")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    families = [
        (getattr(f, "__name__", type(f).__name__), lambda f=f, a=a: export_compat(f, a, exporter=options.exporter))
        for f, a in decided.ALL
    ]
    rare = [
        (
            written.kind.__name__,
            lambda w=written: export_compat(w.make(), w.draw(), exporter=options.exporter, **w.keywords()),
        )
        for written in rare_branches.PROGRAMS
        if written.kind.__name__ != "CollatzOfSum"  # its trace takes minutes
    ]
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("torch", "onnxruntime"))
    print(f"Measured {datetime.date.today()} with {packages}, exporter {options.exporter}.\n")
    print("| programs | exported | sides | taken without the search | with it |\n|---|---|---|---|---|")
    notes = []
    for name, exports in (("tests/check/decided.py", families), ("tests/fuzz/written/rare_branches.py", rare)):
        programs, total, first, last, left = measure_sides(exports)
        print(f"| {name} | {programs} of {len(exports)} | {total} | {first} | {last} |", flush=True)
        notes += left
    print(f"\nLeft: {'; '.join(notes) or 'none'}.")
    print("\n| model | proof without the search, CPU s | with it | ratio |\n|---|---|---|---|")
    print(*measure_cost(options.exporter, options.repeats), sep="\n")


if __name__ == "__main__":
    main()
