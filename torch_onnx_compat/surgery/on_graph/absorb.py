"""Absorbs the arithmetic with constants that precedes a dense layer into its weights.

Math:   W (s x + c) + b = (W s) x + (b + W c), channel by channel. A padded convolution reads zeros around the
        picture; so x must be padded with the number p for which s p + c = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from torch_onnx_compat.errors import CompatError

Array = npt.NDArray[np.float64]


class CannotAbsorb(CompatError):
    """A layer cannot absorb a node; the message says why."""


@dataclass
class Dense:
    """The weights of a dense layer that reads f(x), changed step by step so that it reads x.

    Attributes:
        weights: (groups, outputs of a group, inputs of a group, cells of the kernel).
        bias: (groups, outputs of a group).
        padding: Value with which the picture is padded, by channel.
    """

    weights: Array
    bias: Array
    padding: Array = field(init=False)

    def __post_init__(self) -> None:
        self.padding = np.zeros(self.channels)

    @property
    def channels(self) -> int:
        """How many channels the layer reads."""
        return int(self.weights.shape[0] * self.weights.shape[2])

    def absorb_factor(self, factor: Array) -> None:
        """Changes the weights of a layer that reads factor * x."""
        if (factor == 0).any() or not np.isfinite(factor).all():
            raise CannotAbsorb("a factor is zero or not finite")
        self.weights = self.weights * self._by_group(factor)
        self.padding = self.padding / factor

    def absorb_offset(self, offset: Array) -> None:
        """Changes the weights of a layer that reads x + offset."""
        self.bias = self.bias + (self.weights * self._by_group(offset)).sum(axis=(2, 3))
        self.padding = self.padding - offset

    def absorb_permutation(self, order: Sequence[int]) -> None:
        """Changes the weights of a layer that reads x[order]."""
        if sorted(order) != list(range(self.channels)):
            raise CannotAbsorb("channels are left out or repeated")
        if self.weights.shape[0] != 1 and list(order) != sorted(order):
            raise CannotAbsorb("the order of channels is changed before a grouped convolution")
        inverse = np.argsort(order)
        self.weights = self.weights[:, :, inverse] if self.weights.shape[0] == 1 else self.weights
        self.padding = self.padding[inverse]

    def _by_group(self, numbers: Array) -> Array:
        groups, _, inputs, _ = self.weights.shape
        return np.broadcast_to(numbers, (self.channels,)).reshape(groups, 1, inputs, 1)


def absorb(dense: Dense, node: ir.Node, value: ir.Value, axis: int) -> ir.Value:
    """Absorbs one node into a dense layer.

    Args:
        dense: The layer.
        node: Computes the layer's input.
        value: The node's input that is not constant.
        axis: Axis of the channels, counted from the end: -3 for pictures, -1 for vectors.

    Returns:
        The layer's new input.

    Raises:
        CannotAbsorb: The node is not arithmetic that weights can express.
    """
    kind = node.op_type
    if kind == "Identity":
        return value
    if kind == "Neg":
        dense.absorb_factor(np.array([-1.0]))
    elif kind in ("Add", "Sub", "Mul", "Div"):
        _absorb_arithmetic(dense, node, value, axis)
    elif kind == "Gather":
        dense.absorb_permutation(_order(node, value, axis))
    else:
        raise CannotAbsorb(f"{kind} is no arithmetic that weights can take in")
    return value


def _absorb_arithmetic(dense: Dense, node: ir.Node, value: ir.Value, axis: int) -> None:
    first = node.inputs[0] is value
    constant = node.inputs[1 if first else 0]
    assert constant is not None
    numbers = _per_channel(constant, dense.channels, axis)
    if node.op_type == "Add":
        dense.absorb_offset(numbers)
    elif node.op_type == "Sub":
        dense.absorb_offset(-numbers if first else numbers)
        if not first:
            dense.absorb_factor(np.array([-1.0]))
    elif node.op_type == "Mul":
        dense.absorb_factor(numbers)
    elif first:
        dense.absorb_factor(1 / numbers)
    else:
        raise CannotAbsorb("it is divided by")


def _per_channel(value: ir.Value, channels: int, axis: int) -> Array:
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is None:
        raise CannotAbsorb(f"{value.name!r} is no constant")
    numbers = tensor.numpy().astype(np.float64)
    sizes = dict(zip(range(-numbers.ndim, 0), numbers.shape, strict=True))
    if any(size != 1 and at != axis for at, size in sizes.items()) or sizes.get(axis, 1) not in (1, channels):
        raise CannotAbsorb(f"the constant of shape {numbers.shape} is not one number for each channel")
    return numbers.reshape(-1)


def _order(node: ir.Node, value: ir.Value, axis: int) -> list[int]:
    at = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    rank = len(value.shape) if value.shape is not None else 0
    indices = None if node.inputs[1] is None else ir.convenience.get_const_tensor(node.inputs[1])
    if indices is None or not rank or at % rank != axis % rank or len(indices.shape) != 1:
        raise CannotAbsorb("Gather does not take channels by constant numbers")
    size: Any = value.shape[at] if value.shape is not None else 0
    return [int(i) % size if isinstance(size, int) else int(i) for i in indices.numpy()]
