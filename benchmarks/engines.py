"""Zoo models in inference engines: stock torch's files against export_compat's with the engine as its target.

For each model and engine, four files: torch's default, torch's TorchScript and dynamo exporters at opset 17 (the
better one counts), and ours. Stock torch's files are kept in --cache, and not made again. A file's outputs are compared
with eager torch, relative to the largest output. Engines live in the environments of `torch-onnx-compat measure
--install ENGINE`; those that are missing are left out. Each result is added to results/engines.jsonl as it comes, and
what is there is not measured again.

    python benchmarks/engines.py [--models timm:resnet18 ...] [--engines opencv ...] [--ways ours ...] [--again]
        [--cache DIRECTORY]
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
import statistics
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.engines import ENGINES, EngineProcess
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.sweep.measure import tidy
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
RESULTS = Path(__file__).parent / "results"
PACKAGES = ("torch", "torchvision", "timm", "onnx")
LIMIT = 5e-3
HALF_LIMIT = 2e-2
"""For engines that compute in float16."""
REPEAT = 20
"""Runs, of which the fastest counts: on a shared machine the others measure its neighbours."""

Row = dict[str, Any]
Ways = dict[str, Row]


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
        return tidy(f"{type(error).__name__}: {error}")
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


def judge(engine: str, path: Path, inputs: list[np.ndarray], right: list[np.ndarray]) -> Row:
    """Runs one file in an engine."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {t.name for t in graph.initializer}
    names = [value.name for value in graph.input if value.name not in weights]
    outputs = [value.name for value in graph.output]
    with EngineProcess(ENGINES[engine], limit=180.0) as process:
        outcome = process.run(path, dict(zip(names, inputs, strict=True)), outputs, repeat=REPEAT)
        about = {"engine_version": process.version}
    if outcome.status != "ran":
        return {**about, "cell": "refused", "why": tidy(outcome.error)}
    same = len(outcome.outputs) == len(right)
    error = max(_error(a, b) for a, b in zip(outcome.outputs, right, strict=True)) if same else math.inf
    cell = "match" if error < (HALF_LIMIT if ENGINES[engine].computes_in == "float16" else LIMIT) else "wrong"
    return {**about, "cell": cell, "error": error, "ms": 1e3 * min(outcome.seconds)}


def _error(found: np.ndarray, right: np.ndarray) -> float:
    if found.size != right.size or np.squeeze(found).shape != np.squeeze(right).shape:
        return math.inf
    a, b = found.reshape(right.shape).astype(np.float64), right.astype(np.float64)
    error = float(np.abs(a - b).max() / (np.abs(b).max() or 1))
    return error if math.isfinite(error) else math.inf


def kept(spec: str, way: str, cache: Path) -> tuple[Path, str]:
    """Stock torch's file, made once for each version of torch; and what went wrong, or an empty text."""
    folder = cache / f"torch-{torch.__version__}" / spec.replace(":", "_").replace("/", "_")
    path, why = folder / f"{way}.onnx", folder / f"{way}.txt"
    if not why.exists():
        folder.mkdir(parents=True, exist_ok=True)
        why.write_text(export(spec, way, "", path), encoding="utf-8")
    return path, why.read_text(encoding="utf-8")


def measure(spec: str, wanted_cells: list[tuple[str, str]], cache: Path, step: Callable[[str], None]) -> Iterator[Row]:
    """A row for each way and engine."""
    inputs, right = wanted(spec)
    with tempfile.TemporaryDirectory() as folder:
        files: dict[tuple[str, str], tuple[Path, str]] = {}
        for way, engine in wanted_cells:
            ours = Path(folder) / f"{engine}.onnx"
            files[way, engine] = (ours, export(spec, way, engine, ours)) if way == "ours" else kept(spec, way, cache)
        for (way, engine), (path, failed) in files.items():  # one after the other, so that a ratio is of one minute
            if failed:
                cell: Row = {"cell": "refused by us" if way == "ours" else "export fails", "why": failed}
            else:
                cell = judge(engine, path, inputs, right)
            step(f"{spec}, {way}, {engine}: {cell}")
            yield {"model": spec, "engine": engine, "way": way, **cell, **_about()}


def _about() -> Row:
    return {"date": str(datetime.date.today()), **{p: importlib.metadata.version(p) for p in PACKAGES}}


def best(rows: Ways) -> Row | None:
    """The better of stock's two files at opset 17."""
    order = ("match", "wrong", "refused", "export fails")
    both = [rows[way] for way in ("stock TorchScript 17", "stock dynamo 17") if way in rows]
    return min(both, key=lambda r: order.index(r["cell"]), default=None)


def report(rows: list[Row]) -> str:
    """The results as Markdown."""
    cells: dict[tuple[str, str], Ways] = {}
    for row in rows:
        cells.setdefault((row["model"], row["engine"]), {})[row["way"]] = row
    found = {name: sorted({row[name] for row in rows}) for name in ("date", *PACKAGES)}
    told = ", ".join(f"{name} {' and '.join(values)}" for name, values in found.items() if name != "date")
    versions = {row["engine"]: row["engine_version"] for row in rows if "engine_version" in row}
    lines = [
        "# Zoo models in inference engines",
        "",
        f"{' to '.join(dict.fromkeys((found['date'][0], found['date'][-1])))}, {told}, one thread of a shared machine.",
        f"A match is within {LIMIT:g} of eager torch, {HALF_LIMIT:g} for RKNN in float16, relative to the largest "
        "output; a dash is not measured.",
        f"Latency is the fastest of {REPEAT} runs, an engine's files one after another; its geometric mean over the "
        "models where both are right, whose number stands in brackets. Other work shared the machine, and the fastest "
        "of stock's three files counts, which noise favours: they differ by up to half where their graphs are alike.",
        "Written by benchmarks/engines.py from engines.jsonl.",
        "[engines_first.md](engines_first.md): five models beside stock torch in five engines, from earlier profiles.",
        "",
        "| engine | models | stock default: match / wrong / refused | best of stock at opset 17 | ours "
        "| of these refused by us | latency, ours over best right stock file |",
        "|---|---|---|---|---|---|---|",
    ]
    for engine in sorted({engine for _, engine in cells}, key=list(ENGINES).index):
        of = [ways for (_, e), ways in cells.items() if e == engine]
        ours = [ways["ours"] for ways in of if "ours" in ways]
        refusals = sum(row["cell"] == "refused by us" for row in ours)
        lines.append(
            f"| {engine} {versions.get(engine, '')} | {len(of)} | {_counts([w.get('stock default') for w in of])} "
            f"| {_counts([best(w) for w in of])} | {_counts(ours)} | {refusals} | {_latency(of)} |"
        )
    lines += ["", "| model | engine | stock default | best of stock at opset 17 | ours |", "|---|---|---|---|---|"]
    for (model, engine), ways in sorted(cells.items()):
        told_cells = " | ".join(map(_told, (ways.get("stock default"), best(ways), ways.get("ours"))))
        lines.append(f"| {model} | {engine} | {told_cells} |")
    refused = [row for row in rows if row["way"] == "ours" and row["cell"] not in ("match", "wrong")]
    if refused:
        lines += ["", "Why ours is refused:", ""]
        lines += [f"- {row['model']}, {row['engine']}: {row['cell']}: {row['why'][:300]}" for row in refused]
    return "\n".join(lines) + "\n"


def _counts(rows: Sequence[Row | None]) -> str:
    known = [row for row in rows if row is not None]
    match, wrong = (sum(row["cell"] == cell for row in known) for cell in ("match", "wrong"))
    return f"{match} / {wrong} / {len(known) - match - wrong}" if known else "-"


def _told(row: Row | None) -> str:
    if row is None:
        return "-"
    return f"**wrong {row['error']:.2g}**" if row["cell"] == "wrong" else str(row["cell"])


def _latency(of: Sequence[Ways]) -> str:
    ratios = []
    for ways in of:
        stock = [r["ms"] for way, r in ways.items() if way != "ours" and r["cell"] == "match"]
        if stock and ways.get("ours", {}).get("cell") == "match":
            ratios.append(ways["ours"]["ms"] / min(stock))
    return f"{math.exp(statistics.fmean(map(math.log, ratios))):.2f} ({len(ratios)})" if ratios else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS)
    parser.add_argument("--again", action="store_true", help="also measure what results/engines.jsonl has")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "torch-onnx-compat" / "benchmarks")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    engines = [name for name in options.engines if ENGINES[name].interpreter()]
    if not engines:
        raise CompatError("no engine is installed; see `torch-onnx-compat measure --install ENGINE`.")
    for spec in options.models:
        known = {_key(row) for row in read()}
        cells = [(way, engine) for engine in engines for way in options.ways]
        missing = [cell for cell in cells if options.again or (spec, *cell) not in known]
        for row in measure(spec, missing, options.cache, _step) if missing else ():
            write([*(r for r in read() if _key(r) != _key(row)), row])
    write(read())


def _key(row: Row) -> tuple[str, str, str]:
    return row["model"], row["way"], row["engine"]


def _step(text: str) -> None:
    print(text, flush=True)


def read() -> list[Row]:
    """The results so far."""
    path = RESULTS / "engines.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def write(rows: list[Row]) -> None:
    """Keeps the results, and their report."""
    rows = sorted(rows, key=_key)
    (RESULTS / "engines.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (RESULTS / "engines.md").write_text(report(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
