"""Computes what depends on constants alone, once, and keeps the results that are small enough.

onnxruntime computes them, as it would when it loads the file. Only results that the rest of the graph reads are stored,
not those on the way: a mask of a megabyte that is made of ten numbers may stay ten numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import onnx_ir as ir
import onnxruntime

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.excerpt import excerpt
from torch_onnx_compat.graph.slim.facts import Facts, product
from torch_onnx_compat.graph.slim.weights import ARRAYS, become_constant, is_second_form
from torch_onnx_compat.graph.walk import inner_graphs
from torch_onnx_compat.session import open_session

NODE_BYTES = 120
"""About what a node with its names takes in a file."""

_LARGEST_READ = 2**24
"""Bytes of the largest constant that is read."""

_RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)

_FORM = frozenset({"QuantizeLinear", "DequantizeLinear"})
"""What tells an engine to compute in eight bits: of a weight, too."""


def fold_constants_within(model: ir.Model, facts: Facts, room: int) -> None:
    """Replaces nodes of the main graph that depend on constants alone by their results, in place.

    Args:
        model: The model.
        facts: What is known of its values' shapes.
        room: By how many bytes the constants may grow; the largest results are the first to stay nodes.
    """
    region = _constant_nodes(model)
    stored = _largest_that_fits(region, facts, room)
    if not stored:
        return
    part = excerpt(model, [], stored, "constants")
    try:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = open_session(ir.to_proto(part).SerializeToString(), sess_options=options)
        arrays = session.run([str(value.name) for value in stored], {})
    except Exception:  # onnxruntime has no kernel for one of the nodes, or the node fails: it does so in the file too
        return
    for value, array in zip(stored, arrays, strict=True):
        tensor = ir.tensor(np.asarray(array), name=value.name)
        become_constant(model, value, tensor)


def _constant_nodes(model: ir.Model) -> dict[ir.Node, None]:
    """The nodes that depend on constants alone, in order."""
    region: dict[ir.Node, None] = {}
    for node in model.graph:
        if node.domain or node.op_type in _RANDOM | _FORM or node.op_type == "Constant" or any(inner_graphs(node)):
            continue
        if is_second_form(node) or any(map(_is_huge, node.inputs)):
            continue
        if all(v is None or v.producer() in region or constant_tensor(v) is not None for v in node.inputs):
            region[node] = None
    return region


def _is_huge(value: ir.Value | None) -> bool:
    """Whether a constant is one that onnxruntime had better not get a copy of."""
    return value is not None and value.const_value is not None and value.const_value.nbytes > _LARGEST_READ


def _largest_that_fits(region: Collection[ir.Node], facts: Facts, room: int) -> list[ir.Value]:
    """The values to be stored: all those up to a size such that what is added fits into the room."""
    sizes = {value: _bytes(facts, value) for node in region for value in node.outputs if value.uses()}
    limits = sorted({size for size in sizes.values() if size is not None})
    low, high, best = 0, len(limits), []
    while low < high:
        middle = (low + high) // 2
        stored, kept = _chosen(region, sizes, limits[middle])
        added = sum(sizes[value] or 0 for value in stored) - _freed(region, kept)
        if added <= room:
            best, low = stored, middle + 1
        else:
            high = middle
    return best


def _chosen(
    region: Collection[ir.Node], sizes: dict[ir.Value, int | None], limit: int
) -> tuple[list[ir.Value], set[ir.Node]]:
    """The values that are stored if none is larger than the limit, and the nodes that then stay."""
    kept: set[ir.Node] = set()
    stored: list[ir.Value] = []
    for node in reversed(list(region)):
        read = [value for value in node.outputs if _is_read(value, region, kept)]
        found = [sizes.get(value) for value in read]
        if all(size is not None and size <= limit for size in found):
            stored += read
        elif read:
            kept.add(node)
    return stored, kept


def _is_read(value: ir.Value, region: Collection[ir.Node], kept: Collection[ir.Node]) -> bool:
    return any(use.node not in region or use.node in kept for use in value.uses())


def _bytes(facts: Facts, value: ir.Value) -> int | None:
    shape, dtype = facts.shape(value), facts.dtype(value)
    if shape is None or dtype is None or dtype.name not in ARRAYS or value.is_graph_output():
        return None
    count = product(shape)
    return int(count * dtype.itemsize) if isinstance(count, int) else None


def _freed(region: Iterable[ir.Node], kept: Collection[ir.Node]) -> int:
    """Bytes of the constants that only nodes which go have read."""
    gone = {node for node in region if node not in kept}
    read = {value for node in gone for value in node.inputs if value is not None and value.is_initializer()}
    return sum(
        value.const_value.nbytes
        for value in read
        if value.const_value is not None and all(use.node in gone for use in value.uses())
    )
