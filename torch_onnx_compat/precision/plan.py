"""Decides which nodes stay in float32, each with the reason, from what was measured.

A node that loses too much by itself is the target of an island. The island grows towards the inputs until rounding what
enters it no longer harms: the sine of a position needs the position, and what the position is computed from, exactly.
Other nodes join where the format has no such operator, where whole numbers are computed, and where two casts would cost
more than they save.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.instrument import Island, can_be_shadowed
from torch_onnx_compat.precision.layout import (
    HEAVY,
    HOLDERS,
    MOVES,
    WEIGHTS,
    Layout,
    bodies,
    has_half_form,
    is_constant,
    is_float,
    is_inside,
    is_whole,
)
from torch_onnx_compat.precision.measure import Measurement
from torch_onnx_compat.precision.small_constants import SmallConstants

HEADROOM = 4.0
"""How far the largest value must stay below the format's largest: other inputs have other values."""

GROWTH = (1, 1, 2, 4, 8, 16, 64, 10**6)
"""By how many nodes, towards the inputs, an island grows each time."""

NO_FORM = "the operator has no such form at this opset"
WHOLE = "computes whole numbers"
CARRIED = "carried from round to round, which adds up roundings"
ASKED = "keep"
JOINED = "between nodes in float32"
MOVED = "moves values only"
ISLAND = "what a node in float32 is computed from"
RANGE = ("values up to", "adds up to")
"""How the reasons begin that are a matter of the format's range."""

Measure = Callable[[Sequence[Island]], list[float]]


@dataclass(frozen=True)
class Reason:
    """Why a node stays in float32."""

    text: str
    loss: float = 0.0
    """What it loses by itself, relative to its values."""
    largest: float = 0.0
    """Its largest value."""


@dataclass
class HalfPlan:
    """Which nodes stay in float32, by number."""

    kept: dict[int, Reason] = field(default_factory=dict)
    peaks: dict[int, float] = field(default_factory=dict)
    """Largest values of nodes, where these are beyond the format's range."""

    def keep(self, numbers: Iterable[int], reason: Reason) -> None:
        """Keeps nodes in float32; a reason that they have already stays."""
        for number in numbers:
            self.kept.setdefault(number, reason)


def make_plan(
    layout: Layout, half: Half, measured: Measurement, allowed: float, measure: Measure, *, headroom: float = HEADROOM
) -> HalfPlan:
    """Decides for every node of a graph.

    Args:
        layout: The float32 graph.
        half: The format.
        measured: What each node alone loses.
        allowed: The largest loss of a node, relative to its values.
        measure: Measures islands.
        headroom: How far the largest value must stay below the format's largest.
    """
    plan = HalfPlan()
    _keep_what_must(layout, half, plan)
    _keep_whole_numbers(layout, plan)
    _keep_carried(layout, plan)
    _keep_small_constants(layout, half, plan)
    for number, reason in _range(layout, half, measured, headroom).items():
        plan.keep([number], reason)
    for number, reason in _discrete(layout, measured, allowed).items():
        plan.keep([number], reason)
        plan.keep(_cheap_ancestors(layout, number), Reason(ISLAND))
    for island, is_enough in _islands(layout, measured, allowed, measure):
        for number in island.targets:
            plan.keep([number], _loss_reason(half, measured, number))
        plan.keep(island.members, Reason(ISLAND))
        if not is_enough:
            plan.keep(_ancestors_in_all_graphs(layout, island.members), Reason(ISLAND))
    _join(layout, half, plan)
    for number in range(len(layout.nodes)):
        if measured.of("peak", number) > half.largest:
            plan.peaks[number] = measured.of("peak", number)
    return plan


def everything(layout: Layout) -> HalfPlan:
    """The plan that keeps every node."""
    plan = HalfPlan()
    plan.keep(range(len(layout.nodes)), Reason("the bound does not hold with anything less"))
    return plan


def _keep_what_must(layout: Layout, half: Half, plan: HalfPlan) -> None:
    wanted = tuple(half.keep)
    for number, node in enumerate(layout.nodes):
        where = place(node)
        if any(w == node.op_type or is_inside(where, w) for w in wanted):
            plan.keep([number], Reason(ASKED))
        elif node.op_type in HOLDERS and not node.domain:
            continue
        elif _reads_float(node) and not _can_be_narrow(layout, number, half):
            plan.keep([number], Reason(NO_FORM))


def _can_be_narrow(layout: Layout, number: int, half: Half) -> bool:
    return has_half_form(layout.nodes[number], layout.opset, half.onnx_type) and not _in_sequence_map(layout, number)


def _in_sequence_map(layout: Layout, number: int) -> bool:
    holder = layout.subgraphs[layout.subgraph_of[number]].holder
    return holder is not None and (layout.nodes[holder].op_type == "SequenceMap" or _in_sequence_map(layout, holder))


def _reads_float(node: ir.Node) -> bool:
    return any(is_float(v) for v in (*node.inputs, *node.outputs))


# Whole numbers


def _keep_whole_numbers(layout: Layout, plan: HalfPlan) -> None:
    """Keeps what is computed from whole numbers alone, and what whole numbers are made of.

    Sizes, positions and indices grow with the inputs: the example does not show how far. Rounding to a whole number has
    no tolerance.
    """
    counting: set[ir.Value] = set()
    for number, node in enumerate(layout.nodes):
        floats = [v for v in node.inputs if v is not None and is_float(v) and not is_constant(v)]
        starts = node.op_type in ("Cast", "CastLike", "Range") and any(is_whole(v) for v in node.inputs[:1])
        starts |= node.op_type == "Range" and not all(is_constant(v) for v in node.inputs)
        goes_on = bool(floats) and all(v in counting for v in floats) and node.op_type not in HEAVY
        if (starts or goes_on) and any(is_float(v) for v in node.outputs) and can_be_shadowed(node):
            counting.update(node.outputs)
            plan.keep([number], Reason(WHOLE))
    for number, node in enumerate(layout.nodes):
        if node.op_type == "Cast" and is_float(node.inputs[0]) and any(is_whole(v) for v in node.outputs):
            plan.keep([number, *_cheap_ancestors(layout, number)], Reason(WHOLE))


def _cheap_ancestors(layout: Layout, number: int) -> set[int]:
    """The nodes that a node's numbers come from, back to products of matrices, bodies and the inputs."""
    found: set[int] = set()
    waiting = [number]
    while waiting:
        for other in _producers(layout, waiting.pop()):
            if other not in found and layout.nodes[other].op_type not in HEAVY:
                found.add(other)
                waiting.append(other)
    return found


def _producers(layout: Layout, number: int) -> list[int]:
    """The nodes in the same graph that compute a node's float inputs."""
    node, subgraph = layout.nodes[number], layout.subgraph_of[number]
    numbers = [layout.producer(v) for v in node.inputs if v is not None and is_float(v)]
    return [
        n for n in numbers if n is not None and layout.subgraph_of[n] == subgraph and can_be_shadowed(layout.nodes[n])
    ]


def _keep_carried(layout: Layout, plan: HalfPlan) -> None:
    """Keeps what computes the values that loops carry, as a sum of many small steps loses its last digits each time."""
    for node in layout.nodes:
        for _, graph in bodies(node):
            if node.op_type not in ("Loop", "Scan"):
                continue
            scanned = node.attributes["num_scan_inputs"].as_int() if node.op_type == "Scan" else 0
            before = 1 if node.op_type == "Loop" else 0
            carried = len(graph.inputs) - scanned - (2 if node.op_type == "Loop" else 0)
            for value in graph.outputs[before : before + carried]:
                number = layout.producer(value)
                if number is not None and is_float(value) and layout.nodes[number].op_type not in HEAVY:
                    plan.keep([number], Reason(CARRIED))


def _keep_small_constants(layout: Layout, half: Half, plan: HalfPlan) -> None:
    """Keeps the nodes that need a constant which the format does not hold, and what computes the other operand."""
    constants = SmallConstants(layout, half, max(half.bound, half.unit))
    constants.find()
    for number, text in constants.reasons.items():
        plan.keep([number], Reason(text))
    plan.keep(constants.before, Reason(ISLAND))


# Range and loss


def _range(layout: Layout, half: Half, measured: Measurement, headroom: float) -> dict[int, Reason]:
    """The nodes whose results, or sums on the way, come near the end of the format's range."""
    found: dict[int, Reason] = {}
    for number, node in enumerate(layout.nodes):
        made, peak = measured.of("made", number), measured.of("peak", number)
        if made > half.largest or (
            made > half.largest / headroom and not _is_saturated(layout, half, measured, number)
        ):
            found[number] = Reason(f"values up to {peak:.2g}", measured.of("loss", number), peak)
            continue
        terms = measured.of("terms", number)
        total = peak * peak if node.op_type == "ReduceL2" else peak * terms
        if total > half.largest / headroom:
            found[number] = Reason(f"adds up to {total:.2g}", measured.of("loss", number), total)
        length = measured.of("length", number)
        if length > 1 and length**0.5 * half.unit > half.bound / 2:
            found[number] = Reason(f"adds up {length:.0f} numbers one after the other", length**0.5 * half.unit, peak)
    return found


def _is_saturated(layout: Layout, half: Half, measured: Measurement, number: int) -> bool:
    """Whether a node only hands on a number that is beyond the range already, such as the -3e38 of a mask."""
    if measured.of("made", number) > half.largest:
        return False
    for value in layout.nodes[number].inputs:
        producer = layout.producer(value)
        if producer is not None and (
            measured.of("peak", producer) > half.largest or _is_saturated_move(layout, half, measured, producer)
        ):
            return True
        if is_float(value) and is_constant(value) and _largest_of(value) > half.largest:
            return True
    return False


def _is_saturated_move(layout: Layout, half: Half, measured: Measurement, number: int) -> bool:
    return layout.nodes[number].op_type in MOVES and _is_saturated(layout, half, measured, number)


def _largest_of(value: ir.Value | None) -> float:
    array = constant_tensor(value).numpy()
    return float(np.abs(array).max(initial=0.0))


def _discrete(layout: Layout, measured: Measurement, allowed: float) -> dict[int, Reason]:
    """The nodes that decide otherwise on rounded inputs more often than is allowed."""
    shares = {number: measured.of("mismatch", number) for number in range(len(layout.nodes))}
    return {
        number: Reason(f"{share:.1%} of its results change", share)
        for number, share in shares.items()
        if share > allowed
    }


def _loss_reason(half: Half, measured: Measurement, number: int) -> Reason:
    loss, peak = measured.of("loss", number), measured.of("peak", number)
    return Reason(half.loss_text(loss, peak), loss, peak)


# Islands


def _islands(layout: Layout, measured: Measurement, allowed: float, measure: Measure) -> list[tuple[Island, bool]]:
    """The islands of the nodes that lose too much, grown until what enters them may be rounded; whether it may."""
    lossy = [n for n in range(len(layout.nodes)) if measured.of("loss", n) > allowed]
    done: list[tuple[Island, bool]] = []
    growing = [Island(frozenset([n]), frozenset([n])) for n in lossy]
    for steps in GROWTH:
        if not growing:
            break
        losses = measure(growing)
        done += [(island, True) for island, loss in zip(growing, losses, strict=True) if loss <= allowed]
        larger = [_grow(layout, island, steps) for island, loss in zip(growing, losses, strict=True) if loss > allowed]
        done += [(island, False) for island, has_grown in larger if not has_grown]
        growing = _merge([island for island, has_grown in larger if has_grown])
    return done + [(island, False) for island in growing]


def _ancestors_in_all_graphs(layout: Layout, members: Iterable[int]) -> set[int]:
    """All nodes that these are computed from, in the graphs around theirs, in bodies and in earlier rounds too."""
    makers = layout.makers()
    found: set[int] = set()
    values = [v for number in members for v in layout.nodes[number].inputs]
    seen: set[ir.Value] = set()
    while values:
        value = values.pop()
        if value is None or value in seen:
            continue
        seen.add(value)
        values += makers.get(value, [])
        number = layout.producer(value)
        if number is not None and number not in found:
            found.add(number)
            values += layout.nodes[number].inputs
    return found


def _grow(layout: Layout, island: Island, steps: int) -> tuple[Island, bool]:
    """The island with the nodes before it; whether there were any."""
    members, edge = set(island.members), set(island.members)
    for _ in range(steps):
        edge = {p for number in edge for p in _producers(layout, number)} - members
        if not edge:
            break
        members |= edge
    return replace(island, members=frozenset(members)), len(members) > len(island.members)


def _merge(islands: Sequence[Island]) -> list[Island]:
    """Islands that overlap become one."""
    merged: list[Island] = []
    for island in islands:
        others = [other for other in merged if other.members & island.members]
        for other in others:
            merged.remove(other)
            island = Island(island.members | other.members, island.targets | other.targets)
        merged.append(island)
    return merged


# Casts


def _join(layout: Layout, half: Half, plan: HalfPlan) -> None:
    """Keeps groups of nodes around which more casts would stand than they hold nodes that compute.

    A group is what is left of the graph in the format between nodes in float32. One that holds a product of matrices,
    or reads weights of any size, stays in the format.
    """
    for members in _groups(layout, plan):
        if any(layout.nodes[n].op_type in HEAVY or _reads_weights(layout.nodes[n]) for n in members):
            continue
        computing = sum(layout.nodes[n].op_type not in MOVES for n in members)
        into = {v for n in members for v in layout.nodes[n].inputs if v is not None and _enters(layout, v, members)}
        out = {v for n in members for v in layout.nodes[n].outputs if is_float(v) and _leaves(layout, v, members, plan)}
        is_used = any(layout.producer(v) in plan.kept for v in into) or any(
            layout.numbers.get(u.node) in plan.kept for v in out for u in v.uses()
        )
        only_rounds = half.keep_io and not computing
        if only_rounds or (is_used and len(into) + len(out) > computing):
            plan.keep(members, Reason(MOVED if only_rounds else JOINED))


def _reads_weights(node: ir.Node) -> bool:
    tensors = [constant_tensor(v) for v in node.inputs if v is not None and is_float(v)]
    return any(tensor is not None and tensor.size >= WEIGHTS for tensor in tensors)


def _enters(layout: Layout, value: ir.Value, members: set[int]) -> bool:
    return is_float(value) and not is_constant(value) and layout.producer(value) not in members


def _leaves(layout: Layout, value: ir.Value, members: set[int], plan: HalfPlan) -> bool:
    return value.is_graph_output() or any(layout.numbers.get(u.node) in plan.kept for u in value.uses())


def _groups(layout: Layout, plan: HalfPlan) -> list[set[int]]:
    """The connected groups of nodes that are not kept."""
    free = {
        n for n, node in enumerate(layout.nodes) if n not in plan.kept and _reads_float(node) and can_be_shadowed(node)
    }
    neighbours: dict[int, set[int]] = {n: set() for n in free}
    for number in free:
        for other in _producers(layout, number):
            if other in free:
                neighbours[number].add(other)
                neighbours[other].add(number)
    groups = []
    while free:
        waiting, group = [free.pop()], set()
        while waiting:
            number = waiting.pop()
            group.add(number)
            more = neighbours[number] & free
            free -= more
            waiting += more
        groups.append(group)
    return groups
