"""Searches for the first wrong layer in networks with one planted fault each: in two files, and in two engines.

    python benchmarks/layers.py [--first 0] [--count 40] [--output benchmarks/results/layers.md]

A network of convolutions, skip connections and an attention-like product (tests/files/faults.py) gets one fault: a
weight, an attribute, an operator, or the axis of a softmax; the output is off by a hundredth at least. Three ways to
find it:

* two files in onnxruntime, the second with the fault, and with other names for all of its values,
* OpenVINO, whose adapter plants the fault into each file that it is given, as a fault in a kernel would be there,
* tract in the same way, where the adapter also refuses files of several outputs: the file has to be cut off.

Found means: the node that is named is the one with the fault.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import itertools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

ROOT = Path(__file__).parents[1]
LEAST = 1e-2
"""By how much a fault shows in the output at least, relative to its largest value."""

sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from files.faults import KINDS, deep, plant, spoil  # noqa: E402

from torch_onnx_compat.engines import ENGINES, Engine, EngineProcess  # noqa: E402
from torch_onnx_compat.files import compare  # noqa: E402
from torch_onnx_compat.version import __version__  # noqa: E402

ADAPTER = """
import importlib.util, os, sys, tempfile
import onnx

def _load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

faults, engine = _load("faults", {faults!r}), _load("engine_itself", {adapter!r})
version = engine.version

def load(path, feeds, outputs, variant):
    kind, where, is_single = variant.split("|")
    model = onnx.load(path)
    if is_single and len(model.graph.output) > 1:
        raise ValueError("one output at a time")
    faults.spoil(model, kind, int(where))
    place = os.path.join(tempfile.mkdtemp(), "model.onnx")
    onnx.save(model, place)
    return engine.load(place, feeds, outputs, "")
"""


def main() -> None:
    """Runs all of them, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="number of the first network, which seeds its weights")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "layers.md")
    options = parser.parse_args()
    ways: dict[str, Callable[[Path, str, int], str]] = {
        "two files in onnxruntime": find_in_file,
        "OpenVINO, every value as an output": lambda folder, kind, n: find_in_engine(folder, "openvino", kind, n, ""),
        "tract, cut off after one value at a time": lambda folder, kind, n: find_in_engine(
            folder, "tract", kind, n, "single"
        ),
    }
    numbers = range(options.first, options.first + options.count)
    lines, misses = [], []
    for way, find in ways.items():
        found: Counter[str] = Counter()
        start = time.process_time()
        for number in numbers:
            kind = KINDS[number % len(KINDS)]
            with tempfile.TemporaryDirectory() as folder:
                model = draw(Path(folder) / "right.onnx", kind, number)
                named = find(Path(folder), kind, number // len(KINDS))
                wanted = spoil(model, kind, number // len(KINDS))
            found[kind] += named == wanted
            if named != wanted:
                misses.append(f"{way}: number {number}, {kind}: {named or 'nothing'} named, the fault is in {wanted}")
        each = {kind: sum(KINDS[n % len(KINDS)] == kind for n in numbers) for kind in KINDS}
        cells = " | ".join(f"{found[kind]} of {each[kind]}" for kind in KINDS)
        seconds = (time.process_time() - start) / options.count
        lines.append(f"| {way} | {cells} | {sum(found.values())} of {options.count} | {seconds:.1f} |")
        print(lines[-1], flush=True)
    options.output.write_text(write_page(numbers, lines, misses))


def draw(path: Path, kind: str, number: int) -> onnx.ModelProto:
    """A network in whose output the fault shows; where a saturated softmax hides it, another is drawn."""
    image = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    for seed in itertools.count(number, 1000):
        model = deep(path, seed=seed)
        broken = onnx.ModelProto.FromString(model.SerializeToString())
        spoil(broken, kind, number // len(KINDS))
        right, wrong = (
            onnxruntime.InferenceSession(m.SerializeToString()).run(None, {"image": image})[0] for m in (model, broken)
        )
        if np.abs(right - wrong).max() > LEAST * np.abs(right).max():
            return model
    raise AssertionError("unreachable")


def find_in_file(folder: Path, kind: str, where: int) -> str:
    """The node that is named where the second file has the fault."""
    broken, _ = plant(onnx.load(folder / "right.onnx"), kind, where)
    onnx.save(broken, folder / "wrong.onnx")
    found = compare(folder / "right.onnx", folder / "wrong.onnx", layers=True)
    return found.first.node if found.first is not None and found.first.found else ""


def find_in_engine(folder: Path, name: str, kind: str, where: int, single: str) -> str:
    """The node that is named where an engine has the fault."""
    adapter = folder / "adapter.py"
    adapter.write_text(
        ADAPTER.format(faults=str(ROOT / "tests" / "files" / "faults.py"), adapter=str(ENGINES[name].path))
    )

    @dataclasses.dataclass(frozen=True)
    class Faulty(Engine):
        @property
        def path(self) -> Path:
            return adapter

    real = ENGINES[name]
    try:
        ENGINES[name] = Faulty(**{**vars(real), "variant": f"{kind}|{where}|{single}"})
        found = compare(folder / "right.onnx", engine=name, layers=True, sizes={"n": (2,)})
    finally:
        ENGINES[name] = real
    return found.first.node if found.first is not None and found.first.found else ""


def write_page(numbers: range, lines: list[str], misses: list[str]) -> str:
    """The page."""
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    versions = []
    for name in ("openvino", "tract"):
        with EngineProcess(ENGINES[name]) as process:
            versions.append(f"{name} {process.version}")
    head = [
        "# The first wrong layer",
        "",
        f"Measured {date} with torch_onnx_compat {__version__}, onnxruntime {onnxruntime.__version__}, "
        f"{', '.join(versions)}, by `python benchmarks/layers.py`, which says what was planted: networks "
        f"{numbers[0]} to {numbers[-1]}. Seconds are the processor's, for each search, those of the engines left out.",
        "",
        f"| found in | {' | '.join(KINDS)} | all | s |",
        f"|---|{'---|' * (len(KINDS) + 2)}",
    ]
    tail = ["", *(f"* {miss}" for miss in misses)] if misses else []
    return "\n".join([*head, *lines, *tail]) + "\n"


if __name__ == "__main__":
    main()
