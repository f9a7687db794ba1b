"""Finds the values of a graph that random numbers decide."""

from __future__ import annotations

import onnx

_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
)


def random_values(graph: onnx.GraphProto) -> set[str]:
    """The values that random numbers decide; an engine's own generator draws these, whatever the seed."""
    known = {tensor.name for tensor in graph.initializer}
    found: set[str] = set()
    for node in graph.node:
        if _draws(node, known) or found.intersection(node.input):
            found.update(name for name in node.output if name)
    return found


def _draws(node: onnx.NodeProto, known: set[str]) -> bool:
    """Whether a node, or one in its bodies, draws random numbers, as a Dropout may that is told so by an input."""
    if node.op_type in _RANDOM or (node.op_type == "Dropout" and len(node.input) > 2 and node.input[2] not in known):
        return True
    bodies = (body for attribute in node.attribute for body in (attribute.g, *attribute.graphs))
    return any(_draws(inner, known) for body in bodies for inner in body.node)
