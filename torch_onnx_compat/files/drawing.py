"""Inputs for a file that nobody gave inputs for: sizes, and numbers that make sense where they are read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import ml_dtypes
import numpy as np
import onnx_ir as ir

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.graph import shapes
from torch_onnx_compat.graph.constants import constant_tensor

Kind = Literal["normal", "unit", "whole", "zeros"]
"""How floating-point numbers are drawn: standard normal, between 0 and 1, halves from -4 to 4, zeros."""

MOST_ELEMENTS = 2**26
"""Elements of an input at most: 256 MiB in float32, for each case."""

MOST_GUESSED = 2**22
"""Elements of all inputs at most, where larger sizes of dynamic axes than the first are tried."""

_WIDE = 2**20
"""Elements from which on numbers are drawn in float32, not float64."""

RANKS = (4, 2, 3, 1, 5, 0)
"""Numbers of axes that are tried for an input of unknown shape."""

_LENGTH = 3
"""Tensors in a sequence."""

_FOLLOWED = frozenset({"Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Flatten", "Expand", "Tile"})
"""Operators that pass the numbers of their first input on."""

_INDICES = {"Gather": 1, "GatherElements": 1, "GatherND": 1, "ScatterElements": 1, "Scatter": 1, "ScatterND": 1}
_DIVIDED = {"Div": 1, "Mod": 1}
_LENGTHS = {"LSTM": 4, "GRU": 4, "RNN": 4, "ReverseSequence": 1}
_WINDOWS = ("HannWindow", "HammingWindow", "BlackmanWindow")
_SIZES = {"Reshape": 1, "Expand": 1, "Resize": 3, "ConstantOfShape": 0, "CenterCropPad": 1, "AffineGrid": 1, "Tile": 1}
_SIZES |= {"TopK": 1, "OneHot": 1} | dict.fromkeys(_WINDOWS, 0)
"""Inputs that decide the sizes of the output."""
_TEXTS = ("", "a", "bc", "Monday", "7", "x y")


@dataclass(frozen=True)
class InputSpec:
    """An input of a file, and what its numbers may be.

    Attributes:
        name: Its name.
        dtype: Its element type.
        axes: Its axes, a number where the size is fixed, else a name; None where the file does not say how many.
        is_sequence: Whether it is a sequence of such tensors.
        is_optional: Whether the file gives it a value if the caller does not.
        low: Least whole number that makes sense.
        high: First whole number that does not, or the name of the axis that says; None where nothing is known.
        exactly: Its numbers, where these follow from what the file declares.
    """

    name: str
    dtype: ir.DataType
    axes: tuple[int | str, ...] | None
    is_sequence: bool = False
    is_optional: bool = False
    low: int = 0
    high: int | str | None = None
    exactly: tuple[int, ...] | None = None


@dataclass
class Plan:
    """The inputs of a file, and its dynamic axes.

    Attributes:
        inputs: The inputs that have to be given.
        defaults: The inputs that may be given, with the values that they have otherwise.
    """

    inputs: tuple[InputSpec, ...]
    defaults: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The dynamic axes, in order; the size of one such as ``past + new`` follows from others."""
        return tuple(dict.fromkeys(n for spec in self.inputs for axis in spec.axes or () for n in _terms(axis)))

    @property
    def first(self) -> frozenset[str]:
        """Those that are axis 0 of an input."""
        return frozenset(n for spec in self.inputs if spec.axes for n in _terms(spec.axes[0]))

    @property
    def has_unknown_ranks(self) -> bool:
        """Whether the file does not say of some input how many axes it has."""
        return any(spec.axes is None for spec in self.inputs)

    def with_rank(self, rank: int) -> Plan:
        """The plan with this many axes for the inputs of unknown shape, axis 0 of one name for all of them."""
        axes = ("batch_", *(f"axis{i}_" for i in range(1, rank)))[:rank]
        known = [spec if spec.axes is not None else InputSpec(**{**vars(spec), "axes": axes}) for spec in self.inputs]
        return Plan(tuple(known), self.defaults)

    def count(self, sizes: Mapping[str, int]) -> int:
        """The elements of all inputs at some sizes of the dynamic axes."""
        return sum(prod(size_of(axis, sizes) for axis in spec.axes or ()) for spec in self.inputs)

    def draw(self, sizes: Mapping[str, int], kind: Kind, seed: int, attempt: int = 0) -> dict[str, Any]:
        """Draws the inputs.

        Args:
            sizes: Of the dynamic axes.
            kind: How floating-point numbers are drawn.
            seed: Of the random numbers.
            attempt: How often the file has refused such numbers; whole numbers become smaller.

        Raises:
            CompatError: An input is too large to draw, or of a type that cannot be drawn.
        """
        random = np.random.default_rng([seed, attempt])
        return {spec.name: _draw(spec, sizes, kind, random, attempt) for spec in self.inputs}

    def draw_defaults(self, seed: int) -> dict[str, Any]:
        """Other values for the inputs that have values of their own: floating-point numbers of about the same size."""
        random = np.random.default_rng(seed)
        return {
            name: (value * random.uniform(0.5, 1.5, value.shape)).astype(value.dtype)
            for name, value in self.defaults.items()
            if value.dtype.kind == "f"
        }


def plan_inputs(model: ir.Model) -> Plan:
    """Finds out what a file's inputs may be.

    Args:
        model: The file's graph; types and shapes are inferred in it.

    Raises:
        CompatError: An input is of no type that can be given.
    """
    shapes.infer_model(model)
    specs, defaults = [], {}
    for value in model.graph.inputs:
        if value.name in model.graph.initializers:
            tensor = value.const_value
            if tensor is not None and tensor.dtype is not ir.DataType.STRING:
                defaults[str(value.name)] = tensor.numpy()
        else:
            specs.append(_spec(value))
    return Plan(tuple(specs), defaults)


def _spec(value: ir.Value) -> InputSpec:
    kind: Any = value.type
    name = str(value.name)
    is_optional = isinstance(kind, ir.OptionalType)
    if isinstance(kind, ir.OptionalType):
        kind = kind.elem_type
    is_sequence = isinstance(kind, ir.SequenceType)
    if isinstance(kind, ir.SequenceType):
        kind = kind.elem_type
    if not isinstance(kind, ir.TensorType) or kind.dtype is ir.DataType.UNDEFINED:
        raise CompatError(f"input {name!r} is of type {value.type}; wanted a tensor or a sequence of tensors.")
    axes = None
    if value.shape is not None:
        sizes = (axis if isinstance(axis, int) else axis.value for axis in value.shape)
        axes = tuple(size if size is not None else f"{name}.{i}" for i, size in enumerate(sizes))
    low, high, exactly = _range(value)
    return InputSpec(name, kind.dtype, axes, is_sequence, is_optional, low, high, exactly)


def _range(value: ir.Value) -> tuple[int, int | str | None, tuple[int, ...] | None]:
    """Least number, first number too many, and the numbers themselves, from the nodes that read a value."""
    low, high, exactly = 0, None, None
    for node, index in _readers(value):
        if _INDICES.get(node.op_type) == index:
            high = _least(high, _size_of_indexed(node))
        elif _DIVIDED.get(node.op_type) == index:
            low = 1
        elif _LENGTHS.get(node.op_type) == index:
            low, high = 1, _least(high, _axis(node.inputs[0], 0))
        elif _SIZES.get(node.op_type) == index:
            exactly = _sizes_declared(node) or exactly
    return low, high, exactly


def _sizes_declared(node: ir.Node) -> tuple[int, ...] | None:
    """The sizes that a node has to be given for what its output is declared to be; None where that is not known."""
    shape = node.outputs[0].shape
    if shape is None or not shape.is_static():
        return None
    sizes = shape.numpy()
    if node.op_type == "AffineGrid":  # a grid is (N, H, W, 2) or (N, D, H, W, 3) for any number of channels
        return (sizes[0], 1, *sizes[1:-1]) if len(sizes) > 3 else None
    if node.op_type == "Tile":
        before = node.inputs[0].shape if node.inputs[0] is not None else None
        if before is None or not before.is_static() or len(before) != len(sizes) or 0 in before.numpy():
            return None
        return tuple(after // size for after, size in zip(sizes, before.numpy(), strict=True))
    axes = node.attributes.get_ints("axes") if node.op_type in ("Resize", "CenterCropPad") else None
    if node.op_type in ("TopK", "OneHot"):
        axes = (node.attributes.get_int("axis", -1) or 0,)
    if axes is None:
        return sizes
    # A declaration may be of another rank than what the node computes.
    return tuple(sizes[a] for a in axes) if all(-len(sizes) <= a < len(sizes) for a in axes) else None


def _readers(value: ir.Value, depth: int = 8) -> Iterator[tuple[ir.Node, int]]:
    """The nodes that read a value's numbers, perhaps in another shape or type, and as which input."""
    for node, index in value.uses():
        if node.op_type in _FOLLOWED and index == 0:
            if depth:
                yield from _readers(node.outputs[0], depth - 1)
        elif not node.domain:
            yield node, index


def _size_of_indexed(node: ir.Node) -> int | str | None:
    axis = node.attributes.get_int("axis", 0) if node.op_type not in ("GatherND", "ScatterND") else 0
    return _axis(node.inputs[0], axis or 0)


def _axis(value: ir.Value | None, axis: int) -> int | str | None:
    if value is None:
        return None
    constant = constant_tensor(value)
    shape = constant.shape if constant is not None else value.shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    size = shape[axis]
    return size if isinstance(size, int) else size.value


def _least(one: int | str | None, other: int | str | None) -> int | str | None:
    if isinstance(one, int) and isinstance(other, int):
        return min(one, other)
    return one if isinstance(one, int) or other is None else other


def _terms(axis: int | str) -> tuple[str, ...]:
    """The names that an axis such as ``past + new`` consists of."""
    return () if isinstance(axis, int) else tuple(t for t in re.split(r"\s*\+\s*", axis) if not t.isdigit())


def size_of(axis: int | str, sizes: Mapping[str, int]) -> int:
    """The size of an axis: a number, a name, or a sum such as ``past + new`` or ``past + 1``."""
    if isinstance(axis, int):
        return axis
    if axis in sizes:
        return sizes[axis]
    return sum(int(term) if term.isdigit() else sizes[term] for term in re.split(r"\s*\+\s*", axis))


def _draw(spec: InputSpec, sizes: Mapping[str, int], kind: Kind, random: np.random.Generator, attempt: int) -> Any:
    shape = tuple(size_of(axis, sizes) for axis in spec.axes or ())
    if any(size < 0 for size in shape) or prod(shape) > MOST_ELEMENTS:
        raise CompatError(
            f"input {spec.name!r} of shape {shape} is too large to draw, with more than {MOST_ELEMENTS} elements; "
            f"give inputs, or sizes of its dynamic axes."
        )
    if spec.is_sequence:
        return [_draw_tensor(spec, shape, sizes, kind, random, attempt) for _ in range(_LENGTH)]
    return _draw_tensor(spec, shape, sizes, kind, random, attempt)


def _draw_tensor(
    spec: InputSpec,
    shape: Sequence[int],
    sizes: Mapping[str, int],
    kind: Kind,
    random: np.random.Generator,
    attempt: int,
) -> Any:
    dtype = spec.dtype
    if dtype is ir.DataType.STRING:
        return np.asarray(random.choice(np.array(_TEXTS, dtype=object), size=shape), dtype=object)
    if dtype is ir.DataType.BOOL:
        return np.asarray(random.random(shape) < 0.5) if kind != "zeros" else np.zeros(shape, bool)
    numpy_type = np.dtype(dtype.numpy())
    if dtype.is_floating_point() or dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return np.asarray(_draw_real(shape, kind, random)).astype(numpy_type, copy=False)
    if spec.exactly is not None and len(spec.exactly) == prod(shape) and not attempt:
        return np.array(spec.exactly, numpy_type).reshape(shape)
    least, most = _limits(numpy_type)
    low, high = _bounds(spec, sizes, kind, attempt)
    if numpy_type.itemsize == 1 and spec.high is None and not attempt and kind == "normal":
        low, high = max(least, spec.low), most + 1  # bytes of a picture, and quantized numbers
    low, high = max(low, least), min(high, most + 1)
    return np.asarray(random.integers(low, max(high, low + 1), size=shape)).astype(numpy_type)


def _draw_real(shape: Sequence[int], kind: Kind, random: np.random.Generator) -> np.ndarray[Any, Any]:
    wide: Any = np.float64 if prod(shape) < _WIDE else np.float32
    if kind == "zeros":
        return np.zeros(shape, wide)
    if kind == "unit":
        return np.asarray(random.random(shape, wide))
    if kind == "whole":
        return np.asarray(random.integers(-8, 9, size=shape, dtype=np.int8) / wide(2)).astype(wide)
    return np.asarray(random.standard_normal(shape, wide))


def _bounds(spec: InputSpec, sizes: Mapping[str, int], kind: Kind, attempt: int) -> tuple[int, int]:
    """Least whole number, and the first that is too large; smaller ranges where others were refused."""
    high = spec.high
    if isinstance(high, str):
        high = size_of(high, sizes) if all(term in sizes for term in _terms(high)) else None
    if high is not None and attempt < 2:
        return min(spec.low, high - 1), high
    if kind == "zeros" and not spec.low:
        return 0, 1
    ladder = [(-8 if kind == "whole" else 0, 8), (0, 8), (1, 4), (0, 2), (1, 2), (0, 1)]
    low, high = ladder[min(attempt, len(ladder) - 1)]
    return max(low, spec.low), max(high, spec.low + 1)


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)
