"""Takes a model to another opset of the default ONNX domain: exactly that one, or an error that says why not.

Downward, the rules of `lowering` take every node from each opset to the one below; operators without a rule are
written out by ONNX's own definition. Upward, onnxscript's converter is used. Either way the schemas of the wanted opset
have the last word: a node that they do not accept is an error, so what no rule foresaw is not emitted in silence.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass, RemoveUnusedNodesPass
from onnxscript import version_converter

from torch_onnx_compat.entry import MIN_OPSET
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.graph import (  # noqa: F401 - the rules register themselves
    rules_activation,
    rules_axes,
    rules_einsum,
    rules_normalization,
    rules_other,
    rules_types,
    schema,
    shapes,
)
from torch_onnx_compat.graph.builder import Builder, Scope
from torch_onnx_compat.graph.expansion import expand
from torch_onnx_compat.graph.lowering import RULES
from torch_onnx_compat.graph.obstacle import Obstacle, Refused, error, place
from torch_onnx_compat.graph.replacement import replace

_CONVERTER_MIN_OPSET = 18
"""Lowest opset that onnxscript's converter knows; it would leave the nodes of earlier ones as they are."""
_SCALE_PER_CHANNEL_OPSET = 21
"""First opset at which GroupNormalization has a scale per channel, not per group."""


def convert(model: ir.Model, opset: int) -> None:
    """Rewrites a model for another opset, in place; weights stay the lazy references they are.

    The model's own functions are inlined. The IR version is lowered to what the opset came with, never raised.

    Args:
        model: The model; its import of the default domain says which opset it is written for.
        opset: The wanted opset, 11 or later.

    Raises:
        UnsupportedError: The opset is out of range, or operators stand in the way; the message lists them all. The
            model is half converted then, and of no further use.
    """
    highest = onnx.defs.onnx_opset_version()
    if not MIN_OPSET <= opset <= highest:
        raise UnsupportedError(
            f"opset_version={opset}: out of range, the opsets that can be written are {MIN_OPSET}..{highest} "
            f"(with the installed onnx {onnx.__version__})."
        )
    if "ai.onnx" in model.opset_imports:
        model.opset_imports[""] = model.opset_imports.pop("ai.onnx")
    source = model.opset_imports.get("", opset)
    if source == opset:
        return
    _inline(model)
    shapes.infer_model(model)
    refused = _lower(model, source, opset) if opset < source else _upgrade(model, source, opset)
    for node in _nodes(model):
        node.version = opset
    rejected = (schema.obstacle(node, source, opset) for node in _nodes(model) if node not in refused)
    obstacles = [*refused.values(), *(obstacle for obstacle in rejected if obstacle is not None)]
    if obstacles:
        raise error(obstacles, source, opset)
    RemoveUnusedNodesPass()(model)
    if opset < source:
        came_with: int = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)])
        model.ir_version = min(model.ir_version, came_with)


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
    """Takes all nodes down opset by opset; returns those that a rule refused."""
    refused: dict[ir.Node, Obstacle] = {}
    scope = Scope(model)
    for opset in range(source, target, -1):
        if expand(model, opset, target):
            scope.learn_names(model)
        for node in _nodes(model):
            schema.drop_new_defaults(node, opset)
            rule = RULES.get(node.op_type, {}).get(opset)
            if rule is None or node in refused:
                continue
            op = Builder(scope, node, opset - 1)
            try:
                replace(node, op, rule(op, node))
            except Refused as refusal:
                remedy = f"ask for opset_version >= {opset}" + (f", or {refusal.hint}" if refusal.hint else "")
                refused[node] = Obstacle(node.op_type, place(node), refusal.reason, remedy)
        model.opset_imports[""] = opset - 1
    return refused


def _upgrade(model: ir.Model, source: int, target: int) -> dict[ir.Node, Obstacle]:
    """Takes all nodes up; returns those that onnxscript's converter skips with no more than a log line."""
    where = f"opset_version={target}: the model, written for opset {source}, cannot be raised"
    if source < _CONVERTER_MIN_OPSET:
        raise UnsupportedError(f"{where}, only one of opset {_CONVERTER_MIN_OPSET} or later can; export it there.")
    crossed = source < _SCALE_PER_CHANNEL_OPSET <= target
    skipped = {node: _unscaled(node) for node in _nodes(model) if crossed and _lacks_channels(node)}
    try:
        version_converter.convert_version(model, target_version=target, fallback=False)
    except (ValueError, RuntimeError) as cause:
        raise UnsupportedError(f"{where}: {cause}") from cause
    reached = model.opset_imports[""]
    if reached != target:
        raise UnsupportedError(f"{where}: the installed onnxscript stops at opset {reached}.")
    return skipped


def _lacks_channels(node: ir.Node) -> bool:
    """Whether it is a GroupNormalization without the sizes that turn a scale per group into one per channel."""
    if node.op_type != "GroupNormalization":
        return False
    known = [value.shape for value in node.inputs if value is not None and value.shape is not None]
    return len(known) < len(node.inputs) or not isinstance(known[0][1], int)


def _unscaled(node: ir.Node) -> Obstacle:
    reason = "its number of channels is unknown, so scales per group cannot become scales per channel"
    return Obstacle(node.op_type, place(node), reason, f"ask for opset_version < {_SCALE_PER_CHANNEL_OPSET}")
