"""Numbers of a file that are the size of an axis which is freed, or may have been computed of it.

Operators that hold sizes, positions and windows of their own operand are held against its shapes, in `free_axes`. Here
is the rest: a Tile, a Range or a Loop holds a count of something else, and nothing but the number itself says of what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph import schema
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.walk import nodes_of

Shapes = Mapping[str, tuple[int, ...]]
"""The shapes of values, by name."""

FEW = 8
"""Numbers of a constant at most, unless all are equal: a longer one is a table."""

_COUNTS = (ir.DataType.INT64, ir.DataType.INT32)

_AXES = frozenset({"axes", "axis"})
"""Parameters that name axes."""

_INDICES = "indices"
"""The parameter that holds positions."""


@dataclass
class SizeConstants:
    """What a graph's nodes hold that follows from freed sizes, or may.

    Attributes:
        sizes: The sizes that the freed axes had, by their names.
        usual: The shapes of values at these sizes.
        other: Their shapes at others.
        opset: The graph's opset.
        seen: Operators that were held against the shapes already, where their first operand changes.
    """

    sizes: Mapping[str, int]
    usual: Shapes
    other: Shapes
    opset: int
    seen: frozenset[str]
    reasons: list[str] = field(default_factory=list)
    """Nodes that hold such a size."""
    doubts: list[str] = field(default_factory=list)
    """Nodes that hold a number which may follow from one."""

    def __post_init__(self) -> None:
        self._freed = {size: name for name, size in self.sizes.items() if size > 1}
        pairs = (zip(self.usual[n], self.other[n], strict=False) for n in self.usual.keys() & self.other.keys())
        derived = {a for a, b in chain.from_iterable(pairs) if a != b}
        derived |= {prod(self.sizes.values()), *(size - 1 for size in self._freed)}
        self._derived = {n for n in derived if n > 1} - set(self._freed)

    def look(self, model: ir.Model) -> None:
        """Looks at every node of the graph, of branches and bodies, and of functions."""
        own = set(model.graph)
        for node in nodes_of(model):
            changed = changed_axes(node, self.usual, self.other) if node in own else None
            if node.op_type == "Reshape" and changed == [] and not node.domain:
                continue  # as many elements as before
            for text in self._held(node, changed or []):
                self.reasons.append(f"{name_of(node)} {text}")
            for text in self._doubtful(node, changed or []):
                self.doubts.append(f"{name_of(node)} {text}")

    def _held(self, node: ir.Node, changed: Sequence[int]) -> Iterator[str]:
        shape = self._shape_of(node)
        if "output_shape" in node.attributes and any(axis > 1 for axis in changed):
            yield f"makes it {list(node.attributes.get_ints('output_shape', ()))}"
        if node.op_type in self.seen and changed:
            return
        for parameter, numbers in self._counts(node):
            if parameter == _INDICES:
                held = sorted({n for axis, n in _positions(node, numbers, len(shape)) if axis in changed} - {0, -1})
                if held:
                    yield f"has places {held[:4]} of it"
                continue
            found = {int(n) for n in numbers.reshape(-1)}
            whole = [shape[axis] for axis in changed if shape[axis] > 1 and shape[axis] in found]
            own = [n for n in self._freed if n in found]
            if own:
                yield f"holds {own[0]}, which is the size of {self._freed[own[0]]!r}"
            elif whole:
                yield f"holds {whole[0]}, which is the whole axis"

    def _doubtful(self, node: ir.Node, changed: Sequence[int]) -> Iterator[str]:
        for parameter, numbers in () if node.op_type in self.seen and changed else self._counts(node):
            found = {int(n) for n in numbers.reshape(-1)}
            if parameter != _INDICES and not found & set(self._freed) and found & self._derived:
                yield f"holds {min(found & self._derived)}"
        if any(before != after for before, after in self._pads(node, changed)):
            yield "pads it by a different number at its two ends"
        for value in node.inputs:
            tensor = constant_tensor(value)
            if tensor is not None and tensor.size == 1 and tensor.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
                number = float(tensor.numpy().reshape(-1)[0])
                wanted = {*self._freed, *self._derived}
                if any(np.isclose(number, [n, 1 / n], rtol=1e-6, atol=0).any() for n in wanted):
                    yield f"holds {number:.6g}"

    def _counts(self, node: ir.Node) -> Iterator[tuple[str, np.ndarray]]:
        """The whole numbers that a node reads, each with the name of its parameter."""
        known = None if node.domain else schema.find(node.op_type, self.opset)
        for position, value in enumerate(node.inputs):
            tensor = constant_tensor(value)
            if tensor is None or tensor.dtype not in _COUNTS or not tensor.size:
                continue
            formal = known.inputs[min(position, len(known.inputs) - 1)].name if known and known.inputs else ""
            numbers = tensor.numpy()
            is_count = tensor.size <= FEW or (numbers == numbers.reshape(-1)[0]).all()
            if formal not in _AXES and (is_count or formal == _INDICES):
                yield formal, numbers

    def _pads(self, node: ir.Node, changed: Sequence[int]) -> Iterator[tuple[int, int]]:
        """What is put before and behind each axis that follows from the size."""
        rank = len(self._shape_of(node))
        numbers = node.attributes.get_ints("pads", None)
        first = 2
        if node.op_type == "Pad" and numbers is None and len(node.inputs) > 1:
            tensor, first = constant_tensor(node.inputs[1]), 0
            numbers = None if tensor is None else [int(n) for n in tensor.numpy()]
        if numbers is None or len(numbers) != 2 * (rank - first):
            return
        for axis in changed:
            if axis >= first:
                yield numbers[axis - first], numbers[axis - first + rank - first]

    def _shape_of(self, node: ir.Node) -> tuple[int, ...]:
        first = node.inputs[0] if node.inputs else None
        return () if first is None else self.usual.get(str(first.name), ())


def _positions(node: ir.Node, numbers: np.ndarray, rank: int) -> Iterator[tuple[int, int]]:
    """The positions that an operator reads or writes at, each with its axis."""
    if node.op_type.endswith("ND"):
        first = node.attributes.get_int("batch_dims", 0)
        for column in range(numbers.shape[-1] if numbers.ndim else 0):
            yield from ((first + column, int(n)) for n in numbers[..., column].reshape(-1))
    elif rank:
        yield from ((node.attributes.get_int("axis", 0) % rank, int(n)) for n in numbers.reshape(-1))


def changed_axes(node: ir.Node, usual: Shapes, other: Shapes) -> list[int] | None:
    """The axes of a node's first operand whose sizes follow from the freed ones; None where that is not known."""
    first = node.inputs[0] if node.inputs else None
    if first is None or constant_tensor(first) is not None:
        return []
    name = str(first.name)
    if name not in usual or name not in other or len(usual[name]) != len(other[name]):
        return None
    return [i for i, (a, b) in enumerate(zip(usual[name], other[name], strict=True)) if a != b]


def name_of(node: ir.Node) -> str:
    """A node as messages call it."""
    return f"{node.op_type} {node.name or node.outputs[0].name!r}"
