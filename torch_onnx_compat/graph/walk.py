"""Walks through a graph's nodes, including those inside If, Loop, Scan and the like."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

_WITH_GRAPHS = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""ONNX's operators whose attributes are graphs; reading every other node's attributes would take most of the time."""


def all_graphs(model: ir.Model) -> Iterator[ir.Graph]:
    """The main graph, the functions' graphs, and those that nodes hold."""
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        yield graph
        for node in all_nodes(graph):
            yield from inner_graphs(node)


def inner_graphs(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs that a node holds, not those inside them."""
    for attribute in node.attributes.values() if node.op_type in _WITH_GRAPHS or node.domain else ():
        if attribute.type is ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type is ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def nodes_of(model: ir.Model) -> Iterator[ir.Node]:
    """The nodes of the main graph and of the functions, each before those of its subgraphs."""
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        yield from all_nodes(graph)


def all_nodes(graph: ir.Graph | ir.GraphView) -> Iterator[ir.Node]:
    """The nodes in order, each before those of its subgraphs; nodes may be removed during the walk."""
    for node in graph:
        yield node
        for inner in inner_graphs(node):
            yield from all_nodes(inner)
