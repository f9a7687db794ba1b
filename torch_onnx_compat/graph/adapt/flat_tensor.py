"""Flat tensors: the elements of a tensor of many axes in a shape of few axes; and the table of rules that use them.

The rules stand in high_rank_rules.py; high_rank.py applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from torch_onnx_compat.graph.adapt.reordering import LOW, Sizes, reshape_to, transpose_blocks
from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.obstacle import Refusal


@dataclass(frozen=True)
class FlatTensor:
    """The elements of a tensor of many axes, held by a value of few axes.

    Args:
        value: Holds the elements; its shape does not matter.
        sizes: Sizes of the axes, in the order in which `value` holds them.
        perm: Order of these axes in the tensor; None where it is the order in `value`.
    """

    value: ir.Value
    sizes: tuple[int | None, ...] = ()
    perm: tuple[int, ...] | None = None


class View:
    """Gives a rule the inputs of its node in shapes of few axes."""

    def __init__(self, op: Builder, flat: dict[ir.Value, FlatTensor]) -> None:
        self._op = op
        self._flat = flat

    def flat(self, value: ir.Value) -> FlatTensor:
        """A value as a flat tensor."""
        if not is_high(value):
            return FlatTensor(value)
        numbers = self._op.numbers(value)
        if numbers is not None:
            return FlatTensor(self._op.constant(numbers.reshape(-1), self._op.dtype(value)))
        if value not in self._flat:
            raise Refusal(f"{value.name!r} comes from elsewhere")
        return self._flat[value]

    def elements(self, value: ir.Value) -> ir.Value:
        """A value's elements in order, in any shape."""
        flat = self.flat(value)
        if flat.perm is not None:
            flat = FlatTensor(transpose_blocks(self._op, flat.value, flat.sizes, flat.perm))
            self._flat[value] = flat
        return flat.value

    def in_own_shape(self, value: ir.Value, sizes: Sizes) -> ir.Value:
        """An output that a rule has just written, in the output's own shape, which has few axes."""
        flat = self._flat.pop(value)
        if flat.perm is not None:
            flat = FlatTensor(transpose_blocks(self._op, flat.value, flat.sizes, flat.perm))
        return reshape_to(self._op, flat.value, sizes)

    def __call__(self, value: ir.Value, sizes: Sizes) -> ir.Value:
        """A value in the given shape of few axes; None stands for one unknown size."""
        if len(sizes) > LOW or sum(size is None for size in sizes) > 1:
            raise Refusal("too many axes, or unknown sizes")
        numbers = self._op.numbers(value) if is_high(value) else None
        if numbers is not None:
            shape = [-1 if size is None else size for size in sizes]
            return self._op.constant(numbers.reshape(shape), self._op.dtype(value))
        return reshape_to(self._op, self.elements(value), sizes)


Rule: TypeAlias = "Callable[[Builder, ir.Node, View], Sequence[ir.Value | FlatTensor] | None]"
RULES: dict[str, Rule] = {}


def few_axes(*op_types: str) -> Callable[[Rule], Rule]:
    """Registers how operators are computed on tensors of few axes.

    The function gets the Builder, the node and a View. For each output it returns a value with the same elements in the
    same order, in any shape, or a FlatTensor. It returns None where it has no form for the node.
    """

    def decorate(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(op_types, rule))
        return rule

    return decorate


def sizes_of(value: ir.Value) -> list[int | None]:
    """The sizes of a value's axes.

    Raises:
        Refusal: Its rank is unknown.
    """
    if value.shape is None:
        raise Refusal(f"the rank of {value.name!r} is unknown")
    return [size if isinstance(size, int) else None for size in value.shape]


def is_high(value: ir.Value | None) -> bool:
    """Whether a value has more axes than `LOW`, which every engine takes."""
    return value is not None and value.shape is not None and len(value.shape) > LOW
