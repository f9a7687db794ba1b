"""Removes what nobody reads: nodes, what only the branches and bodies of such nodes read, and regions of a Resize."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from torch_onnx_compat.graph.facts.special import RECURRENT
from torch_onnx_compat.graph.walk import all_graphs


class RemoveUnusedNodes(ir.passes.InPlacePass):
    """Removes nodes and initialisers that nobody reads.

    onnx_ir's pass leaves the nodes inside a removed If among the users of what they read; a value that a branch
    captured would stay with all that computes it. And it takes the names of the outputs of an LSTM, GRU or RNN that
    nobody reads, without which some engines take one output for another, or crash.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Removes them, in place."""
        remove, named = RemoveUnusedNodesPass(), _recurrent_outputs(model)
        is_modified = remove(model).modified
        while _drop_uses_of_the_removed(model):
            is_modified |= remove(model).modified
        for node, names in named:
            _name_outputs(node, names)
        return ir.passes.PassResult(model, modified=is_modified)


def _recurrent_outputs(model: ir.Model) -> list[tuple[ir.Node, list[str | None]]]:
    nodes = (node for graph in all_graphs(model) for node in graph if not node.domain)
    return [(node, [value.name for value in node.outputs]) for node in nodes if node.op_type in RECURRENT]


def _name_outputs(node: ir.Node, names: Sequence[str | None]) -> None:
    node.resize_outputs(len(names))
    for value, name in zip(node.outputs, names, strict=True):
        value.name = name


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


def drop_unread_regions(model: ir.Model) -> None:
    """Takes the region of interest from each Resize whose coordinates are not those of a region, in place.

    onnx's version converter writes one for each Upsample, and some parsers know a Resize without a region alone.
    """
    if model.opset_imports.get("", 0) < 13:  # where it is no optional input
        return
    for graph in all_graphs(model):
        for node in graph:
            mode = node.attributes.get("coordinate_transformation_mode")
            is_read = mode is not None and (mode.is_ref() or mode.value == "tf_crop_and_resize")
            if node.op_type == "Resize" and not node.domain and not is_read and len(node.inputs) > 1:
                node.replace_input_with(1, None)
