"""What rewriting costs: models of many modules of fifty classes, or each of a class of its own, in one source file.

Prints, for each number of modules, the processor seconds that finding the functions, parsing their file, rewriting
them and exchanging their code take; tracing, which the search does anyway, is not part of it. Usage:

    python benchmarks/control_flow.py [--modules 5000] [--repeat 5] [--write]
"""

from __future__ import annotations

import datetime
import importlib.util
import math
import platform
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer
from torch import nn

from torch_onnx_compat.control_flow.find.sites import Event
from torch_onnx_compat.control_flow.find.source import forget_sources
from torch_onnx_compat.control_flow.lower.rewriting import Rewriting

RESULT = Path(__file__).parent / "results" / "control_flow.md"

ONE = """
class Layer{number}(nn.Module):
    def forward(self, x):
        y = x * {number}
        if x.sum() > {number}:
            y = y + 1
        return y.relu()
"""

TWO = """
class Layer{number}(nn.Module):
    def forward(self, x):
        y = x * {number}
        if x.sum() > {number}:
            y = y + 1
        elif y.mean() > 0:
            return y * 2
        return y.relu()
"""

KINDS: dict[str, tuple[str, tuple[int, ...], Callable[[int], int]]] = {
    "modules of 50 classes, two decisions and an early return in each": (TWO, (2, 4), lambda count: 50),
    "each module of a class of its own, one decision in each": (ONE, (2,), lambda count: count),
    "each module of a class of its own, two decisions and an early return in each": (TWO, (2, 4), lambda count: count),
}
"""The text of a class, the lines of its decisions after that of its forward, and how many classes there are."""


def load(path: Path, text: str, classes: int) -> Any:
    path.write_text("from torch import nn\n" + "".join(text.format(number=n) for n in range(classes)), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def events(model: Iterable[nn.Module], offsets: tuple[int, ...]) -> list[Event]:
    """The decisions that a survey would report."""
    codes = [type(module).forward.__code__ for module in model]
    return [
        Event(code.co_filename, code.co_firstlineno + offset, "bool()", True, (), (code,))
        for code in codes
        for offset in offsets
    ]


def seconds(found: list[Event], repeat: int) -> float:
    """The best of some runs, each from the file on."""
    best = math.inf
    for _ in range(repeat):
        forget_sources()
        start = time.process_time()
        rewriting = Rewriting()
        rewriting.extend(found)
        with rewriting.apply():
            pass
        best = min(best, time.process_time() - start)
    return best


def main(
    modules: Annotated[int, typer.Option(help="Modules of the largest model.")] = 5000,
    repeat: Annotated[int, typer.Option(help="Runs of each; the best counts.")] = 5,
    write: Annotated[bool, typer.Option(help="Whether the table goes to benchmarks/results/control_flow.md.")] = False,
) -> None:
    counts = [modules // 5, modules // 2, modules]
    rows = [
        f"| a model of N modules | {' | '.join(f'N = {count}' for count in counts)} | last / first |",
        f"|---|{'---|' * (len(counts) + 1)}",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for place, (name, (text, offsets, classes)) in enumerate(KINDS.items()):
            row = []
            for count in counts:
                module = load(Path(folder) / f"layers_{place}_{count}.py", text, classes(count))
                layers = [getattr(module, f"Layer{number % classes(count)}")() for number in range(count)]
                row.append(seconds(events(layers, offsets), repeat))
                print(f"{count} {name}: {row[-1]:.2f} s", flush=True)
            cells = " | ".join(f"{one:.2f} s" for one in row)
            rows.append(f"| {name} | {cells} | {row[-1] / row[0]:.1f} |")
    head = (
        f"Measured {datetime.date.today()} with Python {platform.python_version()}, torch {metadata.version('torch')}; "
        f"processor seconds of one core, best of {repeat} (benchmarks/control_flow.py --modules {modules})."
    )
    text = "\n".join([head, "", *rows]) + "\n"
    print(text)
    if write:
        RESULT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
