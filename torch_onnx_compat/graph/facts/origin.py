"""Facts about the origin of a node's input.

* batch, of a Reshape or Transpose: few where its tensors have four axes at most. one where the first axis is a batch of
  size 1 that the node and every operator back to a convolution or pool keep as the first axis. other in all other
  cases.
* image: yes where an input comes from a convolution, a pool or the like, through operators that keep its axes; else no.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor

_ONE_BY_ONE = frozenset({"AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "GlobalAveragePool", "MaxPool"})
"""Operators that compute each image of a batch on its own."""
_FEW = 4
"""Axes that every engine takes."""

_MAKE_IMAGES = frozenset(
    {"AveragePool", "Conv", "ConvTranspose", "DepthToSpace", "GlobalAveragePool", "GlobalMaxPool", "GridSample"}
    | {"InstanceNormalization", "LpPool", "MaxPool", "Resize", "SpaceToDepth"}
)
"""Operators whose result is an image."""
_MAKE_ANYTHING = frozenset(
    {"Einsum", "Expand", "Flatten", "Gather", "Gemm", "MatMul", "Reshape", "Shape", "Squeeze", "Transpose", "Unsqueeze"}
)
"""Operators whose result does not have the axes of an image."""
_FAR = 40
"""Nodes that the search visits, at most."""


def batch(node: ir.Node) -> dict[str, Any]:
    """The fact of a Reshape or Transpose; see the module."""
    ranks = [len(v.shape) for v in (node.inputs[0], node.outputs[0]) if v is not None and v.shape is not None]
    sizes = constant_tensor(node.inputs[1]) if node.op_type == "Reshape" else None
    if max([*ranks, 0 if sizes is None else sizes.size]) <= _FEW:
        return {"batch": "few"}
    waiting, seen = [node], {node}
    while waiting:
        found = waiting.pop()
        if found.op_type in _ONE_BY_ONE:
            return {"batch": "one"}
        if not _keeps_batch(found):
            return {"batch": "other"}
        for value in found.inputs:
            source = value.producer() if value is not None else None
            if source is not None and source.op_type != "Constant" and source not in seen:
                seen.add(source)
                waiting.append(source)
    return {"batch": "other"}


def _keeps_batch(node: ir.Node) -> bool:
    shape = node.outputs[0].shape
    if shape is None or not len(shape) or shape[0] != 1:
        return False
    if node.op_type == "Transpose":
        return "perm" in node.attributes and node.attributes["perm"].as_ints()[0] == 0
    if node.op_type == "Reshape":
        sizes = constant_tensor(node.inputs[1])
        return sizes is not None and sizes.size > 1 and sizes.numpy()[0] == 1
    return True


def reads_image(node: ir.Node) -> str:
    """Whether a node reads an image, as "yes" or "no"; see the module."""
    waiting, seen = list(node.inputs), 0
    while waiting and seen < _FAR:
        value = waiting.pop(0)
        source = value.producer() if value is not None else None
        if source is None or source.op_type in _MAKE_ANYTHING:
            continue
        if source.op_type in _MAKE_IMAGES:
            return "yes"
        waiting += source.inputs
        seen += 1
    return "no"
