"""Files in float16 and in eight bits, run in the engines that they are made for.

For each model and engine a file is exported for that target, batches dynamic, and run in the engine's own process: by
OpenVINO, OpenCV's new engine and onnxruntime on the processor here. TensorRT for RTX parses and builds it; what it
parsed is computed in float64, as kernels run on graphics cards only. The inputs are ones that no export saw, at another
batch size; what is wanted is eager torch in float64.

A float16 file is right as benchmarks/precision_zoo.py says: off by at most 0.02, or twice eager half where that is off
by at most 0.05. A file in eight bits is right if it is off by at most the limit of the export, 0.1, or twice what
onnxruntime makes of the same file: weights are random, and calibrated with random values. All errors are root mean
squares of the difference, relative to the output's.

    python benchmarks/precision_engines.py run --out rows.jsonl [--until 17:40]
    python benchmarks/precision_engines.py page rows.jsonl > results/precision_engines-DATE.md

Engines that are not in this interpreter's environment: docs/targets.md, `torch-onnx-compat measure`.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from precision_zoo import EXCUSED, LIMIT, eager, errors, fresh_inputs, in_child, preload, run_file

_MODELS = {
    "float16": """timm:test_resnet timm:test_vit timm:test_efficientnet timm:test_convnext2 timm:test_byobnet
        timm:test_nfnet timm:test_mambaout torchvision:squeezenet1_1 torchvision:mobilenet_v3_small transformers:bert
        transformers:gpt2 transformers:vit transformers:convnext transformers:segformer smp:linknet-resnet18
        ultralytics:yolov8n-cls""",
    "int8": """timm:test_resnet timm:test_vit timm:test_efficientnet timm:test_byobnet torchvision:squeezenet1_1
        transformers:vit""",
}
WAYS = {precision: specs.split() for precision, specs in _MODELS.items()}
SIZED = ("smp", "ultralytics", "squeezenet", "mobilenet_v3")
"""Parts of the specs of models that take pictures of any size: theirs are 160 x 192 here."""
ENGINES = ("onnxruntime", "openvino", "opencv", "tensorrt-rtx")
BATCHES = 6
"""Inputs for calibration; the export holds half of them out."""
INT8_LIMIT = 0.1
PACKAGES = ("torch", "onnx", "onnxruntime", "timm", "torchvision", "transformers", "ultralytics")
PACKAGES += ("segmentation-models-pytorch",)


def run(out: Path, seconds: float, until: str, engines: Sequence[str]) -> None:
    """Measures what has no row yet.

    Args:
        out: The file of rows.
        seconds: Processor time of one model at most.
        until: The time of day after which no further model is begun.
        engines: The engines.
    """
    known = {(row["model"], row["precision"], row["engine"]) for row in rows_of(out)} if out.exists() else set()
    preload(WAYS["float16"])
    for precision, specs in WAYS.items():
        for spec in specs:
            wanted = [engine for engine in engines if (spec, precision, engine) not in known]
            if not wanted or f"{datetime.datetime.now():%H:%M}" >= until:
                continue
            made = in_child(spec, seconds, lambda spec, p=precision, w=wanted: measure(spec, p, w))
            given = made.get("rows") or [{"engine": engine, **made} for engine in wanted]
            with out.open("a", encoding="utf-8") as file:
                for row in given:
                    row = {"model": spec, "precision": precision, "date": str(datetime.date.today()), **row}
                    file.write(json.dumps(row) + "\n")
                    print(row, flush=True)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The last row of each model, precision and engine."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return list({(row["model"], row["precision"], row["engine"]): row for row in rows}.values())


def measure(spec: str, precision: str, engines: Sequence[str]) -> dict[str, Any]:
    """The rows of one model."""
    import torch

    from torch_onnx_compat.zoo import load

    torch.set_num_threads(1)
    sample = load(spec, size=(160, 192) if any(part in spec for part in SIZED) else None)
    args, kwargs = doubled(sample, *fresh_inputs(sample, 0))
    exact = eager(sample.model, args, kwargs, torch.float64)
    half = eager(sample.model, args, kwargs, torch.float16)
    if exact is None:
        return {"verdict": "not judged", "why": "the model refuses other inputs"}
    known = {} if half is None else {"eager half": errors(half, exact)[0]}
    return {"rows": [{**known, **in_engine(sample, precision, e, args, kwargs, exact, known)} for e in engines]}


def doubled(sample: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The inputs twice in one batch, where that is dynamic and the model takes it."""
    import torch
    from torch.utils._pytree import tree_leaves, tree_map_only

    if not any("batch" in axes.values() for axes in dict(sample.dynamic or {}).values()):
        return args, kwargs
    twice: tuple[Any, Any] = tree_map_only(torch.Tensor, lambda t: torch.cat([t, t.flip(0)]), (args, kwargs))
    first = {len(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor) and t.dim()}
    is_whole = len(first) == 1 and eager(sample.model, *twice, torch.float32) is not None
    return twice if is_whole else (args, kwargs)


def in_engine(
    sample: Any, precision: str, engine: str, args: Any, kwargs: Any, exact: Sequence[Any], known: Mapping[str, float]
) -> dict[str, Any]:
    """One row: exported for the engine, and run in it."""
    import onnx

    from torch_onnx_compat import Int8, export_compat
    from torch_onnx_compat.engines import EngineProcess, find_engine
    from torch_onnx_compat.errors import CompatError

    asked: Any = "float16" if precision == "float16" else Int8(calibration=calibration(sample), limit=INT8_LIMIT)
    try:
        result = export_compat(
            sample.model,
            sample.args,
            kwargs=dict(sample.kwargs),
            dynamic=dict(sample.dynamic) or None,
            verify=sample.verify,
            target=engine,
            precision=asked,
        )
    except CompatError as problem:
        return {"engine": engine, "verdict": "not exported", "why": " ".join(str(problem).split())[:300]}
    feeds = {name: tensor.numpy() for name, tensor in result.signature.feeds(args, kwargs).items()}
    graph = onnx.load_model_from_string(result.model_bytes).graph
    own = errors(run_file(result.model_bytes, feeds), exact)[0]
    row = {"engine": engine, "onnxruntime's": own, "narrow": part(result.precision)}
    with EngineProcess(find_engine(engine), limit=240.0) as process:
        row["version"] = process.version
        outcome = process.run(result.model_bytes, feeds, [value.name for value in graph.output])
    if outcome.status not in ("ran", "built"):
        return {**row, "verdict": outcome.status, "why": outcome.error[:300]}
    if not outcome.outputs:
        return {**row, "verdict": "built, values not known", "why": outcome.error[:300]}
    off = errors(outcome.outputs, exact)[0]
    return {**row, "error": off, "verdict": verdict(off, own, precision, known)}


def calibration(sample: Any) -> list[Any]:
    """Inputs for calibration, other than those that the file is judged on."""
    drawn = (fresh_inputs(sample, seed) for seed in range(1, 1 + BATCHES))
    return [kwargs or args for args, kwargs in drawn]


def part(told: Any) -> str:
    """How much of the model is narrow."""
    if hasattr(told, "share"):
        return "" if told.share is None else f"{told.share:.0%}"
    return f"{sum(not layer.kept for layer in told.layers)} of {len(told.layers)} layers"


def verdict(off: float, own: float, precision: str, known: Mapping[str, float]) -> str:
    """Whether an engine's outputs are right."""
    half = known.get("eager half", 0.0)
    if precision == "int8":
        return "right" if off <= max(INT8_LIMIT, 2 * own) else "wrong"
    if off <= max(LIMIT, 2 * half if half <= EXCUSED else 0.0):
        return "right"
    return "as eager half" if off <= 2 * half else "wrong"


_HEAD = """# Files in float16 and eight bits in their engines

`python benchmarks/precision_engines.py` measures it again; its first lines say what is run and how it is judged. Cells
have the error and, of files in eight bits, how many layers are in eight bits. TensorRT for RTX builds the file, and
what it parsed is computed in float64; its kernels did not run.
"""


def page(path: Path) -> str:
    """The results in Markdown."""
    rows = rows_of(path)
    engines = [engine for engine in ENGINES if any(row["engine"] == engine for row in rows)]
    installed = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    ran = ", ".join(
        f"{e} {next((r['version'] for r in rows if r['engine'] == e and 'version' in r), '')}" for e in engines
    )
    dates = " and ".join(sorted({row["date"] for row in rows}))
    lines = [_HEAD, f"Measured {dates} with {installed}. Engines: {ran}. One thread.", ""]
    for precision in WAYS:
        cells = {(row["model"], row["engine"]): row for row in rows if row["precision"] == precision}
        models = list(dict.fromkeys(model for model, _ in cells))
        lines += [f"## {precision}", "", f"| | {' | '.join(engines)} |", f"| --- |{' --- |' * len(engines)}"]
        for said in sorted({row["verdict"] for row in cells.values()}):
            counts = [sum(r["verdict"] == said for (_, e), r in cells.items() if e == engine) for engine in engines]
            lines.append(f"| {said} | {' | '.join(map(str, counts))} |")
        lines += ["", f"| model | eager half | {' | '.join(engines)} |", f"| --- | --- |{' --- |' * len(engines)}"]
        for model in models:
            of = [cells.get((model, engine), {}) for engine in engines]
            half = next((f"{row['eager half']:.1e}" for row in of if "eager half" in row), "")
            lines.append(f"| {model} | {half} | {' | '.join(map(_cell, of))} |")
        why = [f"- {m}, {e}: {row['why']}" for (m, e), row in cells.items() if row.get("why")]
        lines += ["", *why, ""] if why else [""]
    return "\n".join(lines).rstrip("\n")


def _cell(row: Mapping[str, Any]) -> str:
    if not row:
        return ""
    off = f" {row['error']:.1e}" if "error" in row else ""
    narrow = f" ({row['narrow']})" if row.get("precision") == "int8" and row.get("narrow") else ""
    return f"{row['verdict']}{off}{narrow}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("path", nargs="?", type=Path)
    parser.add_argument("--out", type=Path, default=Path("precision_engines.jsonl"))
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    parser.add_argument("--seconds", type=float, default=240.0, help="processor time of one model at most")
    parser.add_argument("--until", default="99:99", help="the time of day after which no further model is begun")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "page":
        print(page(arguments.path))
    else:
        run(arguments.out, arguments.seconds, arguments.until, arguments.engines)


if __name__ == "__main__":
    main()
