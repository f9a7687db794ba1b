"""Where stock torch is right and export_compat is not: small reproductions through both exporters of both.

Each export runs in a process of its own. The judge is this script's: onnxruntime against eager torch on the example and
on further inputs, at other sizes of the dynamic axes where the case has some.

    python benchmarks/never_worse.py [--only scripted] [--out table.md] [--limit 60]
"""

from __future__ import annotations

import argparse
import copy
import datetime
import importlib.metadata
import io
import itertools
import json
import multiprocessing
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import onnxruntime
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

sys.path.insert(0, str(Path(__file__).parent))
from never_worse_models import CASES, Case

Row = tuple[str, str, float]
"""Verdict, reason and seconds of CPU."""

ROUTES = ("stock torchscript", "stock dynamo", "ours torchscript", "ours dynamo")


def leaves_of(value: Any) -> list[Any]:
    """Tensors and numbers in a model's arguments or results, in order; None and texts left out."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, (Tensor, bool, int, float))]


def export(case: Case, route: str) -> bytes:
    """The file that a route makes of a case."""
    who, exporter = route.split()
    count = len(leaves_of(case.args))
    names = [f"i{index}" for index in range(count)]
    axes = {f"i{index}": dict(named) for index, named in case.axes.items()}
    options = {"input_names": names, "opset_version": 18, **(case.options or {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if who == "ours":
            from torch_onnx_compat import export_compat

            result = export_compat(case.model, case.args, dynamic_axes=axes or None, exporter=exporter, **options)
            assert result.model_bytes is not None
            return result.model_bytes
        return _export_stock(case, exporter == "dynamo", axes, options)


def _export_stock(case: Case, dynamo: bool, axes: dict[str, Any], options: dict[str, Any]) -> bytes:
    file: Any = io.BytesIO()
    if not dynamo:
        torch.onnx.export(case.model, case.args, file, dynamo=False, dynamic_axes=axes or None, **options)
        return bytes(file.getvalue())
    leaves = leaves_of(case.args)
    dims = [
        dict.fromkeys(axes.get(f"i{i}", {}), torch.export.Dim.DYNAMIC) or None if isinstance(leaf, Tensor) else None
        for i, leaf in enumerate(leaves)
    ]
    _, structure = pytree.tree_flatten(case.args)
    shapes = pytree.tree_unflatten(dims, structure) if any(dims) else None
    if shapes is not None and hasattr(case.model, "function"):
        shapes = (shapes,)  # torch nests the shapes of *args
    program: Any = torch.onnx.export(
        case.model, case.args, None, dynamo=True, dynamic_shapes=shapes, verbose=False, **options
    )
    return bytes(program.model_proto.SerializeToString())


def judge(case: Case, file: bytes) -> str:
    """What is wrong with a file; an empty text if nothing is."""
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    for number, args in enumerate([case.args, *case.others]):
        model = copy.deepcopy(case.model)
        with torch.no_grad():
            wanted = leaves_of(model(*copy.deepcopy(args)))
        if case.options is None or "training" not in case.options:
            error = _compare(session, leaves_of(args), wanted)
            if error:
                return f"input {number}: {error}"
    return ""


def _compare(session: Any, args: list[Any], wanted: list[Any]) -> str:
    feeds = {f"i{i}": np.asarray(a) for i, a in enumerate(args)}
    names = [value.name for value in session.get_inputs()]
    if not set(names) <= set(feeds):
        return f"the file takes {', '.join(names)}"
    try:
        found = session.run(None, {name: feeds[name] for name in names})
    except Exception as error:
        return f"does not run: {str(error)[:80]}"
    if len(found) != len(wanted):
        return f"{len(found)} outputs for {len(wanted)}"
    for one, value in zip(found, wanted, strict=True):
        other = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
        if one.shape != other.shape:
            return f"shape {one.shape} for {other.shape}"
        if isinstance(value, Tensor) and one.dtype != other.dtype:
            return f"type {one.dtype} for {other.dtype}"
        if not np.allclose(one.astype(np.float64), other.astype(np.float64), 1e-3, 1e-4, equal_nan=True):
            return "other values"
    return ""


def run(name: str, route: str, pipe: Any) -> None:
    """Exports and judges one case in this process; sends verdict and reason."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):  # torch's C++ prints the graphs that it refuses
        os.dup2(nowhere, descriptor)
    torch.set_num_threads(1)
    case = CASES[name]()
    start = time.process_time()
    try:
        file = export(case, route)
    except BaseException as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        verdict = "refused" if "CompatError" in kinds or route.startswith("stock") else f"crash {type(error).__name__}"
        text = " ".join(str(error).split())
        pipe.send((verdict, text, time.process_time() - start))
        return
    seconds = time.process_time() - start
    try:
        wrong = judge(case, file)
    except BaseException as error:
        wrong = f"{type(error).__name__}: {error}"
    pipe.send(("WRONG" if wrong else "right", wrong, seconds))


def measure(name: str, route: str, limit: float) -> Row:
    """Verdict, reason and seconds of CPU of one route on one case."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=run, args=(name, route, theirs))
    process.start()
    theirs.close()
    try:
        result = ours.recv() if ours.poll(limit) else ("out of time", "", limit)
    except EOFError:
        result = ("process died", "", 0.0)
    process.kill()
    process.join()
    return result


def table(rows: dict[str, dict[str, Row]]) -> str:
    """The page of results."""
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("torch", "onnx", "onnxscript", "onnxruntime"))
    columns = "".join(f" {route} |" for route in ROUTES)
    worse = [n for n, row in rows.items() if _is_right(row, "stock") and not _is_right(row, "ours")]
    head = [
        "# Small reproductions: where stock torch is right and export_compat is not",
        "",
        f"{datetime.date.today()}, {versions}, opset 18, one thread.",
        "`python benchmarks/never_worse.py` makes this page; the judge is its own. *right*: the outputs are eager",
        "torch's, on the example and on further inputs. Seconds are those of the CPU. *Worse*: stock is right through",
        "an exporter, and ours through none.",
        "",
        "| | " + " | ".join(ROUTES) + " |",
        "| --- |" + " --- |" * len(ROUTES),
    ]
    for verdict in ("right", "WRONG", "refused"):
        counts = [sum(row[route][0] == verdict for row in rows.values()) for route in ROUTES]
        head.append(f"| {verdict} | " + " | ".join(map(str, counts)) + " |")
    other = [sum(row[route][0] not in ("right", "WRONG", "refused") for row in rows.values()) for route in ROUTES]
    head += ["| crash, out of time | " + " | ".join(map(str, other)) + " |", ""]
    head += [f"Worse than stock: {', '.join(worse) or 'none'}.", "", f"| case |{columns}", "| --- |" + " --- |" * 4]
    for name, row in rows.items():
        head.append(f"| {name} | " + " | ".join(f"{row[r][0]} {row[r][2]:.1f}" for r in ROUTES) + " |")
    return "\n".join(head) + "\n"


def _is_right(row: dict[str, Row], who: str) -> bool:
    return any(row[route][0] == "right" for route in ROUTES if route.startswith(who))


def main() -> None:
    """Runs the cases, and writes the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--routes", default="", help="part of a route's name")
    parser.add_argument("--out", type=Path, help="page to write")
    parser.add_argument("--rows", type=Path, help="rows, one JSON list a line; those that are there are kept")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds for one export")
    args = parser.parse_args()
    for route in ROUTES:  # what every export needs is imported and built once, before the processes are forked
        export(CASES["isfinite"](), route)
    rows: dict[str, dict[str, Row]] = {name: dict.fromkeys(ROUTES, ("-", "", 0.0)) for name in CASES}
    kept = args.rows.read_text().splitlines() if args.rows is not None and args.rows.exists() else []
    for name, route, *row in map(json.loads, kept):
        if name in rows:
            rows[name][route] = (row[0], row[1], row[2])
    for name, route in itertools.product((n for n in CASES if args.only in n), (r for r in ROUTES if args.routes in r)):
        if rows[name][route][0] != "-":
            continue
        rows[name][route] = verdict, reason, seconds = measure(name, route, args.limit)
        if args.rows is not None:
            with args.rows.open("a") as file:
                file.write(json.dumps([name, route, verdict, reason, seconds]) + "\n")
        mark = "  <- " if route.startswith("ours") and verdict != "right" else ""
        text = reason[: 400 if mark else 100]
        print(f"{name:28} {route:18} {verdict:12} {seconds:5.1f} {mark}{text}", flush=True)
    if args.out is not None:
        args.out.write_text(table(rows))


if __name__ == "__main__":
    main()
