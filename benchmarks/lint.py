"""What profiles say of files that they were not measured on, against what the engines do with them.

Draws probes with other attributes, axes and sizes than those that profiles are made of, as far as onnxruntime runs
them and their facts are new, asks each engine's profile, and runs them in the engine. Engines live in the environments
of `torch-onnx-compat measure --install ENGINE`; those that are missing are left out. Writes results/lint.md.

    python benchmarks/lint.py [--engines opencv ...] [--count 300] [--seed 1]
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

from torch_onnx_compat.engines import ENGINES, EngineProcess
from torch_onnx_compat.engines.measure import Sample, facts_of, run_probes
from torch_onnx_compat.engines.probe_contexts import Probe
from torch_onnx_compat.engines.probes import own_probes
from torch_onnx_compat.targets import Target, load_target
from torch_onnx_compat.targets.target import PASSED

RESULTS = Path(__file__).parent / "results" / "lint.md"
NUMBERS = (-2, -1, 0, 1, 2, 3)
UNDEFINED = frozenset({"Cast"})
"""Operators that may do what they like with values drawn for another element type."""
LATEST = 20
"""Opset up to which drawn probes go: more than torch's exporters write by default, less than some engines take."""

Choices: TypeAlias = dict[tuple[str, str], list[Any]]


def unseen(count: int, seed: int) -> list[Probe]:
    """Probes whose facts no probe of the measurement has, as many operators as possible."""
    known = [probe for probe in own_probes() if probe.position == 0 and len(probe.model.graph.node) == 1]
    seen = {_told(probe) for probe in known}
    choices = _choices(known)
    random = np.random.default_rng(seed)
    found: list[Probe] = []
    operators = sorted({probe.op_type for probe in known})
    with EngineProcess(ENGINES["onnxruntime"]) as process:  # which some of what is drawn crashes
        while len(found) < count:
            op_type = operators[int(random.integers(len(operators)))]
            of = [probe for probe in known if probe.op_type == op_type]
            drawn = _drawn(of[int(random.integers(len(of)))], random, choices, f"{op_type}_unseen_{len(found)}")
            if _runs(drawn, process) and "version" in facts_of(drawn) and _told(drawn) not in seen:
                seen.add(_told(drawn))
                found.append(drawn)
    return found


def _runs(probe: Probe, process: EngineProcess) -> bool:
    """Whether onnxruntime makes numbers of it, which the types of its outputs are then taken from."""
    outcome = process.run(probe.model.SerializeToString(), probe.feeds, probe.outputs)
    for value, array in zip(probe.model.graph.output, outcome.outputs, strict=False):
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, kind, array.shape))
    plain = all(array.size and np.isfinite(array).all() for array in outcome.outputs)
    return outcome.status == "ran" and plain and _is_legal(probe)


def _is_legal(probe: Probe) -> bool:
    """Whether it is what ONNX allows, and not only what onnxruntime runs."""
    graph = probe.model.graph
    rank = probe.feeds["x0"].ndim if "x0" in probe.feeds else 1
    if graph.node[0].op_type.startswith(("Reduce", "Squeeze", "Unsqueeze")):
        given = [numpy_helper.to_array(t).reshape(-1) for t in graph.initializer]
        given += [np.array(attribute.ints) for attribute in graph.node[0].attribute if attribute.ints]
        if any(len(set(axes % max(rank, 1))) < len(axes) for axes in given):
            return False
    bare = onnx.ModelProto()
    bare.CopyFrom(probe.model)
    for value in bare.graph.output:
        value.ClearField("type")
    try:
        inferred = onnx.shape_inference.infer_shapes(bare, strict_mode=True)
    except Exception:  # of several classes
        return False
    shapes = zip(inferred.graph.output, graph.output, strict=True)
    return all(_agree(a.type.tensor_type.shape, b.type.tensor_type.shape) for a, b in shapes)


def _agree(inferred: Any, found: Any) -> bool:
    known = [(a.dim_value, b.dim_value) for a, b in zip(inferred.dim, found.dim, strict=False)]
    return all(a in (0, b) for a, b in known)


def _choices(probes: Sequence[Probe]) -> Choices:
    """The values of each operator's texts and flags; other numbers may be any."""
    found: dict[tuple[str, str], set[Any]] = {}
    for probe in probes:
        for attribute in probe.model.graph.node[0].attribute:
            if attribute.type in (onnx.AttributeProto.STRING, onnx.AttributeProto.INT):
                value = onnx.helper.get_attribute_value(attribute)
                found.setdefault((probe.op_type, attribute.name), set()).add(value)
    flags = ({0}, {1}, {0, 1})
    return {
        key: sorted({0, 1} if values in flags else values)
        for key, values in found.items()
        if values in flags or not all(isinstance(value, int) for value in values)
    }


def _drawn(probe: Probe, random: np.random.Generator, choices: Choices, name: str) -> Probe:
    """The probe with something else, which may be no model."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    feeds = dict(probe.feeds)
    for _ in range(int(random.integers(1, 4))):
        _changed(model.graph, feeds, random, choices)
    model.opset_import[0].version = int(random.choice([probe.opset, *range(13, LATEST + 1)]))
    for value in model.graph.output:
        value.ClearField("type")
    return Probe(name, model, feeds)


def _changed(graph: Any, feeds: dict[str, Any], random: np.random.Generator, choices: Choices) -> None:
    """Changes one attribute, one constant of whole numbers, or one size."""
    node = graph.node[0]
    constants = [t for t in graph.initializer if t.data_type == onnx.TensorProto.INT64]
    things = [*node.attribute, *constants, *(i for i in graph.input if i.name in feeds)]
    if not things:
        return
    thing = things[int(random.integers(len(things)))]
    if isinstance(thing, onnx.TensorProto):
        array = numpy_helper.to_array(thing)
        other = (
            random.permutation(array) if array.ndim and random.random() < 0.5 else random.choice(NUMBERS, array.shape)
        )
        thing.CopyFrom(numpy_helper.from_array(np.asarray(other, array.dtype), thing.name))
    elif isinstance(thing, onnx.ValueInfoProto):
        _resized(thing, feeds, random)
    elif (node.op_type, thing.name) in choices:
        values = choices[node.op_type, thing.name]
        other = onnx.helper.make_attribute(thing.name, values[int(random.integers(len(values)))])
        thing.CopyFrom(other)
    elif thing.type == onnx.AttributeProto.INT and thing.name != "to":
        thing.i = int(random.choice(NUMBERS if thing.name != "p" else (1, 2)))
    elif thing.type == onnx.AttributeProto.INTS:
        old = list(thing.ints)
        thing.ints[:] = [
            int(i) for i in (random.permutation(old) if random.random() < 0.5 else random.choice(4, len(old)))
        ]
    elif thing.type == onnx.AttributeProto.FLOAT:
        thing.f = float(random.choice([0.1, 0.5, 1.0, 2.0]))


def _resized(value: Any, feeds: dict[str, Any], random: np.random.Generator) -> None:
    """Repeats or cuts an input along one axis."""
    array = feeds[value.name]
    if array.ndim == 0:
        return
    axis, size = int(random.integers(array.ndim)), int(random.choice([1, 2, 3, 5, 7, 12]))
    feeds[value.name] = np.ascontiguousarray(np.take(array, range(size), axis=axis, mode="wrap"))
    value.type.tensor_type.shape.dim[axis].dim_value = size


def _told(probe: Probe) -> str:
    return f"{probe.op_type} {sorted(facts_of(probe).items(), key=str)}"


def compared(target: Target, found: Sequence[Sample]) -> dict[str, list[Sample]]:
    """The samples by what the profile says and what is so."""
    cells: dict[str, list[Sample]] = {}
    for sample in found:
        said = target.verdict(sample.op_type, max(18, sample.facts["version"]), sample.facts)
        cells.setdefault(f"{_coarse(said)}, {_coarse(sample.verdict)}", []).append(sample)
    return cells


def _coarse(verdict: str) -> str:
    """What the table tells apart; of an engine that only builds here, works means built."""
    return "works" if verdict in PASSED else verdict if verdict == "unknown" else "fails"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    probes = unseen(options.count, options.seed)
    lines = [f"{datetime.date.today()}, {options.count} unseen files of {len({p.op_type for p in probes})} operators,"]
    lines += [f"seed {options.seed}, written by benchmarks/lint.py.", ""]
    lines += ["| engine | said to work: works | fails | said to fail: fails | works | not measured |"]
    lines += ["|---|---|---|---|---|---|"]
    told: list[str] = []
    for engine in options.engines:
        if not ENGINES[engine].interpreter():
            continue
        version, found = run_probes(ENGINES[engine], probes)
        cells = compared(load_target(engine), found)
        numbers = [len(cells.get(f"{said}, {so}", ())) for said in ("works", "fails") for so in ("works", "fails")]
        unknown = sum(len(of) for name, of in cells.items() if name.startswith("unknown"))
        lines.append(f"| {engine} {version} | {numbers[0]} | {numbers[1]} | {numbers[3]} | {numbers[2]} | {unknown} |")
        told += [
            f"- {engine}: {s.name} {s.verdict}: {s.reason[:120]}; {_short(s.facts)}"
            for s in cells.get("works, fails", ())
        ]
        print(*told[-numbers[1] :] if numbers[1] else (), lines[-1], sep="\n", flush=True)
    RESULTS.write_text("\n".join([*lines, "", *(["Said to work, and does not:", "", *told] if told else [])]) + "\n")


def _short(facts: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(facts.items()))


if __name__ == "__main__":
    main()
