"""What a graph says about the sizes of its tensors, and about the numbers that are made of sizes.

One walk in order finds for each value its shape and, if it is a small tensor of numbers, its numbers, both as far as
they follow from the sizes of the inputs, from weights and from the operators' definitions. Shapes that an exporter
wrote into the file are not read: TorchScript's hold for the example.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.slim.size import Size, Unknowns

Shape: TypeAlias = tuple[Size, ...]
Numbers: TypeAlias = "npt.NDArray[Any]"
"""An array of objects, each a Size or a bool; or of floats, all known."""

LIMIT = 128
"""Largest tensor, in elements, whose numbers are followed."""

_WHOLE = frozenset({ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL})
READ = _WHOLE | {ir.DataType.FLOAT, ir.DataType.DOUBLE}
"""Types whose numbers are followed."""


class Facts:
    """Shapes and numbers of the values of one model."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.unknowns = Unknowns()
        self._shapes: dict[ir.Value, Shape | None] = {}
        self._numbers: dict[ir.Value, Numbers | None] = {}
        self._dtypes: dict[ir.Value, ir.DataType | None] = {}

    def begin(self, graph: ir.Graph, *, is_main: bool) -> None:
        """Learns the shapes of a graph's inputs; those of a body's inputs may differ from round to round."""
        for value in graph.inputs:
            if is_main and value.shape is not None:
                self._shapes[value] = tuple(
                    size if isinstance(size, int) else self.axis(value, place, size.value)
                    for place, size in enumerate(value.shape)
                )
            else:
                self._shapes[value] = None
            self._numbers[value] = None
            self._dtypes[value] = value.dtype

    def shape(self, value: ir.Value | None) -> Shape | None:
        """The sizes of a tensor's axes; None if not even their number is known."""
        if value is None:
            return None
        if value not in self._shapes:
            self._read(value)
        return self._shapes[value]

    def numbers(self, value: ir.Value | None) -> Numbers | None:
        """The elements of a small tensor of numbers; None if they are not known, or are too many."""
        if value is None:
            return None
        if value not in self._numbers:
            self._read(value)
        return self._numbers[value]

    def ints(self, value: ir.Value | None) -> list[int] | None:
        """The elements of a tensor of whole numbers that no run decides."""
        numbers = self.numbers(value)
        if numbers is None or numbers.dtype != object:
            return None
        flat = numbers.reshape(-1).tolist()
        return flat if all(isinstance(number, int) for number in flat) else None

    def sizes(self, value: ir.Value | None) -> list[Size] | None:
        """The elements of a tensor of whole numbers, which may depend on the run."""
        numbers = self.numbers(value)
        return None if numbers is None or numbers.dtype != object else numbers.reshape(-1).tolist()

    def dtype(self, value: ir.Value | None) -> ir.DataType | None:
        """The type of a tensor's elements, as far as it is known."""
        if value is None:
            return None
        if value not in self._dtypes:
            self._read(value)
        return self._dtypes[value]

    def set_dtype(self, value: ir.Value, dtype: ir.DataType | None) -> None:
        """Notes the type of a tensor's elements."""
        self._dtypes[value] = dtype

    def set(self, value: ir.Value, shape: Sequence[Size] | None, numbers: Numbers | None = None) -> None:
        """Notes what is known of a value's shape and numbers."""
        if numbers is not None and numbers.size > LIMIT:
            numbers = None
        self._shapes[value] = None if shape is None else tuple(shape)
        self._numbers[value] = numbers

    def axis(self, value: ir.Value, place: int, name: str | None = None) -> Size:
        """The unknown size of a value's axis; axes of one name, which the caller declared, are one size."""
        return self.unknowns.get(name if name else (value, place), is_natural=True)

    def _read(self, value: ir.Value) -> None:
        """Notes what is known of a constant; of another value, that nothing is."""
        tensor = _tensor_of(value)
        if tensor is None:
            self._shapes[value], self._numbers[value], self._dtypes[value] = None, None, value.dtype
            return
        shape, dtype = tuple(tensor.shape.numpy()), tensor.dtype
        is_followed = dtype in READ and math.prod(shape) <= LIMIT
        self._shapes[value], self._dtypes[value] = shape, dtype
        self._numbers[value] = numbers_of(tensor) if is_followed else None


def _tensor_of(value: ir.Value) -> ir.TensorProtocol | None:
    node = value.producer()
    if node is None:
        return None if value.is_graph_input() else value.const_value
    if node.op_type != "Constant" or node.domain:
        return None
    attribute = node.attributes.get("value")
    if attribute is None or attribute.is_ref():
        found: ir.TensorProtocol | None = constant_tensor(value)  # value_ints and the like
    else:
        found = attribute.value  # as_tensor() checks a protocol, which takes most of the time of the walk
    return found


def numbers_of(tensor: ir.TensorProtocol) -> Numbers:
    """A constant's elements, whole ones as Python's objects."""
    array = np.asarray(tensor.numpy())
    return array.astype(object) if tensor.dtype in _WHOLE else array


def broadcast(facts: Facts, *shapes: Shape | None) -> Shape | None:
    """The shape of an elementwise operator's result."""
    result: Shape = ()
    for shape in shapes:
        if shape is None:
            return None
        longer, shorter = (result, shape) if len(result) >= len(shape) else (shape, result)
        lead = len(longer) - len(shorter)
        result = longer[:lead] + tuple(map(lambda a, b: _joined(facts, a, b), longer[lead:], shorter))
    return result


def _joined(facts: Facts, left: Size, right: Size) -> Size:
    if left == 1 or left == right:
        return right
    if right == 1 or isinstance(left, int):  # two sizes fit if one is 1 or they are equal
        return left
    return (
        right if isinstance(right, int) else facts.unknowns.get(("joined", frozenset((left, right))), is_natural=True)
    )


def product(sizes: Sequence[Size]) -> Size:
    """The product of sizes; 1 of none."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total
