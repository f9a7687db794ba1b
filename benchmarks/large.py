"""Time and peak memory of an export over the size of the weights, ours beside torch's TorchScript exporter.

The model is a chain of blocks, each a layer norm and three dense layers, as wide as the wanted size of the weights
needs. Every row is a process of its own, after a small export that takes what is loaded once. Memory is the peak of the
export less what the process held before it made the model, in multiples of the weights: 1.0 is the model alone. Linux
only, as `memory.py`. It takes some four times the weights of memory, and twice as much of disk.

    python benchmarks/large.py [0.5 1 2] [--layers 12] [--rows FILE] [--write]

What the rows hold is not measured again.
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
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from memory import Peaks, _status
from stock import export_torchscript
from torch import Tensor, nn

RESULT = Path(__file__).parent / "results" / f"large-{datetime.date.today()}.md"
STOCK, PLAIN, PROVEN = "stock TorchScript", "ours, no proof", "ours, proven"
OPSET = 18


class Block(nn.Module):
    """Nine times width by width numbers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(N, L, width) as it goes in."""
        x = x + self.mix(self.norm(x))
        result: Tensor = x + self.down(nn.functional.gelu(self.up(x)))
        return result


def make(gigabytes: float, layers: int) -> tuple[nn.Module, Tensor]:
    """A model of about so much of weights, and its example."""
    width = int((gigabytes * 2**30 / 4 / layers / 9) ** 0.5) // 16 * 16
    return nn.Sequential(*(Block(width) for _ in range(layers))).eval(), torch.rand(1, 8, width)


def export(mode: str, model: nn.Module, example: Tensor, path: str, peaks: Peaks | None = None) -> None:
    """Exports in one of the three ways."""
    if mode == STOCK:
        export_torchscript(model, (example,), {}, path, OPSET)
        return
    from torch_onnx_compat import export_compat

    verify = mode == PROVEN
    export_compat(
        model, example, path, dynamic="batch", opset_version=OPSET, dynamo=False, verify=verify, progress=peaks
    )


def measure(gigabytes: float, mode: str, layers: int) -> dict[str, Any]:
    """One row, in this process."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        export(mode, nn.Sequential(nn.Linear(4, 4)).eval(), torch.rand(1, 4), f"{folder}/small.onnx")
        gc.collect()
        empty = _status("VmRSS")
        model, example = make(gigabytes, layers)
        model(example)
        gc.collect()
        peaks, start = Peaks(), time.process_time()
        export(mode, model, example, f"{folder}/model.onnx", peaks)
        seconds = time.process_time() - start
        peaks("")
    weights = sum(p.nbytes for p in model.parameters()) / 2**20
    peak = (max(peaks.by_step.values()) - empty) / weights
    return {"gb": gigabytes, "layers": layers, "mode": mode, "mb": weights, "seconds": seconds, "peak": peak}


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table, a line for each size."""
    modes = (STOCK, PLAIN, PROVEN)
    lines = [f"| layers | weights, MB | {' | '.join(f'{mode}: s | peak' for mode in modes)} |", "|---" * 8 + "|"]
    found = {(row["gb"], row["layers"], row["mode"]): row for row in rows}
    for gigabytes, layers in sorted({(row["gb"], row["layers"]) for row in rows}):
        of_size = [found.get((gigabytes, layers, mode)) for mode in modes]
        weights = next(row["mb"] for row in of_size if row is not None)
        cells = [
            f"{row['seconds']:.1f} | {row['peak']:.2f}" if row is not None and "seconds" in row else "- | -"
            for row in of_size
        ]
        lines.append(f"| {layers} | {weights:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(
    sizes: Annotated[list[float] | None, typer.Argument(help="Gigabytes of weights.")] = None,
    layers: Annotated[int, typer.Option(help="Blocks of the model.")] = 12,
    rows: Annotated[Path, typer.Option(help="Measurements, a line of JSON each.")] = Path("large.jsonl"),
    write: Annotated[bool, typer.Option("--write", help="Write the result page.")] = False,
    one: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Measures, one process after the other."""
    if one:
        print(json.dumps(measure(*json.loads(one))))
        return
    done = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    for gigabytes in sizes or (0.5, 1.0, 2.0):
        for mode in (STOCK, PLAIN, PROVEN):
            if any((row["gb"], row["layers"], row["mode"]) == (gigabytes, layers, mode) for row in done):
                continue
            command = [sys.executable, __file__, "--one", json.dumps([gigabytes, mode, layers])]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
            if not lines:
                print(gigabytes, mode, ran.stderr[-300:], flush=True)
                continue
            done.append(json.loads(lines[-1]))
            with rows.open("a") as file:
                file.write(lines[-1] + "\n")
            print(lines[-1], flush=True)
    print(table(done))
    if write:
        versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "onnx", "onnxruntime"))
        RESULT.write_text(
            f"# Large models\n\nBy `benchmarks/large.py`, {datetime.date.today()}, {versions}: processor seconds of "
            f"one export with a dynamic batch, one thread, on a machine that ran other work; peak memory less the "
            f"process before the model was made, in multiples of the weights.\n\n{table(done)}\n"
        )


if __name__ == "__main__":
    typer.run(main)
