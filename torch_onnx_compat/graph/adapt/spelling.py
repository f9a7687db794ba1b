"""Alternatives that say the same with the same operator: what an engine's parser takes for granted is written out.

Converters are written for the files of torch's exporters, which write attributes that have their default, and names
for outputs that nobody reads. Files of other tools, and cleaning passes, leave them out.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph import schema
from torch_onnx_compat.graph.adapt.alternatives import alternative
from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.facts.special import RECURRENT, STATE, WRITTEN
from torch_onnx_compat.graph.opset.lowering import Outputs, attribute, input_at


@alternative(*WRITTEN)
def write_the_default(op: Builder, node: ir.Node) -> Outputs:
    """Writes the attribute whose default is meant."""
    name, definition = WRITTEN[node.op_type], schema.find(node.op_type, op.opset)
    if name in node.attributes or definition is None or name not in definition.attributes:
        return None
    default = ir.serde.deserialize_attribute(definition.attributes[name].default_value)
    return op.clone(node, node.inputs, **{name: default})


@alternative(*RECURRENT)
def name_every_output(op: Builder, node: ir.Node) -> Outputs:
    """Gives names to the outputs that nobody reads."""
    count = RECURRENT[node.op_type]
    if len(node.outputs) == count and all(value.name for value in node.outputs):
        return None
    return op.node(node.op_type, node.inputs, dict(node.attributes), count)


@alternative(*RECURRENT)
def leave_zeros_out(op: Builder, node: ir.Node) -> Outputs:
    """Gives no initial state where it is zeros."""
    states = node.inputs[STATE : STATE + 2]
    numbers = [op.numbers(value) for value in states if value is not None]
    if not numbers or any(given is None or given.any() for given in numbers):
        return None
    return op.clone(node, [*node.inputs[:STATE], None, None][: len(node.inputs)])


@alternative("Gemm")
def add_zeros(op: Builder, node: ir.Node) -> Outputs:
    """Adds zeros where the third input is absent."""
    a, b = node.inputs[:2]
    assert a is not None
    assert b is not None
    sizes = op.sizes(b)
    if input_at(node, 2) is not None or sizes is None:
        return None
    width = sizes[0] if attribute(node, "transB", 0) else sizes[1]
    return op.clone(node, [a, b, op.constant(np.zeros(width), op.dtype(a))], beta=1.0)


@alternative("Reshape")
def part_reshapes(op: Builder, node: ir.Node) -> Outputs:
    """Puts an Identity between two Reshapes, which an engine would merge into the second."""
    x, shape = node.inputs[:2]
    before = x.producer() if x is not None else None
    if x is None or shape is None or before is None or before.op_type != "Reshape":
        return None
    return op.clone(node, [op.Identity(x), shape])
