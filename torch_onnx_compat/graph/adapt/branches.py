"""Alternatives of If.

Math:   Loop(1, x, f) = f(x), and Loop(0, x, f) = x.
Source: https://onnx.ai/onnx/operators/onnx__Loop.html
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.adapt.alternatives import alternative
from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import Outputs, first_input
from torch_onnx_compat.graph.walk import all_nodes


@alternative("If")
def if_by_loops(op: Builder, node: ir.Node) -> Outputs:
    """Runs each branch as a loop of one round or none, which begins with a tensor that both branches read."""
    if len(node.outputs) != 1:
        return None
    result = node.outputs[0]
    branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    read = [list(_outer_values(branch)) for branch in branches]
    start = next((v for v in read[0] if v in read[1] and _is_alike(v, result)), None)
    if start is None:
        return None
    condition = first_input(node)
    state = start
    for branch, is_taken in zip(branches, (condition, op.Not(condition)), strict=True):
        if _source(branch.outputs[0]) is not start:
            rounds = op.Cast(is_taken, to=ir.DataType.INT64)
            state = op.Loop(rounds, None, state, body=_as_body(op, branch, start))
    return state


def _as_body(op: Builder, branch: ir.Graph, start: ir.Value) -> ir.Graph:
    """A copy of a branch as a loop's body, which reads what the loop carries in the place of `start`."""
    body = branch.clone(allow_outer_scope_values=True)
    sizes = ir.Shape([None] * op.rank(start))
    number, goes, carried = (
        ir.Value(name=op.unique_name(f"{start.name}_{name}"), type=ir.TensorType(dtype), shape=shape)
        for name, dtype, shape in (
            ("round", ir.DataType.INT64, ir.Shape([])),
            ("goes", ir.DataType.BOOL, ir.Shape([])),
            ("carried", op.dtype(start), sizes),
        )
    )
    for inner in all_nodes(body):
        for index, value in enumerate(inner.inputs):
            if value is start:
                inner.replace_input_with(index, carried)
    body.inputs.extend([number, goes, carried])
    inside = op.within()
    goes_on, result = inside.Identity(goes), _with_free_sizes(inside, body.outputs[0], number)
    body.extend(inside.nodes)
    body.outputs[:] = [goes_on, result]
    return body


def _with_free_sizes(op: Builder, result: ir.Value, round_number: ir.Value) -> ir.Value:
    """Slices all of a result, to an end that is known in the run only.

    OpenVINO takes the range of sizes that it infers of a body for that of the loop, also where the loop has no round.
    """
    axes = [axis for axis in range(op.rank(result)) if op.size(result, axis) is None]
    if not axes:
        return result
    ends = op.Add(round_number, np.full(len(axes), np.iinfo(np.int32).max))
    return op.Slice(result, [0] * len(axes), ends, axes)


def _outer_values(branch: ir.Graph) -> Iterator[ir.Value]:
    """The values from outside that a branch's own nodes read."""
    inner = {value for node in branch for value in node.outputs} | set(branch.initializers.values())
    return (value for node in branch for value in node.inputs if value is not None and value not in inner)


def _is_alike(value: ir.Value, other: ir.Value) -> bool:
    """Whether two values are tensors, not sequences, of one element type and rank."""
    are_tensors = isinstance(value.type, ir.TensorType) and value.type == other.type
    return are_tensors and value.shape is not None and other.shape is not None and len(value.shape) == len(other.shape)


def _source(value: ir.Value) -> ir.Value | None:
    """The value that another one is, but for its name."""
    while (producer := value.producer()) is not None and producer.op_type == "Identity":
        value = first_input(producer)
    return value
