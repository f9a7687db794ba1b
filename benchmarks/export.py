"""Export time, memory and graph size against torch.onnx.export, over ten zoo models, in one run.

Every measurement is a process of its own: a warm-up export of a small model through the same back end, then the model.
Times are CPU seconds with one torch thread (waiting threads spin, and would be counted), memory the peak resident set.

    python benchmarks/export.py [--models timm:resnet18 ...] [--repeat N]
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

MODELS = (
    "torchvision:resnet18",
    "torchvision:mobilenet_v3_large",
    "torchvision:densenet121",
    "torchvision:efficientnet_b0",
    "torchvision:vit_b_32",
    "torchvision:swin_t",
    "torchvision:raft_small",
    "timm:convnext_atto",
    "timm:vit_tiny_patch16_224",
    "timm:ghostnet_050",
)
MODES = ("stock torchscript", "our torchscript", "stock dynamo", "our dynamo", "our auto, verified")


def measure(spec: str, mode: str) -> dict[str, float]:
    """Exports one model in this process."""
    import onnx
    import torch

    from torch_onnx_compat import export_compat
    from torch_onnx_compat.zoo import load

    warnings.simplefilter("ignore")
    sample = load(spec)
    model = sample.model.eval()

    def run(module: torch.nn.Module, args: tuple[object, ...], path: str) -> None:
        dynamo = "dynamo" in mode
        if mode.startswith("stock"):
            torch.onnx.export(module, args, path, dynamo=dynamo, opset_version=18, external_data=False, verbose=False)
        elif mode == "our auto, verified":
            export_compat(module, args, path, opset_version=18)
        else:
            export_compat(module, args, path, dynamo=dynamo, opset_version=18, verify=False)

    with tempfile.TemporaryDirectory() as folder:
        run(
            torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval(),
            (torch.rand(1, 3, 8, 8),),
            f"{folder}/w.onnx",
        )
        with torch.no_grad():
            model(*sample.args, **sample.kwargs)
        start, wall = time.process_time(), time.perf_counter()
        run(model, tuple(sample.args), f"{folder}/m.onnx")
        seconds, elapsed = time.process_time() - start, time.perf_counter() - wall
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        nodes = len(onnx.load(f"{folder}/m.onnx").graph.node)
    return {"cpu_s": seconds, "wall_s": elapsed, "peak_mb": peak, "nodes": nodes}


def in_its_own_process(spec: str, mode: str, repeat: int) -> dict[str, float] | None:
    """The least CPU time of some runs, each in a fresh process; None where the export fails."""
    runs = []
    for _ in range(repeat):
        done = subprocess.run(
            [sys.executable, __file__, "--one", spec, mode],
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            return None
        runs.append(json.loads(lines[-1]))
    return min(runs, key=lambda r: r["cpu_s"])


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def table(rows: dict[str, dict[str, dict[str, float] | None]]) -> str:
    """The figures as a Markdown table: ratios of ours over stock."""
    head = (
        "| model | TorchScript: time | memory | nodes | dynamo: time | memory | nodes "
        "| auto with verification / stock default |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    columns: list[list[float]] = [[] for _ in range(7)]
    for spec, row in rows.items():
        cells = []
        for index, (ours, stock, key) in enumerate(
            (
                ("our torchscript", "stock torchscript", "cpu_s"),
                ("our torchscript", "stock torchscript", "peak_mb"),
                ("our torchscript", "stock torchscript", "nodes"),
                ("our dynamo", "stock dynamo", "cpu_s"),
                ("our dynamo", "stock dynamo", "peak_mb"),
                ("our dynamo", "stock dynamo", "nodes"),
                ("our auto, verified", "stock dynamo", "cpu_s"),
            )
        ):
            mine, theirs = row.get(ours), row.get(stock)
            if mine is None or theirs is None:
                cells.append("stock fails" if theirs is None and mine is not None else "fails")
                continue
            ratio = mine[key] / theirs[key]
            columns[index].append(ratio)
            cells.append(f"{ratio:.2f} ({mine[key]:.0f} / {theirs[key]:.0f})" if key == "nodes" else f"{ratio:.2f}")
        lines.append(f"| {spec} | {' | '.join(cells)} |")
    lines.append(f"| **geometric mean** | {' | '.join(f'**{geometric_mean(c):.2f}**' for c in columns)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("SPEC", "MODE"))
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "export.md")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    rows: dict[str, dict[str, dict[str, float] | None]] = {}
    for spec in options.models:
        rows[spec] = {mode: in_its_own_process(spec, mode, options.repeat) for mode in MODES}
        print(spec, {m: r and {k: round(v, 2) for k, v in r.items()} for m, r in rows[spec].items()}, flush=True)
    packages = ("torch", "torchvision", "timm", "onnx", "onnxscript", "onnxruntime")
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)
    text = f"Measured {datetime.date.today()} with {versions}; two CPU cores; ours over stock.\n\n{table(rows)}\n"
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
