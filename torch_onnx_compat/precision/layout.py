"""A model's nodes by number, the graph that each stands in, and what the steps ask of them.

A copy of a model has the same numbers: the steps measure one copy, plan by number, and convert another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx_ir as ir

from torch_onnx_compat.graph import schema
from torch_onnx_compat.graph.constants import constant_tensor

FLOAT = ir.DataType.FLOAT

_HEAVY = """
Attention Conv ConvInteger ConvTranspose DeformConv Einsum Gemm GRU LSTM MatMul QLinearConv QLinearMatMul RNN
"""
HEAVY = frozenset(_HEAVY.split())
"""Operators that most of a network's arithmetic is in."""

_MOVES = """
CenterCropPad Compress Concat Constant ConstantOfShape DepthToSpace Expand Flatten Gather GatherElements GatherND
Identity NonZero Pad Reshape ReverseSequence Scatter ScatterElements ScatterND Shape Size Slice SpaceToDepth Split
Squeeze Tile Transpose Trilu Unsqueeze Where
"""
MOVES = frozenset(_MOVES.split())
"""Operators that move values, and compute none: they lose nothing but the rounding of what they move."""

_DRAWS = "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
DRAWS = frozenset(_DRAWS.split())
"""Operators whose results differ from run to run, so that two runs tell nothing."""

WEIGHTS = 4096
"""Numbers from which a constant counts as weights."""

HOLDERS = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""Operators that hold graphs."""

_WHOLE_NAMES = "INT4 INT8 INT16 INT32 INT64 UINT4 UINT8 UINT16 UINT32 UINT64"
_WHOLE = frozenset(ir.DataType[name] for name in _WHOLE_NAMES.split())


@dataclass(frozen=True)
class Subgraph:
    """One graph of a model: the main one, the body of a node, or a function's."""

    graph: ir.Graph
    holder: int | None = None
    """Number of the node that holds it."""
    attribute: str = ""
    function: ir.Function | None = None


@dataclass
class Layout:
    """A model's graphs and nodes."""

    model: ir.Model
    subgraphs: list[Subgraph] = field(default_factory=list)
    nodes: list[ir.Node] = field(default_factory=list)
    subgraph_of: list[int] = field(default_factory=list)
    """By node, the number of its subgraph."""
    numbers: dict[ir.Node, int] = field(default_factory=dict)

    @classmethod
    def of(cls, model: ir.Model) -> Layout:
        """Numbers a model's nodes: those of a graph in order, each before those of its bodies; functions last."""
        layout = cls(model)
        layout._enter(Subgraph(model.graph))
        for function in model.functions.values():
            layout._enter(Subgraph(function.graph, function=function))
        return layout

    def _enter(self, subgraph: Subgraph) -> None:
        number = len(self.subgraphs)
        self.subgraphs.append(subgraph)
        for node in subgraph.graph:
            own = self.numbers[node] = len(self.nodes)
            self.nodes.append(node)
            self.subgraph_of.append(number)
            for name, graph in bodies(node):
                self._enter(Subgraph(graph, own, name, subgraph.function))

    @property
    def opset(self) -> int:
        """Opset of ONNX's own domain."""
        return self.model.opset_imports[""]

    def producer(self, value: ir.Value | None) -> int | None:
        """Number of the node that computes a value; None for inputs and constants."""
        node = None if value is None else value.producer()
        return None if node is None or node.op_type == "Constant" else self.numbers.get(node)

    def makers(self) -> dict[ir.Value, list[ir.Value | None]]:
        """Where the results of If, Loop and Scan come from, and the inputs of the bodies of the last two."""
        makers: dict[ir.Value, list[ir.Value | None]] = {}
        for node in self.nodes:
            before = 1 if node.op_type == "Loop" else 0  # a Loop's body gives its condition first
            for _, graph in bodies(node):
                for output, inner in zip(node.outputs, graph.outputs[before:], strict=False):
                    makers.setdefault(output, []).append(inner)
                if node.op_type in ("Loop", "Scan"):
                    for index, value in enumerate(graph.inputs):
                        last = graph.outputs[index - before : index - before + 1] if index >= before else []
                        makers[value] = [*node.inputs[index : index + 1], *last]
        return makers


def bodies(node: ir.Node) -> Iterator[tuple[str, ir.Graph]]:
    """The graphs that a node holds, with the names of their attributes."""
    if node.op_type not in HOLDERS or node.domain:
        return
    for name, attribute in node.attributes.items():
        if attribute.type is ir.AttributeType.GRAPH:
            yield name, attribute.as_graph()


def is_inside(where: str, module: str) -> bool:
    """Whether a place, ``layer1.0.conv`` or ``/layer1/layer1.0/conv/Conv``, is a module's or inside it."""
    path = where.replace("/", ".").strip(".")
    return path == module or f".{module}." in f".{path}."


def is_float(value: ir.Value | None) -> bool:
    """Whether a value is a float32 tensor."""
    return value is not None and value.dtype is FLOAT and isinstance(value.type, (ir.TensorType, type(None)))


def is_whole(value: ir.Value | None) -> bool:
    """Whether a value is a tensor of whole numbers."""
    return value is not None and value.dtype in _WHOLE


def is_constant(value: ir.Value | None) -> bool:
    """Whether a value is a weight or another constant."""
    return value is not None and constant_tensor(value) is not None


def takes_half(node: ir.Node, position: int, opset: int, half: ir.DataType) -> bool:
    """Whether an operator takes a format at an input."""
    known = schema.find(node.op_type, opset)
    if known is None or node.domain or not known.inputs:
        return False
    return _allows(known.inputs[min(position, len(known.inputs) - 1)].types, half)


def gives_half(node: ir.Node, position: int, opset: int, half: ir.DataType) -> bool:
    """Whether an operator gives a format at an output."""
    known = schema.find(node.op_type, opset)
    if known is None or node.domain or not known.outputs:
        return False
    return _allows(known.outputs[min(position, len(known.outputs) - 1)].types, half)


def _allows(types: object, half: ir.DataType) -> bool:
    return f"tensor({half.name.lower()})" in types  # type: ignore[operator]


def has_half_form(node: ir.Node, opset: int, half: ir.DataType) -> bool:
    """Whether a node can run in the format: its float outputs may be narrow, and some float input, where it has any."""
    if node.domain or node.op_type in HOLDERS:
        return False
    outputs = [i for i, v in enumerate(node.outputs) if is_float(v)]
    inputs = [i for i, v in enumerate(node.inputs) if is_float(v)]
    given = [v for v in (*node.inputs, *node.outputs) if v is not None and v.name and not is_constant(v)]
    if any(not isinstance(v.type, ir.TensorType) for v in given):
        return False
    if not all(gives_half(node, i, opset, half) for i in outputs):
        return False
    if inputs and not takes_half(node, inputs[0], opset, half):
        return False
    return bool(inputs or outputs)
