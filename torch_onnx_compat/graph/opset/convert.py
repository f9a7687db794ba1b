"""Converts a model to another opset of the default ONNX domain: exactly that one, or an error that says why not.

Downward, the rules of `lowering` rewrite every node from each opset to the one below; operators without a rule are
expanded to the body that ONNX defines for them. Upward, there are rules for the few operators that changed their
meaning. In both directions the result is checked against the schemas of the wanted opset. A node that they reject is an
error, so that a case that no rule foresees does not pass in silence.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from torch_onnx_compat.catalogue.entry import MIN_OPSET
from torch_onnx_compat.errors import CompatError, UnsupportedError
from torch_onnx_compat.graph import schema, shapes
from torch_onnx_compat.graph.builder import Builder, Scope
from torch_onnx_compat.graph.obstacle import Obstacle, Refusal, error
from torch_onnx_compat.graph.opset import (  # noqa: F401 - the rules register themselves
    activation,
    attention,
    axes,
    einsum,
    normalization,
    other,
    pooling,
    raising,
    types,
)
from torch_onnx_compat.graph.opset.expansion import expand
from torch_onnx_compat.graph.opset.lowering import RAISING_RULES, RULES
from torch_onnx_compat.graph.provenance import place
from torch_onnx_compat.graph.replacement import replace
from torch_onnx_compat.graph.unused import RemoveUnusedNodes

LOWEST_RAISED = 18
"""The raising rules start at this opset, where the exporters do; from earlier opsets, far more operators have changed.
"""
HIGHEST = max(row[2] for row in onnx.helper.VERSION_TABLE)
"""The last opset that the installed onnx knows as released."""


def check_opset(opset: int, kind: type[CompatError] = UnsupportedError) -> None:
    """Refuses an opset that no file can be written in.

    Args:
        opset: The wanted opset.
        kind: The error that is raised.
    """
    if not MIN_OPSET <= opset <= HIGHEST:
        raise kind(
            f"opset_version={opset}: out of range, the opsets that can be written are {MIN_OPSET}..{HIGHEST} "
            f"(with the installed onnx {onnx.__version__})."
        )


def convert(model: ir.Model, opset: int) -> None:
    """Rewrites a model for another opset, in place; its weights are not read.

    The model's own functions are inlined. The IR version is lowered to the one that came with the opset, and never
    raised.

    Args:
        model: The model; its import of the default domain says which opset it is written for.
        opset: The wanted opset, 11 or later.

    Raises:
        UnsupportedError: The opset is out of range, or operators stand in the way; the message lists them all. The
            model is half converted then, and of no further use.
    """
    check_opset(opset)
    if "ai.onnx" in model.opset_imports:
        model.opset_imports[""] = model.opset_imports.pop("ai.onnx")
    source = model.opset_imports.get("", opset)
    if source == opset:
        return
    _inline(model)
    shapes.infer_model(model)
    refused: dict[ir.Node, Obstacle] = {}
    if opset < source:
        refused = _lower(model, source, opset)
        came_with: int = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)])
        model.ir_version = min(model.ir_version, came_with)
    else:
        _raise(model, source, opset)
    for node in _nodes(model):
        node.version = opset
    rejected = (schema.obstacle(node, source, opset) for node in _nodes(model) if node not in refused)
    obstacles = [*refused.values(), *(obstacle for obstacle in rejected if obstacle is not None)]
    if obstacles:
        raise error(obstacles, source, opset)
    RemoveUnusedNodes()(model)


def _nodes(model: ir.Model) -> list[ir.Node]:
    """The nodes of the default domain, in subgraphs too."""
    return [node for graph in model.graphs() for node in graph if node.domain == ""]


def _inline(model: ir.Model) -> None:
    if not model.functions:
        return
    try:
        InlinePass()(model)
    except (ValueError, ir.passes.PassError) as cause:
        raise UnsupportedError(f"a function of the model cannot be inlined: {cause}") from cause


def _lower(model: ir.Model, source: int, target: int) -> dict[ir.Node, Obstacle]:
    """Lowers all nodes opset by opset; returns the obstacles of the nodes that a rule refused."""
    refused: dict[ir.Node, Obstacle] = {}
    scope = Scope(model)
    for opset in range(source, target, -1):
        if expand(model, opset, target):
            scope.learn_names(model)
        for node in _nodes(model):
            due = schema.is_changed(node, opset) or opset in RULES.get(node.op_type, {})
            if due and node not in refused:
                obstacle = _lower_node(node, Builder(scope, node, opset - 1))
                if obstacle is not None:
                    refused[node] = obstacle
        model.opset_imports[""] = opset - 1
    return refused


def _lower_node(node: ir.Node, op: Builder) -> Obstacle | None:
    """Lowers a node to the builder's opset from the one above; returns the obstacle where that is impossible."""
    opset = op.opset + 1
    schema.drop_new_defaults(node, opset)
    rule = RULES.get(node.op_type, {}).get(opset)
    try:
        if rule is not None and replace(node, op, rule(op, node)):
            return None
    except Refusal as refusal:
        remedy = f"ask for opset_version >= {opset}" + (f", or {refusal.hint}" if refusal.hint else "")
        return Obstacle(node.op_type, place(node), refusal.reason, remedy)
    return schema.obstacle(node, opset, op.opset)


def _raise(model: ir.Model, source: int, target: int) -> None:
    """Raises all nodes opset by opset."""
    if source < LOWEST_RAISED:
        raise UnsupportedError(
            f"opset_version={target}: the model, written for opset {source}, cannot be raised, only one written for "
            f"{LOWEST_RAISED} or later; export it at opset {target}, or at {LOWEST_RAISED}."
        )
    scope = Scope(model)
    for opset in range(source + 1, target + 1):
        for node in _nodes(model):
            rule = RAISING_RULES.get(node.op_type, {}).get(opset)
            if rule is not None:
                op = Builder(scope, node, opset)
                replace(node, op, rule(op, node))
        model.opset_imports[""] = opset
