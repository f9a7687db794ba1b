"""What profiles say of files that they were not measured on, against what the engines do with them.

Draws nodes as torch writes them: those of zoo_nodes.jsonl, which `zoo_nodes.py` takes from the zoos' files, with other
sizes, attributes, element types, opsets, and with constants where something was computed, or the other way round. Half,
double and tensors without axes are made inside the file, since few engines take them as inputs; computed sizes are read
from a tensor's shape. Kept are those that ONNX allows and onnxruntime runs, if no probe and no other drawn node has the
same facts. Asks each engine's profile, and runs them in the engine. Engines live in the environments of
`torch-onnx-compat measure --install ENGINE`; those that are missing are left out. Writes results/lint.md, to which each
seed and engine is added.

    python benchmarks/lint.py [--engines opencv ...] [--count 1000] [--seed 1] [--rows FILE]
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from torch_onnx_compat.engines import ENGINES, EngineProcess
from torch_onnx_compat.engines.measure import Sample, facts_of, run_probes
from torch_onnx_compat.engines.probe_contexts import SHAPES, Probe, add_reader, make_inside, read_shapes
from torch_onnx_compat.engines.probes import own_probes
from torch_onnx_compat.targets import load_target
from torch_onnx_compat.targets.target import PASSED

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "lint.jsonl"
OPSETS = range(11, 24)
SIZES = (1, 2, 3, 5, 7, 8, 12, 16)
MANY = 20_000
"""Numbers of one input, beyond which sizes are made smaller."""
TYPES: Mapping[str, Sequence[str]] = {
    "float32": ("float16", "float64", "int64", "int32"),
    "int64": ("int32", "float32"),
    "bool": ("int64", "float32"),
}

FLAGS = frozenset(
    {"align_corners", "allowzero", "antialias", "ceil_mode", "count_include_pad", "exclude_outside", "exclusive"}
    | {"fmod", "inverse", "is_causal", "keepdims", "largest", "noop_with_empty_axes", "onesided", "reverse"}
    | {"select_last_index", "sorted", "storage_order", "transA", "transB", "upper"}
)
KEPT = frozenset({"dtype", "num_outputs", "stash_type", "to"})
"""Attributes of numbers that stay; with another count of parts than outputs onnx's shape inference crashes."""
LAYERS = frozenset({"BatchNormalization", "Conv", "ConvTranspose", "GRU", "Gemm", "InstanceNormalization", "LSTM"})
LAYERS |= {"LayerNormalization"}
PARAMETERS = frozenset({"CumSum", "Pad", "Slice", "Split", "Squeeze", "Tile", "TopK", "Unsqueeze"}) | SHAPES.keys()

Node = dict[str, Any]
Random = np.random.Generator


def draw(count: int, seed: int) -> list[Probe]:
    """Nodes whose facts no probe of the measurement has, as many operators as possible."""
    nodes = [json.loads(line) for line in (HERE / "zoo_nodes.jsonl").read_text(encoding="utf-8").splitlines()]
    by_operator: dict[str, list[Node]] = {}
    for node in nodes:
        by_operator.setdefault(node["op"], []).append(node)
    texts, kinds = _texts(nodes), _kinds(nodes)
    seen = {_told(probe) for probe in own_probes()}
    random = np.random.default_rng(seed)
    operators, found = sorted(by_operator), []
    with EngineProcess(ENGINES["onnxruntime"]) as process:  # which some of what is drawn crashes
        while len(found) < count:
            of = by_operator[operators[int(random.integers(len(operators)))]]
            node = of[int(random.integers(len(of)))]
            probe = _probe(_varied(node, random, texts, kinds), random, f"{node['op']}_{seed}_{len(found)}")
            if probe is not None and _runs(probe, process) and (told := _told(probe)) not in seen:
                seen.add(told)
                found.append(probe)
    return found


def _texts(nodes: Sequence[Node]) -> dict[tuple[str, str], list[str]]:
    """The texts that each attribute has in the zoos and in the probes."""
    found: dict[tuple[str, str], set[str]] = {}
    for node in nodes:
        for name, value in node["attributes"].items():
            if isinstance(value, str):
                found.setdefault((node["op"], name), set()).add(value)
    return {key: sorted(values) for key, values in found.items()}


def _kinds(nodes: Sequence[Node]) -> dict[str, set[str]]:
    """The element types that the zoos' files have each operator in; what they have in float32 may be narrow or wide."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        for index, given in enumerate(node["inputs"]):
            if given.get("type") in TYPES and not _is_parameter(node, index):
                found.setdefault(node["op"], set()).add(given["type"])
    for kinds in found.values():
        kinds |= {"float16", "float64"} if "float32" in kinds else set()
        kinds |= {"int32"} if "int64" in kinds else set()
    return found


def _varied(
    node: Node, random: Random, texts: Mapping[tuple[str, str], Sequence[str]], kinds: Mapping[str, set[str]]
) -> Node:
    """The node with something else; it may be no node that ONNX allows."""
    found: Node = json.loads(json.dumps(node))
    retype: Callable[[Node, Random], None] = partial(_retype, kinds=kinds.get(node["op"], set()))
    changes: list[Callable[[Node, Random], None]] = [_resize, retype, _flip, _reset]
    for index in random.permutation(len(changes))[: int(random.integers(1, 4))]:
        changes[index](found, random)
    for name, value in found["attributes"].items():
        if isinstance(value, str) and random.random() < 0.3:
            found["attributes"][name] = str(random.choice(texts[node["op"], name]))
    while any(int(np.prod(given.get("shape", ()))) > MANY for given in found["inputs"]):
        _resize(found, random)
    if node["op"] == "Resize" and "value" in found["inputs"][-1] and found["inputs"][-1]["type"] == "int64":
        found["inputs"][-1]["value"][:2] = found["inputs"][0]["shape"][:2]  # torch keeps batch and channels
    if random.random() < 0.5:
        found["opset"] = int(random.choice(OPSETS))
    return found


def _resize(node: Node, random: Random) -> None:
    """Another size wherever one is: in shapes and in the numbers that tell of it."""
    sizes = sorted({size for given in node["inputs"] for size in given.get("shape", ())})
    if not sizes:
        return
    large = [size for size in sizes if size > max(SIZES)]
    old = int(random.choice(large or sizes))
    new = int(random.choice(SIZES))
    for given in node["inputs"]:
        if "shape" in given and "value" not in given:
            given["shape"] = [new if size == old else size for size in given["shape"]]
        elif given.get("type") == "int64" and old > 1:
            given["value"] = np.where(np.array(given["value"]) == old, new, given["value"]).tolist()
    for name in ("kernel_shape", "group"):
        value = node["attributes"].get(name)
        if isinstance(value, list):
            node["attributes"][name] = [new if size == old else size for size in value]


def _retype(node: Node, random: Random, kinds: set[str]) -> None:
    """Another element type, for all inputs of one type but for those that say which places are meant."""
    given = [i for index, i in enumerate(node["inputs"]) if i.get("type") in TYPES and not _is_parameter(node, index)]
    if not given:
        return
    old = str(random.choice(sorted({i["type"] for i in given})))
    choices = sorted(kinds & set(TYPES[old]))
    new = str(random.choice(choices)) if choices else old
    for i in given:
        i["type"] = new if i["type"] == old else i["type"]


def _is_parameter(node: Node, index: int) -> bool:
    """Whether an input says what is done, as an axis does, rather than what it is done to."""
    return index > 0 and (node["op"] in PARAMETERS or node["op"].startswith("Reduce"))


def _flip(node: Node, random: Random) -> None:
    """A constant instead of something computed, or the other way round."""
    index = int(random.integers(len(node["inputs"])))
    given = node["inputs"][index]
    if not given:
        return
    if node["op"] in LAYERS and index > 0:
        is_constant = not given["constant"]
        for other in filter(None, node["inputs"][1:]):  # the weights of a layer are computed together
            other["constant"] = is_constant
        return
    if not _is_parameter(node, index):
        given["constant"] = not given["constant"]
    elif index in SHAPES.get(node["op"], ()) and all(0 < number <= MANY for number in given.get("value", [0])):
        given["constant"] = False  # and read from a shape


def _reset(node: Node, random: Random) -> None:
    """Another number in an attribute or in a constant of whole numbers."""
    numbers = [n for n, v in node["attributes"].items() if isinstance(v, (int, list)) and n not in KEPT]
    constants = [i for i, given in enumerate(node["inputs"]) if "value" in given and given["type"] == "int64"]
    fixed = {"Resize": (1, 2, 3), "Slice": (4,)}.get(node["op"], ())  # torch steps back in a flip only
    constants = [index for index in constants if index not in fixed]
    things: list[str | int] = [*numbers, *constants]
    if not things:
        return
    thing = things[int(random.integers(len(things)))]
    holder, key = (node["inputs"][thing], "value") if isinstance(thing, int) else (node["attributes"], thing)
    old = np.array(holder[key])
    if old.size == 0:
        return
    if old.ndim and len(set(old.reshape(-1).tolist())) > 1 and random.random() < 0.5:
        holder[key] = random.permutation(old).tolist()
        return
    if thing in FLAGS:
        holder[key] = 1 - int(old)
        return
    place = int(random.integers(old.size))
    other = old.reshape(-1).copy()
    other[place] = int(random.choice([*SIZES[:4], 0, -1, -2, other[place] + 1]))
    holder[key] = other.reshape(old.shape).tolist()


def _probe(node: Node, random: Random, name: str) -> Probe | None:
    """A model of one node with inputs; None where ONNX does not allow it, or torch does not write it."""
    if _repeats_an_axis(node) or _resizes_channels(node):
        return None
    feeds: dict[str, np.ndarray] = {}
    weights = []
    for index, given in enumerate(node["inputs"]):
        if not given:
            continue
        try:
            array = _values(given, random, node["op"])
        except OverflowError:  # a number that the other element type does not hold
            return None
        if given["constant"]:
            weights.append(numpy_helper.from_array(array, f"x{index}"))
        else:
            feeds[f"x{index}"] = array
    model = _model(node, name, weights, feeds) if feeds else None
    if model is None:
        return None
    probe = make_inside(read_shapes(Probe(name, model, feeds)))
    is_read = not probe.position and "x0" in feeds and feeds["x0"].dtype == np.float32 and random.random() < 0.2
    return add_reader(probe) if is_read else probe


def _repeats_an_axis(node: Node) -> bool:
    """Whether a reduction names an axis twice, which onnxruntime takes and torch refuses."""
    rank = len(node["inputs"][0].get("shape", ())) or 1
    given = node["inputs"][1].get("value", ()) if node["op"].startswith("Reduce") and len(node["inputs"]) > 1 else ()
    axes = [axis % rank for axis in np.atleast_1d(node["attributes"].get("axes", given)).tolist()]
    return len(set(axes)) < len(axes)


def _resizes_channels(node: Node) -> bool:
    """Whether a Resize to given sizes changes the batch or the channels, as torch's never does."""
    given = node["inputs"][-1] if node["op"] == "Resize" else {}
    return given.get("type") == "int64" and list(given.get("value", ())[:2]) != list(node["inputs"][0]["shape"][:2])


def _model(node: Node, name: str, weights: Sequence[Any], feeds: Mapping[str, np.ndarray]) -> onnx.ModelProto | None:
    """The model; None where ONNX does not allow it."""
    make_info, kind_of = onnx.helper.make_tensor_value_info, onnx.helper.np_dtype_to_tensor_dtype
    names = [f"x{index}" if given else "" for index, given in enumerate(node["inputs"])]
    outputs = [f"y{index}" for index in range(node["outputs"])]
    try:
        made = onnx.helper.make_node(node["op"], names, outputs, **node["attributes"])
        inputs = [make_info(key, kind_of(array.dtype), array.shape) for key, array in feeds.items()]
        infos = [onnx.ValueInfoProto(name=output) for output in outputs]
        graph = onnx.helper.make_graph([made], name, inputs, infos, weights)
        imports = [onnx.helper.make_opsetid("", node["opset"])]
        ir_version = min(onnx.helper.find_min_ir_version_for(imports), 10)
        model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=ir_version)
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except Exception:  # of several classes
        return None
    for value, found in zip(model.graph.output, inferred.graph.output, strict=True):
        value.CopyFrom(found)
    return model


def _values(given: Node, random: Random, op_type: str) -> np.ndarray:
    kind, shape = given["type"], tuple(given["shape"])
    if "value" in given:
        return np.array(given["value"], kind)
    if kind == "bool":
        return np.asarray(random.random(shape) > 0.5)
    if kind.startswith(("int", "uint")):
        if op_type == "TopK":  # of equal values any may come first
            return random.permutation(int(np.prod(shape))).reshape(shape).astype(kind)
        return np.asarray(random.integers(0, 3, shape), kind)
    low = 0.0 if op_type in ("Cast", "Log", "Pow", "Sqrt") else -2.0  # where else the result is none, or any
    return np.asarray(random.uniform(low, 2.0, shape), kind)


def _runs(probe: Probe, process: EngineProcess) -> bool:
    """Whether onnxruntime makes numbers of it, of the shapes that ONNX says."""
    outcome = process.run(probe.model.SerializeToString(), probe.feeds, probe.outputs)
    if outcome.status != "ran" or not all(a.size and np.isfinite(a).all() for a in outcome.outputs):
        return False
    for value, array in zip(probe.model.graph.output, outcome.outputs, strict=True):
        sizes = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if any(size not in (0, other) for size, other in zip(sizes, array.shape, strict=False)):
            return False
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, kind, array.shape))
    return "version" in facts_of(probe)


def _told(probe: Probe) -> str:
    return f"{probe.op_type} {sorted(facts_of(probe).items(), key=str)}"


def measure(engine: str, seed: int, probes: Sequence[Probe], rows: Path | None) -> Node:
    """One engine's numbers for one seed."""
    version, found = run_probes(ENGINES[engine], probes)
    opsets = {probe.name: probe.opset for probe in probes}
    target = load_target(engine)
    cells: dict[str, list[Sample]] = {}
    for sample in found:
        said = target.verdict(sample.op_type, opsets[sample.name], sample.facts)
        cells.setdefault(f"{_coarse(said)}, {_coarse(sample.verdict)}", []).append(sample)
        if rows is not None:
            with rows.open("a", encoding="utf-8") as file:
                about = {"engine": engine, "seed": seed, "opset": opsets[sample.name], "said": said}
                file.write(json.dumps({**about, **asdict(sample)}) + "\n")
    return {
        "engine": engine,
        "version": version,
        "seed": seed,
        "date": str(datetime.date.today()),
        "operators": len({probe.op_type for probe in probes}),
        "drawn": len(probes),
        "cells": {name: len(of) for name, of in sorted(cells.items())},
        "wrong": [f"{s.name} {s.verdict}: {s.reason[:120]}; {_short(s.facts)}" for s in cells.get("works, fails", ())],
        "needless": dict(Counter(s.op_type for s in cells.get("fails, works", ())).most_common()),
    }


def _coarse(verdict: str) -> str:
    """What the table tells apart; of an engine that only builds here, works means built."""
    return "works" if verdict in PASSED else verdict if verdict == "unknown" else "fails"


def _short(facts: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(facts.items()))


def report(found: Sequence[Node]) -> str:
    """The results as Markdown."""
    lines = ["# Profiles on files that they were not measured on", ""]
    lines += ["Nodes as torch writes them for the zoos' models, varied, whose facts no probe of the measurement has."]
    lines += ["A file is not counted where onnxruntime does not run it, where the engine does not take its opset, or"]
    lines += ["where rounding to the engine's element type decides. Not measured: the profile does not know the"]
    lines += ["operator. Nothing was mended for these seeds. Written by benchmarks/lint.py.", ""]
    lines += ["| engine | seed | date | files | said to work: works | fails | said to fail: fails | works | unknown |"]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for row in found:
        cells = Counter(row["cells"])
        of = [cells[name] for name in ("works, works", "works, fails", "fails, fails", "fails, works")]
        unknown = sum(count for name, count in cells.items() if name.startswith("unknown"))
        start = f"| {row['engine']} {row['version']} | {row['seed']} | {row['date']} | {sum(cells.values())} "
        lines.append(start + f"| {' | '.join(map(str, of))} | {unknown} |")
    for row in found:
        lines += ["", f"## {row['engine']}, seed {row['seed']}", ""]
        told = ", ".join(f"{op} {count}" for op, count in row["needless"].items())
        lines += [f"Said to fail, and works: {told or 'none'}.", "", "Said to work, and does not:", ""]
        lines += [f"- {text}" for text in row["wrong"]] or ["- none"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=Path, default=None, help="a file to which every result is added, as JSON")
    options = parser.parse_args()
    probes = draw(options.count, options.seed)
    for engine in options.engines:
        if ENGINES[engine].interpreter() is None:
            continue
        row = measure(engine, options.seed, probes, options.rows)
        print(engine, row["cells"], *row["wrong"], sep="\n  ", flush=True)
        text = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
        known = {(r["engine"], r["seed"]): r for r in map(json.loads, text)}
        known[engine, options.seed] = row
        kept = [known[key] for key in sorted(known, key=lambda key: (list(ENGINES).index(key[0]), key[1]))]
        RESULTS.write_text("".join(f"{json.dumps(r)}\n" for r in kept), encoding="utf-8")
        RESULTS.with_suffix(".md").write_text(report(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
