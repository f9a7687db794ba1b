"""Fixes dynamic axes of a graph at sizes, and frees the batch axis of a graph that was written for one size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.errors import ArgumentError, UnsupportedError, unknown_name
from torch_onnx_compat.graph.builder import Scope
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.walk import all_graphs, all_nodes, inner_graphs

Axes: TypeAlias = Mapping[str, "int | Mapping[int, int]"]
"""Sizes by the name of an axis, or by input and the axis's number."""

BATCH = "batch"


def read_axes(model: ir.Model, wanted: Axes | None) -> dict[str, int]:
    """Which dynamic axes are to be fixed, by the names that `files/drawing.py` gives them.

    Args:
        model: The graph.
        wanted: What the caller gave.

    Raises:
        CompatError: There is no such axis, it is fixed already, or a size is none.
    """
    found: dict[str, int] = {}
    inputs = {str(v.name): v for v in model.graph.inputs}
    known = {name for value in inputs.values() for name in _names(value).values()}
    for name, sizes in (wanted or {}).items():
        if isinstance(sizes, Mapping):
            if name not in inputs:
                raise unknown_name("input", name, inputs)
            for axis, size in sizes.items():
                named = _names(inputs[name]).get(axis)
                if named is None:
                    raise ArgumentError(f"static: axis {axis} of input {name!r} is no dynamic axis of the file.")
                found[named] = _size(named, size)
        elif name not in known:
            raise ArgumentError(
                f"static: the file has no dynamic axis {name!r}; it has {', '.join(sorted(known)) or 'none'}."
            )
        else:
            found[name] = _size(name, sizes)
    return found


def _size(name: str, size: Any) -> int:
    if type(size) is not int or size < 1:
        raise ArgumentError(f"static: {name}={size!r}; wanted a whole number from 1.")
    return size


def _names(value: ir.Value) -> dict[int, str]:
    """The name of each dynamic axis of an input."""
    if value.shape is None:
        return {}
    sizes = ((i, axis) for i, axis in enumerate(value.shape) if not isinstance(axis, int))
    return {i: str(axis.value) if axis.value is not None else f"{value.name}.{i}" for i, axis in sizes}


def fix_axes(model: ir.Model, sizes: Mapping[str, int]) -> None:
    """Gives dynamic axes a size, in place; what was declared of the values between may hold no longer and goes.

    Args:
        model: The graph.
        sizes: By name, as `read_axes` has them.
    """
    for value in model.graph.inputs:
        named = _names(value)
        if value.shape is not None:
            value.shape = ir.Shape([sizes.get(named.get(i, ""), axis) for i, axis in enumerate(value.shape)])
    forget_shapes(model)
    for value in model.graph.outputs:
        if value.shape is not None and not value.is_graph_input():
            value.shape = ir.Shape([sizes.get(getattr(axis, "value", None) or "", axis) for axis in value.shape])


def forget_shapes(model: ir.Model) -> None:
    """Drops what is declared of the shapes of values, but for the inputs and outputs of the graph.

    The inputs of a body keep the number of their axes, without which onnxruntime does not load a Loop.
    """
    outputs = set(model.graph.outputs)
    for graph in all_graphs(model):
        for value in graph.inputs if graph is not model.graph else ():
            value.shape = None if value.shape is None else ir.Shape([None] * len(value.shape))
        for node in graph:
            for value in node.outputs:
                if value not in outputs:
                    value.shape = None


def batch_size(model: ir.Model) -> int:
    """The size of axis 0, one for all inputs.

    Raises:
        UnsupportedError: It is dynamic already, or differs from input to input.
    """
    sizes = {str(v.name): v.shape for v in model.graph.inputs if v.name not in model.graph.initializers}
    if not sizes:
        raise UnsupportedError("dynamic='batch': the file has no inputs.")
    found: dict[str, Any] = {name: shape[0] if shape else None for name, shape in sizes.items()}
    if any(not isinstance(size, int) for size in found.values()):
        name = next(n for n, size in found.items() if not isinstance(size, int))
        state = "not known" if sizes[name] is None else "missing" if found[name] is None else "dynamic already"
        raise UnsupportedError(f"dynamic='batch': axis 0 of input {name!r} is {state}.")
    if len(set(found.values())) > 1:
        raise UnsupportedError(
            f"dynamic='batch': axis 0 differs from input to input: {found}; wanted one size for all."
        )
    return int(next(iter(found.values())))


def free_batch(model: ir.Model) -> None:
    """Frees axis 0 of every input, in place: a size that a Reshape or an Expand repeats becomes one that follows.

    Args:
        model: A graph whose inputs all have one size on axis 0.

    Raises:
        UnsupportedError: They have not.
    """
    size = batch_size(model)
    inputs = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    for value in inputs:
        assert value.shape is not None
        value.shape = ir.Shape([BATCH, *list(value.shape)[1:]])
    varying: set[ir.Value] = set(inputs)
    _free_within(model.graph, varying, size, Scope(model))
    forget_shapes(model)
    for value in model.graph.outputs:
        if value in varying and value.shape is not None and len(value.shape) and value.shape[0] == size:
            value.shape = ir.Shape([BATCH, *list(value.shape)[1:]])


def _free_within(graph: ir.Graph, varying: set[ir.Value], size: int, scope: Scope) -> None:
    """Frees the axis in a graph and in the branches and bodies there; adds the values that it may reach."""
    for node in graph:
        inner = list(inner_graphs(node))
        captured = (value for part in inner for within in all_nodes(part) for value in within.inputs)
        if not any(value in varying for value in (*node.inputs, *captured)):
            continue
        for part in inner:
            varying.update(part.inputs)
            _free_within(part, varying, size, scope)
        varying.update(node.outputs)
        if not node.domain and node.op_type == "Reshape" and node.inputs[0] in varying:
            _free_reshape(node, size, scope)


def _free_reshape(node: ir.Node, size: int, scope: Scope) -> None:
    tensor = constant_tensor(node.inputs[1])
    numbers = None if tensor is None else tensor.numpy().astype(np.int64).reshape(-1)
    if numbers is None or not numbers.size or numbers[0] % size or numbers[0] <= 0:
        return
    free = numbers.copy()
    if -1 not in free:
        free[0] = -1
    elif numbers[0] == size:
        free[0] = 0  # the size of the operand's axis 0
        node.attributes.pop("allowzero", None)
    node.replace_input_with(1, scope.constant(free))
