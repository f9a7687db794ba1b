"""Writes a Transpose of many axes as a few Transposes of at most four blocks of axes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise, permutations

import onnx_ir as ir

from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.obstacle import Refusal

LOW = 4
"""The highest rank that every engine takes."""
Sizes = Sequence["int | None"]


def transpose_blocks(op: Builder, x: ir.Value, sizes: Sizes, perm: Sequence[int]) -> ir.Value:
    """The elements of `x`, whose axes have these sizes, in the order of `perm`; the caller gives the result its shape.

    Axes of size 1 need no move; axes that stay side by side move as one block.

    Args:
        op: Gets the new nodes, Transposes and Reshapes of rank 2 to 4.
        x: Holds the elements, in any shape.
        sizes: Sizes of the axes; at most one is unknown.
        perm: As of a Transpose.

    Raises:
        Refusal: Two sizes are unknown.
    """
    if sum(size is None for size in sizes) > 1:
        raise Refusal("two sizes are unknown")
    sizes = list(sizes)
    movable = [axis for axis in perm if sizes[axis] != 1]
    places = sorted(movable)
    order = list(places)
    for blocks in moves(tuple(places.index(axis) for axis in movable)):
        cut = [[order[i] for i in block] for block in blocks]
        starts = sorted(cut, key=lambda block: order.index(block[0]))
        shape = [product([sizes[axis] for axis in block]) for block in starts]
        turn = [starts.index(block) for block in cut]
        if len(turn) == 2:  # a matrix, for engines that take the first axis for the batch
            shape, turn = [1, *shape], [0, 2, 1]
        x = op.Transpose(reshape_to(op, x, shape), perm=turn)
        order = [axis for block in cut for axis in block]
    return x


def product(sizes: Sizes) -> int | None:
    """The size of several axes merged into one; None if one is unknown."""
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None


def reshape_to(op: Builder, x: ir.Value, shape: Sizes) -> ir.Value:
    """`x` in another shape, which may have one unknown size; Reshapes that lead to `x` are skipped."""
    wanted = [-1 if size is None else size for size in shape]
    while (producer := x.producer()) is not None and producer.op_type == "Reshape" and not producer.domain:
        source = producer.inputs[0]
        if source is None or source.shape is None or len(source.shape) > LOW:
            break
        x = source
    if x.shape is not None and [s if isinstance(s, int) else -1 for s in x.shape] == wanted and -1 not in wanted[1:]:
        return x
    return op.Reshape(x, wanted)


@cache
def moves(perm: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """The shortest sequence of moves that brings (0, 1, ...) into the order of `perm`.

    Returns:
        For each move its blocks in their new order; a block holds neighbouring places of the order before the move.
    """
    start = tuple(range(len(perm)))
    reached_from: dict[tuple[int, ...], tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]] = {}
    waiting = deque([start])
    while waiting and perm != start and perm not in reached_from:
        order = waiting.popleft()
        for blocks in _all_moves(len(perm)):
            new = tuple(order[i] for block in blocks for i in block)
            if new != start and new not in reached_from:
                reached_from[new] = (order, blocks)
                waiting.append(new)
    path = []
    while perm != start:
        perm, blocks = reached_from[perm]
        path.append(blocks)
    return tuple(reversed(path))


@cache
def _all_moves(count: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """All moves of `count` axes, those of the fewest blocks first."""
    return tuple(_generate_moves(count))


def _generate_moves(count: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    for cuts in range(1, min(LOW, count)):
        for ends in combinations(range(1, count), cuts):
            edges = (0, *ends, count)
            blocks = [tuple(range(a, b)) for a, b in pairwise(edges)]
            for order in permutations(blocks):
                # Blocks that stay side by side are one block, tried before.
                if all(a[-1] + 1 != b[0] for a, b in pairwise(order)):
                    yield order
