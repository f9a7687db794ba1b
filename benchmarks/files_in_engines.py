"""Converts the files that stock torch writes for zoo models, and runs them in engines: before and after.

    python benchmarks/files_in_engines.py [--rows FILE] [--targets openvino,opencv,...] [--output FILE.md]

A model of random weights is exported by torch.onnx.export alone, by both exporters, at fixed sizes. The file runs in
each engine that is installed as it is (before), and after `files.convert(target=...)`, which compares it there with the
original in onnxruntime on every case. Both are right where every value is within the engine's tolerance.
"""

from __future__ import annotations

import argparse
import datetime
import json
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import torch

from torch_onnx_compat import CompatError
from torch_onnx_compat.engines import ENGINES
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.files import compare, convert
from torch_onnx_compat.version import __version__
from torch_onnx_compat.zoo import spec as specs

MODELS = (
    ("torchvision:resnet18", 64),
    ("torchvision:mobilenet_v3_small", 64),
    ("torchvision:shufflenet_v2_x0_5", 64),
    ("torchvision:squeezenet1_1", 64),
    ("torchvision:mnasnet0_5", 64),
    ("torchvision:efficientnet_b0", 64),
    ("torchvision:regnet_y_400mf", 64),
    ("timm:convnext_atto", 64),
    ("timm:vit_tiny_patch16_224", 224),
    ("timm:ghostnet_050", 64),
    ("timm:mobilevit_xxs", 64),
    ("timm:edgenext_xx_small", 64),
)


def export(name: str, size: int, exporter: str, path: Path) -> None:
    """Writes the stock file of a model."""
    torch.manual_seed(0)
    sample = specs.load(name, (size, size), None)
    args = sample.args if isinstance(sample.args, tuple) else (sample.args,)
    torch.onnx.export(sample.model.eval(), args, str(path), dynamo=exporter == "dynamo", verbose=False)


def judge_before(path: Path, engine: str) -> str:
    """What the engine makes of the stock file."""
    try:
        found = compare(path, engine=engine)
    except CompatError as error:
        return f"fails: {error}"
    if found.is_equal:
        return "right"
    bad = next(row for row in found.table if not row.ok)
    return bad.detail if bad.detail.startswith("fails") else f"wrong: {bad.detail}"


def judge_after(path: Path, target: str) -> tuple[str, str]:
    """What becomes of the file by conversion, and what was done."""
    try:
        result = convert(path, target=target)
    except UnsupportedError as error:
        return f"refused: {error}", ""
    except CompatError as error:
        return f"rejected: {error}", ""
    ran = any(f" on {target} " in row.case for row in result.table)
    return ("right" if ran else "not run"), f"{sum(result.source_nodes.values())} -> {sum(result.nodes.values())}"


def main() -> None:
    """Runs what is missing and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--targets", default="openvino,opencv,tract,mnn,ncnn")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "files_in_engines.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    targets = [name for name in options.targets.split(",") if ENGINES[name].interpreter() is not None]
    rows: list[dict[str, Any]] = []
    if options.rows and options.rows.exists():
        rows = [json.loads(line) for line in options.rows.read_text().splitlines()]
    done = {(row["model"], row["exporter"], row["target"]) for row in rows}
    for name, size in MODELS:
        for exporter in ("torchscript", "dynamo"):
            missing = [target for target in targets if (name, exporter, target) not in done]
            if not missing:
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "stock.onnx"
                export(name, size, exporter, path)
                for target in missing:
                    after, nodes = judge_after(path, target)
                    row = {"model": name, "exporter": exporter, "target": target, "after": after, "nodes": nodes}
                    rows.append({**row, "before": judge_before(path, target)})
                    print(json.dumps(rows[-1])[:300], flush=True)
                    if options.rows:
                        with options.rows.open("a") as file:
                            file.write(json.dumps(rows[-1]) + "\n")
    page = _page(rows, targets)
    options.output.write_text(page, encoding="utf-8")
    print(page)


def _page(rows: Sequence[dict[str, Any]], targets: Sequence[str]) -> str:
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    lines = [
        "# Stock torch's files, converted for engines",
        "",
        f"Measured {date} with torch_onnx_compat {__version__}, torch {torch.__version__}, onnx {onnx.__version__}, "
        f"onnxruntime {onnxruntime.__version__}, by `python benchmarks/files_in_engines.py`: files of "
        f"{len({row['model'] for row in rows})} models by both exporters.",
        "",
        "| engine | files | right before | right after | refused by name | rejected |",
        "|---|---|---|---|---|---|",
    ]
    for target in targets:
        mine = [row for row in rows if row["target"] == target]
        after = Counter(row["after"].partition(":")[0] for row in mine)
        before = sum(row["before"] == "right" for row in mine)
        lines.append(
            f"| {target} | {len(mine)} | {before} | {after['right']} | {after['refused']} | {after['rejected']} |"
        )
    lines += ["", "Not right after, or not before:", ""]
    for row in rows:
        if row["after"] != "right" or row["before"] != "right":
            before, after = (" ".join(row[key].split())[:160] for key in ("before", "after"))
            lines.append(f"* {row['model']}, {row['exporter']}, {row['target']}: before: {before}; after: {after}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
