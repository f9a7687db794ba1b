"""In which other types than float32 an engine runs each operator: probes in these types, and what follows from them.

A type matters to an engine as a whole: one has no kernels for double at all, another lacks them for some operators. So
operators are tried in each type beside their probes in float32, and the profile has a table for each type instead of
rows. Half and double are cast inside the file: that an engine takes no half at inputs says nothing of its operators.
Bytes are a file's inputs, as pictures are; they are tried where an operator gives the same in bytes as in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

from torch_onnx_compat.engines.compare import HALF
from torch_onnx_compat.engines.engine import Engine
from torch_onnx_compat.engines.measure import Sample, run_probes
from torch_onnx_compat.engines.probe_contexts import Probe, make_model
from torch_onnx_compat.engines.probes import own_probes
from torch_onnx_compat.graph.adapt.byte_tensors import is_same_in_bytes
from torch_onnx_compat.targets.target import PASSED, Verdict

WIDTHS = {"float16": onnx.TensorProto.FLOAT16, "double": onnx.TensorProto.DOUBLE}
"""The types that are tried. Not bfloat16, which onnxruntime's CPU, with which results are compared, hardly has."""
BYTES = "uint8"
_EACH = 6
"""Probes of one operator in one type."""
_SEVERITY: tuple[Verdict, ...] = ("wrong", "crashes", "refused")


def type_probes(passes: Callable[[Probe], bool] = lambda _: True) -> Iterator[Probe]:
    """Probes of float32 in the other types.

    Args:
        passes: Whether the engine runs a probe in float32; only such ones are tried.
    """
    by_operator: dict[str, list[Probe]] = {}
    for probe in own_probes():
        first = probe.feeds.get("x0")
        alone = probe.position == 0 and len(probe.model.graph.node) == 1
        if alone and first is not None and first.dtype == np.float32:
            by_operator.setdefault(probe.op_type, []).append(probe)
    for probes in by_operator.values():
        chosen = [probe for probe in _spread(probes) if passes(probe)]
        ways: list[Callable[[Probe], Probe | None]] = [*(partial(_cast, kind=kind) for kind in WIDTHS), _in_bytes]
        for write in ways:
            yield from (written for probe in chosen[:_EACH] if (written := write(probe)) is not None)


def run_type_probes(
    engine: Engine, passes: Callable[[Probe], bool], progress: Callable[[str], None] = lambda _: None
) -> list[Sample]:
    """Runs the probes that `type_probes` yields.

    Raises:
        CompatError: The engine is not installed.
    """
    relative, absolute = (max(own, half) for own, half in zip(engine.tolerance, HALF, strict=True))
    wide = replace(engine, tolerance=(relative, absolute))
    return run_probes(wide, type_probes(passes), progress)[1]


def _spread(probes: Sequence[Probe]) -> list[Probe]:
    """The probes, those that stand far from each other first: neighbours are alike."""
    step = max(len(probes) // _EACH, 1)
    return [probe for start in range(step) for probe in probes[start::step]]


def _cast(probe: Probe, kind: str) -> Probe | None:
    """The probe with all of its float32 in another type, cast from float32 and to it; None where ONNX forbids it."""
    model, width = onnx.ModelProto(), WIDTHS[kind]
    model.CopyFrom(probe.model)
    graph = model.graph
    before, renamed = [], {}
    for value in graph.input:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            renamed[value.name] = f"{value.name}_{kind}"
            before.append(onnx.helper.make_node("Cast", [value.name], [renamed[value.name]], to=width))
    for weight in graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT:
            array = onnx.numpy_helper.to_array(weight).astype(onnx.helper.tensor_dtype_to_np_dtype(width))
            weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
    node = graph.node[0]
    node.input[:] = [renamed.get(name, name) for name in node.input]
    floats = [v.name for v in graph.output if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT]
    node.output[:] = [f"{name}_{kind}" if name in floats else name for name in node.output]
    after = [onnx.helper.make_node("Cast", [f"{n}_{kind}"], [n], to=onnx.TensorProto.FLOAT) for n in floats]
    nodes = [*before, node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    made = _finished(graph, probe.opset)
    if made is None:
        return None
    known = onnx.shape_inference.infer_shapes(made).graph.value_info
    made.graph.value_info.extend(value for value in known if value.name in renamed.values())
    return Probe(f"{probe.name}_as_{kind}", made, probe.feeds, len(before))


def _in_bytes(probe: Probe) -> Probe | None:
    """The probe with bytes instead of float32; None where that is not the same, or ONNX forbids it."""
    if not is_same_in_bytes(ir.from_proto(probe.model).graph[0]):
        return None
    model = onnx.ModelProto()
    model.CopyFrom(probe.model)
    graph = model.graph
    for value in graph.input:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.UINT8
    for weight in graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT:
            weight.CopyFrom(onnx.numpy_helper.from_array(_bytes(onnx.numpy_helper.to_array(weight)), weight.name))
    made = _finished(graph, probe.opset)
    feeds = {name: _bytes(array) if array.dtype == np.float32 else array for name, array in probe.feeds.items()}
    return None if made is None else Probe(f"{probe.name}_as_{BYTES}", made, feeds)


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Bytes of that shape, no two of them alike where there are no more than 256."""
    numbers = np.random.default_rng(array.size).permutation(array.size) % 256
    return numbers.reshape(array.shape).astype(np.uint8)


def _finished(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto | None:
    """A model of a graph whose types were changed; None where ONNX forbids them."""
    for output in graph.output:
        output.ClearField("type")
    try:
        made = make_model(graph, opset)
        onnx.shape_inference.infer_shapes(made, check_type=True, strict_mode=True)
    except Exception:  # of several classes: the operator has no such type
        return None
    return made


def condense_types(samples: Iterable[Sample]) -> dict[str, dict[Verdict, frozenset[str]]]:
    """For each type the operators that do not run in it, by verdict: those of which a probe failed."""
    worst: dict[tuple[str, str], Verdict] = {}
    for sample in samples:
        if sample.verdict not in PASSED:
            key = (str(sample.facts["type"]), sample.op_type)
            worst[key] = min(worst.get(key, sample.verdict), sample.verdict, key=_SEVERITY.index)
    found: dict[str, dict[Verdict, frozenset[str]]] = {}
    for kind in sorted({kind for kind, _ in worst}):
        of: Mapping[Any, Verdict] = {op: verdict for (other, op), verdict in worst.items() if other == kind}
        found[kind] = {v: ops for v in _SEVERITY if (ops := frozenset(op for op, is_v in of.items() if is_v == v))}
    return found
