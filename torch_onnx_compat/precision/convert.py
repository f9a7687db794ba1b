"""Writes a plan into a graph: narrow weights, narrow values, and casts where the two formats meet."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.excerpt import copy_of
from torch_onnx_compat.graph.names import claim_name
from torch_onnx_compat.graph.tidy.products import turn_products
from torch_onnx_compat.graph.unused import RemoveUnusedNodes
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.layout import FLOAT, Layout, bodies, is_float, takes_half
from torch_onnx_compat.precision.plan import HalfPlan


def convert(model: ir.Model, half: Half, plan: HalfPlan) -> ir.Model:
    """Makes a copy of a float32 graph in which all nodes but the plan's run in the format.

    Args:
        model: The graph; unchanged.
        half: The format, and whether inputs and outputs keep their types.
        plan: The nodes that stay in float32.
    """
    copy = copy_of(model)
    layout = Layout.of(copy)
    _Conversion(layout, half, plan.kept, set(plan.peaks)).carry_out()
    RemoveUnusedNodes()(copy)
    turn_products(copy)
    return copy


@dataclass
class _Conversion:
    layout: Layout
    half: Half
    kept: Collection[int]
    beyond: Collection[int]
    """Nodes with values beyond the format's range."""
    _casts: dict[tuple[ir.Value, ir.DataType], ir.Value] = field(default_factory=dict)
    _count: Callable[[], int] = field(default_factory=lambda: itertools.count().__next__)
    _floats: set[ir.Value] = field(default_factory=set)
    """What was float32 before."""

    def carry_out(self) -> None:
        graph = self.layout.model.graph
        self._floats = {v for subgraph in self.layout.subgraphs for v in subgraph.graph.inputs if is_float(v)}
        self._floats |= {v for node in self.layout.nodes for v in node.outputs if is_float(v)}
        self._floats |= {v for g in self._graphs() for v in g.initializers.values() if is_float(v)}
        if not self.half.keep_io:
            for value in graph.inputs:
                if value in self._floats:
                    value.dtype = self.half.onnx_type
        outputs = [(value, value in self._floats) for value in graph.outputs]
        self._graph(0)
        for subgraph in self.layout.subgraphs[1:]:
            if subgraph.function is not None and subgraph.holder is None:
                self._graph(self.layout.subgraphs.index(subgraph))
                self._give(subgraph.graph, [FLOAT if v in self._floats else v.dtype for v in subgraph.graph.outputs])
        wanted = FLOAT if self.half.keep_io else self.half.onnx_type
        names = [str(value.name) for value in graph.outputs]
        self._give(graph, [wanted if was_float else value.dtype for value, was_float in outputs])
        for name, value in zip(names, graph.outputs, strict=True):
            claim_name(self.layout.model, value, name)
        self._drop_unused_weights()

    def _graphs(self) -> list[ir.Graph]:
        """The graphs that may have weights: the main one and bodies."""
        return [s.graph for s in self.layout.subgraphs if isinstance(s.graph, ir.Graph)]

    def _graph(self, number: int) -> None:
        for node in list(self.layout.subgraphs[number].graph):
            if node.op_type == "Constant" and not node.domain:
                continue
            own = self.layout.numbers[node]
            if any(True for _ in bodies(node)):
                self._holder(node, own)
            elif own in self.kept or node.domain:
                self._read(node, [FLOAT] * len(node.inputs))
            elif any(v in self._floats for v in (*node.inputs, *node.outputs) if v is not None):
                self._narrow(node)

    def _narrow(self, node: ir.Node) -> None:
        """Runs a node in the format."""
        half, opset = self.half.onnx_type, self.layout.opset
        self._read(node, [half if takes_half(node, i, opset, half) else FLOAT for i in range(len(node.inputs))])
        for value in node.outputs:
            if value in self._floats:
                value.dtype = half
        _narrow_attributes(node, self.half)

    def _read(self, node: ir.Node, types: list[ir.DataType]) -> None:
        """Makes a node read its float inputs in these types."""
        for index, (value, wanted) in enumerate(zip(list(node.inputs), types, strict=True)):
            if value is not None and value in self._floats:
                node.replace_input_with(index, self._as(value, wanted))

    def _as(self, value: ir.Value, wanted: ir.DataType) -> ir.Value:
        """A value in a type: itself, a narrow constant, or a cast behind its producer."""
        if value.dtype is wanted:
            return value
        key = (value, wanted)
        if key not in self._casts:
            tensor = constant_tensor(value)
            if tensor is not None and wanted is self.half.onnx_type:
                self._casts[key] = self._constant(value, tensor)
            else:
                self._casts[key] = self._cast(value, wanted)
            self._floats.add(self._casts[key])
        return self._casts[key]

    def _constant(self, value: ir.Value, tensor: Any) -> ir.Value:
        """A constant in the format; finite numbers beyond its range become its largest."""
        narrow = narrow_tensor(tensor, self.half)
        producer = value.producer()
        if producer is not None:
            node = ir.node("Constant", [], {"value": narrow})
            assert producer.graph is not None
            producer.graph.insert_before(producer, node)
            made = node.outputs[0]
            made.name = self._name(value)
        else:
            made = ir.Value(name=self._name(value), const_value=narrow)
            narrow.name = made.name
            (value.graph or self.layout.model.graph).register_initializer(made)
        made.type, made.shape = ir.TensorType(self.half.onnx_type), value.shape
        return made

    def _cast(self, value: ir.Value, wanted: ir.DataType) -> ir.Value:
        nodes: list[ir.Node] = []
        source = value
        if wanted is self.half.onnx_type and self.layout.producer(value) in self.beyond:
            limits = [self._number(sign * self.half.largest, value) for sign in (-1, 1)]
            clip = self._named(ir.node("Clip", [value, *(node.outputs[0] for node in limits)]), value, FLOAT)
            nodes += [*limits, clip]
            source = clip.outputs[0]
        nodes.append(self._named(ir.node("Cast", [source], {"to": wanted.value}), value, wanted))
        self._insert(value, nodes)
        return nodes[-1].outputs[0]

    def _number(self, number: float, near: ir.Value) -> ir.Node:
        node = ir.node("Constant", [], {"value": ir.tensor(np.float32(number).reshape(()))})
        made = self._named(node, near, FLOAT)
        made.outputs[0].shape = ir.Shape([])
        return made

    def _named(self, node: ir.Node, like: ir.Value, dtype: ir.DataType) -> ir.Node:
        """The node, its output named after a value, with that one's shape."""
        (made,) = node.outputs
        made.name, made.type, made.shape = self._name(like), ir.TensorType(dtype), like.shape
        return node

    def _insert(self, value: ir.Value, nodes: list[ir.Node]) -> None:
        """Puts nodes behind a value's producer, or at the beginning of the graph whose input it is."""
        producer = value.producer()
        if producer is not None:
            producer.graph.insert_after(producer, nodes)  # type: ignore[union-attr]
            return
        graph = value.graph or self.layout.model.graph
        first = next(iter(graph), None)
        if first is None:
            graph.extend(nodes)
        else:
            graph.insert_before(first, nodes)

    def _name(self, value: ir.Value) -> str:
        return f"{value.name}_{self.half.name}_{self._count()}"

    # Bodies

    def _holder(self, node: ir.Node, own: int) -> None:
        """Converts the bodies of a node; what a loop carries stays in float32."""
        subgraphs = {
            subgraph.attribute: i for i, subgraph in enumerate(self.layout.subgraphs) if subgraph.holder == own
        }
        if own in self.kept or node.op_type == "SequenceMap":
            self._read(node, [FLOAT] * len(node.inputs))
            for name, graph in bodies(node):
                self._graph(subgraphs[name])
                self._give(graph, [FLOAT if v in self._floats else v.dtype for v in graph.outputs])
            return
        graphs = [graph for _, graph in bodies(node)]
        if node.op_type == "If":
            for name, _ in bodies(node):
                self._graph(subgraphs[name])
            self._branches(node, graphs)
            return
        self._loop(node, graphs[0], subgraphs[next(name for name, _ in bodies(node))])

    def _branches(self, node: ir.Node, graphs: list[ir.Graph]) -> None:
        for index, value in enumerate(node.outputs):
            if value in self._floats:
                found = [graph.outputs[index] for graph in graphs]
                narrow = all(v.dtype is self.half.onnx_type or constant_tensor(v) is not None for v in found)
                value.dtype = self.half.onnx_type if narrow else FLOAT
        for graph in graphs:
            wanted = [v.dtype if v in self._floats else None for v in node.outputs]
            self._give(graph, [w or v.dtype for w, v in zip(wanted, graph.outputs, strict=True)])

    def _loop(self, node: ir.Node, body: ir.Graph, subgraph: int) -> None:
        skipped = 2 if node.op_type == "Loop" else 0
        scanned = node.attributes["num_scan_inputs"].as_int() if node.op_type == "Scan" else 0
        carried = len(node.inputs) - skipped - scanned
        scans = [v.dtype or FLOAT if v is not None else FLOAT for v in node.inputs[skipped + carried :]]
        self._read(node, [FLOAT] * (skipped + carried) + scans)
        for outer, inner in zip(node.inputs[skipped + carried :], body.inputs[carried:], strict=False):
            if inner in self._floats and outer is not None and outer.dtype is not None:
                inner.dtype = outer.dtype
        self._graph(subgraph)
        first = 1 if node.op_type == "Loop" else 0  # the condition
        given = [FLOAT if v in self._floats and i < first + carried else v.dtype for i, v in enumerate(body.outputs)]
        self._give(body, given)
        for value, inner in zip(node.outputs, body.outputs[first:], strict=False):
            if value in self._floats and inner.dtype is not None:
                value.dtype = inner.dtype

    def _give(self, graph: ir.Graph, types: list[ir.DataType | None]) -> None:
        """Makes a graph give its outputs in these types."""
        for index, (value, wanted) in enumerate(zip(list(graph.outputs), types, strict=True)):
            if wanted is None or value.dtype is wanted or value not in self._floats:
                continue
            made = self._as(value, wanted)
            if made.graph is not graph or made.is_graph_input():
                node = self._named(ir.node("Identity", [made]), value, wanted)
                graph.append(node)
                made = node.outputs[0]
                self._floats.add(made)
            graph.outputs[index] = made

    def _drop_unused_weights(self) -> None:
        """Removes the weights that only narrow copies of are used, and gives these their names."""
        for graph in self._graphs():
            for (value, _), made in list(self._casts.items()):
                name = str(value.name)
                if value.producer() is None and graph.initializers.get(name) is value and not value.uses():
                    if value.is_graph_output() or value.is_graph_input():
                        continue
                    del graph.initializers[name]
                    if made.name in graph.initializers:
                        del graph.initializers[str(made.name)]
                        made.name = name
                        if made.const_value is not None:
                            made.const_value.name = name
                        graph.initializers[name] = made


def narrow_tensor(tensor: Any, half: Half) -> ir.Tensor[Any]:
    """A float32 constant in the format; finite numbers beyond its range become its largest."""
    wide = np.asarray(tensor.numpy(), dtype=np.float32)
    exact = torch.from_numpy(np.require(wide, requirements=["C", "W"]).reshape(wide.shape))
    narrow = exact.to(half.torch_type)
    if exact.numel() and not float(exact.abs().max()) <= half.largest:
        largest = torch.tensor(half.largest, dtype=half.torch_type)
        narrow = torch.where(narrow.isinf() & exact.isfinite(), torch.where(exact > 0, largest, -largest), narrow)
    if half.torch_type is torch.bfloat16:
        array = narrow.view(torch.int16).numpy().view(half.onnx_type.numpy())
    else:
        array = narrow.numpy()
    return ir.Tensor(array, dtype=half.onnx_type)


_TYPE_ATTRIBUTES = ("to", "dtype", "output_datatype")


def _narrow_attributes(node: ir.Node, half: Half) -> None:
    """Changes the attributes that name the type of the results."""
    for name in _TYPE_ATTRIBUTES:
        if name in node.attributes and node.attributes[name].value == FLOAT.value:
            node.attributes[name] = ir.AttrInt64(name, half.onnx_type.value)
    if node.op_type == "ConstantOfShape":
        given = node.attributes.get("value")
        tensor = ir.tensor(np.zeros(1, np.float32)) if given is None else given.as_tensor()
        if tensor.dtype is FLOAT:
            node.attributes["value"] = ir.AttrTensor("value", narrow_tensor(tensor, half))
    if node.op_type in ("RandomNormal", "RandomUniform"):
        node.attributes["dtype"] = ir.AttrInt64("dtype", half.onnx_type.value)
