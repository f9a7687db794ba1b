"""Removes nodes that nobody reads, and what only the branches and bodies of such nodes read."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from torch_onnx_compat.graph.walk import all_graphs


class RemoveUnusedNodes(ir.passes.InPlacePass):
    """Removes nodes and initialisers that nobody reads.

    onnx_ir's pass leaves the nodes inside a removed If among the users of what they read; a value that a branch
    captured would stay with all that computes it.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Removes them, in place."""
        remove = RemoveUnusedNodesPass()
        is_modified = remove(model).modified
        while _drop_uses_of_the_removed(model):
            is_modified |= remove(model).modified
        return ir.passes.PassResult(model, modified=is_modified)


def _drop_uses_of_the_removed(model: ir.Model) -> bool:
    """Takes the nodes that are in no graph of the model out of the users of its values; returns whether any was."""
    graphs = list(all_graphs(model))
    present = {node for graph in graphs for node in graph}
    dropped = False
    for graph in graphs:
        values = [*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)]
        for value in values:
            for user, index in value.uses():
                if user not in present:
                    user.replace_input_with(index, None)
                    dropped = True
    return dropped
