"""Frees any fixed axis of an input, where the graph does not hold numbers that were computed of its size.

A file does not say what another size should compute; its nodes do, as long as none of them holds the size. Each node
that holds sizes, positions or windows is held against the shapes that it gets at the size of the file and at another:
where these differ, what it holds must not depend on the size. A Reshape to the whole axis gets -1 in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.errors import CompatError, UnsupportedError, unknown_name
from torch_onnx_compat.files.axes import forget_shapes
from torch_onnx_compat.files.size_constants import Shapes, SizeConstants, changed_axes, name_of
from torch_onnx_compat.graph import shapes
from torch_onnx_compat.graph.builder import Scope
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.walk import all_nodes

SHOWN = 8
"""Nodes that are named at most."""

FreeAxes = Mapping[str, Mapping[int, str]]
"""Names of the axes that are to be free, by input and the axis's number."""

_OPEN = 2**31 - 1
"""The least end of a Slice that means the end of the axis."""

_REWRITTEN = "rewritten"

_NO_PAD = "VALID"

_BESIDE = 2
"""By which factor a size is another one, where shapes are compared."""


def check_free_axes(model: ir.Model, wanted: FreeAxes) -> dict[str, int]:
    """The sizes that the axes have, by their new names.

    Raises:
        CompatError: There is no such input or axis, it is free already, or two sizes get one name.
    """
    inputs = {str(v.name): v for v in model.graph.inputs if v.name not in model.graph.initializers}
    found: dict[str, int] = {}
    for name, axes in wanted.items():
        if name not in inputs:
            raise unknown_name("input", name, inputs)
        shape = inputs[name].shape
        for axis, called in axes.items():
            if shape is None or not -len(shape) <= axis < len(shape):
                raise CompatError(f"dynamic: input {name!r} of shape {shape} has no axis {axis}.")
            size = shape[axis]
            if not isinstance(size, int):
                raise CompatError(f"dynamic: axis {axis} of input {name!r} is dynamic already, {size}.")
            if found.setdefault(called, size) != size:
                raise CompatError(f"dynamic: axes of {found[called]} and of {size} are both called {called!r}.")
    return found


Run = Callable[[ir.Model, Sequence[ir.Value], Mapping[str, int]], Shapes]
"""Runs a graph at sizes of its dynamic axes, and gives the shapes of some values."""


def free_axes(model: ir.Model, wanted: FreeAxes, run: Run) -> list[str]:
    """Frees axes of inputs, in place.

    Args:
        model: The graph.
        wanted: The axes.
        run: Tells the shapes that inference does not know.

    Returns:
        Notes on what was written otherwise, and on what is not known.

    Raises:
        UnsupportedError: Nodes hold numbers that may follow from the size; names them.
    """
    sizes = check_free_axes(model, wanted)
    for value in model.graph.inputs:
        axes = {axis % len(value.shape or ()): n for axis, n in wanted.get(str(value.name), {}).items()}
        if value.shape is not None:
            value.shape = ir.Shape([axes.get(i, size) for i, size in enumerate(value.shape)])
    forget_shapes(model)
    doubts = _rewrite(model, sizes, run)
    forget_shapes(model)
    for value in model.graph.outputs:
        if not value.is_graph_input():
            value.shape = None
    shapes.infer_model(model)
    told = f"{'; '.join(doubts[:SHOWN])}{'; …' if len(doubts) > SHOWN else ''}"
    return [
        *([f"these numbers may follow from the size, which a file does not say: {told}."] if doubts else []),
        "whole numbers of the file that are a freed size, and what holds sizes, positions and windows, were looked at; "
        "a number that was computed of a size otherwise, such as the count that a sum is divided by, cannot be told "
        "from others.",
    ]


def _rewrite(model: ir.Model, sizes: Mapping[str, int], run: Run) -> list[str]:
    """Writes the nodes that hold a freed size otherwise, one after the other; refuses those that cannot be.

    Returns:
        Nodes that hold numbers which may follow from the size.
    """
    scope = Scope(model)
    while True:
        usual: Shapes = _infer_shapes(model, sizes)
        other: Shapes = _infer_shapes(model, {name: size * _BESIDE for name, size in sizes.items()})
        reasons, unknown = _object_to_all(model, usual, other, scope)
        if _REWRITTEN in reasons:
            continue
        if unknown and not reasons:
            ran = _run_for_shapes(model, sizes, unknown, run)
            usual, other = {**usual, **ran[0]}, {**other, **ran[1]}
            reasons, unknown = _object_to_all(model, usual, other, scope)
            if _REWRITTEN in reasons:
                continue
        break
    reasons += [f"{name_of(node)}: the shape that it gets is not known" for node in unknown]
    inner = [n for node in model.graph for n in _inner_nodes(node) if _holds(n)]
    inner += [n for function in model.functions.values() for n in all_nodes(function.graph) if _holds(n)]
    reasons += [f"{name_of(node)}, in a branch, loop or function, may hold the size" for node in inner]
    held = SizeConstants(sizes, usual, other, model.opset_imports[""], frozenset(_PLACES))
    held.look(model)
    reasons += held.reasons
    if reasons:
        raise UnsupportedError(
            f"dynamic: nodes hold numbers that follow from the size of the file, or may: {'; '.join(reasons[:SHOWN])}"
            f"{'; …' if len(reasons) > SHOWN else ''}. Export the model again with the axis dynamic."
        )
    return held.doubts


def _object_to_all(model: ir.Model, usual: Shapes, other: Shapes, scope: Scope) -> tuple[list[str], list[ir.Node]]:
    """Why nodes are in the way, up to the first that was rewritten; and the nodes of which nothing is known."""
    reasons, unknown = [], []
    for node in model.graph:
        changed = changed_axes(node, usual, other)
        if changed is None and _holds(node):
            unknown.append(node)
        elif changed:
            reason = _objection(node, changed, usual, scope)
            if reason == _REWRITTEN:
                return [reason], []
            reasons += [f"{name_of(node)} {reason}"] if reason else []
    return reasons, unknown


def _run_for_shapes(
    model: ir.Model, sizes: Mapping[str, int], nodes: Sequence[ir.Node], run: Run
) -> tuple[Shapes, Shapes]:
    asked = {v: None for node in model.graph for v in (*node.inputs[:1], *node.outputs[:1]) if node in set(nodes)}
    values = [value for value in asked if value is not None]
    others = {name: size * _BESIDE for name, size in sizes.items()}
    try:
        return run(model, values, sizes), run(model, values, others)
    except CompatError as error:
        at = ", ".join(f"{name}={size}" for name, size in others.items())
        raise UnsupportedError(f"dynamic: the file does not run at {at}: {error}") from error


def _inner_nodes(node: ir.Node) -> Iterator[ir.Node]:
    """The nodes in a node's branches and bodies."""
    for attribute in node.attributes.values():
        if attribute.type is ir.AttributeType.GRAPH:
            yield from all_nodes(attribute.as_graph())


def _infer_shapes(model: ir.Model, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The shapes of all values where the freed axes have these sizes, as far as inference knows them."""
    inputs = [value for value in model.graph.inputs if value.shape is not None]
    declared = [value.shape for value in inputs]
    kept = [value.shape for value in model.graph.outputs]
    for value in inputs:
        axes = [axis if isinstance(axis, int) else sizes.get(str(axis.value), 2) for axis in value.shape or ()]
        value.shape = ir.Shape(axes)
    for value in model.graph.outputs:
        value.shape = None if not value.is_graph_input() else value.shape
    forget_shapes(model)
    shapes.infer_model(model)
    values = [*model.graph.inputs, *(v for node in model.graph for v in node.outputs)]
    found = {
        str(v.name): tuple(int(axis) for axis in v.shape)  # type: ignore[arg-type]
        for v in values
        if v.name and v.shape is not None and v.shape.is_static()
    }
    for value, shape in zip(inputs, declared, strict=True):
        value.shape = shape
    for value, old in zip(model.graph.outputs, kept, strict=True):
        value.shape = old
    return found


_PLACES = {"Reshape": 1, "Expand": 1, "Slice": 2, "Gather": 1, "Split": 1, "Resize": 3, "Upsample": 1}
"""Where operators have sizes and positions among their inputs."""


def _holds(node: ir.Node) -> bool:
    """Whether a node holds sizes or positions."""
    if node.domain or node.op_type not in _PLACES:
        return False
    at = _PLACES[node.op_type]
    return len(node.inputs) > at and constant_tensor(node.inputs[at]) is not None


def _numbers(node: ir.Node, at: int) -> list[int] | None:
    tensor = constant_tensor(node.inputs[at]) if len(node.inputs) > at else None
    return None if tensor is None else [int(n) for n in tensor.numpy().reshape(-1)]


def _objection(node: ir.Node, changed: Sequence[int], usual: Shapes, scope: Scope) -> str:
    """Why what a node holds may follow from the size of the file; empty where it does not."""
    shape, kind = usual[str(node.inputs[0].name)], node.op_type  # type: ignore[union-attr]
    if node.domain:
        return ""
    if kind == "Split" and node.attributes.get_int("axis", 0) % len(shape) in changed:
        return "splits the axis"
    if kind == "Slice" and len(node.inputs) > 2:
        return _object_to_slice(node, changed, len(shape))
    if kind == "Reshape":
        return _object_to_reshape(node, changed, shape, scope)
    return _object_to_others(node, changed, shape)


def _object_to_others(node: ir.Node, changed: Sequence[int], shape: tuple[int, ...]) -> str:
    kind = node.op_type
    windows = _windows(node)
    whole = [axis for axis in changed if shape[axis] > 1 and windows.get(axis) == shape[axis]]
    if whole:
        return f"has a window of the whole axis, {shape[whole[0]]}"
    numbers = _numbers(node, _PLACES[kind]) if kind in _PLACES else None
    if numbers is None:
        return ""
    if kind == "Gather":
        axis = node.attributes.get_int("axis", 0) % len(shape)
        return f"takes {numbers[:4]} of it" if axis in changed and set(numbers) - {0, -1} else ""
    if kind == "Expand":
        ends = [numbers[axis - len(shape)] for axis in changed if len(shape) - axis <= len(numbers)]
        return f"expands it to {numbers}" if any(n != 1 for n in ends) else ""
    return f"makes it {numbers}" if kind == "Resize" and numbers else ""


def _windows(node: ir.Node) -> dict[int, int]:
    """How far a window reaches over each axis; a convolution's only without padding, as it is no pool."""
    kernel = node.attributes.get_ints("kernel_shape", None)
    if node.op_type in ("Conv", "ConvInteger", "QLinearConv"):
        weights = node.inputs[3 if node.op_type == "QLinearConv" else 1]
        if any(node.attributes.get_ints("pads", ())) or node.attributes.get_string("auto_pad", "") not in ("", _NO_PAD):
            return {}
        if kernel is None and weights is not None and weights.shape is not None:
            kernel = [size for size in weights.shape[2:] if isinstance(size, int)]
    elif not node.op_type.endswith("Pool"):
        return {}
    return dict(enumerate(kernel or (), start=2))


def _object_to_slice(node: ir.Node, changed: Sequence[int], rank: int) -> str:
    starts, ends = _numbers(node, 1), _numbers(node, 2)
    axes = _numbers(node, 3) if len(node.inputs) > 3 and node.inputs[3] is not None else None
    places = [axis % rank for axis in (range(len(ends or starts or ())) if axes is None else axes)]
    for at, axis in enumerate(places):
        start, end = (0 if numbers is None else numbers[at] for numbers in (starts, ends))
        if axis in changed and (start > 1 or 1 < end < _OPEN):
            return f"takes {start} to {end} of it"
    return ""


def _object_to_reshape(node: ir.Node, changed: Sequence[int], shape: tuple[int, ...], scope: Scope) -> str:
    numbers = _numbers(node, 1)
    if numbers is None:
        return ""
    result = [shape[i] if n == 0 and i < len(shape) else n for i, n in enumerate(numbers)]
    if -1 in result:
        result[result.index(-1)] = prod(shape) // max(-prod(result), 1)
    held = []
    for before, behind in _blocks(shape, result):
        if not set(before) & set(changed):
            continue
        is_free = any(numbers[i] == -1 for i in behind)
        is_copied = all(numbers[i] == 0 for i in behind if i in changed) and before == behind
        if not is_free and not is_copied:
            held.append(behind if len(behind) == 1 else [i for i in behind if result[i] != 1])
    if not held:
        return ""
    if len(held) > 1 or len(held[0]) != 1 or -1 in numbers:
        return f"makes {list(shape)} {numbers}"
    free = np.array(numbers, np.int64)
    free[held[0][0]] = -1
    node.replace_input_with(1, scope.constant(free))
    return _REWRITTEN


def _blocks(shape: Sequence[int], result: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Neighbouring axes before and after a Reshape that hold the same elements, as few as possible in each block."""
    i = j = 0
    while i < len(shape) or j < len(result):
        before: list[int] = []
        behind: list[int] = []
        a = b = 1
        while True:
            if a <= b and i < len(shape) and (a < b or not before):
                a, i = a * shape[i], i + 1
                before.append(i - 1)
            elif j < len(result) and (b < a or not behind):
                b, j = b * result[j], j + 1
                behind.append(j - 1)
            else:
                break
            if a == b and before and behind:
                break
        if not before and not behind:
            return
        yield before, behind
