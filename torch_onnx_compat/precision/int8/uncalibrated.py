"""Brings a proven float32 graph to eight or four bits without calibration: only weights, or ranges at run time."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime

from torch_onnx_compat.check.compare import Array
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.excerpt import copy_of
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.observe import ModelRefused
from torch_onnx_compat.precision.int8.layers import KEPT_BY_CALLER, lift_constants, name_nodes
from torch_onnx_compat.precision.int8.loss import relative_distance
from torch_onnx_compat.precision.int8.on_engine import keep_for_engine
from torch_onnx_compat.precision.int8.quantize import EFFECT_SECONDS, IMPRECISE, QuantizedNetwork, left_in_bodies
from torch_onnx_compat.precision.int8.request import Dynamic, WeightOnly
from torch_onnx_compat.precision.int8.search import Search
from torch_onnx_compat.precision.int8.verdict import LayerLoss
from torch_onnx_compat.precision.int8.writer import write_dynamic, write_weights
from torch_onnx_compat.precision.layout import is_float, is_inside
from torch_onnx_compat.precision.measuring_inputs import SEED
from torch_onnx_compat.precision.narrow import PrecisionJob
from torch_onnx_compat.publish.publish import draft, is_large
from torch_onnx_compat.session import open_session, options_of_few_runs
from torch_onnx_compat.targets import Target
from torch_onnx_compat.targets.placement import Placement

INPUTS = 4
"""Inputs that a layer's effect is measured on."""


def quantize_uncalibrated(job: PrecisionJob, request: Dynamic | WeightOnly, target: Target) -> QuantizedNetwork:
    """Brings a graph to the form, and judges it on all inputs: no number in the file comes from them.

    Args:
        job: The proven network, and how it is run.
        request: What was asked for.
        target: Has the placement.

    Raises:
        CompatError: The metric or the opset do not fit.
        ArgumentError: The target's profile does not offer the form.
        VerificationError: onnxruntime does not run the file.
    """
    request.check(job.network.opset_imports[""], target)
    assert target.placement is not None
    given = _inputs(job)
    search = Search(job, request, given)
    network = _Network.of(job.network, request, target.placement)
    with ExitStack() as stack:
        switches = _Switches.open(stack, network)
        feeds = [dict(job.feeds(inputs)) for inputs in given[:INPUTS]]
        layers = _rank(network.layers, switches, feeds)
    missing = sum(effect is None for _, effect in layers)
    if missing:
        search.note(f"of {missing} layers the effect was not measured: too slow.")
    for text in left_in_bodies(network.model):
        search.note(text)
    kept = dict.fromkeys(search.find([node for node, _ in layers], network.write), IMPRECISE)
    kept |= keep_for_engine(search, target, list(kept), network.layers, network.write)
    model = network.write(kept)
    outputs = search.finish(model, len(kept))
    if len(kept) == len(layers):
        search.note(f"nothing is in {request.name}: no layer could be, or none within the limit.")
    rows = [
        LayerLoss(place(node), node.op_type, None, effect, "", node in kept, kept.get(node, ""))
        for node, effect in layers
    ]
    rows += [LayerLoss(place(node), node.op_type, kept=True, why=why) for node, why in network.obstacles.items()]
    narrow = len(layers) - len(kept)
    return QuantizedNetwork(model, search.verdict(outputs, tuple(rows), switches.runs, narrow))


def _inputs(job: PrecisionJob) -> list[Inputs]:
    """What the files are judged on: two inputs at least, where the model takes other values than the example's."""
    if len(job.inputs) > 1:
        return list(job.inputs)
    other = job.inputs[0].redrawn(SEED)
    try:
        job.observation.reference("other values, to judge on", other)
    except ModelRefused:
        return list(job.inputs)
    return [*job.inputs, other]


@dataclass(frozen=True)
class _Network:
    """A copy of a graph in which every layer that may be in few bits is a node of its own."""

    model: ir.Model
    request: Dynamic | WeightOnly
    placement: Placement
    layers: list[ir.Node]
    obstacles: dict[ir.Node, str]

    @classmethod
    def of(cls, network: ir.Model, request: Dynamic | WeightOnly, placement: Placement) -> _Network:
        model = copy_of(network)
        infer_model(model)
        lift_constants(model)
        split_gemms(model)
        name_nodes(model)
        kinds = placement.dynamic if isinstance(request, Dynamic) else ("MatMul",)
        layers: list[ir.Node] = []
        obstacles: dict[ir.Node, str] = {}
        for node in model.graph:
            if node.domain or node.op_type not in kinds or not is_float(node.inputs[0]):
                continue
            where = place(node)
            if node.op_type in request.keep or any(is_inside(where, path) for path in request.keep):
                obstacles[node] = KEPT_BY_CALLER
            elif not _has_weights(node):
                obstacles[node] = "it multiplies no weights"
            else:
                layers.append(node)
        return cls(model, request, placement, layers, obstacles)

    @cached_property
    def proto(self) -> onnx.ModelProto:
        """The copy as the quantiser takes it."""
        return ir.to_proto(self.model)

    def write(self, kept: Collection[ir.Node]) -> ir.Model:
        """The graph in few bits, with some layers in float32."""
        nodes = [str(node.name) for node in self.layers if node not in kept]
        if isinstance(self.request, Dynamic):
            return write_dynamic(self.proto, nodes, self.placement)
        return write_weights(self.proto, nodes, self.request.bits, self.request.block_size, self.placement)


def _has_weights(node: ir.Node) -> bool:
    """Whether the second input is a weight (K, N), or (1, …, K, N)."""
    tensor = constant_tensor(node.inputs[1])
    if tensor is None or not is_float(node.inputs[1]) or len(tensor.shape) < 2:
        return False
    return node.op_type != "MatMul" or len(tensor.shape) == 2


def split_gemms(model: ir.Model) -> None:
    """Writes each Gemm of the main graph with constant weights as MatMul and Add, as no such form of Gemm exists."""
    for node in list(model.graph):
        tensor = constant_tensor(node.inputs[1]) if node.op_type == "Gemm" and not node.domain else None
        factors = [node.attributes.get_float(name, 1.0) for name in ("alpha", "beta")] if tensor is not None else []
        if tensor is None or factors != [1.0, 1.0] or node.attributes.get_int("transA"):
            continue
        array = np.asarray(tensor.numpy())
        if node.attributes.get_int("transB"):
            array = np.ascontiguousarray(array.T)
        name = f"{node.inputs[1].name}_of_{node.outputs[0].name}"  # type: ignore[union-attr]
        weight = ir.Value(
            name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(array.shape), const_value=ir.tensor(array)
        )
        weight.const_value.name = name  # type: ignore[union-attr]
        model.graph.register_initializer(weight)
        output, bias = node.outputs[0], node.inputs[2] if len(node.inputs) > 2 else None
        product = ir.node("MatMul", [node.inputs[0], weight], name=node.name)
        product.metadata_props.update(node.metadata_props)
        nodes = [product]
        if bias is not None:
            nodes.append(ir.node("Add", [product.outputs[0], bias]))
            nodes[-1].metadata_props.update(node.metadata_props)
            product.outputs[0].name = f"{output.name}_product"
            product.outputs[0].type, product.outputs[0].shape = output.type, output.shape
        made = nodes[-1].outputs[0]
        made.name, made.type, made.shape = output.name, output.type, output.shape
        model.graph.insert_before(node, nodes)
        output.replace_all_uses_with(made, replace_graph_outputs=True)
        model.graph.remove(node, safe=True)
    used = {value for node in model.graph for value in node.inputs}
    for value in list(model.graph.initializers.values()):
        if value not in used and not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del model.graph.initializers[str(value.name)]


# The effect of each layer


@dataclass
class _Switches:
    """Runs a graph that holds each layer in both forms, and a switch for each."""

    names: Mapping[str, str]
    session: onnxruntime.InferenceSession | None
    outputs: list[str]
    runs: int = 0

    @classmethod
    def open(cls, stack: ExitStack, network: _Network) -> _Switches:
        if not network.layers:
            return cls({}, None, [])
        written = ir.to_proto(network.write(()))
        plain = {node.name: node for node in network.proto.graph.node}
        layers = {str(node.name): f"switch_{number}" for number, node in enumerate(network.layers)}
        made_by = {name: node for node in written.graph.node for name in node.output}
        nodes = []
        for name, switch in layers.items():
            written.graph.input.append(onnx.helper.make_tensor_value_info(switch, onnx.TensorProto.BOOL, []))
            exact = onnx.NodeProto()
            exact.CopyFrom(plain[name])
            exact.name = f"{name}_exact"
            for index, output in enumerate(plain[name].output):
                if not output:
                    continue
                producer = made_by[output]
                position = list(producer.output).index(output)
                producer.output[position] = f"{output}_narrow"
                exact.output[index] = f"{output}_exact"
                both = [switch, f"{output}_narrow", f"{output}_exact"]
                nodes.append(onnx.helper.make_node("Where", both, [output]))
            nodes.append(exact)
        known = {tensor.name for tensor in written.graph.initializer}
        wanted = {name for node in nodes for name in node.input} - known
        written.graph.initializer.extend(t for t in network.proto.graph.initializer if t.name in wanted)
        written.graph.node.extend(nodes)
        del written.graph.value_info[:]
        model = ir.from_proto(written)
        model.graph.sort()
        path = stack.enter_context(draft(model, None, is_large(model))).path
        session = open_session(path, sess_options=options_of_few_runs())
        return cls(layers, session, [str(v.name) for v in model.graph.outputs])

    def run(self, feeds: Mapping[str, Any], layer: str | None) -> list[Array]:
        """The outputs with one layer in few bits, or with none."""
        assert self.session is not None
        self.runs += 1
        switches = {switch: np.array(name == layer) for name, switch in self.names.items()}
        results: Any = self.session.run(self.outputs, {**feeds, **switches})
        return list(results)


def _rank(
    layers: Sequence[ir.Node], switches: _Switches, feeds: Sequence[Mapping[str, Any]]
) -> list[tuple[ir.Node, float | None]]:
    """The layers with how far the outputs are off when each alone is in few bits, those first that cost most."""
    if not layers:
        return []
    exact = [switches.run(feed, None) for feed in feeds]
    found = list(_effects(layers, switches, feeds, exact))
    return sorted(found, key=lambda pair: (pair[1] is None, -(pair[1] or 0.0)))


def _effects(
    layers: Sequence[ir.Node], switches: _Switches, feeds: Sequence[Mapping[str, Any]], exact: Sequence[list[Array]]
) -> Iterator[tuple[ir.Node, float | None]]:
    end = time.perf_counter() + EFFECT_SECONDS
    for node in layers:
        effect = None
        if time.perf_counter() < end:
            effect = relative_distance([switches.run(feed, str(node.name)) for feed in feeds], exact)
        yield node, effect
