"""A fact about the weights of products and convolutions.

* weight, of a ConvTranspose, Einsum, Gemm or MatMul: turned where it multiplies by the transpose of a constant by which
  another node multiplies as it stands, and both see a matrix of the same sizes; else other. An engine that keeps
  repacked weights under the constant's address and the sizes takes the one for the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor

_VIEWS = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that leave the numbers of a constant in their order."""
WEIGHTED = frozenset({"ConvTranspose", "Einsum", "Gemm", "MatMul"})
"""The operators that have the fact."""


@dataclass(frozen=True)
class _Weight:
    constant: ir.Value
    turned: bool
    sizes: tuple[Any, ...]
    """What the product or the convolution sees, after the turn."""


def weight_fact(node: ir.Node) -> dict[str, Any]:
    """The fact of a node; see the module."""
    weight = _weight(node)
    if weight is None or not weight.turned:
        return {"weight": "other"}
    twin = _Weight(weight.constant, False, weight.sizes)
    return {"weight": "turned" if any(_weight(other) == twin for other in _readers(weight.constant)) else "other"}


def weight_input(node: ir.Node) -> int | None:
    """Which input of a product or convolution is its weight; None where it may have several, or none that is known."""
    if node.op_type != "Einsum":
        return 1
    known = [index for index, value in enumerate(node.inputs) if value is not None and _origin(value)[0] is not None]
    return known[0] if len(known) == 1 else None


def _weight(node: ir.Node) -> _Weight | None:
    index = weight_input(node)
    value = node.inputs[index] if index is not None else None
    if value is None or value.shape is None or len(value.shape) < 2:
        return None
    constant, turned = _origin(value)
    sizes, swapped = list(value.shape), _is_swapped(node, index)
    first = 0 if node.op_type in ("Conv", "ConvTranspose") else len(sizes) - 2
    if constant is None or swapped is None or 1 in sizes[first : first + 2]:  # a row has the order of a column
        return None
    if swapped:
        sizes[first : first + 2] = sizes[first : first + 2][::-1]
    return _Weight(constant, turned != swapped, tuple(map(str, sizes)))


def _is_swapped(node: ir.Node, index: int | None) -> bool | None:
    """Whether the operator itself multiplies by the transpose; None where this is not known."""
    if node.op_type == "Gemm":
        return "transB" in node.attributes and bool(node.attributes["transB"].as_int())
    if node.op_type == "Einsum" and index is not None:
        left, _, result = node.attributes["equation"].as_string().replace(" ", "").partition("->")
        row, column = (letter in result for letter in left.split(",")[index][-2:])
        return None if row == column else row
    return node.op_type == "ConvTranspose"


def _origin(value: ir.Value) -> tuple[ir.Value | None, bool]:
    """The constant of the file that a value is made of, and whether its last two axes are swapped."""
    turned = False
    while constant_tensor(value) is None:
        producer = value.producer()
        before = producer.inputs[0] if producer is not None and producer.inputs else None
        if producer is None or before is None or not (producer.op_type in _VIEWS or swaps_the_last_axes(producer)):
            return None, False
        turned ^= producer.op_type == "Transpose"
        value = before
    return value, turned


def swaps_the_last_axes(node: ir.Node) -> bool:
    """Whether a node is a Transpose that swaps the last two axes."""
    if node.op_type != "Transpose" or "perm" not in node.attributes:
        return False
    perm = list(node.attributes["perm"].as_ints())
    return perm == [*range(len(perm) - 2), len(perm) - 1, len(perm) - 2]


def constant_numbers(value: ir.Value) -> Any:
    """The numbers of a value that is made of a constant; None of any other."""
    tensor, producer = constant_tensor(value), value.producer()
    if tensor is not None or producer is None or _origin(value)[0] is None or value.shape is None:
        return None if tensor is None else tensor.numpy()
    (before, *_), dtype = producer.inputs, value.dtype
    assert before is not None
    numbers = constant_numbers(before)
    if producer.op_type == "Transpose":
        return numbers.swapaxes(-1, -2)
    return numbers.reshape(value.shape.numpy()).astype(dtype.numpy() if dtype is not None else numbers.dtype)


def _readers(constant: ir.Value) -> Iterator[ir.Node]:
    waiting = [constant]
    while waiting:
        for node, _ in waiting.pop().uses():
            if node.op_type in WEIGHTED or node.op_type == "Conv":
                yield node
            elif node.op_type in _VIEWS or swaps_the_last_axes(node):
                waiting += node.outputs
