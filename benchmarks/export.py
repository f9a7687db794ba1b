"""Export time and memory against torch.onnx.export, as users call it: a dynamic batch, a fresh process.

Every measurement is a process of its own, which loads the model, runs it once and exports it twice: *cold* is the first
export, the import of the exporter included, *warm* the second. Times are processor seconds with one torch thread
(waiting threads spin, and would be counted), byte code compiled, as pip leaves it; memory is the peak resident set
after the first export.

    python benchmarks/export.py --rows rows.jsonl [--models timm:levit_128 ...] [--static] [--modes "ours, verified"]
    python benchmarks/export.py --rows rows.jsonl --page > results/export.md

What the rows hold is not measured again.
"""

from __future__ import annotations

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
from typing import Annotated, Any

import typer

MODELS = (
    *("torchvision:resnet18", "torchvision:mobilenet_v3_large", "torchvision:densenet121"),
    *("torchvision:efficientnet_b0", "torchvision:vit_b_32", "torchvision:swin_t", "torchvision:raft_small"),
    *("timm:convnext_atto", "timm:vit_tiny_patch16_224", "timm:ghostnet_050"),
    *("timm:swinv2_cr_tiny_224", "timm:efficientformerv2_s0", "timm:crossvit_9_240", "timm:poolformer_s12"),
    *("timm:xcit_nano_12_p8_224", "timm:edgenext_small", "timm:hiera_tiny_224", "timm:fastvit_t8"),
    *("timm:mvitv2_tiny", "timm:regnety_002", "timm:levit_128", "timm:coat_lite_tiny"),
    *("transformers:bert", "transformers:t5"),
)
OPSET = 18
STOCK_TORCHSCRIPT, STOCK_DYNAMO = "stock TorchScript", "stock dynamo"
TORCHSCRIPT, DYNAMO, VERIFIED = "ours, TorchScript", "ours, dynamo", "ours, verified"
MODES = (STOCK_TORCHSCRIPT, STOCK_DYNAMO, TORCHSCRIPT, DYNAMO, VERIFIED)
"""torch's two exporters, ours without proof, and export_compat as it is called by default, proof included."""
RATIOS = (
    (TORCHSCRIPT, STOCK_TORCHSCRIPT, "no proof: TorchScript / stock's"),
    (DYNAMO, STOCK_DYNAMO, "no proof: dynamo / stock's"),
    (VERIFIED, STOCK_TORCHSCRIPT, "proof: default / stock TorchScript"),
    (VERIFIED, STOCK_DYNAMO, "proof: default / stock default"),
)
LIMIT = 600
"""Seconds for a process."""

Row = dict[str, Any]


def measure(spec: str, mode: str, dynamic: bool) -> Row:
    """Loads one model and exports it twice in this process."""
    import torch
    from stock import export_dynamo, export_torchscript

    from torch_onnx_compat.zoo import load

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    sample = load(spec)
    model, args, kwargs = sample.model.eval(), sample.args, dict(sample.kwargs or {})

    def export(path: str) -> None:
        if mode == STOCK_TORCHSCRIPT:
            export_torchscript(model, args, kwargs, path, OPSET, dynamic=dynamic)
        elif mode == STOCK_DYNAMO:
            export_dynamo(model, args, kwargs, path, OPSET, dynamic=dynamic)
        else:
            from torch_onnx_compat import export_compat

            options: dict[str, Any] = {} if mode == VERIFIED else {"verify": False, "dynamo": mode == DYNAMO}
            axes = "batch" if dynamic else None
            export_compat(model, args, path, kwargs=kwargs, dynamic=axes, opset_version=OPSET, **options)

    with tempfile.TemporaryDirectory() as folder:
        with torch.no_grad():
            model(*args, **kwargs)
        start = time.process_time()
        export(f"{folder}/cold.onnx")
        cold, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.process_time()
        export(f"{folder}/warm.onnx")
        return {"cold": cold, "warm": time.process_time() - start, "memory": peak}


def measure_in_process(spec: str, mode: str, dynamic: bool) -> Row:
    """`measure` in a fresh process; `failed` says why there are no figures."""
    command = [sys.executable, __file__, "--one", json.dumps([spec, mode, dynamic])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=_environment())
    except subprocess.TimeoutExpired:
        return {"failed": f"out of time after {LIMIT} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"cold"')]
    if lines:
        return dict(json.loads(lines[-1]))
    from torch_onnx_compat.sweep.measure import tidy  # not in the process that is measured

    return {"failed": tidy((done.stderr.strip().splitlines() or [str(done.returncode)])[-1])[:200]}


def _environment() -> dict[str, str]:
    """One thread; and byte code is kept, as an installed package has it: else each process compiles ours anew."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"OMP_NUM_THREADS": "1"}


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def table(rows: list[Row], dynamic: bool) -> list[str]:
    """Ratios of processor time, cold and warm, and of memory, as lines of Markdown."""
    figures = {(row["model"], row["mode"]): row for row in rows if row["dynamic"] == dynamic}
    columns: dict[tuple[str, str], list[float]] = {}
    lines = [
        f"| model | {' | '.join(f'{label}, cold | warm' for *_, label in RATIOS)} | memory / stock TorchScript |",
        f"|---|{'---|' * (2 * len(RATIOS) + 1)}",
    ]
    for model in dict.fromkeys(model for model, _ in figures):
        cells = []
        wanted = [(*pair[:2], key) for pair in RATIOS for key in ("cold", "warm")]
        for ours, stock, key in (*wanted, (VERIFIED, STOCK_TORCHSCRIPT, "memory")):
            ratio, why = _ratio(figures, model, ours, stock, key)
            if ratio is not None:
                columns.setdefault((f"{ours} {stock}", key), []).append(ratio)
            cells.append(why if ratio is None else f"{ratio:.2f}")
        lines.append(f"| {model} | {' | '.join(cells)} |")
    means = [f"**{geometric_mean(column):.2f}** ({len(column)})" for column in columns.values()]
    return [*lines, f"| **geometric mean** (models) | {' | '.join(means)} |"]


def _ratio(
    figures: dict[tuple[str, str], Row], model: str, ours: str, stock: str, key: str
) -> tuple[float | None, str]:
    mine, theirs = figures.get((model, ours)), figures.get((model, stock))
    if mine is None or theirs is None:
        return None, "not run"
    if "failed" in mine or "failed" in theirs:
        return (
            None,
            "both fail"
            if "failed" in mine and "failed" in theirs
            else f"{'ours' if 'failed' in mine else 'stock'} fails",
        )
    return mine[key] / theirs[key], ""


def page(rows: list[Row]) -> str:
    packages = ("torch", "torchvision", "timm", "transformers", "onnx", "onnxscript", "onnxruntime")
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)
    lines = [
        "# What an export costs",
        "",
        "By `benchmarks/export.py`: processor time of one export, ours over torch's, each mode in a fresh process.",
        "*Cold* is the first export of the process, with the import of the exporter; *warm* the second. *Proof:",
        "default* is `export_compat` as it is called without options: the choice of exporter and the proof included.",
        "",
        f"Measured {datetime.date.today()} with {versions}.",
        f"Opset {OPSET}, one torch thread, byte code compiled, a machine that ran other work.",
        f"{len({row['model'] for row in rows})} of the script's {len(MODELS)} models were measured.",
    ]
    for dynamic, title in ((True, "Dynamic batch"), (False, "Static sizes")):
        if any(row["dynamic"] == dynamic for row in rows):
            lines += ["", f"## {title}", "", *table(rows, dynamic)]
    failed = [row for row in rows if "failed" in row]
    if failed:
        lines += ["", "## What failed", ""]
        lines += [f"* {row['model']}, {row['mode']}: {row['failed']}" for row in failed]
    return "\n".join(lines) + "\n"


def main(
    rows: Annotated[Path, typer.Option(help="Measurements, a line of JSON each.")] = Path("export.jsonl"),
    models: Annotated[list[str] | None, typer.Option(help="Models by name.")] = None,
    modes: Annotated[list[str] | None, typer.Option(help="What to measure.")] = None,
    static: Annotated[bool, typer.Option(help="Export with static sizes.")] = False,
    show_page: Annotated[bool, typer.Option("--page", help="Print the page of the rows.")] = False,
    one: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Measures exports."""
    if one:
        print(json.dumps(measure(*json.loads(one))))
        return
    done = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    if show_page:
        print(page(done), end="")
        return
    if unknown := sorted({*(modes or ())} - {*MODES}):
        raise typer.BadParameter(f"{', '.join(unknown)}; modes are: {'; '.join(MODES)}")
    known = {(row["model"], row["mode"], row["dynamic"]) for row in done}
    for spec in models or MODELS:
        for mode in modes or MODES:
            if (spec, mode, not static) in known:
                continue
            row = {"model": spec, "mode": mode, "dynamic": not static, **measure_in_process(spec, mode, not static)}
            with rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    typer.run(main)
