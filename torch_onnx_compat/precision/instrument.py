"""A copy of a graph that runs nodes a second time on rounded inputs, and gives what that loses as one vector.

A *shadow* is a node, or an island of nodes, run once more beside the original: on the exact inputs, rounded to the
format. Its distance from the exact result is what the node, or the island, loses by itself, whatever comes before it.
One run of the graph gives that for all of them. Bodies of If, Loop and Scan, and functions, hand their part of the
vector on as one more output; of the rounds of a loop the largest loss counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.excerpt import copy_of
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.layout import (
    DRAWS,
    FLOAT,
    HEAVY,
    HOLDERS,
    Layout,
    bodies,
    is_constant,
    is_float,
)

Key = tuple[str, int]
"""What a number says, and of which node, or of which island."""

BEYOND = 1e30
"""The loss where a shadow is not a number and the exact result is one."""

STATISTICS = "precision_statistics"
"""Name of the output."""

_TERMS = frozenset({"GlobalAveragePool", "ReduceMean"})
"""Operators that divide a sum by the number of its terms."""


@dataclass(frozen=True)
class Island:
    """Nodes of one graph that stay in float32 together.

    Attributes:
        members: Their numbers.
        targets: Those for the sake of which they do.
    """

    members: frozenset[int]
    targets: frozenset[int]


def instrument(
    model: ir.Model,
    half: Half,
    shadows: Collection[int],
    islands: Sequence[Island] = (),
    *,
    is_careful: bool = True,
) -> tuple[ir.Model, list[Key]]:
    """Makes a copy of a model with the vector as its only output.

    Args:
        model: The model; unchanged.
        half: The format.
        shadows: Nodes that are run once more, each alone, with weights and result rounded as well.
        islands: Islands that are run once more, on rounded inputs; weights and results stay exact.
        is_careful: Whether numbers beyond the format's range, numbers that are none, and tensors without an element are
            seen to. Without it a run takes half the time, and a shadow that meets one of them has a loss that is none.

    Returns:
        The copy, and what each number of the vector says.
    """
    copy = copy_of(model)
    probe = _Probe(Layout.of(copy), half, frozenset(shadows), islands, is_careful)
    keys, vector = probe.enter(0)
    if vector is None:
        vector = probe.constant(copy.graph, np.zeros(1, np.float32), None)
        keys = [("nothing", 0)]
    vector = _append(copy.graph, "Identity", [vector])
    vector.name, vector.dtype, vector.shape = STATISTICS, FLOAT, ir.Shape([None])
    copy.graph.outputs[:] = [vector]
    return copy, keys


_numbers = itertools.count()


def _node(op_type: str, inputs: Sequence[ir.Value | None], **attributes: Any) -> ir.Node:
    return _name(ir.node(op_type, inputs, attributes))


def _name(node: ir.Node) -> ir.Node:
    """Names its outputs: a name that stands in an outer graph as well would hide that one."""
    for value in node.outputs:
        value.name = f"{STATISTICS}_{next(_numbers)}" if value.name != "" else ""
    return node


def _append(graph: ir.Graph, op_type: str, inputs: Sequence[ir.Value | None], **attributes: Any) -> ir.Value:
    node = _node(op_type, inputs, **attributes)
    graph.append(node)
    return node.outputs[0]


@dataclass
class _Probe:
    """Adds the shadows, graph by graph."""

    layout: Layout
    half: Half
    shadows: frozenset[int]
    islands: Sequence[Island]
    is_careful: bool
    _rounded: dict[tuple[int, ir.Value], ir.Value] = field(default_factory=dict)
    _functions: dict[tuple[str, str, str], tuple[list[Key], ir.Value | None]] = field(default_factory=dict)
    _constants: dict[tuple[int, bytes, tuple[int, ...], str], ir.Value] = field(default_factory=dict)

    def enter(self, number: int) -> tuple[list[Key], ir.Value | None]:
        """Adds the shadows of one graph; returns what its vector holds, and the vector."""
        subgraph = self.layout.subgraphs[number]
        nodes = [n for n in list(subgraph.graph) if self.layout.numbers.get(n) is not None]
        writer = _Writer(self, number)
        last: dict[int, list[int]] = {}
        for index, island in enumerate(self.islands):
            if self.layout.subgraph_of[min(island.members)] == number:
                last.setdefault(max(island.members), []).append(index)
        for node in nodes:
            own = self.layout.numbers[node]
            writer.move_behind(node)
            if node.op_type in HOLDERS and not node.domain:
                self._enter_bodies(node, writer)
            elif (node.domain, node.op_type, node.overload) in self.layout.model.functions:
                self._enter_function(node, writer)
            elif own in self.shadows:
                writer.shadow(own, node)
            for index in last.get(own, ()):
                writer.island(index, self.islands[index])
        return writer.vector(subgraph.graph)

    def constant(self, graph: ir.Graph, array: Any, before: ir.Node | None) -> ir.Value:
        """A constant of one graph, at its beginning."""
        key = (id(graph), array.tobytes(), array.shape, str(array.dtype))
        if key not in self._constants:
            node = _node("Constant", [], value=ir.tensor(array))
            first = before or next(iter(graph), None)
            if first is None:
                graph.append(node)
            else:
                graph.insert_before(next(iter(graph)), node)
            node.outputs[0].dtype = ir.DataType.from_numpy(array.dtype)
            self._constants[key] = node.outputs[0]
        return self._constants[key]

    def _enter_bodies(self, node: ir.Node, writer: _Writer) -> None:
        if node.op_type == "SequenceMap":
            return
        own = self.layout.numbers[node]
        inner = {
            subgraph.attribute: number
            for number, subgraph in enumerate(self.layout.subgraphs)
            if subgraph.holder == own
        }
        found = [(graph, *self.enter(inner[name])) for name, graph in bodies(node)]
        for graph, keys, vector in found:
            if vector is None:
                continue
            graph.outputs.append(vector)
            given = _one_more(node)
            if node.op_type == "If":
                for other, _, _ in found:
                    if other is not graph:
                        other.outputs.append(self._zeros(other, len(keys)))
                writer.take(keys, given)
            else:
                _add_scanned_output(node)
                writer.take(keys, writer.largest_round(given, len(keys)))

    def _zeros(self, graph: ir.Graph, count: int) -> ir.Value:
        """What a branch that is not taken gives."""
        zeros = _append(graph, "Identity", [self.constant(graph, np.zeros(count, np.float32), None)])
        zeros.dtype, zeros.shape = FLOAT, ir.Shape([count])
        return zeros

    def _enter_function(self, node: ir.Node, writer: _Writer) -> None:
        name = (node.domain, node.op_type, node.overload)
        function = self.layout.model.functions[name]
        if name not in self._functions:
            number = next(i for i, r in enumerate(self.layout.subgraphs) if r.graph is function.graph)
            self._functions[name] = keys, vector = self.enter(number)
            if vector is not None:
                function.graph.outputs.append(vector)
        keys, vector = self._functions[name]
        if vector is not None:
            writer.take(keys, _one_more(node))

    def rounded(self, value: ir.Value, writer: _Writer) -> ir.Value:
        """A value rounded to the format; what is beyond its range becomes its largest number."""
        key = (writer.number, value)
        if key not in self._rounded:
            if not self.is_careful:
                self._rounded[key] = writer.round(value)
                return self._rounded[key]
            largest = self.half.largest
            inside = writer.add("Clip", value, writer.number_of(-largest), writer.number_of(largest))
            self._rounded[key] = writer.round(inside)
        return self._rounded[key]


class _Writer:
    """Writes nodes into one graph, each behind the one before it."""

    def __init__(self, probe: _Probe, number: int) -> None:
        self._probe, self.number = probe, number
        self._graph = probe.layout.subgraphs[number].graph
        self._behind: ir.Node | None = None
        self._keys: list[Key] = []
        self._values: list[ir.Value] = []

    def move_behind(self, node: ir.Node) -> None:
        self._behind = node

    def put(self, node: ir.Node) -> ir.Node:
        assert self._behind is not None
        self._graph.insert_after(self._behind, node)
        self._behind = node
        return node

    def add(self, op_type: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        return self.put(_node(op_type, inputs, **attributes)).outputs[0]

    def number_of(self, number: float) -> ir.Value:
        return self._probe.constant(self._graph, np.float32(number).reshape(()), None)

    def ints(self, *numbers: int) -> ir.Value:
        return self._probe.constant(self._graph, np.array(numbers, np.int64), None)

    def round(self, value: ir.Value) -> ir.Value:
        narrow = self.add("Cast", value, to=self._probe.half.onnx_type.value)
        return self.add("Cast", narrow, to=FLOAT.value)

    def take(self, keys: Iterable[Key], vector: ir.Value) -> None:
        self._keys += keys
        self._values.append(vector)

    def vector(self, graph: ir.Graph) -> tuple[list[Key], ir.Value | None]:
        """All that was taken, as one vector."""
        if not self._values:
            return [], None
        made = _append(graph, "Concat", self._values, axis=0)
        made.dtype, made.shape = FLOAT, ir.Shape([len(self._keys)])
        return self._keys, made

    def largest_round(self, rounds: ir.Value, count: int) -> ir.Value:
        """(T, count) to the largest of each column; 0 where there was no round."""
        zeros = self._probe.constant(self._graph, np.zeros((1, count), np.float32), None)
        return self._reduce("ReduceMax", self.add("Concat", zeros, rounds, axis=0), [0])

    def _reduce(self, op_type: str, value: ir.Value, axes: Sequence[int]) -> ir.Value:
        if self._probe.layout.opset >= 18:
            return self.add(op_type, value, self.ints(*axes), keepdims=0)
        return self.add(op_type, value, axes=list(axes), keepdims=0)

    # Shadows

    def shadow(self, number: int, node: ir.Node) -> None:
        """Runs a node alone, as the format would run it."""
        inputs = [self._probe.rounded(v, self) if v is not None and is_float(v) else v for v in node.inputs]
        shadow = self.put(_clone(node, inputs))
        for exact, found in zip(node.outputs, shadow.outputs, strict=True):
            if not exact.name:
                continue
            if is_float(exact) and not self._probe.is_careful:
                self._take_quickly(number, exact, found)
            elif is_float(exact):
                self.take([("peak", number)], self._largest(self.add("Abs", exact)))
                self.take([("made", number)], self._largest(self.add("Abs", found)))
                self.take([("loss", number)], self._loss(exact, found, self.round(found)))
            elif isinstance(exact.type, ir.TensorType) and any(is_float(v) for v in node.inputs):
                self.take([("mismatch", number)], self._mismatch(exact, found))
        self._count(number, node)

    def _take_quickly(self, number: int, exact: ir.Value, found: ir.Value) -> None:
        magnitude = self.add("Abs", exact)
        error = self.add("Abs", self.add("Sub", self.round(found), exact))
        usual = self.add("Max", self.add("ReduceMean", magnitude, keepdims=0), self.number_of(1e-30))
        relative = self.add("Div", error, self.add("Max", magnitude, usual))
        for what, values in (("peak", magnitude), ("loss", relative)):
            self.take([(what, number)], self.add("Reshape", self.add("ReduceMax", values, keepdims=0), self.ints(1)))

    def island(self, index: int, island: Island) -> None:
        """Runs an island on rounded inputs; takes the loss at its targets."""
        layout = self._probe.layout
        known: dict[ir.Value | None, ir.Value] = {}
        for number in sorted(island.members):
            node = layout.nodes[number]
            inputs: list[ir.Value | None] = []
            for value in node.inputs:
                inside = known.get(value)
                if inside is None and value is not None:
                    rounds = is_float(value) and not is_constant(value)
                    inside = self._probe.rounded(value, self) if rounds else value
                inputs.append(inside)
            shadow = self.put(_clone(node, inputs))
            known.update(zip(node.outputs, shadow.outputs, strict=True))
            if number in island.targets:
                for exact in node.outputs:
                    if exact.name and is_float(exact):
                        self.take([("island", index)], self._loss(exact, known[exact], known[exact]))

    def _loss(self, exact: ir.Value, found: ir.Value, rounded: ir.Value) -> ir.Value:
        """The largest error, each relative to the value or to the mean magnitude, whichever is larger."""
        low, high = self.number_of(-self._probe.half.largest), self.number_of(self._probe.half.largest)
        inside = self.add("Clip", exact, low, high)
        magnitude = self.add("Abs", inside)
        usual = self.add("ReduceMean", magnitude, keepdims=0)
        scale = self.add("Max", self.add("Max", magnitude, usual), self.number_of(1e-30))
        error = self.add("Abs", self.add("Sub", self.add("Clip", rounded, low, high), inside))
        relative = self.add("Div", error, scale)
        relative = self.add("Where", self.add("IsNaN", found), self.number_of(BEYOND), relative)
        relative = self.add("Where", self.add("IsNaN", exact), self.number_of(0.0), relative)
        return self._largest(relative)

    def _mismatch(self, exact: ir.Value, found: ir.Value) -> ir.Value:
        """The share of whole numbers or truths that differ."""
        one, other = (self.add("Cast", v, to=ir.DataType.INT64.value) for v in (exact, found))
        differ = self.add("Cast", self.add("Not", self.add("Equal", one, other)), to=FLOAT.value)
        return self.add("Reshape", self.add("ReduceMean", differ, keepdims=0), self.ints(1))

    def _largest(self, value: ir.Value) -> ir.Value:
        flat = self.add("Reshape", value, self.ints(-1))
        zero = self._probe.constant(self._graph, np.zeros(1, np.float32), None)
        return self.add("ReduceMax", self.add("Concat", flat, zero, axis=0), keepdims=1)

    def _count(self, number: int, node: ir.Node) -> None:
        """Takes how many terms a mean has, and how many products a product of matrices."""
        if node.op_type in _TERMS:
            terms = self.add("Div", self._size(node.inputs[0]), self._size(node.outputs[0]))
            self.take([("terms", number)], terms)
        if node.op_type == "CumSum":
            length = self.add("Gather", self.add("Shape", node.inputs[0]), node.inputs[1], axis=0)
            self.take([("length", number)], self._as_float(length))
        if node.op_type in HEAVY and node.domain == "":
            products = self._products(node)
            if products is not None:
                self.take([("products", number)], products)

    def _products(self, node: ir.Node) -> ir.Value | None:
        if node.op_type in ("MatMul", "Gemm"):
            transposed = node.op_type == "Gemm" and "transA" in node.attributes and node.attributes["transA"].as_int()
            axis = 0 if transposed else -1
            terms = self.add("Gather", self.add("Shape", node.inputs[0]), self.ints(axis), axis=0)
            return self.add("Mul", self._size(node.outputs[0]), self._as_float(terms))
        if node.op_type in ("Conv", "ConvTranspose"):
            moving = node.outputs[0] if node.op_type == "Conv" else node.inputs[0]
            first = self.add("Gather", self.add("Shape", node.inputs[1]), self.ints(0), axis=0)
            each = self.add("Div", self._size(node.inputs[1]), self._as_float(first))
            return self.add("Mul", self._size(moving), each)
        return None

    def _size(self, value: ir.Value | None) -> ir.Value:
        return self._as_float(self.add("Size", value))

    def _as_float(self, count: ir.Value) -> ir.Value:
        return self.add("Reshape", self.add("Cast", count, to=FLOAT.value), self.ints(1))


def _one_more(node: ir.Node) -> ir.Value:
    """A further output of a node that stands in a graph."""
    node.resize_outputs(len(node.outputs) + 1)
    given = node.outputs[-1]
    given.name, given.dtype = f"{STATISTICS}_{next(_numbers)}", FLOAT
    return given


def _add_scanned_output(node: ir.Node) -> None:
    """Makes a Scan stack its last output as it does by default, where it says how for each output."""
    for name in ("scan_output_axes", "scan_output_directions"):
        if name in node.attributes:
            node.attributes[name] = ir.AttrInt64s(name, [*node.attributes[name].as_ints(), 0])


def _clone(node: ir.Node, inputs: Sequence[ir.Value | None]) -> ir.Node:
    clone = ir.Node(node.domain, node.op_type, inputs, list(node.attributes.values()), num_outputs=len(node.outputs))
    for one, other in zip(node.outputs, clone.outputs, strict=True):
        if not one.name:
            other.name = ""
    return _name(clone)


def can_be_shadowed(node: ir.Node) -> bool:
    """Whether a node can run a second time: it is ONNX's own, holds no graph, and draws no random numbers."""
    return not node.domain and node.op_type not in HOLDERS and node.op_type not in DRAWS
