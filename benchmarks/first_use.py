"""A first use: packaging aside, the commands and the jobs that a deployment engineer tries on the first day.

Each row is a process of its own, in an empty folder, as a user would type it. Beside what happens now stands what
happened on 2026-11-22, when an engineer who had not seen the project tried the same list. The line of the
output that answers the row's question is quoted; the jobs in Python are in first_use_jobs.py.

    python benchmarks/first_use.py [--only TEXT] [--write]
"""

from __future__ import annotations

import datetime
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from first_use_jobs import ANSWER, JOBS

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "first_use.md"
JOB = str(Path(__file__).with_name("first_use_jobs.py"))
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

NET = """
import torch

def make():
    return torch.nn.Conv2d(3, 4, 3).eval(), torch.rand(2, 3, 8, 8)
"""


@dataclass(frozen=True)
class Row:
    """A thing to try."""

    tried: str
    before: str
    """What happened on 2026-11-22."""
    words: Sequence[str] = ()
    """The command's arguments."""
    look: str = "."
    """A pattern; the first line of the output that it finds is quoted."""
    needs: str = ""
    """A package without which the row is left out."""
    columns: int = 100
    interrupt_s: float = 0.0


COMMANDS = (
    Row("`--help`", "2.1 s of processor time", ("--help",), look="Exports PyTorch"),
    Row("`--version`", "no such option", ("--version",)),
    Row("completion", "switched off", ("--show-completion",), look="_completion"),
    Row("`exprt`", "did you mean; 8 to 15 s on a busy machine", ("exprt",), look="mean"),
    Row(
        "`export timm:resnet81`",
        "did you mean",
        ("export", "timm:resnet81", "-o", "m.onnx"),
        look="mean|near",
        needs="timm",
    ),
    Row(
        "`--target trt`",
        "did you mean 'tract'?",
        ("export", "net.py:make", "-o", "m.onnx", "--target", "trt"),
        look="target",
    ),
    Row("a list of the targets", "none", ("targets",), look="tensorrt-rtx"),
    Row(
        "`--opset 99`",
        "exit 1, after the model was loaded",
        ("export", "net.py:make", "-o", "m.onnx", "--opset", "99"),
        look="opset",
    ),
    Row(
        "`-o` in a folder that is missing",
        "said after the whole export",
        ("export", "net.py:make", "-o", "no/m.onnx"),
        look="folder|no such|cannot",
    ),
    Row(
        "`--dynamic height`",
        "axis 0 of every input, called height",
        ("export", "net.py:make", "-o", "m.onnx", "--dynamic", "height"),
        look="height",
    ),
    Row(
        "`--size 64` for a picture",
        "refused",
        ("export", "timm:resnet10t", "-o", "m.onnx", "--size", "64"),
        look="verified",
        needs="timm",
    ),
    Row(
        "weights of a named model",
        "random, without a word",
        ("export", "timm:resnet10t", "-o", "m.onnx"),
        look="random",
        needs="timm",
    ),
    Row(
        "Ctrl-C during an export",
        "exit 130, says nothing",
        ("export", "timm:resnet50", "-o", "m.onnx"),
        look="[Ii]nterrupt",
        needs="timm",
        interrupt_s=6.0,
    ),
    Row(
        "60 columns",
        "words broken, no count of steps",
        ("export", "net.py:make", "-o", "m.onnx"),
        look="verified",
        columns=60,
    ),
    Row("`catalogue` in a pipe", "lines of 400 columns", ("catalogue",), look="longest"),
    Row(
        '`explain "foo bar"`',
        "no hint what to do next",
        ("explain", "foo bar"),
        look="report|try|localise|doctor|search",
    ),
    Row("`localise` on the command line", "in Python only", ("localise", "--help"), look="first layer"),
    Row("a report about a file that is there", "none", ("report", "--help"), look="report about"),
)


def run(row: Row) -> tuple[str, float, int]:
    """What is said, processor seconds and the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "net.py").write_text(NET)
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "COLUMNS": str(row.columns),
            "YOLO_CONFIG_DIR": folder,
            "NO_COLOR": "1",
        }
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with subprocess.Popen(
            [sys.executable, *row.words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            if row.interrupt_s:
                time.sleep(row.interrupt_s)
                process.send_signal(signal.SIGINT)
            text = process.communicate(timeout=900)[0]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return answer(ANSI.sub("", text), row), seconds, process.returncode


def answer(text: str, row: Row) -> str:
    """The line that answers the row's question."""
    lines = [line.strip(" │╭╰─╮╯") for line in text.splitlines()]
    if row.look == "longest":
        return f"longest line {max(map(len, text.splitlines()))} columns"
    found = next((line for line in lines if re.search(row.look, line)), "")
    said = found.removeprefix(ANSWER) or f"NO ANSWER: {' '.join(lines)[-200:]}"
    return said.replace("|", "/")[:220]


def main(
    only: Annotated[str, typer.Option(help="Only rows that hold this text.")] = "",
    write: Annotated[bool, typer.Option("--write", help=f"Write {RESULT.name}.")] = False,
) -> None:
    """Tries the list and prints the table."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script in the background hands on that it is ignored
    installed = {str(d.metadata["Name"]).lower() for d in metadata.distributions()}
    packages = [n for n in ("torch", "onnxruntime", "timm", "transformers", "ultralytics") if n in installed]
    lines = [
        "# A first use, again\n",
        f"`python benchmarks/first_use.py`, {datetime.date.today()}: Python {sys.version.split()[0]}, "
        + ", ".join(f"{name} {metadata.version(name)}" for name in packages)
        + ". Each row is a fresh process with its imports; seconds are the processor's.\n",
    ]
    jobs = [Row(j.tried, j.before, (JOB, name), f"^{ANSWER}", j.needs) for name, j in JOBS.items()]
    commands = [replace(row, words=("-m", "torch_onnx_compat.cli", *row.words)) for row in COMMANDS]
    for title, rows in (("Commands", commands), ("Jobs", jobs)):
        lines += [f"## {title}\n", "| tried | 2026-11-22 | now | exit | s |", "|---|---|---|---|---|"]
        for row in rows:
            if only not in row.tried or (row.needs and row.needs not in installed):
                continue
            said, seconds, code = run(row)
            lines.append(f"| {row.tried} | {row.before} | {said} | {code} | {seconds:.1f} |")
            print(lines[-1], flush=True)
        lines.append("")
    if write:
        RESULT.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
