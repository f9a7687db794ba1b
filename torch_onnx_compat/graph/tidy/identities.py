"""Removes Identity nodes, but for those without which a graph would give what ONNX does not let it give."""

from __future__ import annotations

import onnx_ir as ir
import onnx_ir.passes.common as passes


class RemoveIdentities(passes.IdentityEliminationPass):
    """onnx_ir's pass, which fails where a value would be an output of two graphs.

    A body may not give a value from outside it either: onnxruntime refuses such a file. Nor may a graph give one value
    twice, as both outputs would have one name.
    """

    def _try_eliminate_identity_node(self, node: ir.Node) -> bool:
        value = node.inputs[0] if node.inputs else None
        is_given = value is not None and (value.graph is not node.graph or value.is_graph_output())
        if is_given and any(v.is_graph_output() for v in node.outputs):
            return False
        return super()._try_eliminate_identity_node(node)
