"""Converts files of other tools for engines, and runs them there: before, after, and slimmed by others.

    python -m venv slimmers; slimmers/bin/pip install onnxslim onnxsim
    python benchmarks/files_in_engines.py --slimmers slimmers/bin/python [--rows FILE] [--targets openvino,opencv,...]

The files are those that torch.onnx.export alone writes for zoo models, by both exporters, at fixed sizes, with the
zoo's own random weights; and small ones as other tools write them (producers.py). Each runs in each engine that is
installed as it is (before), slimmed by onnxsim, slimmed by onnxslim, and after `files.convert(target=...)`. It is right
where every value is within the engine's tolerance of the original's in onnxruntime, on the same cases for all four:
random numbers of four kinds. Rows that are there are not measured again, nor those of --earlier, which were measured on
earlier code, and which the page counts.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import producers
import torch

from torch_onnx_compat import CompatError
from torch_onnx_compat.engines import ENGINES, EngineProcess
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.files import convert
from torch_onnx_compat.files.on_engine import compare_in_engine
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.files.reading import read
from torch_onnx_compat.version import __version__
from torch_onnx_compat.zoo import spec as specs

MODELS = (
    *("timm:lcnet_050", "timm:resnet10t", "torchvision:resnet18", "torchvision:mobilenet_v3_small"),
    *("torchvision:shufflenet_v2_x0_5", "torchvision:squeezenet1_1", "torchvision:mnasnet0_5", "timm:regnetx_002"),
    *("timm:mobilenetv3_small_050", "timm:mnasnet_small", "timm:ghostnet_050", "timm:convnext_atto", "timm:dla46_c"),
    *("torchvision:mobilenet_v2", "timm:semnasnet_075", "timm:tinynet_e", "torchvision:efficientnet_b0"),
    *("torchvision:regnet_y_400mf", "timm:repvit_m0_9", "timm:efficientvit_b0", "timm:mobilevit_xxs"),
    *("timm:edgenext_xx_small", "timm:pvt_v2_b0", "timm:vit_tiny_patch16_224"),
)
SIZES = {"timm:vit_tiny_patch16_224": 224}
SIZE = 64
"""Height and width of the pictures of the other models."""

EXPORTERS = ("torchscript", "dynamo")
SLIMMERS = ("onnxsim", "onnxslim")
WAYS = ("before", *SLIMMERS, "after")
LIMIT = 120.0
"""Seconds that an engine or a slimmer may take for one file."""

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


def sources() -> Iterator[tuple[str, str]]:
    """The files: names of models with the exporter, and of other tools' files with nothing."""
    yield from ((name, "") for name in producers.FILES)
    yield from ((name, exporter) for exporter in EXPORTERS for name in MODELS)


def write(name: str, exporter: str, path: Path) -> None:
    """Writes a file."""
    if not exporter:
        producers.write(name, path)
        return
    torch.manual_seed(0)
    size = SIZES.get(name, SIZE)
    sample = specs.load(name, (size, size), None)
    args = sample.args if isinstance(sample.args, tuple) else (sample.args,)
    torch.onnx.export(sample.model.eval(), args, str(path), dynamo=exporter == "dynamo", verbose=False)


def slim(path: Path, tool: str, python: str) -> Path | str:
    """The file slimmed by another tool; what went wrong, where that fails."""
    made = path.with_name(f"{tool}.onnx")
    try:
        done = subprocess.run([python, "-c", _SLIM, tool, path, made], capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "fails: the slimmer takes too long"
    return f"fails: the slimmer: {done.stderr.strip()[-200:]}" if done.returncode else made


def judge_plain(path: Path | str, proof: Proof, process: EngineProcess, engine: str) -> str:
    """What the engine makes of a file as it is."""
    if isinstance(path, str):
        return path
    rows = [row for _, _, rows in compare_in_engine(path, proof, ENGINES[engine], process) for row in rows]
    bad = next((row for row in rows if not row.ok), None)
    if bad is None:
        return "right" if rows else "not run"
    return bad.detail if bad.detail.startswith("fails") else f"wrong: {bad.case}: {bad.detail}"


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


def measure(
    name: str, exporter: str, targets: Sequence[str], processes: dict[str, EngineProcess], slimmers: str
) -> Any:
    """The rows of one file, one for each target."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stock.onnx"
        write(name, exporter, path)
        plain: dict[str, Path | str] = {"before": path}
        plain |= {tool: slim(path, tool, slimmers) for tool in SLIMMERS if slimmers}
        with Proof(read(path)) as proof:
            proof.make_cases()
            for target in targets:
                start = time.process_time()
                row: dict[str, Any] = {"file": name, "exporter": exporter, "target": target}
                row |= {way: judge_plain(file, proof, processes[target], target) for way, file in plain.items()}
                row["after"], row["nodes"] = judge_after(path, target)
                yield {**row, "seconds": round(time.process_time() - start, 2)}


def main() -> None:
    """Runs what is missing and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--earlier", type=Path, help="rows of earlier code, for what is not measured now")
    parser.add_argument("--slimmers", default="", help="an interpreter that has onnxsim and onnxslim")
    parser.add_argument("--only", choices=(*EXPORTERS, "models", "others"), help="one kind of files")
    parser.add_argument("--targets", default="openvino,opencv,tract,mnn,ncnn,rknn")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "files_in_engines.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    targets = [name for name in options.targets.split(",") if ENGINES[name].interpreter() is not None]
    rows, earlier = _read(options.rows), _read(options.earlier)
    done = set(map(_key, [*rows, *earlier]))
    with ExitStack() as stack:
        processes = {name: stack.enter_context(EngineProcess(ENGINES[name], LIMIT)) for name in targets}
        for name, exporter in sources():
            if options.only not in (None, exporter or "others", "models" if exporter else "others"):
                continue
            missing = [target for target in targets if (name, exporter, target) not in done]
            try:
                for row in measure(name, exporter, missing, processes, options.slimmers) if missing else ():
                    rows.append(row)
                    print(json.dumps(row)[:400], flush=True)
                    if options.rows:
                        with options.rows.open("a") as file:
                            file.write(json.dumps(row) + "\n")
            except Exception as error:  # torch's own exporter refuses some models
                print(f"{name} {exporter}: no file: {' '.join(str(error).split())[:200]}", flush=True)
    options.output.write_text(write_page(rows, earlier, targets), encoding="utf-8")


def _read(path: Path | None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["file"], row["exporter"], row["target"]


def _short(text: str) -> str:
    """What a row says, without the traceback that an engine puts before its reason."""
    text = re.sub(r"/tmp/[^\s\"']*/", "", " ".join(text.split()))
    before, _, trace = text.partition("Traceback (most recent call last): ")
    return (f"{before}... {trace[-110:]}" if trace else before)[:200]


def write_page(rows: Sequence[dict[str, Any]], earlier: Sequence[dict[str, Any]], targets: Sequence[str]) -> str:
    """The page with the counts, and every row that is not right everywhere."""
    done = set(map(_key, rows))
    old = [row for row in earlier if _key(row) not in done]
    rows = [*rows, *old]
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    models = {row["file"] for row in rows if row["exporter"]}
    files = {(row["file"], row["exporter"]) for row in rows}
    lines = [
        "# Files of other tools, converted for engines",
        "",
        f"Measured {date} with torch_onnx_compat {__version__}, torch {torch.__version__}, onnx {onnx.__version__}, "
        f"onnxruntime {onnxruntime.__version__}, by `python benchmarks/files_in_engines.py`, which says what the words "
        f"mean: {len(files)} files, stock torch's of {len(models)} models, the others of other tools. Of {len(rows)} "
        f"rows, {len(old)} were measured on earlier code of the day.",
        "",
        "| engine | files | right before | slimmed by onnxsim | by onnxslim | converted | refused by name | rejected |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for target in targets:
        for kind, chosen in (("models", True), ("other tools", False)):
            mine = [row for row in rows if row["target"] == target and bool(row["exporter"]) is chosen]
            after = Counter(row["after"].partition(":")[0] for row in mine)
            right = [sum(row.get(way) == "right" for row in mine) for way in WAYS]
            cells = " | ".join(map(str, right))
            lines.append(f"| {target}, {kind} | {len(mine)} | {cells} | {after['refused']} | {after['rejected']} |")
    worse = [row for row in rows if row["before"] == "right" and row["after"] != "right"]
    lines += ["", f"Right before, and not after: {len(worse)}.", "", "Not right in one of the four ways:", ""]
    for row in rows:
        bad = {way: _short(row[way]) for way in WAYS if row.get(way, "right") != "right"}
        if bad:
            what = "; ".join(f"{way}: {text}" for way, text in bad.items())
            lines.append(f"* {' '.join(filter(None, (row['file'], row['exporter'])))}, {row['target']}: {what}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
