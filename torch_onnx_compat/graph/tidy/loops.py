"""What a Loop carries may have another shape after each round, which torch's declared shapes leave out."""

from __future__ import annotations

import onnx_ir as ir

from torch_onnx_compat.graph.walk import all_graphs


def forget_carried_shapes(model: ir.Model) -> None:
    """Drops the declared sizes that a Loop's body does not declare of the value it carries on.

    torch declares the shape of the first round, a list of no rows for one; onnxruntime warns at each run of the file.

    Args:
        model: The model, changed in place.
    """
    for node in (node for graph in all_graphs(model) for node in graph):
        if node.op_type != "Loop" or node.domain not in ("", "ai.onnx"):
            continue
        body = node.attributes["body"].as_graph()
        for taken, carried in zip(body.inputs[2:], body.outputs[1:], strict=False):
            if taken.shape is not None:
                taken.shape = _agreed(taken.shape, carried.shape)


def _agreed(taken: ir.Shape, carried: ir.Shape | None) -> ir.Shape | None:
    if carried is None:
        return ir.Shape([None] * len(taken))
    if len(carried) != len(taken):
        return None
    return ir.Shape([one if one == other else None for one, other in zip(taken, carried, strict=True)])
