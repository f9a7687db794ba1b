"""Zoo models in inference engines: stock torch's files against export_compat's with the engine as its target.

For each model and engine, four files: torch's default, torch's TorchScript and dynamo exporters at opset 17 (the
better one counts), and ours. A file's outputs are compared with eager torch, relative to the largest output.
Engines live in the environments of `torch-onnx-compat measure --install ENGINE`; those that are missing are left out.

    python benchmarks/engines.py [--models timm:resnet18 ...] [--engines opencv ...] [--cache DIRECTORY]
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import io
import json
import logging
import math
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.engines import ENGINES, EngineProcess
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.zoo import load

MODELS = (
    *("timm:mobilenetv3_small_050", "timm:ghostnet_050", "timm:edgenext_xx_small", "timm:xcit_nano_12_p8_224"),
    *("torchvision:lraspp_mobilenet_v3_large", "torchvision:deeplabv3_mobilenet_v3_large"),
    *("timm:resnet18", "timm:convnext_atto", "timm:vit_tiny_patch16_224", "timm:mobilevit_xxs"),
    *("torchvision:shufflenet_v2_x0_5", "timm:levit_128s", "torchvision:mobilenet_v2", "torchvision:squeezenet1_1"),
    *("timm:efficientnet_lite0", "timm:regnetx_002", "timm:lcnet_050", "timm:tinynet_e", "timm:mnasnet_small"),
    *("torchvision:googlenet", "torchvision:mnasnet0_5", "torchvision:efficientnet_b0", "timm:pit_ti_224"),
    *("timm:deit_tiny_patch16_224", "timm:poolformer_s12", "timm:repvgg_a0", "timm:resnet18d", "timm:ese_vovnet19b_dw"),
    *("timm:cs3darknet_focus_s", "timm:hardcorenas_a", "timm:mobileone_s0", "timm:fastvit_t8", "timm:efficientvit_b0"),
    *("timm:coat_lite_tiny", "timm:gmixer_24_224", "timm:swin_tiny_patch4_window7_224", "torchvision:densenet121"),
    *("torchvision:fcn_resnet50", "torchvision:raft_small", "timm:halonet26t"),
)
WAYS = ("stock default", "stock TorchScript 17", "stock dynamo 17", "ours")
LIMIT = 5e-3
REPEAT = 5


def export(spec: str, way: str, engine: str, path: Path) -> str:
    """Writes a file; returns what went wrong, or an empty text."""
    sample = load(spec)
    model = sample.model.eval()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            if way == "ours":
                export_compat(model, sample.args, path, target=engine)
            else:
                _stock(model, sample.args, path, way)
    except Exception as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:1500]
    return ""


def _stock(model: torch.nn.Module, args: tuple[Any, ...], path: Path, way: str) -> None:
    if way == "stock default":
        torch.onnx.export(model, args, path, external_data=False, verbose=False)
    elif way == "stock dynamo 17":
        torch.onnx.export(model, args, path, dynamo=True, opset_version=17, external_data=False, verbose=False)
    else:
        torch.onnx.export(model, args, path, dynamo=False, opset_version=17)


def wanted(spec: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inputs, and what eager torch makes of them."""
    sample = load(spec)
    with torch.no_grad():
        outputs = sample.model.eval()(*sample.args)
    leaves = torch.utils._pytree.tree_leaves(outputs)
    inputs = torch.utils._pytree.tree_leaves(sample.args)
    return [t.numpy() for t in inputs], [t.numpy() for t in leaves]


def judge(process: EngineProcess, path: Path, inputs: list[np.ndarray], right: list[np.ndarray]) -> dict[str, Any]:
    """Runs one file in an engine."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {t.name for t in graph.initializer}
    names = [value.name for value in graph.input if value.name not in weights]
    outcome = process.run(path, dict(zip(names, inputs, strict=True)), [v.name for v in graph.output], repeat=REPEAT)
    if outcome.status != "ran":
        return {"cell": "refused", "why": outcome.error}
    error = max(_error(a, b) for a, b in zip(outcome.outputs, right, strict=False))
    cell = "match" if error < LIMIT else "wrong"
    return {"cell": cell, "error": error, "ms": 1e3 * statistics.median(outcome.seconds)}


def _error(found: np.ndarray, right: np.ndarray) -> float:
    if found.size != right.size or np.squeeze(found).shape != np.squeeze(right).shape:
        return math.inf
    a, b = found.reshape(right.shape).astype(np.float64), right.astype(np.float64)
    error = float(np.abs(a - b).max() / (np.abs(b).max() or 1))
    return error if math.isfinite(error) else math.inf


def measure(spec: str, engines: list[str], folder: Path, step: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for each engine and way; results in the folder are taken from there."""
    rows = []
    inputs, right = wanted(spec)
    for way in WAYS:
        for engine in engines:
            key = f"{spec.replace(':', '_')}.{way.replace(' ', '_')}" + (f".{engine}" if way == "ours" else "")
            path, note, cell = folder / f"{key}.onnx", folder / f"{key}.txt", folder / f"{key}.{engine}.json"
            if not cell.exists():
                if not note.exists() or not (note.read_text() or path.exists()):
                    begin = time.perf_counter()
                    note.write_text(export(spec, way, engine, path))
                    step(f"{spec}, {way}, {engine}: {time.perf_counter() - begin:.0f} s {note.read_text()[:200]}")
                cell.write_text(json.dumps(_cell(engine, path, note.read_text(), way, inputs, right)))
            rows.append({"model": spec, "engine": engine, "way": way, **json.loads(cell.read_text())})
            step(f"{spec}, {way}, {engine}: {rows[-1]['cell']} {str(rows[-1].get('why', ''))[:300]}")
    for large in folder.glob(f"{spec.replace(':', '_')}.*.onnx"):
        large.unlink()
    return rows


def _cell(engine: str, path: Path, failed: str, way: str, inputs: Any, right: Any) -> dict[str, Any]:
    if failed:
        return {"cell": "refused by us" if way == "ours" else "export fails", "why": failed}
    with EngineProcess(ENGINES[engine], limit=120.0) as process:
        return judge(process, path, inputs, right)


def best(rows: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The better of stock's two files at opset 17."""
    order = ("match", "wrong", "refused", "export fails")
    return min((rows["stock TorchScript 17"], rows["stock dynamo 17"]), key=lambda r: order.index(r["cell"]))


def report(rows: list[dict[str, Any]], engines: list[str]) -> str:
    """The results as Markdown."""
    cells: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["model"], row["engine"]), {})[row["way"]] = row
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("torch", "torchvision", "timm", "onnx"))
    lines = [
        "# Zoo models in inference engines",
        "",
        f"{datetime.date.today()}, {versions}, {platform.processor() or platform.machine()}, one thread. A match is",
        f"within {LIMIT:g} of eager torch, relative to the largest output. Written by benchmarks/engines.py.",
        "",
        "| engine | models | stock default: match / wrong / refused | best of stock at opset 17 | ours | refused by us "
        "| latency, ours over best right stock file |",
        "|---|---|---|---|---|---|---|",
    ]
    for engine in engines:
        of = [ways for (_, e), ways in cells.items() if e == engine]
        default, stock, ours = (
            [r["stock default"] for r in of],
            [best(r) for r in of],
            [r["ours"] for r in of],
        )
        refusals = sum(row["cell"] == "refused by us" for row in ours)
        lines.append(
            f"| {engine} | {len(of)} | {_counts(default)} | {_counts(stock)} | {_counts(ours)} | {refusals} "
            f"| {_latency(of)} |"
        )
    lines += ["", "| model | engine | stock default | best of stock at opset 17 | ours |", "|---|---|---|---|---|"]
    for (model, engine), ways in sorted(cells.items()):
        lines.append(
            f"| {model} | {engine} | {_told(ways['stock default'])} | {_told(best(ways))} | {_told(ways['ours'])} |"
        )
    return "\n".join(lines) + "\n"


def _counts(rows: list[dict[str, Any]]) -> str:
    match, wrong = (sum(row["cell"] == cell for row in rows) for cell in ("match", "wrong"))
    return f"{match} / {wrong} / {len(rows) - match - wrong}"


def _told(row: dict[str, Any]) -> str:
    return f"**wrong {row['error']:.2g}**" if row["cell"] == "wrong" else str(row["cell"])


def _latency(of: list[dict[str, dict[str, Any]]]) -> str:
    ratios = []
    for ways in of:
        stock = [r["ms"] for way, r in ways.items() if way != "ours" and r["cell"] == "match"]
        if stock and ways["ours"]["cell"] == "match":
            ratios.append(ways["ours"]["ms"] / min(stock))
    return f"{math.exp(statistics.fmean(map(math.log, ratios))):.2f} ({len(ratios)})" if ratios else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    parser.add_argument("--cache", type=Path, default=Path("engines-cache"))
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "engines.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    options.cache.mkdir(exist_ok=True, parents=True)
    engines = [name for name in options.engines if ENGINES[name].interpreter()]
    if not engines:
        raise CompatError("no engine is installed; see `torch-onnx-compat measure --install ENGINE`.")
    rows: list[dict[str, Any]] = []
    for spec in options.models:
        rows += measure(spec, engines, options.cache, lambda text: print(text, flush=True))
        options.output.write_text(report(rows, engines), encoding="utf-8")


if __name__ == "__main__":
    main()
