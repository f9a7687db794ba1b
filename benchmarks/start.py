"""What it costs to start: processor seconds of the command line, of the package's import, and of a small export.

Each is a fresh process, the median of several runs; `import torch` alone stands beside them. With --before the same
commands of another checkout are measured in turn, so that both meet the same load.

    python benchmarks/start.py [--runs 7] [--before DIRECTORY] [--only TEXT] [--write]
"""

from __future__ import annotations

import datetime
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "start.md"
CLI = ("-m", "torch_onnx_compat.cli")
NET = """
import torch

def make():
    return torch.nn.Conv2d(3, 4, 3).eval(), torch.rand(2, 3, 8, 8)
"""
COMMANDS = {
    "`python -c pass`": ("-c", "pass"),
    "`import torch`": ("-c", "import torch"),
    "`import torch_onnx_compat`": ("-c", "import torch_onnx_compat"),
    "`from torch_onnx_compat import export_compat`": ("-c", "from torch_onnx_compat import export_compat"),
    "`--help`": (*CLI, "--help"),
    "`export --help`": (*CLI, "export", "--help"),
    "`exprot`, a misspelt command": (*CLI, "exprot"),
    "`--target tensrrt`, a misspelt target": (*CLI, "export", "net.py:make", "-o", "m.onnx", "--target", "tensrrt"),
    "`-o missing/m.onnx`, no such folder": (*CLI, "export", "net.py:make", "-o", "missing/m.onnx"),
    "`zoo`": (*CLI, "zoo"),
    "`export net.py:make`, one convolution": (*CLI, "export", "net.py:make", "-o", "m.onnx", "--dynamic", "input:0=n"),
    "`export timm:resnet10t`": (*CLI, "export", "timm:resnet10t", "-o", "m.onnx", "--dynamic", "batch"),
}


def seconds(checkout: Path, words: tuple[str, ...], folder: str) -> float:
    """User and system seconds of one fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, timeout=300, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(
    runs: Annotated[int, typer.Option(help="Fresh processes for each figure.")] = 7,
    before: Annotated[Path | None, typer.Option(help="Another checkout, to compare with.")] = None,
    only: Annotated[str, typer.Option(help="Only rows that hold this text.")] = "",
    write: Annotated[bool, typer.Option("--write", help=f"Write {RESULT.name}.")] = False,
) -> None:
    """Measures and prints the table."""
    checkouts = ([before.resolve()] if before else []) + [ROOT]
    titles = (["before"] if before else []) + ["now"]
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "timm", "typer", "rich"))
    lines = [
        "# What it costs to start\n",
        f"Processor seconds (user and system) of a fresh process, median of {runs}; {datetime.date.today()}, Python "
        f"{sys.version.split()[0]}, {versions}. `python benchmarks/start.py` measures it again.\n",
        f"| process | {' | '.join(titles)} |",
        "|---|" + "---|" * len(titles),
    ]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "net.py").write_text(NET)
        for title, words in COMMANDS.items():
            if only not in title:
                continue
            found: list[list[float]] = [[] for _ in checkouts]
            for _ in range(runs):
                for times, checkout in zip(found, checkouts, strict=True):
                    times.append(seconds(checkout, words, folder))
            lines.append(f"| {title} | {' | '.join(f'{statistics.median(times):.2f}' for times in found)} |")
            print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    if write:
        RESULT.write_text(text, encoding="utf-8")
    print("\n" + text)


if __name__ == "__main__":
    typer.run(main)
