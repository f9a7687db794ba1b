"""Zoo models for TensorRT without a graphics card: parsed, built, and what was parsed compared with eager torch.

For each model five files: ours for tensorrt-10, tensorrt-11 and tensorrt-rtx, and stock torch's of both exporters. The
batch may vary from 1 to 4, of text models also the number of tokens. TensorRT for RTX's parser and builder take each
file (`torch-onnx-compat measure tensorrt-rtx --install`). The parsed network is computed in float64, at the example's
size and at another one, and compared with the model in float64. Nothing is known of what the engine's kernels compute.
The models are the three cheapest of each family in docs/scoreboard, at the size of picture that is used there. Each
model runs in a fork of this process. Results are added to results/tensorrt.jsonl as they come, and what is there is not
measured again; each row has the fingerprint of the code that wrote its file.

    python benchmarks/tensorrt.py [--most 300] [--models timm:resnet18 ...] [--ways ours-11 ...] [--again]
    python benchmarks/tensorrt.py --profiles     # where the documented profiles and the measured one contradict
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import datetime
import importlib
import importlib.metadata
import io
import json
import logging
import math
import multiprocessing
import os
import re
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.engines import EngineProcess, find_engine
from torch_onnx_compat.engines.measure import facts_of
from torch_onnx_compat.engines.probes import node_tests, own_probes
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.inputs.dynamic import with_axes
from torch_onnx_compat.inputs.inputs import Inputs, bind
from torch_onnx_compat.shape_ranges import shape_ranges
from torch_onnx_compat.sweep.measure import tidy
from torch_onnx_compat.sweep.versions import code_for
from torch_onnx_compat.targets import load_target
from torch_onnx_compat.targets.target import PASSED
from torch_onnx_compat.zoo import family, load
from torch_onnx_compat.zoo.sample import Sample, Size

WAYS = ("ours-10", "ours-11", "ours-rtx", "stock dynamo", "stock TorchScript")
FORMS = ("ours-11 nms", "ours-11 nms-dense")
"""Ways for detectors whose boxes are suppressed in the file, which is compared with itself in onnxruntime."""
ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
ZOOS = ("torchvision", "timm_random", "smp", "transformers", "ultralytics", "torchaudio")
"""Lists of docs/scoreboard."""
OF_A_FAMILY = 3
"""So many models of one family."""
PACKAGES = ("torch", "torchvision", "timm", "transformers", "ultralytics", "segmentation-models-pytorch", "onnx")
ENGINE = "tensorrt-rtx"
MOST = 4
"""The largest batch."""
OTHER = 3
"""The batch beside the example's that is compared."""
LIMIT = 1e-4
"""Relative to the output's largest value; weights and constants of the file are float32."""
SECONDS = 900.0
"""Of one model, after which it is given up."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

Row = dict[str, Any]


def choose() -> dict[str, Size | None]:
    """The cheapest models of each family of the scoreboard, the cheapest first, and the size of their picture.

    Those of transformers are all of another architecture. A model that was refused there costs nothing known and comes
    last.
    """
    found: dict[str, list[tuple[float, str, Size | None]]] = {}
    for zoo in ZOOS:
        text = (ROOT / "docs" / "scoreboard" / f"{zoo}.jsonl").read_text(encoding="utf-8")
        for row in map(json.loads, text.splitlines()):
            if row["by"] != "ours":
                continue
            seconds = sum(row.get(f"{step}_s", math.inf) for step in ("load", "export", "check"))
            height, _, width = row.get("size", "").partition("x")
            kind = row["spec"] if zoo == "transformers" else f"{zoo} {row['family']}"
            size = (int(height), int(width)) if width else None
            found.setdefault(kind, []).append((seconds, row["spec"], size))
    kept = [row for of_kind in found.values() for row in sorted(of_kind, key=_cost)[:OF_A_FAMILY]]
    return {spec: size for _, spec, size in sorted(kept, key=_cost)}


def _cost(row: tuple[float, str, Size | None]) -> tuple[float, str]:
    return row[:2]


def dynamic_of(spec: str, sample: Sample) -> dict[str, dict[int, tuple[str, int, int]]]:
    """The axes that may vary, with bounds."""
    axes: dict[str, dict[int, tuple[str, int, int]]] = {}
    for name, of_input in sample.dynamic.items():
        axes[name] = {axis: ("batch", 1, MOST) for axis, label in of_input.items() if label == "batch"}
    if spec.startswith("transformers:"):
        texts = [name for name in axes if name in ("input_ids", "attention_mask", "token_type_ids")]
        length = max((sample.inputs[name].shape[1] for name in texts), default=0)
        for name in texts:
            if sample.inputs[name].shape[1] == length:  # else a mask for heads and queries
                axes[name][1] = ("tokens", 1, 2 * length)
    return {name: of_input for name, of_input in axes.items() if of_input}


def export(sample: Sample, dynamic: Mapping[str, Any], way: str, path: Path) -> None:
    """Writes a file."""
    model, kwargs = sample.model.eval(), dict(sample.kwargs)
    names = {name: {axis: label for axis, (label, _, _) in of.items()} for name, of in dynamic.items()}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if way.startswith("ours"):
            version, _, form = way.removeprefix("ours-").partition(" ")
            export_compat(
                model,
                sample.args,
                path,
                kwargs=kwargs,
                dynamic=dynamic or None,
                target=f"tensorrt-{version}",
                verify=sample.verify,
                postprocess=form or "keep",
            )
        elif way == "stock dynamo":
            dims = {
                label: torch.export.Dim(label, min=1, max=m) for of in dynamic.values() for label, _, m in of.values()
            }
            shapes = {name: {a: dims[label] for a, label in of.items()} for name, of in names.items()}
            for name in sample.inputs:
                shapes.setdefault(name, None)  # type: ignore[arg-type]
            torch.onnx.export(
                model,
                sample.args,
                path,
                kwargs=kwargs or None,  # TorchScript takes an empty one for a further argument
                dynamo=True,
                dynamic_shapes=shapes if names else None,
                external_data=False,
                verbose=False,
            )
        else:
            given = [n for n, v in sample.inputs.items() if isinstance(v, torch.Tensor)]
            plain = len(given) == len(sample.inputs)
            torch.onnx.export(
                model,
                sample.args,
                path,
                kwargs=kwargs or None,  # TorchScript takes an empty one for a further argument
                dynamo=False,
                opset_version=17,
                input_names=given if plain else None,
                dynamic_axes=names if plain else None,
            )


def run_eager(model: torch.nn.Module, inputs: Inputs, kind: torch.dtype) -> list[np.ndarray]:
    """Eager torch's outputs, computed in one type."""
    tensors = [t.to(kind) if t.is_floating_point() else t for t in inputs.tensors]
    args, kwargs = inputs.call(tensors)
    with torch.no_grad():
        found = copy.deepcopy(model).to(kind).eval()(*args, **kwargs)
    return [t.numpy() for t in torch.utils._pytree.tree_leaves(found) if isinstance(t, torch.Tensor)]


def case_of(model: torch.nn.Module, inputs: Inputs) -> Case:
    """The outputs in float64, or in float32 where the model makes float32 itself."""
    narrow = run_eager(model, inputs, torch.float32)
    try:
        right = run_eager(model, inputs, torch.float64)
    except Exception:  # of a zoo's model any
        return Case(inputs, narrow, "float32")
    noise = max((_error(a, b) for a, b in zip(narrow, right, strict=True)), default=0.0)
    return Case(inputs, right, "float64", noise)


@dataclass(frozen=True)
class Case:
    """Inputs, with what eager torch makes of them, the type that it computed in, and how far float32 is from that."""

    inputs: Inputs
    right: list[np.ndarray]
    kind: str
    noise: float = 0.0


def cases_of(sample: Sample, inputs: Inputs) -> list[Case]:
    """The example, and what it is at other sizes of each axis, as far as the model takes these."""
    found = [case_of(sample.model, inputs)]
    axes = inputs.sizes()
    if not axes:
        return found
    tries = [{axis: OTHER if axis == "batch" else 2 * size - 3 for axis, size in axes.items()}]
    tries += [{axis: OTHER for axis in axes if axis == "batch"}]
    for sizes in tries:
        other = inputs.at_sizes(sizes)
        other = other.redrawn(1) if sample.verify.random else other
        with contextlib.suppress(Exception):  # of a zoo's model any: it takes no such size
            return [*found, case_of(sample.model, other)]
    return found


def run_file(path: Path, cases: Sequence[Case]) -> list[Case]:
    """The cases with what onnxruntime makes of the file, which the export has proven."""
    session = onnxruntime.InferenceSession(path)
    names = [value.name for value in session.get_inputs()]
    found = []
    for case in cases:
        feeds = {name: tensor.numpy() for name, tensor in zip(names, case.inputs.tensors, strict=True)}
        found.append(replace(case, right=session.run(None, feeds), kind="float32"))
    return found


def judge(path: Path, cases: Sequence[Case], process: EngineProcess) -> Row:
    """What TensorRT for RTX makes of one file."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    names = [value.name for value in graph.input if value.name not in weights]
    inputs = cases[0].inputs
    about: Row = {"nodes": len(graph.node), "cases": len(cases), "eager": cases[0].kind}
    if len(names) != len(inputs.tensors):
        return {**about, "cell": "not fed", "why": f"{len(names)} inputs for {len(inputs.tensors)} tensors"}
    known = shape_ranges(inputs)
    ranges = {}
    for name, own, tensor in zip(names, inputs.names, inputs.tensors, strict=True):
        shape = list(tensor.shape)
        ranges[name] = [shape] * 3 if own not in known else [list(s) for s in vars(known[own]).values()]
    errors: list[float] = []
    for case in cases:
        feeds = {name: tensor.numpy() for name, tensor in zip(names, case.inputs.tensors, strict=True)}
        outcome = process.run(path, feeds, [value.name for value in graph.output], ranges)
        if outcome.status != "built":
            where = "parser refuses" if "parser:" in outcome.error else "builder refuses"
            where = "lacks a plugin" if re.search("Plugin not found|plugin registry", outcome.error) else where
            cell = {"crashed": "crashes", "misread": "cannot be computed", "unknown": "asks for a card"}
            return {**about, "cell": cell.get(outcome.status, where), "why": tidy(outcome.error)}
        if not outcome.outputs:
            return {**about, "cell": "values not known", "why": tidy(outcome.error)}
        if len(case.right) != len(outcome.outputs):
            why = f"{len(outcome.outputs)} outputs, {len(case.right)} of the model"
            return {**about, "cell": "not compared", "why": why}
        errors += [_error(a, b) for a, b in zip(outcome.outputs, case.right, strict=True)]
    worst, noise = max(errors, default=0.0), max(case.noise for case in cases)
    limit = max(LIMIT if about["eager"] == "float64" else 10 * LIMIT, noise)
    return {**about, "cell": "equal" if worst < limit else "differs", "error": worst, "noise": noise}


def _error(found: np.ndarray, right: np.ndarray) -> float:
    if found.shape != right.shape:
        return math.inf
    if not right.size:
        return 0.0
    a, b = found.astype(np.float64), right.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(np.isfinite(a), finite):
        return math.inf
    error = float(np.abs(a - b)[finite].max(initial=0) / (np.abs(b[finite]).max(initial=0) or 1))
    return error if math.isfinite(error) else math.inf


def measure(spec: str, size: Size | None, ways: Sequence[str], answers: Connection) -> None:
    """Sends the rows of one model; runs in a process of its own."""
    sample = load(spec, size)
    dynamic = dynamic_of(spec, sample)
    inputs = with_axes(bind(sample.model, sample.args, sample.kwargs, None), dynamic or None, None, None).real()
    cases = cases_of(sample, inputs)
    with tempfile.TemporaryDirectory() as folder, EngineProcess(find_engine(ENGINE), limit=240.0) as process:
        for way in ways:
            path, start = Path(folder) / f"{way}.onnx", time.process_time()
            try:
                export(sample, dynamic, way, path)
            except Exception as error:
                cell = "refused by us" if way.startswith("ours") else "export fails"
                row = {"cell": cell, "why": tidy(f"{type(error).__name__}: {error}")}
            else:
                row = {"export_s": round(time.process_time() - start, 1)}
                row |= judge(path, run_file(path, cases) if way in FORMS else cases, process)
            path.unlink(missing_ok=True)
            answers.send({"way": way, "axes": sorted(inputs.sizes()), **row, "engine_version": process.version})


def measure_apart(spec: str, size: Size | None, ways: Sequence[str]) -> list[Row]:
    """The rows of one model, from a fork of this process, which has imported what it needs and run nothing."""
    with contextlib.suppress(CompatError):  # told by the load in the fork
        family(spec)  # imports its zoo
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(spec, size, ways, writer))
    child.start()
    writer.close()
    found: list[Row] = []
    end, why = time.monotonic() + SECONDS, ""
    while len(found) < len(ways) and not why:
        if not reader.poll(max(end - time.monotonic(), 0)):
            why = f"given up after {SECONDS:g} s"
            continue
        try:
            answer = reader.recv()
        except EOFError:
            child.join(10)
            why = f"the process ended with code {child.exitcode}"
            continue
        why = answer.get("failed", "")
        found += [] if why else [answer]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # the engine ends with its input
    child.join()
    about = _about() | {"code": code_for(spec, "ours")}
    rows = [{"model": spec, **row, **about} for row in found]
    for row in rows:
        if "why" in row:
            row["why"] = _COLOURS.sub("", row["why"])
    missing = [way for way in ways if way not in {row["way"] for row in rows}]
    return [*rows, *({"model": spec, "way": way, "cell": "failed", "why": why, **about} for way in missing)]


def _answer(spec: str, size: Size | None, ways: Sequence[str], answers: Connection) -> None:
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)  # models print
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        measure(spec, size, ways, answers)
    except Exception as error:  # of a zoo's model any
        answers.send({"failed": tidy(f"{type(error).__name__}: {error}")})


def _about() -> Row:
    found: Row = {"date": str(datetime.date.today())}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def report(rows: list[Row]) -> str:
    """The results as Markdown."""
    found = {name: sorted({row[name] for row in rows if name in row}) for name in ("date", "engine_version", *PACKAGES)}
    told = ", ".join(f"{name} {' and '.join(found[name])}" for name in PACKAGES if found[name])
    models = list(dict.fromkeys(row["model"] for row in rows))
    lines = [
        "# Zoo models for TensorRT, without a graphics card",
        "",
        f"{' to '.join(dict.fromkeys((found['date'][0], found['date'][-1])))}, TensorRT for RTX "
        f"{' and '.join(found['engine_version'])}, {told}, one thread.",
        f"{len(models)} models; the batch may vary from 1 to {MOST}, of text models the tokens too. Parsed and built",
        "by TensorRT for RTX, whichever target the file was made for. Equal: the parsed network, computed in float64,",
        f"is within {LIMIT:g} of the model in float64 ({10 * LIMIT:g} where the model takes float32), or as near as",
        "the model in float32 is, since the file's constants are float32; relative to the largest output, at the",
        f"example's batch and at {OTHER}. Nothing was run on a card.",
        "The builder also refuses a file in which an axis is fixed that was to vary.",
        "Written by benchmarks/tensorrt.py from tensorrt.jsonl.",
        "Lacks a plugin: the parser asks for a plugin that TensorRT has and TensorRT for RTX has not.",
        "",
        "| file | models | written | parsed | built | equal to eager torch | not known | differs | lacks a plugin |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for way in (*WAYS, *FORMS):
        cells = Counter(row["cell"] for row in rows if row["way"] == way)
        count = sum(cells.values())
        if not count:
            continue
        written = count - cells["refused by us"] - cells["export fails"] - cells["failed"]
        parsed = written - cells["parser refuses"] - cells["lacks a plugin"]
        built = parsed - cells["builder refuses"] - cells["crashes"]
        lines.append(
            f"| {way} | {count} | {written} | {parsed} | {built} | {cells['equal']} | {cells['values not known']} | "
            f"{cells['differs'] + cells['cannot be computed']} | {cells['lacks a plugin']} |"
        )
    shown = [way for way in (*WAYS, *FORMS) if any(row["way"] == way for row in rows)]
    lines += ["", f"| model | {' | '.join(shown)} |", f"|---{'|---' * len(shown)}|"]
    cell = {(row["model"], row["way"]): row for row in rows}
    for model in models:
        of = (cell.get((model, way)) for way in shown)
        texts = (_told(row) for row in of)
        lines.append(f"| {model} | {' | '.join(texts)} |")
    bad = [row for row in rows if row["cell"] != "equal"]
    lines += ["", "What stands in the way:", ""]
    lines += [f"- {r['model']}, {r['way']}: {r['cell']}: {r.get('why', r.get('error'))}"[:400] for r in bad]
    return "\n".join(lines) + "\n"


def _told(row: Row | None) -> str:
    if row is None:
        return "-"
    return f"{row['cell']} {row['error']:.1g}" if row["cell"] == "differs" else str(row["cell"])


def contradictions() -> str:
    """Where the profiles of tensorrt-10 and -11 and the measured one judge a probe otherwise, as Markdown."""
    measured = load_target(ENGINE)
    lines = [
        "# TensorRT's documents beside TensorRT for RTX",
        "",
        f"{datetime.date.today()}. The verdicts of the profiles on all probes: `{ENGINE}` {measured.version} is",
        f"measured ({measured.date}), the others are written from documents. A difference is no error: TensorRT for",
        "RTX is not TensorRT. Each one has the source on which the documented verdict rests, which is in the profile.",
        "Where documents and measurement agreed against a profile, the profile was mended. Written by",
        "`benchmarks/tensorrt.py --profiles`.",
        "",
        "| profile | probes | both take | both object | documents object only | RTX objects only | not documented |",
        "|---|---|---|---|---|---|---|",
    ]
    details: list[str] = []
    probes = [(probe.op_type, probe.opset, facts_of(probe)) for probe in [*own_probes(), *node_tests()]]
    for name in ("tensorrt-10", "tensorrt-11"):
        documented = load_target(name)
        cells: Counter[str] = Counter()
        rows: Counter[tuple[str, str, str, str]] = Counter()
        for op_type, opset, facts in probes:
            if opset > min(documented.opsets[1], measured.opsets[1]):
                continue
            said, so = (target.verdict(op_type, opset, facts) for target in (documented, measured))
            if "unknown" in (said, so):
                cells["unknown"] += 1
                continue
            cells[f"{said in PASSED} {so in PASSED}"] += 1
            if (said in PASSED) != (so in PASSED):
                objection = (measured if said in PASSED else documented).judge(op_type, opset, facts)
                assert objection is not None
                source = documented.source(op_type, opset, facts)
                assert source, f"{name} does not say why {op_type} is not as {ENGINE} has it: {facts}"
                rows[op_type, name if said not in PASSED else measured.name, objection.reason, source] += 1
        kinds = ("True True", "False False", "False True", "True False", "unknown")
        lines.append(f"| {name} | {sum(cells.values())} | {' | '.join(str(cells[kind]) for kind in kinds)} |")
        details += [
            "",
            f"## {name}",
            "",
            "| operator | who objects | reason | probes | why the documented verdict stands |",
        ]
        details += ["|---|---|---|---|---|"]
        for (op_type, who, why, source), count in sorted(rows.items()):
            details.append(f"| {op_type} | {who} | {why.replace('|', ' or ')} | {count} | {source} |")
    return "\n".join([*lines, *details]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="*", default=[], help="by default those of the scoreboard")
    parser.add_argument("--most", type=int, default=None, help="of the scoreboard's models, the cheapest first")
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=(*WAYS, *FORMS))
    parser.add_argument("--again", action="store_true", help="also measure what results/tensorrt.jsonl has")
    parser.add_argument("--profiles", action="store_true", help="compare the profiles only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    if options.profiles:
        (RESULTS / "tensorrt_profiles.md").write_text(contradictions(), encoding="utf-8")
        return
    if find_engine(ENGINE).interpreter() is None:
        raise CompatError(f"{ENGINE} is not installed; see `torch-onnx-compat measure {ENGINE} --install`.")
    for name in ("onnxscript", "torch.export"):
        importlib.import_module(name)
    catalogue()
    sizes = choose()
    for spec in options.models or list(sizes)[: options.most]:
        known = {(row["model"], row["way"]) for row in read()}
        missing = [way for way in options.ways if options.again or (spec, way) not in known]
        rows = measure_apart(spec, sizes.get(spec), missing) if missing else []
        keys = {(row["model"], row["way"]) for row in rows}
        write([*(row for row in read() if (row["model"], row["way"]) not in keys), *rows])
        print(spec, *(f"{row['way']}: {_told(row)};" for row in rows), flush=True)
    write(read())


def read() -> list[Row]:
    """The results so far."""
    path = RESULTS / "tensorrt.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def write(rows: list[Row]) -> None:
    """Keeps the results, and their report."""
    rows = sorted(rows, key=lambda row: (row["model"], (*WAYS, *FORMS).index(row["way"])))
    (RESULTS / "tensorrt.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (RESULTS / "tensorrt.md").write_text(report(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
