"""Small models around the modules that rewrites replace, through both exporters at an early and a late opset.

Each is exported by export_compat and by torch.onnx.export with the same dynamic axes, and the file is run in
onnxruntime at every size of the case against eager torch. Usage:

    python benchmarks/module_swaps.py [--only interpolate] [--missing] [--ours] [--write]

With --write, the models that were run replace their rows among those of earlier runs.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import json
import logging
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import onnx
import onnxruntime
import torch
import typer

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from swap_models import Case, cases  # noqa: E402

from torch_onnx_compat import CompatError, export_compat  # noqa: E402
from torch_onnx_compat.catalogue.entry import EXPORTERS, Exporter  # noqa: E402
from torch_onnx_compat.check.compare import compare  # noqa: E402

RESULT = ROOT / "benchmarks" / "results" / "module_swaps.md"
ROWS = RESULT.with_suffix(".jsonl")
OPSETS = (11, 20)
RIGHT = "right"
LIMIT = 120
"""Seconds that one export may take."""
STOCK_DYNAMO_EARLY = ("dynamo", 11)
"""Not tried: torch returns a file of opset 18."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one model."""

    verdict: str
    reason: str = ""


def judged(model: bytes, case: Case, opset: int) -> Outcome:
    """Whether a file has its opset and computes what the model does at every size of the case."""
    loaded = onnx.load_from_string(model)
    found = next(entry.version for entry in loaded.opset_import if entry.domain in ("", "ai.onnx"))
    if found != opset:
        return Outcome(f"opset {found}")
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for size in case.sizes():
        torch.manual_seed(1)
        image = torch.randn(size)
        wanted = case.wanted(image)
        try:
            got = session.run(None, {session.get_inputs()[0].name: image.numpy()})[0]
        except Exception as error:
            return Outcome("wrong", f"fails at {tuple(size)}: {error}")
        row = compare("", "", got, wanted)
        if not row.ok:
            return Outcome("wrong", f"at {tuple(size)}: {row.detail or row.max_abs}")
    return Outcome(RIGHT)


def ours(case: Case, exporter: Exporter, opset: int) -> Outcome:
    try:
        with limited():
            result = export_compat(
                case.model(),
                case.example(),
                input_names=["x"],
                exporter=exporter,
                opset_version=opset,
                dynamic={"x": dict(case.axes)},
            )
    except (CompatError, TimeoutError) as error:
        return Outcome("refused", " ".join(str(error).split())[:300])
    assert result.model_bytes is not None
    return judged(result.model_bytes, case, opset)


def stock(case: Case, exporter: Exporter, opset: int) -> Outcome:
    buffer = io.BytesIO()
    if exporter == "torchscript":
        how: dict[str, Any] = {"dynamic_axes": {"x": dict(case.axes)}}
    else:
        how = {"dynamic_shapes": (dict.fromkeys(case.axes, torch.export.Dim.DYNAMIC),), "verbose": False}
    try:
        with torch.no_grad(), limited():
            torch.onnx.export(
                case.model(),
                (case.example(),),
                buffer,
                dynamo=exporter == "dynamo",
                opset_version=opset,
                input_names=["x"],
                **how,
            )
        return judged(buffer.getvalue(), case, opset)
    except Exception as error:
        return Outcome("refused", " ".join(str(error).split())[:300])


@contextmanager
def limited() -> Iterator[None]:
    """Ends with an error what takes too long."""

    def ended(*_: Any) -> None:
        raise TimeoutError(f"takes more than {LIMIT} s")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def row(case: Case, with_stock: bool) -> dict[str, Outcome]:
    found = {}
    for exporter in EXPORTERS:
        for opset in OPSETS:
            found[f"{exporter} {opset}"] = ours(case, exporter, opset)
            if with_stock and (exporter, opset) != STOCK_DYNAMO_EARLY:
                found[f"stock {exporter} {opset}"] = stock(case, exporter, opset)
    return found


def table(rows: dict[str, dict[str, Outcome]]) -> str:
    """The verdicts as a Markdown table, counts first, and why ours did not make some."""
    columns = list(next(iter(rows.values())))
    lines = [f"| model | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    counts = [Counter(row[column].verdict for row in rows.values()) for column in columns]
    lines.append(f"| **right of {len(rows)}** | {' | '.join(f'**{count[RIGHT]}**' for count in counts)} |")
    for name, found in rows.items():
        lines.append(f"| {name} | {' | '.join(found[column].verdict for column in columns)} |")
    reasons = [
        f"* {name}, {column}: {outcome.verdict}: {' '.join(outcome.reason.split())[:300]}"
        for name, found in rows.items()
        for column, outcome in found.items()
        if outcome.reason and not column.startswith("stock")
    ]
    return "\n".join([*lines, *(["", *reasons] if reasons else [])]) + "\n"


def merged(rows: dict[str, dict[str, Outcome]]) -> dict[str, dict[str, Outcome]]:
    """These rows and, of the other models, those of earlier runs, in the order of the models."""
    lines = ROWS.read_text(encoding="utf-8").splitlines() if ROWS.exists() else []
    earlier = {kept["model"]: kept["outcomes"] for kept in map(json.loads, lines)}
    every = {name: {key: Outcome(**held) for key, held in found.items()} for name, found in earlier.items()} | rows
    ordered = {case.name: every[case.name] for case in cases() if case.name in every}
    plain = ({"model": name, "outcomes": {k: vars(o) for k, o in found.items()}} for name, found in ordered.items())
    ROWS.write_text("".join(f"{json.dumps(one)}\n" for one in plain), encoding="utf-8")
    return ordered


def main(
    only: Annotated[str, typer.Option(help="Models whose name contains this.")] = "",
    missing: Annotated[bool, typer.Option(help="Only models that no earlier run wrote a row of.")] = False,
    ours_only: Annotated[bool, typer.Option("--ours", help="Whether torch.onnx.export is left out.")] = False,
    write: Annotated[bool, typer.Option(help="Whether the table goes to benchmarks/results/module_swaps.md.")] = False,
) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    rows = {}
    known = merged({}) if missing else {}
    for case in cases():
        if only in case.name and case.name not in known:
            rows[case.name] = found = row(case, not ours_only)
            if write:
                merged({case.name: found})
            print(case.name, {key: outcome.verdict for key, outcome in found.items()}, flush=True)
            for key, outcome in found.items():
                if outcome.reason and not key.startswith("stock"):
                    print(f"    {key}: {' '.join(outcome.reason.split())[:600]}", flush=True)
    packages = ("torch", "timm", "onnx", "onnxscript", "onnxruntime")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    head = (
        f"Measured {datetime.date.today()} with {versions} (benchmarks/module_swaps.py). right: what eager torch "
        "gives, in onnxruntime, at every size of the case; wrong: a file that gives something else or fails at one "
        "of them; refused: no file. Asked for opset 11, stock dynamo returns opset 18; it has no column here."
    )
    text = f"{head}\n\n{table(merged(rows) if write else rows)}"
    print(text)
    if write:
        RESULT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
