"""Converts random and broken files, and judges what comes of it by running both files again, on other numbers."""

from __future__ import annotations

import random
import resource
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from fuzz.graphs import draw_graph, needs
from fuzz.hostile import NEVER_RIGHT, attack
from torch_onnx_compat import CompatError
from torch_onnx_compat.files import convert
from torch_onnx_compat.files.drawing import plan_inputs
from torch_onnx_compat.files.reading import read
from torch_onnx_compat.files.runner import Refused, Runner, flatten

MOST_MEMORY = 2**30
"""Bytes by which the process may grow over one broken file."""

TARGETS = ("openvino", "opencv", "tract", "mnn", "ncnn", "rknn", "tensorrt", "onnxruntime")

PRECISIONS = ("float16", "bfloat16", "int8-dynamic", "int4-weights")
"""Formats that need no calibration; their files are judged by the limits of their own verdicts."""


def choose_options(seed: int) -> dict[str, Any]:
    """What the file of a seed is converted to."""
    rng = random.Random(seed + 10**6)
    if rng.random() < 0.25:
        return {"target": rng.choice(TARGETS)}
    options: dict[str, Any] = {"opset": rng.randint(11, 23), "simplify": rng.random() < 0.5}
    if rng.random() < 0.05:
        return {**options, "dynamic": "batch"}
    return {"precision": rng.choice(PRECISIONS)} if rng.random() < 0.1 else options


def choose_surgery(seed: int, model: onnx.ModelProto) -> dict[str, Any]:
    """What is cut and renamed in the file of a seed: nothing in two of three."""
    rng = random.Random(seed + 2 * 10**6)
    made = [name for node in model.graph.node for name in node.output if name]
    taken = [value.name for value in model.graph.input]
    if rng.random() < 2 / 3:
        return {}
    found: dict[str, Any] = {}
    if rng.random() < 0.6:
        found["outputs"] = rng.sample(made, min(len(made), rng.randint(1, 2)))
    if rng.random() < 0.5:
        outputs = found.get("outputs") or [value.name for value in model.graph.output]
        start = rng.sample(made, 1)
        found["start"] = [*start, *sorted(_read_behind(model, outputs, start) & set(taken))]
    if rng.random() < 0.3 and "start" not in found:
        found["keep_initializers_as_inputs"] = rng.choice([True, False])
    if rng.random() < 0.5:
        found["rename"] = {name: f"new_{name}" for name in rng.sample([*made, *taken], 1)}
    return found


def _read_behind(model: onnx.ModelProto, outputs: list[str], stop: list[str]) -> set[str]:
    """The values from which outputs follow, back to some values."""
    makers = {name: node for node in model.graph.node for name in node.output}
    found: set[str] = set()
    waiting = [name for name in outputs if name not in stop]
    while waiting:
        name = waiting.pop()
        if name in makers and name not in stop and name not in found:
            waiting += needs(makers[name])
        found.add(name)
    return found


def judge_seed(seed: int, runner: Runner, folder: Path) -> dict[str, Any]:
    """Converts the file of a seed.

    Returns:
        The row: the verdict (converted, refused, wrong, crash, none) and what belongs to it.
    """
    model = draw_graph(seed, runner)
    if model is None:
        return {"seed": seed, "verdict": "none"}
    path, new = folder / "original.onnx", folder / "new.onnx"
    data = model.SerializeToString()
    path.write_bytes(data)
    new.unlink(missing_ok=True)
    surgery = choose_surgery(seed, model)
    options = {**choose_options(seed), **surgery}
    operators = [node.op_type for node in model.graph.node]
    row: dict[str, Any] = {"seed": seed, "source": model.opset_import[0].version, **options, "operators": operators}
    try:
        convert(path, new, seed=seed, runner=runner, **options)
    except CompatError as error:
        assert not new.exists(), f"seed {seed}: a file was left after {error}"
        return {**row, "verdict": "refused", "kind": type(error).__name__, "why": " ".join(str(error).split())[:300]}
    except Exception as error:
        return {**row, "verdict": "crash", "why": f"{type(error).__name__}: {error}"}
    assert path.read_bytes() == data, f"seed {seed}: the original was changed"
    why = "" if "precision" in options else _difference(path, new, seed, runner, surgery)
    return {**row, "verdict": "wrong" if why else "converted", "why": why}


def _difference(path: Path, new: Path, seed: int, runner: Runner, surgery: dict[str, Any]) -> str:
    """How far the new file is off on numbers that its proof has not seen; empty where it is right."""
    feeds, renamed = _feeds(path, seed), surgery.get("rename", {})
    model = onnx.load(path)
    outputs = surgery.get("outputs") or [value.name for value in model.graph.output]
    shown = [*outputs, *(name for name in surgery.get("start", ()) if name not in feeds)]
    known = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(shown) if name not in known)
    whole = path.with_name("whole.onnx")
    whole.write_bytes(model.SerializeToString())
    try:
        runner.open("one", whole)
        values = runner.run("one", feeds, shown)
        again = runner.run("one", feeds, outputs)
    except Refused:
        return ""
    wanted = values[: len(outputs)]
    given = {**feeds, **dict(zip(shown, values, strict=True))}
    taken = {value.name for value in onnx.load(new).graph.input}
    weights = {tensor.name for tensor in onnx.load(new).graph.initializer}
    feeds = {renamed.get(n, n): given[n] for n in given if renamed.get(n, n) in taken - weights}
    if any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(flatten(wanted), flatten(again), strict=True)):
        return ""  # random numbers
    try:
        try:
            runner.open("other", new)
        except Refused:  # onnxruntime lacks kernels of old opsets; the result says so
            runner.open("other", new, "reference")
        found = runner.run("other", feeds, [renamed.get(name, name) for name in outputs])
    except Refused as error:
        return f"does not run: {error}"
    why = _off(found, wanted)
    if why and (by_definition := _run_by_definition(whole, runner, given, outputs)) is not None:
        why = _off(found, by_definition)
    return why


def _off(found: list[Any], wanted: list[Any]) -> str:
    """How far values are off; empty where they are not."""
    for a, b in zip(flatten(found), flatten(wanted), strict=True):
        if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
            return "another type or shape"
        if not np.allclose(a.astype(np.float64), b.astype(np.float64), 1e-2, 1e-3, equal_nan=True):
            return f"off by {np.nanmax(np.abs(a.astype(np.float64) - b.astype(np.float64))):.3g}"
    return ""


def _run_by_definition(path: Path, runner: Runner, given: dict[str, Any], outputs: list[str]) -> list[Any] | None:
    """What onnx's reference evaluator makes of the original; None where it does not run it.

    onnxruntime may be what is wrong: it reads freed memory in some branches, and gives the same garbage twice.
    """
    taken = {value.name for value in onnx.load(path).graph.input}
    try:
        runner.open("definition", path, "reference")
        return runner.run("definition", {name: given[name] for name in given if name in taken}, outputs)
    except Refused:
        return None


def _feeds(path: Path, seed: int) -> dict[str, Any]:
    plan = plan_inputs(read(path).graph())
    sizes = {name: int(name.removeprefix("n")) for name in plan.names}
    return plan.draw(sizes, "normal", seed + 77)


def break_file(data: bytes, seed: int) -> bytes:
    """A file with a part cut off, or some bytes changed."""
    rng = random.Random(seed)
    if rng.random() < 0.3:
        return data[: rng.randrange(len(data))]
    broken = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        broken[rng.randrange(len(broken))] = rng.randrange(256)
    return bytes(broken)


def judge_broken(seed: int, runner: Runner, folder: Path, kind: str = "bytes") -> dict[str, Any]:
    """Converts the file of a seed after it was broken; any outcome but one clear error or a proven file is a fault.

    Args:
        seed: Of the graph, and of what is done to it.
        runner: Runs files.
        folder: Where the file goes; what is outside of `folder / "in"` is not for it.
        kind: ``"bytes"`` breaks the bytes, ``"hostile"`` the graph, in one of the ways of fuzz/hostile.py.
    """
    model = draw_graph(seed, runner, size=3)
    if model is None:
        return {"seed": seed, "verdict": "none"}
    (folder / "in").mkdir(exist_ok=True)
    path, new = folder / "in" / "broken.onnx", folder / "in" / "new.onnx"
    (folder / "secret.bin").write_bytes(bytes(4096))
    data, done = (
        (break_file(model.SerializeToString(), seed), "") if kind == "bytes" else attack(model, folder / "in", seed)
    )
    path.write_bytes(data)
    new.unlink(missing_ok=True)
    row: dict[str, Any] = {"seed": seed, "how": done} if done else {"seed": seed}
    before, memory = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}, _memory()
    try:
        convert(path, new, opset=17, runner=runner)
    except CompatError as error:
        assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before, f"seed {seed}: written after {error}"
        if _memory() - memory > MOST_MEMORY:
            return {**row, "verdict": "crash", "why": f"grew by {(_memory() - memory) >> 20} MiB: {str(error)[:150]}"}
        return {**row, "verdict": "refused", "why": " ".join(str(error).split())[:200]}
    except Exception as error:
        return {**row, "verdict": "crash", "why": f"{type(error).__name__}: {error}"}
    return {**row, "verdict": "wrong" if done in NEVER_RIGHT else "converted", "why": ""}


def _memory() -> int:
    """The largest number of bytes that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
