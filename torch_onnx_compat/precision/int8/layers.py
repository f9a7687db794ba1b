"""A float32 graph in the form that the quantiser reads, and which of its nodes may be in eight bits."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import onnx
import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.excerpt import copy_of, operands_of
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.precision.layout import bodies, is_constant, is_float, is_inside
from torch_onnx_compat.targets.placement import Placement

_FOLLOWERS = """
AveragePool Clip Flatten MaxPool Relu Reshape Resize Slice Split Squeeze Transpose Unsqueeze
"""
FOLLOWERS = frozenset(_FOLLOWERS.split())
"""Operators that add no step of their own: they hand on values in eight bits, or cut them off."""

KEPT_BY_CALLER = "keep"
ADDS_A_BIAS = "it adds a bias"


@dataclass(frozen=True)
class Quantizable:
    """A copy of a graph in which every node has a name of its own, and every weight is an initializer.

    Attributes:
        model: The copy.
        placement: The form that the engine wants.
        obstacles: By name, why nodes that the engine has in eight bits stay in float32 whatever is measured.
    """

    model: ir.Model
    placement: Placement
    obstacles: dict[str, str]

    @classmethod
    def of(cls, network: ir.Model, placement: Placement, keep: Collection[str] = ()) -> Quantizable:
        """Makes the copy.

        Args:
            network: The graph; unchanged.
            placement: The form that the engine wants.
            keep: Module paths and operators that stay in float32.
        """
        model = copy_of(network)
        infer_model(model)
        lift_constants(model)
        name_nodes(model)
        captured = set(_captured(model.graph))
        obstacles = {}
        for node in model.graph:
            if node.domain or node.op_type not in (*placement.kernels, *placement.between):
                continue
            reason = _obstacle(node, captured)
            if node.op_type in keep or any(is_inside(place(node), path) for path in keep):
                reason = KEPT_BY_CALLER
            if reason:
                obstacles[str(node.name)] = reason
        return cls(model, placement, obstacles)

    @cached_property
    def proto(self) -> onnx.ModelProto:
        """The copy as the quantiser takes it."""
        return ir.to_proto(self.model)

    def chosen(self, kept: Collection[str] = ()) -> list[ir.Node]:
        """The nodes in eight bits when some stay in float32: kernels, and what stands between values in eight bits.

        Args:
            kept: Names of nodes that stay in float32.
        """
        found: list[ir.Node] = []
        narrow: set[ir.Value] = set()
        for node in self.model.graph:
            if node.name in kept or node.name in self.obstacles or node.domain:
                continue
            if node.op_type in self.placement.kernels:
                is_chosen = _computes_float(node)
            elif node.op_type in self.placement.between:
                floats = [v for v in node.inputs if is_float(v) and not is_constant(v)]
                is_chosen = bool(floats) and all(value in narrow for value in floats)
            else:
                is_chosen = False
            if is_chosen:
                found.append(node)
                if node.op_type not in self.placement.float_results:
                    narrow.update(node.outputs)
        return found

    @property
    def layers(self) -> list[ir.Node]:
        """The nodes that have steps of their own, in order, where none is kept."""
        return [node for node in self.chosen() if node.op_type not in FOLLOWERS]

    def cut_off(self) -> set[str]:
        """Names of the values that a Relu or a Clip alone reads: their steps reach as far as its result does."""
        nodes = [node for node in self.chosen() if node.op_type in ("Relu", "Clip")]
        return {str(node.inputs[0].name) for node in nodes if node.inputs[0] and len(node.inputs[0].uses()) == 1}

    def tensors(self) -> list[ir.Value]:
        """The float32 values that may get a step: what the chosen nodes read and make, weights excepted."""
        values = [v for node in self.chosen() for v in (*node.inputs, *node.outputs) if v is not None]
        return list(dict.fromkeys(v for v in values if is_float(v) and not is_constant(v)))


def _computes_float(node: ir.Node) -> bool:
    return all(is_float(value) for value in (*node.inputs[:2], node.outputs[0]))


def _obstacle(node: ir.Node, captured: set[ir.Value]) -> str:
    """Why the quantiser must leave a node alone."""
    if node.op_type in ("Relu", "Clip") and node.inputs[0] in captured:
        return "a branch or a loop reads what it reads"  # the quantiser may remove the node, and with it that value
    if node.op_type == "Clip" and not all(_holds_zero(node, i) for i in (1, 2)):
        return "its limits are on one side of zero"  # a step always covers zero
    if node.op_type == "Gemm" and len(node.inputs) > 2 and node.attributes.get_float("beta", 1.0) != 1.0:
        return "its bias has a factor"
    if node.op_type == "Add" and any(is_constant(value) for value in node.inputs):
        return ADDS_A_BIAS
    return ""


def _holds_zero(node: ir.Node, position: int) -> bool:
    """Whether a limit of a Clip lies on its side of zero."""
    value = node.inputs[position] if position < len(node.inputs) else None
    tensor = constant_tensor(value)
    if value is None:
        return True
    return tensor is not None and (tensor.numpy() <= 0 if position == 1 else tensor.numpy() >= 0).all()


def lift_constants(model: ir.Model) -> None:
    """Makes initializers of the main graph's float Constant nodes: the quantiser looks for weights there only."""
    for node in list(model.graph):
        tensor = constant_tensor(node.outputs[0]) if node.op_type == "Constant" and not node.domain else None
        if tensor is None or not is_float(node.outputs[0]) or node.outputs[0].is_graph_output():
            continue
        old = node.outputs[0]
        name = str(old.name)
        weight = ir.Value(name=name, type=old.type, shape=ir.Shape(tensor.shape), const_value=tensor)
        ir.convenience.replace_all_uses_with(old, weight)
        model.graph.remove(node)
        tensor.name = name
        model.graph.register_initializer(weight)


def name_nodes(model: ir.Model) -> None:
    """Gives each node of the main graph a name of its own."""
    taken: set[str] = set()
    for number, node in enumerate(model.graph):
        if not node.name or node.name in taken:
            node.name = f"{node.op_type}_{number}"
            while node.name in taken:
                node.name += "_"
        taken.add(node.name)


def _captured(graph: ir.Graph) -> Iterator[ir.Value]:
    """The graph's values that bodies of its nodes read."""
    for node in graph:
        if any(True for _ in bodies(node)):
            inputs = set(node.inputs)
            yield from (value for value in operands_of(node) if value not in inputs)
