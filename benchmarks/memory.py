"""Peak memory of export_compat by step, in multiples of the weights.

Every model is exported in a process of its own, after a small one that takes what is loaded once. What a step adds is
its peak resident memory less what the process held before the model was loaded, divided by the size of the weights: 1.0
is the caller's model alone. Linux only: the kernel keeps the peak, and is told to forget it when a step begins.

    python benchmarks/memory.py [timm:vit_huge_patch14_224 ...] [--exporter dynamo] [--no-verify] [--write]
"""

from __future__ import annotations

import datetime
import gc
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "memory.md"
MODELS = ["timm:resnet101", "timm:vit_base_patch16_224", "timm:vit_large_patch16_224"]
STEPS = ("observe", "plan", "rewrite", "export", "control flow", "finish", "check", "publish")


class Peaks:
    """Peak resident memory between calls, by name, in MB."""

    def __init__(self) -> None:
        self.by_step: dict[str, float] = {}
        self._step = "prepare"
        _forget()

    def __call__(self, step: str) -> None:
        """Ends a step and begins another; a name that comes again keeps the larger peak."""
        found = _status("VmHWM")
        self.by_step[self._step] = max(found, self.by_step.get(self._step, 0.0))
        self._step = step
        _forget()


def _forget() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


def _size(text: str) -> tuple[int, int] | None:
    height, _, width = text.partition("x")
    return (int(height), int(width)) if width else None


def measured(spec: str, exporter: str, verify: bool) -> dict[str, Any]:
    """Exports one model in this process."""
    import torch

    from torch_onnx_compat import export_compat
    from torch_onnx_compat.zoo import load

    warnings.simplefilter("ignore")
    name, _, size = spec.partition(" ")
    export: Callable[..., Any] = export_compat
    with tempfile.TemporaryDirectory() as folder:
        small = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()
        export(small, torch.rand(1, 3, 8, 8), f"{folder}/small.onnx", exporter=exporter, verify=verify)
        gc.collect()
        empty = _status("VmRSS")
        sample = load(name, _size(size))
        tensors = {t.data_ptr(): t for t in (*sample.model.parameters(), *sample.model.buffers())}
        weights = sum(t.numel() * t.element_size() for t in tensors.values()) / 2**20
        gc.collect()
        loaded = _status("VmRSS")
        peaks, start, cpu = Peaks(), time.perf_counter(), time.process_time()
        result = export(
            sample.model,
            sample.args,
            f"{folder}/model.onnx",
            kwargs=sample.kwargs,
            dynamic=sample.dynamic or None,
            exporter=exporter,
            verify=sample.verify if verify else False,
            progress=peaks,
        )
        peaks("")
        seconds, used = time.perf_counter() - start, time.process_time() - cpu
    return {
        "spec": spec,
        "exporter": result.exporter,
        "weights": weights,
        "empty": empty,
        "loaded": loaded,
        "peaks": peaks.by_step,
        "seconds": seconds,
        "cpu": used,
    }


def in_its_own_process(spec: str, exporter: str, verify: bool) -> dict[str, Any] | None:
    """The figures of one model; None where the export fails, which is told on standard error."""
    command = [sys.executable, __file__, "--one", spec, "--exporter", exporter, "--verify" if verify else "--no-verify"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


def table(rows: list[dict[str, Any]]) -> str:
    """The figures as a Markdown table."""
    names = ("model", "exporter", "weights, MB", "loaded", *STEPS, "peak", "process, MB", "s", "CPU s")
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    for row in rows:
        multiples = {step: (peak - row["empty"]) / row["weights"] for step, peak in row["peaks"].items()}
        cells = [
            row["spec"],
            row["exporter"],
            f"{row['weights']:.0f}",
            f"{(row['loaded'] - row['empty']) / row['weights']:.1f}",
            *(f"{multiples[step]:.1f}" if step in multiples else "" for step in STEPS),
            f"**{max(multiples.values()):.1f}**",
            f"{max(row['peaks'].values()):.0f}",
            f"{row['seconds']:.0f}",
            f"{row['cpu']:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(
    specs: Annotated[list[str] | None, typer.Argument(help="Models: a spec, and HxW where not its own size.")] = None,
    exporter: Annotated[str, typer.Option(help="As export_compat's.")] = "auto",
    verify: Annotated[bool, typer.Option(help="Whether the file is checked.")] = True,
    one: Annotated[bool, typer.Option(help="Measures in this process, and prints JSON.")] = False,
    write: Annotated[bool, typer.Option(help="Writes the result page.")] = False,
) -> None:
    """Measures models one after the other."""
    if one:
        print(json.dumps(measured(*(specs or MODELS[:1]), exporter, verify)))
        return
    rows = []
    for spec in specs or MODELS:
        row = in_its_own_process(spec, exporter, verify)
        if row is not None:
            rows.append(row)
            print(table([row]).splitlines()[-1], flush=True)
    text = table(rows)
    print(text)
    if write:
        packages = ("torch", "torchvision", "timm", "onnx", "onnxscript", "onnxruntime")
        versions = ", ".join(f"{p} {metadata.version(p)}" for p in packages)
        head = f"Measured {datetime.date.today()} with {versions}; two CPU cores. "
        what = "Peak resident memory less what the process held before it loaded the model, over the weights' size."
        RESULT.write_text(f"{head}{what}\n\n{text}\n")


if __name__ == "__main__":
    typer.run(main)
