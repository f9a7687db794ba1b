"""Files in float16 from float32 models: right or wrong, share, size, casts and time, beside two other converters.

Traps are small models on which a plain conversion fails (tests/precision/traps.py); zoo models have random weights and
a dynamic batch. Every file is judged alike, on inputs that no export saw and at another batch: in onnxruntime and in a
float32 rendering with a rounding behind every node. The error is the root mean square of the difference from eager
float64, relative to that of the outputs; a file is wrong if it is not finite where eager torch is, or if its error is
larger than 0.02 and than twice that of eager half, which is no excuse where it is above 0.05.

    python benchmarks/precision.py traps --out traps.jsonl [--others FOLDER]
    python benchmarks/precision.py zoo --out zoo.jsonl [--models timm:resnet18 ...] [--others FOLDER]
    python benchmarks/precision.py page traps.jsonl zoo.jsonl > results/precision-DATE.md

FOLDER is one to which `pip install --target FOLDER --no-deps onnxconverter-common` was made.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import importlib.metadata
import io
import json
import math
import os
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "precision"))

from traps import FROM_RESEARCH, TRAPS  # noqa: E402

from torch_onnx_compat import export_compat  # noqa: E402
from torch_onnx_compat.graph.rendering import render  # noqa: E402
from torch_onnx_compat.graph.stream import write_model  # noqa: E402
from torch_onnx_compat.zoo import load  # noqa: E402

LIMIT = 0.02
EXCUSED = 0.05
"""Error of eager half above which it excuses nothing."""
_ZOO = """
torchvision:resnet18 torchvision:mobilenet_v2 torchvision:mobilenet_v3_small torchvision:shufflenet_v2_x0_5
torchvision:squeezenet1_1 torchvision:efficientnet_b0 torchvision:mnasnet0_5 torchvision:regnet_y_400mf
torchvision:swin_t torchvision:lraspp_mobilenet_v3_large timm:convnext_atto timm:vit_tiny_patch16_224 timm:ghostnet_050
timm:deit_tiny_patch16_224 timm:mixer_s32_224 timm:resmlp_12_224 timm:poolformer_s12 timm:edgenext_xx_small
timm:mobilevit_xxs timm:levit_128s timm:efficientformer_l1 timm:repvgg_a0 timm:hardcorenas_a timm:lcnet_050
timm:fastvit_t8 timm:tiny_vit_5m_224 timm:rexnet_100 timm:xcit_nano_12_p16_224
"""
ZOO = _ZOO.split()


def run(model: bytes, feeds: dict[str, Any], *, optimised: bool = True) -> list[Any]:
    """Runs a file in onnxruntime; its inputs are given as float32."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def error(found: list[Any], exact: list[Any]) -> float:
    """The largest relative error of the outputs, by root mean squares; infinite where one is not finite."""
    worst = 0.0
    for a, b in zip(found, exact, strict=True):
        if a.shape != b.shape:
            return math.inf
        b = b.astype(np.float64)
        finite = np.isfinite(b)
        if not np.isfinite(a[finite]).all():
            return math.inf
        scale = math.sqrt(float(np.mean(b[finite] ** 2))) if finite.any() else 1.0
        worst = max(worst, math.sqrt(float(np.mean((a[finite].astype(np.float64) - b[finite]) ** 2))) / (scale or 1.0))
    return worst


def eager(model: torch.nn.Module, args: tuple[Any, ...], dtype: torch.dtype) -> list[Any] | None:
    """The outputs of eager torch in an element type; None where it does not run."""
    cast = [a.to(dtype) if a.is_floating_point() else a for a in args]
    try:
        with torch.no_grad():
            outputs = copy.deepcopy(model).to(dtype)(*cast)
    except Exception:  # a model refuses an element type in any way it likes
        return None
    outputs = (
        outputs
        if isinstance(outputs, (tuple, list))
        else [*outputs.values()]
        if isinstance(outputs, dict)
        else [outputs]
    )
    return [o.double().numpy() if o.is_floating_point() else o.numpy() for o in outputs]


def judge(model: bytes, samples: list[tuple[Any, ...]], subject: torch.nn.Module) -> dict[str, Any]:
    """The verdict on a file."""
    names = [v.name for v in onnx.load_model_from_string(model).graph.input]
    buffer = io.BytesIO()
    try:
        write_model(render(ir.from_proto(onnx.load_model_from_string(model))), buffer)
    except Exception as problem:
        return {"verdict": "unreadable", "why": str(problem)[:200]}
    worst: dict[str, Any] = {"file": 0.0, "unoptimised": 0.0, "rendering": 0.0, "eager half": None}
    for args in samples:
        feeds = dict(zip(names, (a.numpy() for a in args), strict=True))
        exact = eager(subject, args, torch.float64) or eager(subject, args, torch.float32)
        half = eager(subject, args, torch.float16)
        assert exact is not None
        if half is not None:
            worst["eager half"] = max(worst["eager half"] or 0.0, error(half, exact))
        ways = {
            "file": lambda f: run(model, f),
            "unoptimised": lambda f: run(model, f, optimised=False),
            "rendering": lambda f: run(buffer.getvalue(), f),
        }
        for way, compute in ways.items():
            try:
                worst[way] = max(worst[way], error(compute(feeds), exact))
            except Exception as problem:
                return {"verdict": "does not run", "why": f"{way}: {str(problem)[:200]}"}
    return {"verdict": verdict(worst), **worst}


def verdict(worst: dict[str, Any]) -> str:
    """Whether a file is right, from its largest errors and eager half's."""
    half = worst["eager half"] or 0.0
    allowed = max(LIMIT, 2 * half if half <= EXCUSED else 0.0)
    return "right" if max(worst[way] for way in ("file", "unoptimised", "rendering")) <= allowed else "wrong"


def others(folder: str | None) -> dict[str, Any]:
    """The other converters, by name."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    found = {"onnxruntime.transformers.float16": lambda m: convert_float_to_float16(m, keep_io_types=True)}
    if folder:
        sys.path.append(folder)
        from onnxconverter_common import float16

        found["onnxconverter-common"] = lambda m: float16.convert_float_to_float16(m, keep_io_types=True)
    return found


def measure(
    name: str,
    model: torch.nn.Module,
    args: tuple[Any, ...],
    fresh: list[tuple[Any, ...]],
    options: dict[str, Any],
    converters: dict[str, Any],
) -> list[dict[str, Any]]:
    """Exports a model in float32 and in float16, converts the first by the others, and judges all."""
    rows: list[dict[str, Any]] = []
    row: dict[str, Any] = {"model": name, "way": "ours", "exporter": options.get("exporter", "auto")}
    start = time.perf_counter()
    try:
        plain = export_compat(model, args, **options)
        row["seconds float32"] = time.perf_counter() - start
        start = time.perf_counter()
        result = export_compat(model, args, precision="float16", **options)
        row["seconds"] = time.perf_counter() - start
    except Exception as problem:
        return [{**row, "verdict": "refused", "why": str(problem)[:300]}]
    told = result.precision
    row |= {"share": told.share, "casts": told.casts, "narrow": told.narrow, "wide": told.wide, "runs": told.runs}
    row |= {
        "bytes": len(result.model_bytes),
        "bytes float32": len(plain.model_bytes),
        "seconds precision": result.seconds["precision"],
    }
    rows.append({**row, **judge(result.model_bytes, fresh, model)})
    for other, convert in converters.items():
        row = {"model": name, "way": other, "exporter": options.get("exporter", "auto")}
        try:
            converted = convert(onnx.load_model_from_string(plain.model_bytes)).SerializeToString()
        except Exception as problem:
            rows.append({**row, "verdict": "refused", "why": f"{type(problem).__name__}: {str(problem)[:200]}"})
            continue
        rows.append({**row, "bytes": len(converted), **judge(converted, fresh, model)})
    return rows


def measure_traps(out: Path, converters: dict[str, Any]) -> None:
    for trap in TRAPS:
        for exporter in ("torchscript", "dynamo"):
            fresh = [trap.args(seed) for seed in (11, 12)]
            options: dict[str, Any] = {"dynamic": trap.dynamic or None, "exporter": exporter}
            write(out, measure(trap.name, trap.model(), trap.args(1), fresh, options, converters))


def measure_zoo(out: Path, specs: list[str], converters: dict[str, Any]) -> None:
    for spec in specs:
        sample = load(spec)
        args = tuple(a[:1].repeat(2, *[1] * (a.dim() - 1)) if a.shape[0] == 1 else a for a in sample.args)
        torch.manual_seed(5)
        fresh = [tuple(torch.rand(3, *a.shape[1:]) for a in args)]
        write(out, measure(spec, sample.model.eval(), args, fresh, {"dynamic": "batch"}, converters))


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    with out.open("a", encoding="utf-8") as file:
        for row in rows:
            print(
                row["model"],
                row["way"],
                row.get("exporter"),
                row["verdict"],
                row.get("why", ""),
                row.get("seconds"),
                row.get("seconds float32"),
                row.get("share"),
                row.get("rendering"),
                flush=True,
            )
            file.write(json.dumps(row) + "\n")


def page(paths: list[Path]) -> str:
    """The results in Markdown."""
    packages = ("torch", "torchvision", "timm", "onnx", "onnx-ir", "onnxruntime")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    lines = [f"Measured {datetime.date.today()} with {versions}; two CPU cores, one thread.", ""]
    for path in paths:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            if "rendering" in row:
                row["eager half"] = row["eager half"] or None
                row["verdict"] = verdict(row)
        lines += _counts(rows) + _details(rows, path.stem)
    return "\n".join(lines)


def _counts(rows: list[dict[str, Any]]) -> list[str]:
    verdicts = ("right", "wrong", "does not run", "unreadable", "refused")
    lines = ["| way | " + " | ".join(verdicts) + " |", "| --- |" + " --- |" * len(verdicts)]
    for way in dict.fromkeys(row["way"] for row in rows):
        counts = Counter(row["verdict"] for row in rows if row["way"] == way)
        lines.append(f"| {way} | " + " | ".join(str(counts[v]) for v in verdicts) + " |")
    return [*lines, ""]


def _details(rows: list[dict[str, Any]], stem: str) -> list[str]:
    by_model: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_model.setdefault((row["model"], row["exporter"]), {})[row["way"]] = row
    known = {trap.name for trap in FROM_RESEARCH}
    other = [*dict.fromkeys(row["way"] for row in rows if row["way"] != "ours")]
    head = ["trap", "exporter", "ours", "eager half", "nodes in float16"]
    if stem.startswith("zoo"):
        head = ["model", "ours", "eager half", "in float16", "casts", "size / float32", "time / float32"]
    lines = ["| " + " | ".join([*head, *other]) + " |", "| --- " * len([*head, *other]) + "|"]
    for (model, exporter), ways in by_model.items():
        ours = ways["ours"]
        rest = [_short(ways[way]) if way in ways else "" for way in other]
        half = _number(ours.get("eager half"))
        if stem.startswith("zoo"):
            size, spent = (ours[what] / ours[f"{what} float32"] for what in ("bytes", "seconds"))
            cells = [
                model,
                _short(ours),
                half,
                f"{ours['share'] or 0:.0%}",
                ours["casts"],
                f"{size:.2f}",
                f"{spent:.2f}",
            ]
        else:
            mark = " (research)" if model in known else ""
            nodes = f"{ours['narrow']} of {ours['narrow'] + ours['wide']}"
            cells = [f"{model}{mark}", exporter, _short(ours), half, nodes]
        lines.append("| " + " | ".join(map(str, [*cells, *rest])) + " |")
    return [*lines, ""]


def _short(row: dict[str, Any]) -> str:
    return f"{row['verdict']}: {_number(row['rendering'])}" if "rendering" in row else row["verdict"]


def _number(error: float | None) -> str:
    return "not run" if error is None else f"{error:.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["traps", "zoo", "page"])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--models", nargs="*", default=ZOO)
    parser.add_argument("--out", type=Path, default=Path("precision.jsonl"))
    parser.add_argument("--others", help="folder with onnxconverter-common")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    if arguments.what == "page":
        print(page(arguments.paths))
    elif arguments.what == "traps":
        measure_traps(arguments.out, others(arguments.others))
    else:
        measure_zoo(arguments.out, arguments.models, others(arguments.others))


if __name__ == "__main__":
    main()
