"""The small models that engines are measured on: this package's own (probes.toml) and ONNX's node tests."""

from __future__ import annotations

import itertools
import sys
import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Array = npt.NDArray[Any]
_HIGHEST = 23
"""Opset beyond which torch's exporters do not go."""
_TYPES = frozenset({"float32", "float64", "float16", "int64", "int32", "uint8", "int8", "bool"})
_RANDOM = frozenset({"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Dropout"})
_ROUNDED = frozenset({"test_dynamicquantizelinear", "test_nonmaxsuppression_iou_threshold_boundary"})
"""Tests that a rounding decides, a 127.5 and an overlap of 1/7 against a threshold of 1/7: no answer is wrong."""


@dataclass(frozen=True)
class Probe:
    """A small model that tries one node, and what to feed it."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    position: int = 0
    """Of the node in the graph."""

    @property
    def op_type(self) -> str:
        """Its operator."""
        return str(self.model.graph.node[self.position].op_type)

    @property
    def opset(self) -> int:
        """Of the model."""
        return int(self.model.opset_import[0].version)

    @property
    def outputs(self) -> list[str]:
        """Names of its outputs."""
        return [value.name for value in self.model.graph.output]


def own_probes() -> Iterator[Probe]:
    """The probes of probes.toml."""
    data = tomllib.loads((Path(__file__).parent / "probes.toml").read_text(encoding="utf-8"))
    counts: dict[str, int] = {}
    for entry in data["probe"]:
        grid = entry.get("grid", {})
        seen = set()
        for opset, *values in itertools.product(entry["opsets"], *grid.values()):
            attributes = {**entry.get("attributes", {}), **dict(zip(grid, values, strict=True))}
            number = counts[entry["op"]] = counts.get(entry["op"], 0) + 1
            probe = _probe(f"{entry['op']}_{number}", entry, opset, attributes)
            if entry.get("gates"):
                yield _gating(probe)
                continue
            if entry.get("viewed"):
                yield _viewed(probe)
                continue
            if entry.get("norm"):
                yield _normalizing(probe, entry["norm"])
                continue
            if entry.get("attends"):
                yield _attending(probe)
                continue
            yield from (_following(probe, activation) for activation in entry.get("after", ()))
            yield probe
            first = probe.feeds.get("x0")
            if opset not in seen and first is not None and first.dtype == np.float32:
                seen.add(opset)
                yield _reused(probe)


def _probe(name: str, entry: Mapping[str, Any], opset: int, attributes: Mapping[str, Any]) -> Probe:
    random = np.random.default_rng(zlib.crc32(name.encode()))
    names, inputs, weights = [], [], []
    feeds: dict[str, Array] = {}
    for index, given in enumerate(entry["inputs"]):
        names.append(f"x{index}" if given else "")
        if not given:
            continue
        array = _array(given, random)
        if "value" in given or given.get("const"):
            weights.append(onnx.numpy_helper.from_array(array, names[-1]))
        else:
            feeds[names[-1]] = array
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            inputs.append(onnx.helper.make_tensor_value_info(names[-1], kind, array.shape))
    outputs = [f"y{index}" for index in range(entry.get("outputs", 1))]
    written = {k: _attribute(k, v) for k, v in attributes.items()}
    node = onnx.helper.make_node(entry["op"], names, outputs, **written)
    graph = onnx.helper.make_graph([node], name, inputs, [onnx.ValueInfoProto(name=o) for o in outputs], weights)
    return Probe(name, _typed(graph, opset), feeds)


def _reused(probe: Probe) -> Probe:
    """The same with an input that is computed, and read again later: some engines overwrite it."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph = model.graph
    node = graph.node[0]
    shape = list(probe.feeds["x0"].shape)
    node.input[:] = ["h" if name == "x0" else name for name in node.input]
    before, after = onnx.helper.make_node("Neg", ["x0"], ["h"]), onnx.helper.make_node("Abs", ["h"], ["again"])
    nodes = [before, *graph.node, after]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.value_info.append(onnx.helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, shape))
    graph.output.append(onnx.helper.make_tensor_value_info("again", onnx.TensorProto.FLOAT, shape))
    return Probe(f"{probe.name}_reused", model, {**probe.feeds, "x0": -probe.feeds["x0"]}, 1)


def _following(probe: Probe, activation: str) -> Probe:
    """The same behind a convolution and its activation: some engines fuse all three, in another order."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph, shape = model.graph, list(probe.feeds["x0"].shape)
    random = np.random.default_rng(zlib.crc32(f"{probe.name} {activation}".encode()))
    weights = random.uniform(-1, 1, (shape[1], shape[1], *[3] * (len(shape) - 2))).astype(np.float32)
    graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    make = onnx.helper.make_node
    before = [make("Conv", ["x0", "weights"], ["c"], pads=[1] * 2 * (len(shape) - 2))]
    if activation == "Swish":
        before += [make("Sigmoid", ["c"], ["s"]), make("Mul", ["c", "s"], ["h"])]
    else:
        before.append(make(activation, ["c"], ["h"]))
    graph.node[0].input[0] = "h"
    nodes = [*before, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.value_info.append(onnx.helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, shape))
    return Probe(f"{probe.name}_after_{activation}", model, probe.feeds, len(before))


def _viewed(probe: Probe) -> Probe:
    """The same of a view of its input, which is fed as rows: some engines pull operators through a Reshape."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph, x = model.graph, probe.feeds["x0"]
    rows = x.reshape(x.shape[0], -1)
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(x.shape), "shape"))
    graph.node[0].input[0] = "h"
    nodes = [onnx.helper.make_node("Reshape", ["x0", "shape"], ["h"]), *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.value_info.append(onnx.helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, x.shape))
    graph.input[0].CopyFrom(onnx.helper.make_tensor_value_info("x0", onnx.TensorProto.FLOAT, rows.shape))
    return Probe(f"{probe.name}_viewed", model, {**probe.feeds, "x0": rows}, 1)


def _normalizing(probe: Probe, how: str) -> Probe:
    """Divides by the norm of what is divided, which the second input's shape says the axes of; before opset 18."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph, shapes = model.graph, [list(probe.feeds[name].shape) for name in ("x0", "x1")]
    axes = [axis for axis, (size, left) in enumerate(zip(*shapes, strict=True)) if size != left]
    make, after = onnx.helper.make_node, {"norm": "c", "repeated norm": "repeated"}[how]
    nodes = [make("ReduceL2", ["x0"], ["n"], axes=axes), make("Clip", ["n", "least"], ["c"])]
    nodes += [make("Expand", ["c", "shape"], ["repeated"])] * (how == "repeated norm")
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(1e-12, np.float32), "least"))
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(shapes[0]), "shape"))
    graph.node[0].input[1] = after
    nodes += graph.node
    del graph.node[:], graph.input[1]
    graph.node.extend(nodes)
    return Probe(f"{probe.name}_norm", model, {"x0": probe.feeds["x0"]}, len(nodes) - 1)


def _attending(probe: Probe) -> Probe:
    """The same within an attention of its scores' shape, from tokens to tokens: some engines run that as one."""
    batch, heads, queries, keys = probe.feeds["x0"].shape
    width = 4 * heads
    random = np.random.default_rng(zlib.crc32(probe.name.encode()))
    # A single token comes without an axis, as the class token does.
    asking = (batch, width) if queries == 1 else (batch, queries, width)
    tokens = {"q": random.uniform(-1, 1, asking), "k": random.uniform(-1, 1, (batch, keys, width))}
    held: dict[str, Any] = {f"w{i}": random.uniform(-1, 1, (width, width)).astype(np.float32) for i in range(4)}
    held |= {f"b{i}": random.uniform(-1, 1, width).astype(np.float32) for i in range(4)}
    held |= {"root": np.array(0.5, np.float32), "tokens": np.array([batch, queries, width])}
    make, nodes = onnx.helper.make_node, []
    for index, (source, order) in enumerate((("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("k", [0, 2, 1, 3]))):
        held[f"heads{index}"] = np.array([batch, queries if source == "q" else keys, heads, 4])
        nodes += [
            make("MatMul", [source, f"w{index}"], [f"m{index}"]),
            make("Add", [f"m{index}", f"b{index}"], [f"a{index}"]),
            make("Reshape", [f"a{index}", f"heads{index}"], [f"r{index}"]),
            make("Transpose", [f"r{index}"], [f"t{index}"], perm=order),
        ]
    nodes += [
        make("Mul", ["t0", "root"], ["scaled"]),
        make("MatMul", ["scaled", "t1"], ["x0"]),
        *probe.model.graph.node,
    ]
    nodes += [make("MatMul", ["y0", "t2"], ["mixed"]), make("Transpose", ["mixed"], ["turned"], perm=[0, 2, 1, 3])]
    nodes += [make("Reshape", ["turned", "tokens"], ["joined"]), make("MatMul", ["joined", "w3"], ["m3"])]
    nodes.append(make("Add", ["m3", "b3"], ["y"]))
    feeds = {name: array.astype(np.float32) for name, array in tokens.items()}
    inputs = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, a.shape) for n, a in feeds.items()]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in held.items()]
    graph = onnx.helper.make_graph(nodes, probe.name, inputs, [onnx.ValueInfoProto(name="y")], weights)
    model = onnx.shape_inference.infer_shapes(_typed(graph, probe.opset), data_prop=True)
    return Probe(f"{probe.name}_attends", model, feeds, [node.op_type for node in nodes].index(probe.op_type))


def _gating(probe: Probe) -> Probe:
    """The same with its result multiplied by another input: some engines take x * f(y) for x * f(x)."""
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph = model.graph
    random = np.random.default_rng(zlib.crc32(probe.name.encode()))
    gated = random.uniform(-2, 2, (1, 3, 8, 8)).astype(np.float32)
    info = onnx.helper.make_tensor_value_info("gated", onnx.TensorProto.FLOAT, gated.shape)
    graph.input.append(info)
    graph.value_info.append(graph.output[0])
    graph.node.append(onnx.helper.make_node("Mul", ["gated", "y0"], ["again"]))
    graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("again", onnx.TensorProto.FLOAT, gated.shape))
    return Probe(f"{probe.name}_gates", model, {**probe.feeds, "gated": gated})


def _attribute(name: str, value: Any) -> Any:
    return (
        getattr(onnx.TensorProto, {"float32": "FLOAT", "float64": "DOUBLE"}.get(value, str(value).upper()))
        if (name == "to")
        else value
    )


def _array(given: Mapping[str, Any], random: np.random.Generator) -> Array:
    kind = given.get("type", "float32")
    if "value" in given:
        return np.array(given["value"], kind)
    shape, low, high = given["shape"], given.get("low", -2.0), given.get("high", 2.0)
    if kind == "bool":
        return np.asarray(random.random(shape) > 0.5)
    if kind.startswith(("int", "uint")):
        return np.asarray(random.integers(int(low), int(high), shape), kind)
    numbers = random.uniform(low, high, shape)
    step = given.get("step")
    return np.asarray(numbers if step is None else np.round(numbers / step) * step, kind)


def _typed(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    imports = [onnx.helper.make_opsetid("", opset)]
    ir_version = min(onnx.helper.find_min_ir_version_for(imports), 10)
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=ir_version)
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    # Inference leaves outputs without a type alone; they are taken from what it noted besides.
    known = {value.name: value for value in (*inferred.graph.value_info, *inferred.graph.output)}
    for output in model.graph.output:
        output.CopyFrom(known[output.name])
    return model


def node_tests() -> Iterator[Probe]:
    """ONNX's own node tests, as far as torch's exporters could emit the like: up to opset 23, plain element types."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in sorted(cases, key=lambda c: c.name):
        model = case.model
        if model is None or case.name in _ROUNDED:
            continue
        imports = {o.domain: o.version for o in model.opset_import}
        nodes = model.graph.node
        if len(nodes) != 1 or nodes[0].op_type in _RANDOM or set(imports) != {""} or imports[""] > _HIGHEST:
            continue
        feeds = case.data_sets[0][0] if case.data_sets else []
        if feeds and all(isinstance(a, np.ndarray) and str(a.dtype) in _TYPES for a in feeds):
            yield Probe(case.name, model, dict(zip([i.name for i in model.graph.input], feeds, strict=False)))
