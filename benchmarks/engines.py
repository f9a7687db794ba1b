"""Zoo models in inference engines: stock torch's files against export_compat's with the engine as its target.

For each model and engine, four files: torch's default, torch's TorchScript and dynamo exporters at opset 17 (the
better one counts), and ours. Stock torch's files are kept in --cache, and not made again. A file's outputs are compared
with eager torch, relative to the largest output. Those that are right are timed in turns, each loaded in a process of
its own. Engines live in the environments of `torch-onnx-compat measure --install ENGINE`; those that are missing are
left out. Each model's results in an engine are added to results/engines.jsonl as they come, and what is there is not
measured again.

    python benchmarks/engines.py [--models timm:resnet18 ...] [--engines opencv ...] [--again] [--cache DIRECTORY]
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
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.engines import ENGINES, EngineProcess, Outcome
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
"""For engines that compute in float16, at the least."""
UNTIMED = ("rknn", "onnxruntime-web")
"""A simulator, whose time tells nothing of the device's, and a program of its own, which takes tensors as text."""
LOADS, ROUNDS, RUNS = 3, 16, 2
"""Files take turns, so that a neighbour of this process slows all of them; of a turn's runs the fastest counts. Where
memory lies makes up to a quarter, so each file is loaded anew."""
BUDGET_S, LEAST = 6.0, 4
"""Seconds of a load after which no further round begins, and the least number of rounds."""

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


def run(process: EngineProcess, path: Path, inputs: list[np.ndarray]) -> Outcome:
    """Runs one file in an engine."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {t.name for t in graph.initializer}
    names = [value.name for value in graph.input if value.name not in weights]
    return process.run(path, dict(zip(names, inputs, strict=True)), [value.name for value in graph.output])


def judge(engine: str, path: Path, inputs: list[np.ndarray], right: list[np.ndarray], limit: float) -> Row:
    """What an engine makes of one file."""
    with EngineProcess(ENGINES[engine], limit=180.0) as process:
        outcome = run(process, path, inputs)
        about = {"engine_version": process.version}
    if outcome.status != "ran":
        return {**about, "cell": "refused", "why": tidy(outcome.error)}
    same = len(outcome.outputs) == len(right)
    error = max(_error(a, b) for a, b in zip(outcome.outputs, right, strict=True)) if same else math.inf
    return {**about, "cell": "match" if error < limit else "wrong", "error": error}


def limit_of(spec: str, engine: str, right: list[np.ndarray]) -> float:
    """How far off a match may be; an engine that computes in float16, as far as eager torch is in float16."""
    if ENGINES[engine].computes_in == "float32":
        return LIMIT
    sample = load(spec)
    with torch.no_grad():
        args = [t.half() if t.is_floating_point() else t for t in sample.args]
        outputs = sample.model.eval().half()(*args)
    leaves = [t.float().numpy() for t in torch.utils._pytree.tree_leaves(outputs)]
    return max(HALF_LIMIT, *(_error(a, b) for a, b in zip(leaves, right, strict=True)))


@contextlib.contextmanager
def one_processor() -> Iterator[None]:
    """Pins what starts here to one processor, where the system can: two may differ by what else they do."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def time_in_turns(engine: str, paths: dict[str, Path], inputs: list[np.ndarray]) -> dict[str, list[list[float]]]:
    """Processor milliseconds of each file, loaded anew several times, in each round."""
    found: dict[str, list[list[float]]] = {way: [[] for _ in range(LOADS)] for way in paths}
    for load_index in range(LOADS if paths else 0):
        with contextlib.ExitStack() as stack:
            stack.enter_context(one_processor())
            loaded: dict[str, EngineProcess] = {}
            for way, path in paths.items():
                loaded[way] = stack.enter_context(EngineProcess(ENGINES[engine], limit=180.0, fills=False))
                run(loaded[way], path, inputs)
            start = time.monotonic()
            for index in range(ROUNDS):
                if index >= LEAST and time.monotonic() - start > BUDGET_S:
                    break
                turn = index % len(paths)
                for way in [*list(paths)[turn:], *list(paths)[:turn]]:
                    found[way][load_index].append(1e3 * min(loaded[way].time(RUNS)))
    return found


def latency(loads: list[list[float]], of: slice = slice(None)) -> float:
    """Milliseconds of a file: the median over its turns, where its memory happens to lie best."""
    return min(statistics.median(rounds[of]) for rounds in loads)


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


def over_stock(times: dict[str, list[list[float]]]) -> float:
    """Ours over the best of stock's, which every other round chooses and the rest compares, and the other way round."""
    stock = [loads for way, loads in times.items() if way != "ours"]
    even, odd = slice(0, None, 2), slice(1, None, 2)
    ratios = []
    for choose, compare in ((even, odd), (odd, even)):
        best_of_stock = min(stock, key=lambda loads: latency(loads, choose))
        ratios.append(latency(times["ours"], compare) / latency(best_of_stock, compare))
    return statistics.geometric_mean(ratios)


def measure(spec: str, engines: list[str], cache: Path, step: Callable[[str], None]) -> Iterator[list[Row]]:
    """The rows of each engine, one for each way."""
    inputs, right = wanted(spec)
    for engine in engines:
        limit = limit_of(spec, engine, right)
        with tempfile.TemporaryDirectory() as folder:
            rows: dict[str, Row] = {}
            right_ones: dict[str, Path] = {}
            for way in WAYS:
                ours = Path(folder) / "ours.onnx"
                path, failed = (ours, export(spec, way, engine, ours)) if way == "ours" else kept(spec, way, cache)
                if failed:
                    rows[way] = {"cell": "refused by us" if way == "ours" else "export fails", "why": failed}
                    continue
                rows[way] = judge(engine, path, inputs, right, limit)
                if rows[way]["cell"] == "match" and engine not in UNTIMED:
                    right_ones[way] = path
            times = time_in_turns(engine, right_ones, inputs)
        for way, loads in times.items():
            rows[way]["ms"] = latency(loads)
        if "ours" in times and len(times) > 1:
            rows["ours"] |= {"over_stock": over_stock(times), "loads": LOADS}
        step(f"{spec}, {engine}: {', '.join(row['cell'] for row in rows.values())}; {_latency([rows])}")
        yield [{"model": spec, "engine": engine, "way": way, **row, **_about()} for way, row in rows.items()]


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
        f"{' to '.join(dict.fromkeys((found['date'][0], found['date'][-1])))}, {told}, one thread.",
        f"A match is within {LIMIT:g} of eager torch, relative to the largest output; for RKNN in float16 within "
        f"{HALF_LIMIT:g}, or what eager torch in float16 is off. A dash is not measured.",
        f"Files take turns, {ROUNDS} times (at least {LEAST} in {BUDGET_S:g} s) after each of {LOADS} loads,",
        "or where engines.jsonl has no `loads`, 40 times after a single one. A file's latency is the median over its",
        f"turns of the fastest of {RUNS} runs, in time of the one processor that all are pinned to, in the best load.",
        "Ours stands against the best right one of stock's three: which one that is, every other turn tells, and the",
        "rest compares, and the other way round, so that noise does not choose. The geometric mean is over the models",
        "where both are right; their number stands in brackets.",
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
    lines += [
        "",
        "| model | engine | stock default | best of stock at opset 17 | ours | latency |",
        "|---|---|---|---|---|---|",
    ]
    for (model, engine), ways in sorted(cells.items()):
        told_cells = " | ".join(map(_told, (ways.get("stock default"), best(ways), ways.get("ours"))))
        lines.append(f"| {model} | {engine} | {told_cells} | {_latency([ways])} |")
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
    ratios = [ways["ours"]["over_stock"] for ways in of if "over_stock" in ways.get("ours", {})]
    if not ratios:
        return "-"
    return f"{statistics.geometric_mean(ratios):.2f}" + (f" ({len(ratios)})" if len(of) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    parser.add_argument("--again", action="store_true", help="also measure what results/engines.jsonl has")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "torch-onnx-compat" / "benchmarks")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    engines = [name for name in options.engines if ENGINES[name].interpreter() and not ENGINES[name].builds]
    if not engines:
        raise CompatError("no engine is installed; see `torch-onnx-compat measure --install ENGINE`.")
    for spec in options.models:
        known = {_key(row) for row in read()}
        missing = [e for e in engines if options.again or any((spec, way, e) not in known for way in WAYS)]
        for rows in measure(spec, missing, options.cache, _step) if missing else ():
            keys = {_key(row) for row in rows}
            write([*(row for row in read() if _key(row) not in keys), *rows])
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
