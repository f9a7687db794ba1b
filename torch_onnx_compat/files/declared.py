"""What a file says of the shapes of its outputs, held against what they are."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.files.proof import Proof


def correct_shapes(model: ir.Model, proof: Proof) -> list[str]:
    """Leaves open what a graph says of the shapes of its outputs, and the cases contradict; in place.

    onnxruntime only warns of such a size; other engines allocate by it.

    Args:
        model: The graph.
        proof: The cases, with the outputs that the graph should give.

    Returns:
        A note for each size that was wrong.
    """
    notes = []
    outputs = dict(zip(proof.names, zip(*(case.outputs for case in proof.cases), strict=True), strict=True))
    for value in model.graph.outputs:
        found = [np.shape(array) for array in outputs.get(str(value.name), ()) if isinstance(array, np.ndarray)]
        wrong = None if value.shape is None or value.is_graph_input() else _contradiction(value.shape, found)
        if wrong is None:
            continue
        notes.append(
            f"output {value.name!r} was declared as {value.shape}, and is of shape {wrong}; that is left open."
        )
        assert value.shape is not None
        value.shape = _agreed(value.shape, found)
    return notes


def _contradiction(declared: ir.Shape, found: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """A shape that is not as declared."""
    for shape in found:
        sizes = [axis if isinstance(axis, int) else size for axis, size in zip(declared, shape, strict=False)]
        if len(declared) != len(shape) or sizes != list(shape):
            return shape
    return None


def _agreed(declared: ir.Shape, found: list[tuple[int, ...]]) -> ir.Shape | None:
    """What is declared, without the sizes that are others."""
    if any(len(shape) != len(declared) for shape in found):
        return None
    is_wrong = [isinstance(axis, int) and any(s[i] != axis for s in found) for i, axis in enumerate(declared)]
    return ir.Shape([None if wrong else axis for axis, wrong in zip(declared, is_wrong, strict=True)])
