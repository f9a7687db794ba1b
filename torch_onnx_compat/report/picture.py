"""The part of a graph that an entry changed, before and after, as a drawing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import SequenceMatcher
from html import escape
from typing import Any

import onnx

from torch_onnx_compat.check.file_log import module_of

Part = dict[str, Any]
"""Nodes in topological order, each with its operator and whether it is of those that changed; edges between them; and
how many more nodes changed than are shown, and how many the module has."""

_MOST_CHANGED, _MOST_NEAR = 10, 3
_ROW, _BOX, _GAP, _LETTER = 46, 24, 14, 6.6


def parts_that_differ(
    before: onnx.ModelProto | None, after: onnx.ModelProto, place: str, modules: Collection[str]
) -> tuple[Part | None, Part] | None:
    """Where the nodes of one module differ most between two graphs, with their neighbours.

    Args:
        before: The graph without the entries, if there is one.
        after: The graph with them.
        place: Path of the module.
        modules: Paths of the model's modules.

    Returns:
        The part of each graph; None where they have the same nodes there.
    """
    new = _at(after, place, modules)
    if before is None:
        return (None, {**_part(after.graph, new, ()), "there": len(new)}) if new else None
    old = _at(before, place, modules)
    matcher = SequenceMatcher(None, [n.op_type for n in old], [n.op_type for n in new], autojunk=False)
    hunks = [hunk[1:] for hunk in matcher.get_opcodes() if hunk[0] != "equal"]
    if not hunks:
        return None
    i, j, k, m = max(hunks, key=lambda hunk: hunk[1] - hunk[0] + hunk[3] - hunk[2])
    return (
        {**_part(before.graph, old[i:j], (*old[max(i - 1, 0) : i], *old[j : j + 1])), "there": len(old)},
        {**_part(after.graph, new[k:m], (*new[max(k - 1, 0) : k], *new[m : m + 1])), "there": len(new)},
    )


def _at(model: onnx.ModelProto, place: str, modules: Collection[str]) -> list[onnx.NodeProto]:
    """The nodes of a module's own forward; those of its children where it has none."""
    found = [(n, module_of(n, modules) or "") for n in model.graph.node if n.op_type != "Constant"]
    return [n for n, path in found if path == place] or [n for n, path in found if path.startswith(f"{place}.")]


def _part(graph: onnx.GraphProto, chosen: list[onnx.NodeProto], beside: Iterable[onnx.NodeProto]) -> Part:
    """Nodes with those around them in the graph; `beside` are shown where no node is left that has neighbours."""
    shown = chosen[:_MOST_CHANGED]
    makers = {name: node for node in graph.node if node.op_type != "Constant" for name in node.output}
    made = {name for node in shown for name in node.output}
    mine = {id(node) for node in shown}
    above = [makers[name] for node in shown for name in node.input if name in makers]
    below = [node for node in graph.node if made & set(node.input)]
    near = [*_others(above, mine)[:_MOST_NEAR], *_others(below, mine)[:_MOST_NEAR]] if shown else list(beside)
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
    if not nodes:
        return "<p>No nodes.</p>"
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
    gone = "" if any(node["changed"] for node in nodes) else "Nothing stands between these nodes."
    caption = f"and {part['more']} more" if part["more"] else gone
    more = f"<figcaption>{caption}</figcaption>" if caption else ""
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
