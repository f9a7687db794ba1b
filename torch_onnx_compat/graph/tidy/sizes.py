"""Replaces sizes that never vary by constants.

TorchScript writes nodes for every size of a tensor once one of its axes is dynamic.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.builder import Scope


def fix_sizes(model: ir.Model) -> None:
    """Replaces each Gather or Slice of a Shape that selects only fixed sizes, in place."""
    scope = Scope(model)
    for node in list(model.graph):
        sizes = _sizes(node)
        if sizes is None:
            continue
        old, new = node.outputs[0], scope.constant(sizes)
        for user, index in list(old.uses()):
            user.replace_input_with(index, new)
        if not old.is_graph_output():
            model.graph.remove(node, safe=True)


def _sizes(node: ir.Node) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None:
    if node.op_type not in ("Gather", "Slice") or node.domain or node.inputs[0] is None:
        return None
    shape = node.inputs[0].producer()
    whole = shape.inputs[0] if shape is not None and shape.op_type == "Shape" and not shape.attributes else None
    if whole is None or whole.shape is None:
        return None
    numbers = [None if v is None else ir.convenience.get_const_tensor(v) for v in node.inputs[1:]]
    if any(tensor is None for tensor in numbers):
        return None
    arrays = [tensor.numpy() for tensor in numbers if tensor is not None]
    places = np.arange(len(whole.shape))
    if node.op_type == "Gather":
        places = places[arrays[0]]
    elif len(arrays) in (2, 3) and all(a.size == 1 for a in arrays):
        places = places[int(arrays[0].item()) : int(arrays[1].item())]
    else:
        return None
    sizes = [whole.shape[int(place)] for place in places.reshape(-1)]
    if not all(isinstance(size, int) for size in sizes):
        return None
    return np.array(sizes, np.int64).reshape(places.shape)
