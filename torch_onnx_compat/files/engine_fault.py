"""Names the node at which an engine goes wrong on a file that it was to run."""

from __future__ import annotations

import time

import onnx_ir as ir

from torch_onnx_compat.check.localisation import Localisation
from torch_onnx_compat.check.on_target import tolerance_of
from torch_onnx_compat.engines import ENGINES, Engine
from torch_onnx_compat.files.layers import EngineValues
from torch_onnx_compat.files.on_engine import EngineFault, compare_in_engine
from torch_onnx_compat.files.proof import Proof
from torch_onnx_compat.publish.publish import draft, is_large

_PATIENCE = 15.0
"""Seconds that the engine may take for the file; the search runs it about as often as the logarithm of its nodes."""


def name_node(fault: EngineFault, model: ir.Model, proof: Proof) -> EngineFault:
    """An engine's fault, told with the first node at which it goes wrong.

    Args:
        fault: What was found of the whole file.
        model: The file's graph.
        proof: The cases.

    Returns:
        The fault with its `place`; the same one where no such node is found.
    """
    place = _only_node(model) or _search(model, proof, ENGINES[fault.engine])
    if place is None:
        return fault
    detail = f": {place.detail}" if place.detail else ""
    named = EngineFault(
        f"{fault}\nThe first node at which {fault.engine} goes wrong is {place.operator} {place.node!r}{detail}.",
        fault.table,
        fault.engine,
    )
    named.place = place
    return named


def _only_node(model: ir.Model) -> Localisation | None:
    """The only node that computes; where none does, the one that makes an output: some engines have no such files."""
    nodes = [node for node in model.graph if node.op_type != "Constant"]
    if len(nodes) == 1:
        name = next((str(value.name) for value in nodes[0].outputs if value.name), "")
        return Localisation(True, operator=nodes[0].op_type, node=nodes[0].name or name, tensor=name)
    made = [value for value in model.graph.outputs if not value.is_graph_input()]
    if nodes or not made:
        return None
    name = str(made[0].name)
    return Localisation(True, operator="Constant", node=name, tensor=name, detail="the output depends on no input")


def _search(model: ir.Model, proof: Proof, engine: Engine) -> Localisation | None:
    process = proof.runner.engine(engine)
    with draft(model, None, is_large(model)) as written:
        start = time.monotonic()
        for case, _, rows in compare_in_engine(written.path, proof, engine, process):
            if all(row.ok for row in rows):
                start = time.monotonic()
                continue
            if time.monotonic() - start > _PATIENCE:
                return None
            try:
                found = EngineValues(written.path, case.feeds, process, tolerance_of(engine)).first()
            except Exception:  # what onnxruntime, perhaps without the kernels, or the engine makes of a part
                return None
            if not found.found:
                return None
            return Localisation(True, operator=found.operator, node=found.node, tensor=found.value, detail=found.detail)
    return None
