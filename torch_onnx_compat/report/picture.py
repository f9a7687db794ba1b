"""The part of a graph that an entry changed, before and after, as a drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from html import escape
from typing import Any

import onnx

from torch_onnx_compat.check.file_log import module_of

Part = dict[str, Any]
"""Nodes in topological order, each with its operator and whether it is of those that changed; edges between them; and
how many more nodes changed than are shown."""

_MOST_TOLD, _MOST_CHANGED, _MOST_NEAR = 24, 10, 3
_ROW, _BOX, _GAP, _LETTER = 46, 24, 14, 6.6


def parts_that_differ(
    before: onnx.ModelProto | None, after: onnx.ModelProto, place: str, modules: Collection[str]
) -> tuple[Part | None, Part] | None:
    """The nodes of one module that differ between two graphs, with their neighbours.

    Args:
        before: The graph without the entries, if there is one.
        after: The graph with them.
        place: Path of the module.
        modules: Paths of the model's modules.

    Returns:
        The part of each graph; None where so much of the module differs that no picture would tell it.
    """
    here = [_at(graph, place, modules) for graph in (before, after) if graph is not None]
    counts = [Counter(node.op_type for node in nodes) for nodes in here]
    differ = {op for count in counts for op in count if len({c[op] for c in counts}) > 1}
    chosen = [[n for n in nodes if not differ or len(counts) < 2 or n.op_type in differ] for nodes in here]
    if len(chosen[-1]) > _MOST_TOLD:
        return None
    graphs = [graph for graph in (before, after) if graph is not None]
    parts = [_part(graph.graph, nodes) for graph, nodes in zip(graphs, chosen, strict=True)]
    return (parts[0] if before is not None else None), parts[-1]


def _at(model: onnx.ModelProto, place: str, modules: Collection[str]) -> list[onnx.NodeProto]:
    return [n for n in model.graph.node if n.op_type != "Constant" and (module_of(n, modules) or "") == place]


def _part(graph: onnx.GraphProto, chosen: list[onnx.NodeProto]) -> Part:
    shown = chosen[:_MOST_CHANGED]
    makers = {name: node for node in graph.node if node.op_type != "Constant" for name in node.output}
    made = {name for node in shown for name in node.output}
    mine = {id(node) for node in shown}
    above = [makers[name] for node in shown for name in node.input if name in makers]
    below = [node for node in graph.node if made & set(node.input)]
    near = [*_others(above, mine)[:_MOST_NEAR], *_others(below, mine)[:_MOST_NEAR]]
    keep = mine | {id(node) for node in near}
    nodes = [node for node in graph.node if id(node) in keep]
    index = {name: i for i, node in enumerate(nodes) for name in node.output}
    edges = {(index[name], i) for i, node in enumerate(nodes) for name in node.input if name in index}
    return {
        "nodes": [{"operator": node.op_type, "changed": id(node) in mine} for node in nodes],
        "edges": sorted(edges),
        "more": len(chosen) - len(shown),
    }


def _others(nodes: Iterable[onnx.NodeProto], mine: set[int]) -> list[onnx.NodeProto]:
    return list({id(node): node for node in nodes if id(node) not in mine}.values())


def draw(part: Part, label: str) -> str:
    """Draws a part from the top down.

    Args:
        part: What to draw.
        label: What it is, for those who do not see it.
    """
    nodes, edges = part["nodes"], part["edges"]
    depth = [0] * len(nodes)
    for source, target in sorted(edges, key=lambda edge: edge[1]):
        depth[target] = max(depth[target], depth[source] + 1)
    rows: list[list[int]] = [[] for _ in range(max(depth, default=0) + 1)]
    for i, level in enumerate(depth):
        rows[level].append(i)
    widths = [_LETTER * len(node["operator"]) + 16 for node in nodes]
    whole = max((sum(widths[i] + _GAP for i in row) - _GAP for row in rows), default=0) + 4
    centre: dict[int, tuple[float, float]] = {}
    for level, row in enumerate(rows):
        x = (whole - sum(widths[i] + _GAP for i in row) + _GAP) / 2
        for i in row:
            centre[i] = (x + widths[i] / 2, 2 + _BOX / 2 + level * _ROW)
            x += widths[i] + _GAP
    lines = "".join(_edge(*centre[a], *centre[b]) for a, b in edges)
    boxes = "".join(_box(node, *centre[i], widths[i]) for i, node in enumerate(nodes))
    height = len(rows) * _ROW - (_ROW - _BOX) + 4
    told = f"{label}: {', '.join(node['operator'] for node in nodes if node['changed'])}"
    more = f"<figcaption>and {part['more']} more</figcaption>" if part["more"] else ""
    return (
        f'<figure class="graph"><svg viewBox="0 0 {whole:.0f} {height}" style="max-width:{whole:.0f}px" role="img" '
        f'aria-label="{escape(told)}">{lines}{boxes}</svg>{more}</figure>'
    )


def _edge(x: float, y: float, to_x: float, to_y: float) -> str:
    start, end = y + _BOX / 2, to_y - _BOX / 2
    return (
        f'<path class="edge" d="M{x:.1f} {start:.1f}L{to_x:.1f} {end - 4:.1f}"/>'
        f'<path class="tip" d="M{to_x - 3:.1f} {end - 6:.1f}h6l-3 6z"/>'
    )


def _box(node: dict[str, Any], x: float, y: float, width: float) -> str:
    kind = "changed" if node["changed"] else "near"
    return (
        f'<rect class="{kind}" x="{x - width / 2:.1f}" y="{y - _BOX / 2:.1f}" width="{width:.1f}" height="{_BOX}" '
        f'rx="5"/><text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(node["operator"])}</text>'
    )
