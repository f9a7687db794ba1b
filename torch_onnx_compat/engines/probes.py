"""The small models that engines are measured with: this package's own (probes.toml) and ONNX's node tests."""

from __future__ import annotations

import itertools
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from torch_onnx_compat.engines.engine import Engine
from torch_onnx_compat.engines.probe_contexts import (
    Probe,
    add_reader,
    cast_result,
    divide_by_norm,
    embed_as_scores,
    embed_in_attention,
    embed_in_group_norm,
    make_inside,
    make_model,
    multiply_result,
    prepend_activation,
    prepend_convolution,
    prepend_pad,
    prepend_reshape,
    read_shapes,
    size_by_itself,
    sum_products,
)
from torch_onnx_compat.graph.schema import find

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Array = npt.NDArray[Any]
_HIGHEST = 23
"""The highest opset that torch's exporters write."""
_IMAGE_RANKS = (3, 4, 5)
_TYPES = frozenset({"float32", "float64", "float16", "int64", "int32", "uint8", "int8", "bool"})
_RANDOM = frozenset({"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Dropout"})
_NEVER = frozenset({"test_gather_elements_negative_indices"})
"""Tests of behaviour that torch does not have: its gather takes no negative indices, nor do some engines."""
_ROUNDED = frozenset({"test_dynamicquantizelinear", "test_nonmaxsuppression_iou_threshold_boundary"})
"""Tests that a rounding decides, so that no answer is wrong: a 127.5, and an overlap of 1/7 with a threshold of 1/7."""

_CONTEXTS: Mapping[str, Callable[..., Probe]] = {
    "attends": lambda probe, how=True: embed_in_attention(probe) if how is True else embed_as_scores(probe, how),
    "cast": cast_result,
    "gates": multiply_result,
    "grouped": embed_in_group_norm,
    "inside": make_inside,
    "norm": divide_by_norm,
    "padded": prepend_pad,
    "sized": size_by_itself,
    "summing": sum_products,
    "viewed": prepend_reshape,
}


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
            within = [(_CONTEXTS[key], value) for key, value in entry.items() if key in _CONTEXTS]
            if within:
                yield from (context(probe) if how is True else context(probe, how) for context, how in within)
                continue
            yield from (prepend_activation(probe, activation) for activation in entry.get("after", ()))
            yield probe
            first = probe.feeds.get("x0")
            is_fixed = not any(given.get("dynamic") for given in entry["inputs"])  # a reader tells the sizes
            if is_fixed and opset not in seen and first is not None and first.dtype == np.float32:
                seen.add(opset)
                yield add_reader(probe)


def probes_for(engine: Engine, own: bool = False) -> Iterator[Probe]:
    """All probes for an engine.

    Args:
        engine: The engine.
        own: Whether to leave ONNX's node tests out.
    """
    ours = list(own_probes())
    yield from ours
    if engine.turns_images:
        yield from (prepend_convolution(probe) for probe in ours if _takes_an_image(probe, engine.opset))
    if not own:
        yield from node_tests()


def _takes_an_image(probe: Probe, opset: int) -> bool:
    first = probe.feeds.get("x0")
    versions = {d.since_version for d in (find(probe.op_type, o) for o in (probe.opset, opset)) if d is not None}
    alone = len(probe.model.graph.node) == 1 and len(versions) == 1 and probe.opset <= opset
    return alone and first is not None and first.dtype == np.float32 and first.ndim in _IMAGE_RANKS


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
            sizes = [f"{names[-1]}_{axis}" for axis in range(array.ndim)] if given.get("dynamic") else array.shape
            inputs.append(onnx.helper.make_tensor_value_info(names[-1], kind, sizes))
    outputs = [f"y{index}" for index in range(entry.get("outputs", 1))]
    read = [outputs[index] for index in entry.get("read", range(len(outputs)))]
    written = {k: _attribute(k, v) for k, v in attributes.items()}
    node = onnx.helper.make_node(entry["op"], names, outputs, **written)
    graph = onnx.helper.make_graph([node], name, inputs, [onnx.ValueInfoProto(name=o) for o in read], weights)
    return Probe(name, make_model(graph, opset), feeds)


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


def node_tests() -> Iterator[Probe]:
    """ONNX's own node tests that torch's exporters could emit in a like form: up to opset 23, plain element types."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in sorted(cases, key=lambda c: c.name):
        model = case.model
        if model is None or case.name in _ROUNDED | _NEVER:
            continue
        imports = {o.domain: o.version for o in model.opset_import}
        nodes = model.graph.node
        if len(nodes) != 1 or nodes[0].op_type in _RANDOM or set(imports) != {""} or imports[""] > _HIGHEST:
            continue
        feeds = case.data_sets[0][0] if case.data_sets else []
        if feeds and all(isinstance(a, np.ndarray) and str(a.dtype) in _TYPES for a in feeds):
            probe = Probe(case.name, model, dict(zip([i.name for i in model.graph.input], feeds, strict=False)))
            yield make_inside(read_shapes(probe))
