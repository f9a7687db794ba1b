"""export_compat beside both of stock torch's exporters, on models of packages that nobody had in mind when it was made.

The models are those of unseen_models/: random weights, statistics of batch normalisation and zero parameters
randomised. The judge is this script's: onnxruntime against references that eager torch computed before any export, on
the example, on other values, at other batches, and at other sizes where sizes are dynamic. Rows are JSON lines; a run
goes on where the last one ended.

    python benchmarks/unseen.py --rows rows.jsonl [--only lpips] [--routes ours] [--again] [--out table.md]
"""

from __future__ import annotations

import argparse
import copy
import datetime
import importlib.metadata
import inspect
import io
import itertools
import json
import multiprocessing
import os
import random
import re
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

sys.path.insert(0, str(Path(__file__).parent))
from unseen_models import MODELS, Unseen

Row = dict[str, Any]
Case = tuple[str, list[Tensor], list[list[Any]]]
"""What it tries, the tensors that go in, and what eager torch computes of them, also with all sorting stable."""

ROUTES = ("ours batch", "torchscript batch", "dynamo batch", "ours sizes", "torchscript sizes", "dynamo sizes")
TOLERANCE = 1e-3
"""Of an output's largest absolute value."""


class Refused(Exception):
    """A CompatError, told from other exceptions."""


def leaves_of(value: Any) -> list[Any]:
    """Tensors and numbers in a model's result, in order."""
    if hasattr(value, "to_tuple"):  # transformers' results
        value = value.to_tuple()
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, (Tensor, bool, int, float))]


def randomise(model: nn.Module) -> nn.Module:
    """Gives what an initialisation leaves at zero or one another value, so that dropping it would show."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
                assert module.running_var is not None
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.8, 1.2)
        for parameter in model.parameters():
            if parameter.is_floating_point() and not parameter.any():
                parameter.data = torch.randn(parameter.shape) * 0.05  # some are expanded
    return model


def build(spec: Unseen) -> nn.Module:
    """The model, with the same weights each time."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    return randomise(spec.make().eval()).requires_grad_(False)


def cases_of(spec: Unseen, with_sizes: bool) -> Iterator[Case]:
    """The inputs on which files are judged; those that the model itself refuses are left out.

    Each runs on a model of its own: some keep tables of the sizes that they met, and compute otherwise from then on.

    Raises:
        ValueError: The model draws random numbers, so nothing can be compared with it.
    """
    example = spec.example()
    trials = [("example", 0, example), ("other values", 1, example)]
    trials += [(f"batch {n}", 2, {**example, "n": n}) for n in (1, 3)]
    if with_sizes:
        for n, number in itertools.product((1, 3), range(1, 1 + max(map(len, spec.sizes.values())) - 1)):
            sizes = {name: values[min(number, len(values) - 1)] for name, values in spec.sizes.items()}
            trials.append((f"batch {n}, sizes {sizes}", 3, {**sizes, "n": n}))
    for name, seed, sizes in trials:
        model = build(spec)
        args = spec.draw(seed, **sizes)
        try:
            wanted = run_eager(model, args)
            with StableSorting():
                stable = run_eager(build(spec), args)
        except Exception:  # other people's models raise what they like at sizes that they do not take
            if name == "example":
                raise
            continue
        if name == "example":
            again = run_eager(model, args)
            if any(
                isinstance(a, Tensor) and not a.equal(b) and not a.isnan().any()
                for a, b in zip(wanted, again, strict=True)
            ):
                raise ValueError("the model's results differ from run to run")
        yield name, [leaf for leaf in pytree.tree_leaves(args) if isinstance(leaf, Tensor)], [wanted, stable]


class StableSorting(TorchFunctionMode):
    """While active, torch keeps equal values in their order, of which it promises nothing otherwise."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (torch.sort, torch.argsort, Tensor.sort, Tensor.argsort):
            kwargs = {**dict(zip(("dim", "descending"), args[1:], strict=False)), **kwargs, "stable": True}
            args = args[:1]
        return func(*args, **kwargs)


def run_eager(model: nn.Module, args: tuple[Any, ...]) -> list[Any]:
    """What a copy of the model returns."""
    with torch.no_grad():
        return [v.clone() if isinstance(v, Tensor) else v for v in leaves_of(model(*copy.deepcopy(args)))]


def export(spec: Unseen, model: nn.Module, route: str) -> tuple[bytes, str]:
    """The file that a route makes, and what the route says of it."""
    who, which = route.split()
    args = spec.draw(0, **spec.example())
    axes = {
        f"i{index}": {axis: name for axis, name in named.items() if which == "sizes" or name == "n"}
        for index, named in enumerate(spec.axes)
    }
    names = list(axes)
    axes = {name: named for name, named in axes.items() if named}
    if who == "ours":
        from torch_onnx_compat import CompatError, export_compat

        try:
            result = export_compat(model, args, input_names=names, dynamic_axes=axes)
        except CompatError as error:
            raise Refused(str(error)) from error
        assert result.model_bytes is not None
        given_up = next((note for note in result.notes if "was taken" in note or "left as" in note), "")
        return result.model_bytes, f"{result.exporter} {given_up}".strip()
    file: Any = io.BytesIO()
    if who == "torchscript":
        torch.onnx.export(model, args, file, dynamo=False, input_names=names, dynamic_axes=axes)
        return bytes(file.getvalue()), ""
    leaves, structure = pytree.tree_flatten(args)
    numbers = itertools.count()
    dims = [
        dict.fromkeys(axes.get(f"i{next(numbers)}", {}), torch.export.Dim.DYNAMIC) if isinstance(leaf, Tensor) else None
        for leaf in leaves
    ]
    shapes = pytree.tree_unflatten(dims, structure)
    if any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(model.forward).parameters.values()):
        shapes = (shapes,)  # torch.export takes the arguments of *args for one
    program: Any = torch.onnx.export(
        model, args, None, dynamo=True, input_names=names, dynamic_shapes=shapes, verbose=False
    )
    return bytes(program.model_proto.SerializeToString()), ""


def judge(file: bytes, cases: list[Case]) -> str:
    """What is wrong with a file; an empty text if nothing is."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    for name, args, references in cases:
        feeds = {f"i{index}": arg.numpy() for index, arg in enumerate(args)}
        if not set(names) <= set(feeds):
            return f"the file takes {', '.join(names)}"
        try:
            found = session.run(None, {name: feeds[name] for name in names})
        except Exception as error:
            return f"{name}: does not run: {' '.join(str(error).split())[:200]}"
        wrong = [tell_difference(found, wanted) for wanted in references]
        if all(wrong):
            return f"{name}: {wrong[0]}"
    return ""


def tell_difference(found: list[Any], wanted: list[Any]) -> str:
    """How outputs differ from what eager torch computed; an empty text if they do not."""
    if len(found) != len(wanted):
        return f"{len(found)} outputs for {len(wanted)}"
    for number, (one, value) in enumerate(zip(found, wanted, strict=True)):
        wrong = compare(np.asarray(one), value)
        if wrong:
            return f"output {number}: {wrong}"
    return ""


def compare(found: np.ndarray, value: Any) -> str:
    """How an output differs from eager torch's; an empty text if it does not."""
    wanted = torch.as_tensor(value).detach().numpy()
    if np.iscomplexobj(wanted):
        wanted = np.stack([wanted.real, wanted.imag], -1)
    if found.shape != wanted.shape:
        return f"shape {found.shape} for {wanted.shape}"
    if wanted.dtype.kind in "biu":
        return "" if np.array_equal(found, wanted) else f"{(found != wanted).sum()} of {wanted.size} integers differ"
    if not np.array_equal(np.isfinite(found), np.isfinite(wanted)):
        return "NaN or infinities elsewhere"
    finite = np.isfinite(wanted)
    difference = np.abs(found[finite].astype(np.float64) - wanted[finite]).max(initial=0.0)
    largest = np.abs(wanted[finite]).max(initial=0.0)
    return "" if difference <= TOLERANCE * max(largest, 1e-6) else f"off by {difference:.2g}, largest {largest:.2g}"


def in_process(function: Callable[[Connection], None], limit: float) -> Any:
    """What a function sends from a process of its own, which may take `limit` seconds of CPU; None if it dies."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_limited, args=(function, theirs, limit))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit * 12) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def _limited(function: Callable[[Connection], None], pipe: Connection, limit: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + limit), int(time.process_time() + limit) + 5))
    function(pipe)


def measure_route(spec: Unseen, model: nn.Module, route: str, cases: list[Case]) -> Callable[[Connection], None]:
    """A function that exports, judges and sends the row of one route."""

    def run(pipe: Connection) -> None:
        start = time.process_time()
        row: Row = {"model": spec.name, "package": spec.package, "route": route}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                file, said = export(spec, model, route)
            except BaseException as error:
                ours = route.startswith("ours") and not isinstance(error, Refused)
                reason = f"{type(error).__name__}: {error}" if not isinstance(error, Refused) else str(error)
                row |= {"verdict": "CRASH" if ours else "refused", "reason": reason[:4000]}
                pipe.send(row | {"seconds": time.process_time() - start})
                return
        row["seconds"] = time.process_time() - start
        try:
            wrong = judge(file, cases)
        except BaseException as error:
            wrong = f"{type(error).__name__}: {error}"[:400]
        pipe.send(row | {"verdict": "WRONG" if wrong else "right", "reason": wrong or said, "cases": len(cases)})

    return run


def measure_model(spec: Unseen, routes: list[str], limit: float) -> Callable[[Connection], None]:
    """A function that builds a model, takes its references, measures the routes and sends a row for each."""

    def run(pipe: Connection) -> None:
        if "-v" not in sys.argv:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for descriptor in (1, 2):
                os.dup2(nowhere, descriptor)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                spec.make()  # a package that draws numbers when it is imported does so before the seed is set
                cases = {kind: list(cases_of(spec, kind == "sizes")) for kind in {r.split()[1] for r in routes}}
                model = build(spec)
        except BaseException as error:
            row = {"model": spec.name, "package": spec.package, "seconds": 0.0, "verdict": "not built"}
            pipe.send([row | {"route": route, "reason": f"{type(error).__name__}: {error}"} for route in routes])
            return
        rows = []
        for route in routes:
            dead: Row = {"model": spec.name, "package": spec.package, "route": route, "seconds": limit}
            row = in_process(measure_route(spec, model, route, cases[route.split()[1]]), limit)
            rows.append(row or dead | {"verdict": "out of time", "reason": "killed, or died"})
        pipe.send(rows)

    return run


def read(path: Path) -> dict[tuple[str, str], Row]:
    """The rows of earlier runs, the last of each model and route."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {(row["model"], row["route"]): row for row in map(json.loads, lines)}


def is_due(rows: dict[tuple[str, str], Row], name: str, route: str, everything: bool) -> bool:
    """Whether a route is to be measured: stock's with dynamic sizes only where ours is not right, if not asked for."""
    if everything or not _is_second(route):
        return True
    ours = rows.get((name, "ours sizes"))
    return ours is not None and ours["verdict"] != "right"


def _is_second(route: str) -> bool:
    """Whether a route is only worth its time once ours is known."""
    return route in ("torchscript sizes", "dynamo sizes")


def table(rows: dict[tuple[str, str], Row], note: str = "") -> str:
    """The page of results, with what is to be said of the run."""
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("torch", "onnx", "onnxscript", "onnxruntime"))
    missing = (None, "not built")
    built = [spec for spec in MODELS if rows.get((spec.name, "ours batch"), {}).get("verdict") not in missing]
    packages = sorted({spec.package for spec in built})
    known = {p: _version(p) for p in packages}

    def row(name: str, route: str) -> Row:
        return rows.get((name, route), {"verdict": "-", "seconds": float("nan")})

    def is_right(name: str, route: str) -> bool:
        return bool(row(name, route)["verdict"] == "right")

    worse = [
        f"{spec.name} ({kind})"
        for spec in built
        for kind in ("batch", "sizes")
        if row(spec.name, f"ours {kind}")["verdict"] not in ("right", "-")
        and (is_right(spec.name, f"torchscript {kind}") or is_right(spec.name, f"dynamo {kind}"))
    ]
    head = [
        "# Models that export_compat had not seen, beside both of stock torch's exporters",
        "",
        f"{datetime.date.today()}, {versions}; one thread, seconds of CPU, in a process of its own, packages imported.",
        "",
        f"`python benchmarks/unseen.py` makes this page from {len(built)} models of {len(packages)} packages; random",
        "weights, example of batch 2. *right*: what onnxruntime computes is what eager torch had computed before the",
        f"export, within {TOLERANCE} of each output's largest value, on the example, other values, batches 1 and 3,",
        "and at other sizes where sizes are dynamic. Stock with dynamic sizes is measured where ours is not right.",
        "",
        "| | " + " | ".join(ROUTES) + " |",
        "| --- |" + " --- |" * len(ROUTES),
    ]
    for verdict in ("right", "WRONG", "refused", "CRASH", "out of time"):
        counts = [sum(row(spec.name, route)["verdict"] == verdict for spec in built) for route in ROUTES]
        head.append(f"| {verdict} | " + " | ".join(map(str, counts)) + " |")
    both = [s.name for s in built if is_right(s.name, "ours batch") and is_right(s.name, "torchscript batch")]
    if both:
        ours, stock = (
            statistics.median(row(n, f"{w} batch")["seconds"] for n in both) for w in ("ours", "torchscript")
        )
        head += [
            "",
            f"Median seconds of {len(both)} models where both are right with a dynamic batch: ours with its proof",
        ]
        head += [f"{ours:.1f}, stock TorchScript {stock:.1f}."]
    head += ["", note] if note else []
    head += ["", f"Stock is right and ours is not: {', '.join(worse) or 'none'}.", ""]
    head += ["| model | " + " | ".join(ROUTES) + " |", "| --- |" + " --- |" * len(ROUTES)]
    for spec in built:
        cells = [row(spec.name, route) for route in ROUTES]
        text = [c["verdict"] + (f" {c['seconds']:.1f}" if c["seconds"] == c["seconds"] else "") for c in cells]
        head.append(f"| {spec.package}: {spec.name} | " + " | ".join(text) + " |")
    head += ["", "Where ours is not right:", ""]
    for (name, route), found in rows.items():
        if route.startswith("ours") and found["verdict"] not in ("right", "not built"):
            reason = _FOLDERS.sub("", " ".join(found["reason"].split()))
            head.append(f"* {name}, {route.split()[1]}: {found['verdict']}: {reason[:400]}")
    head += ["", "Packages: " + ", ".join(f"{name} {version}" for name, version in known.items()) + "."]
    return "\n".join(head) + "\n"


_FOLDERS = re.compile(r"(?<!\w)(?:[A-Za-z]:)?/(?:[^\s'\":]+/)+(?=[^\s/'\":]+/[^\s/'\":]+:\d)")
"""Where a file of a message lies on this machine, but for its own folder."""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "?"


def main() -> None:
    """Measures what is not measured yet, and writes the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=Path, required=True, help="rows, one JSON object a line; those there are kept")
    parser.add_argument("--only", default="", help="part of a model's or package's name; several with commas")
    parser.add_argument("--routes", default="", help="part of a route's name; several with commas")
    parser.add_argument("--again", action="store_true", help="measures also what is measured")
    parser.add_argument("--failed", action="store_true", help="measures also what was not right")
    parser.add_argument("--everything", action="store_true", help="measures stock with dynamic sizes on every model")
    parser.add_argument("--out", type=Path, help="page to write")
    parser.add_argument("--note", default="", help="what the page is to say of the run")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of CPU for one export")
    parser.add_argument("-v", action="store_true", help="lets models print")
    args = parser.parse_args()
    torch.set_num_threads(1)
    import torch_onnx_compat  # noqa: F401  (imported once, before the processes are forked)

    rows = read(args.rows)
    wanted = [s for s in MODELS if any(part in f"{s.package}: {s.name}" for part in args.only.split(","))]
    for spec, is_second in itertools.product(wanted, (False, True)):
        routes = [r for r in ROUTES if any(part in r for part in args.routes.split(",")) and _is_second(r) == is_second]
        if not spec.sizes:
            routes = [r for r in routes if r.endswith("batch")]
        due = [r for r in routes if is_due(rows, spec.name, r, args.everything)]
        if not args.again:
            done = {r: rows.get((spec.name, r), {}).get("verdict") for r in due}
            due = [r for r in due if done[r] is None or (args.failed and done[r] != "right")]
        if not due:
            continue
        lost = {"model": spec.name, "package": spec.package, "seconds": 0.0, "verdict": "not built", "reason": "died"}
        found = in_process(measure_model(spec, due, args.limit), args.limit * (len(due) + 1))
        for row in found or [lost | {"route": route} for route in due]:
            rows[row["model"], row["route"]] = row
            with args.rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
            text = row["reason"][: 300 if row["verdict"] != "right" else 60].replace("\n", " ")
            print(f"{spec.name:28} {row['route']:18} {row['verdict']:11} {row['seconds']:6.1f}  {text}", flush=True)
    if args.out is not None:
        args.out.write_text(table(rows, args.note))


if __name__ == "__main__":
    main()
