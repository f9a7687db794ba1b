"""Nodes and bytes of our files beside those of torch's two exporters, as they are and slimmed by onnxslim and onnxsim.

Every file has a dynamic batch. Ours is what `export_compat` publishes with verification, by default and with
`optimize="size"`; stock's default is exported from two samples, as it fixes an axis of one. A file counts if
onnxruntime gets a batch of three right. With --latency, those files are loaded and run in turns: processor time of one
thread, the lower quartile.

    python -m venv slimmers; slimmers/bin/pip install onnxslim onnxsim
    python benchmarks/slim.py --slimmers slimmers/bin/python [--models timm:levit_128 ...] [--latency] [--cache FOLDER]

Results go to results/slim-DATE.md and .jsonl; what is in the .jsonl is not measured again.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import io
import itertools
import json
import logging
import math
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from stock import export_dynamo, export_torchscript, repeat_batch
from torch import Tensor

from torch_onnx_compat import export_compat
from torch_onnx_compat.zoo import load

MODELS = (
    *("torchvision:swin_t", "timm:mvitv2_tiny", "timm:swinv2_cr_tiny_224", "timm:efficientformerv2_s0"),
    *("timm:crossvit_9_240", "timm:hiera_tiny_224", "timm:fastvit_t8", "timm:levit_128", "timm:coat_lite_tiny"),
    *("timm:deit_tiny_patch16_224", "transformers:bert", "transformers:t5", "transformers:gpt2"),
    *("timm:xcit_nano_12_p8_224", "timm:edgenext_small", "timm:poolformer_s12", "timm:regnety_002"),
    *("torchvision:mobilenet_v3_small", "timm:convnext_atto", "timm:pvt_v2_b0", "timm:mobilevit_xxs"),
    *("timm:efficientvit_b0", "timm:ghostnet_050", "timm:pit_ti_224", "timm:gmixer_24_224", "timm:cait_xxs24_224"),
    *(
        "timm:visformer_tiny",
        "timm:halonet26t",
        "timm:repvit_m0_9",
        "timm:tf_efficientnetv2_b0",
        "timm:vit_tiny_patch16_224",
    ),
    *("torchvision:resnet18", "torchvision:densenet121", "torchvision:shufflenet_v2_x0_5", "torchvision:googlenet"),
    *(
        "torchvision:lraspp_mobilenet_v3_large",
        "timm:nest_tiny",
        "timm:twins_pcpvt_small",
        "timm:tnt_s_legacy_patch16_224",
    ),
    *("transformers:distilbert", "transformers:vit", "timm:resmlp_12_224", "timm:mixer_s32_224"),
)
TIMED = MODELS[:13]
OURS, SMALL = "ours", "ours, size"
STOCK = ("TorchScript", "dynamo")
SLIMMERS = ("onnxslim", "onnxsim")
OPSET = 20
RESULTS = Path(__file__).parent / "results"
TURNS, SECONDS = 15, 12.0
"""Rounds of runs in turn, and the seconds after which no further round begins."""
TOLERANCE = 1e-3
"""Of the largest value."""

Row = dict[str, Any]

_SLIM = """
import sys, onnx
tool, source, target = sys.argv[1:]
model = onnx.load(source)
if tool == "onnxslim":
    import onnxslim
    made = onnxslim.slim(model)
else:
    import onnxsim
    made, _ = onnxsim.simplify(model)
onnx.save(made, target)
"""


def make_files(spec: str, folder: Path, slimmers: str) -> dict[str, str]:
    """Writes the files; returns what went wrong, by the name of the file."""
    sample = load(spec)
    model, args, kwargs = sample.model.eval(), sample.args, dict(sample.kwargs or {})
    failed: dict[str, str] = {}

    def attempt(name: str, write: Any) -> None:
        path = folder / f"{name}.onnx"
        if not path.exists():
            try:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    write(str(path))
            except Exception as error:
                path.unlink(missing_ok=True)
                failed[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]

    attempt(OURS, lambda path: export_compat(model, args, path, kwargs=kwargs, dynamic="batch", opset_version=OPSET))
    small = {"dynamic": "batch", "opset_version": OPSET, "optimize": "size"}
    attempt(SMALL, lambda path: export_compat(model, args, path, kwargs=kwargs, **small))
    attempt(STOCK[0], lambda path: export_torchscript(model, args, kwargs, path, OPSET))
    attempt(STOCK[1], lambda path: export_dynamo(model, args, kwargs, path, OPSET))
    for stock in STOCK:
        for tool in SLIMMERS:
            if (folder / f"{stock}.onnx").exists():
                command = [slimmers, "-c", _SLIM, tool, str(folder / f"{stock}.onnx")]
                attempt(f"{stock} {tool}", lambda path, c=command: _run([*c, path]))
    return failed


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else str(done.returncode))


def count_nodes(graph: onnx.GraphProto | onnx.FunctionProto) -> int:
    """Nodes without Constants, those of bodies among them."""
    total = 0
    for node in graph.node:
        total += node.op_type != "Constant"
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                total += count_nodes(inner)
    return total


def measure(spec: str, folder: Path, slimmers: str, timed: bool) -> Row:
    """One model's row."""
    failed = make_files(spec, folder, slimmers)
    sample = load(spec)
    args, kwargs = repeat_batch(3, sample.args, dict(sample.kwargs or {}))
    with torch.no_grad():
        eager = sample.model.eval()(*args, **kwargs)
    wanted = [t.numpy() for t in _tensors(eager)]
    row: Row = {"model": spec, "failed": failed, "files": {}}
    right: dict[str, Path] = {}
    for path in sorted(folder.glob("*.onnx")):
        proto = onnx.load(str(path))
        nodes = count_nodes(proto.graph) + sum(map(count_nodes, proto.functions))
        error = _error(path, [t.numpy() for t in (*args, *kwargs.values())], wanted)
        row["files"][path.stem] = {"nodes": nodes, "bytes": path.stat().st_size, "wrong": error}
        if not error:
            right[path.stem] = path
    if timed:
        one = [t.numpy() for t in (*sample.args, *dict(sample.kwargs or {}).values())]
        for name, times in time_files(right, one).items():
            row["files"][name] |= times
    return row


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for item in values for tensor in _tensors(item)]


def _session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _error(path: Path, inputs: list[Any], wanted: list[Any]) -> str:
    try:
        session = _session(path)
        found = session.run(None, {i.name: v for i, v in zip(session.get_inputs(), inputs, strict=True)})
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:120]
    for one, other in zip(wanted, found, strict=False):
        if one.shape != other.shape or np.abs(one - other).max(initial=0) > TOLERANCE * np.abs(one).max(initial=1e-6):
            return "other numbers"
    return ""


def time_files(files: dict[str, Path], inputs: list[Any]) -> dict[str, dict[str, float]]:
    """Seconds of processor time to load each file and to run it, measured in turns."""
    loads: dict[str, list[float]] = {name: [] for name in files}
    runs: dict[str, list[float]] = {name: [] for name in files}
    sessions: dict[str, Any] = {}
    for _ in range(3):
        for name, path in files.items():
            start = time.process_time()
            sessions[name] = _session(path)
            loads[name].append(time.process_time() - start)
    feeds = {
        name: {i.name: v for i, v in zip(session.get_inputs(), inputs, strict=True)}
        for name, session in sessions.items()
    }
    begun = time.perf_counter()
    for _ in range(TURNS):
        for name, session in sessions.items():
            start = time.process_time()
            session.run(None, feeds[name])
            runs[name].append(time.process_time() - start)
        if time.perf_counter() - begun > SECONDS:
            break
    return {name: {"load": min(loads[name]), "run": _lower_quartile(runs[name])} for name in files}


def _lower_quartile(numbers: list[float]) -> float:
    return sorted(numbers)[len(numbers) // 4]


def ratios(rows: Iterable[Row], what: str, ours: str = OURS) -> dict[str, float]:
    """Ours over the best right file of the others, by model."""
    found = {}
    for row in rows:
        right = {name: file for name, file in row["files"].items() if not file["wrong"] and what in file}
        others = [file[what] for name, file in right.items() if name not in (OURS, SMALL)]
        if ours in right and others:
            found[row["model"]] = right[ours][what] / min(others)
    return found


def write_report(rows: list[Row], path: Path) -> None:
    """The tables, with the ratios of all models."""
    versions = ["torch", "timm", "torchvision", "transformers", "onnxruntime"]
    named = ", ".join(f"{name} {_version(name)}" for name in versions)
    slimmers = rows[-1].get("slimmers", "")
    columns = [OURS, SMALL, *STOCK, *(f"{stock} {tool}" for stock in STOCK for tool in SLIMMERS)]
    lines = [
        "# Slim files",
        "",
        f"`python benchmarks/slim.py`, {datetime.date.today()}: {named}; {slimmers}. Opset {OPSET}, dynamic batch. "
        "Nodes without Constants / bytes in millions. A file in brackets is wrong for a batch of three; a dash is an "
        "export or a slimmer that failed.",
        "",
    ]
    units = (("nodes", "nodes"), ("bytes", "bytes"), ("load", "load time"), ("run", "run time"))
    for (what, unit), ours in itertools.product(units, (OURS, SMALL)):
        found = ratios(rows, what, ours)
        if found:
            worst = max(found, key=lambda model: found[model])
            lines.append(
                f"* {unit}, {ours} over the best of the other six, {len(found)} models: geometric mean "
                f"{statistics.geometric_mean(found.values()):.3f}, worst {found[worst]:.3f} ({worst})"
            )
    lines += ["", f"| model | {' | '.join(columns)} | nodes, ours / best |", "|---" * (len(columns) + 2) + "|"]
    nodes = ratios(rows, "nodes")
    for row in rows:
        cells = [_cell(row["files"].get(name)) for name in columns]
        lines.append(f"| {row['model']} | {' | '.join(cells)} | {nodes.get(row['model'], math.nan):.2f} |")
    timed = [row for row in rows if "run" in row["files"].get(OURS, {})]
    if timed:
        lines += ["", "Load time in ms / run time in ms, batch 1:", ""]
        lines += [f"| model | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        for row in timed:
            files = [row["files"].get(name, {}) for name in columns]
            cells = [f"{1e3 * f['load']:.0f} / {1e3 * f['run']:.2f}" if "run" in f else "-" for f in files]
            lines.append(f"| {row['model']} | {' | '.join(cells)} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _cell(file: Row | None) -> str:
    if file is None:
        return "-"
    text = f"{file['nodes']} / {file['bytes'] / 1e6:.2f}"
    return f"({text})" if file["wrong"] else text


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--slimmers", required=True, help="a Python that has onnxslim and onnxsim")
    parser.add_argument("--latency", action="store_true", help=f"time the files of {', '.join(TIMED)}")
    parser.add_argument("--cache", type=Path, help="a folder that keeps the files")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    show = "import importlib.metadata as m; print(*(f'{n} {m.version(n)}' for n in ('onnxslim', 'onnxsim')), sep=', ')"
    versions = subprocess.run([options.slimmers, "-c", show], capture_output=True, text=True, check=True).stdout.strip()
    stem = f"slim-{datetime.date.today()}"
    log = RESULTS / f"{stem}.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    for spec in options.models:
        if any(row["model"] == spec for row in rows):
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = (options.cache or Path(temporary)) / spec.replace(":", "_")
            folder.mkdir(parents=True, exist_ok=True)
            try:
                row = measure(spec, folder, options.slimmers, options.latency and spec in TIMED)
            except Exception as error:
                print(f"{spec}: {type(error).__name__}: {error}", flush=True)
                continue
        rows.append(row | {"slimmers": versions})
        print(spec, {name: file["nodes"] for name, file in row["files"].items()}, row["failed"], flush=True)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(rows[-1]) + "\n")
        write_report(rows, RESULTS / f"{stem}.md")


if __name__ == "__main__":
    main()
