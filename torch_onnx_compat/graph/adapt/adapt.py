"""Replaces nodes that a target does not run right by alternatives.

The alternatives are tried first, in the order in which they are registered; the first whose nodes the target runs is
used. The lowering rules are tried last: the nodes that they write for an older opset mostly hold for the present one
too.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

import torch_onnx_compat.graph.adapt.spelling  # noqa: F401 - before the others: the least that can be done to a node
from torch_onnx_compat.graph import schema, shapes
from torch_onnx_compat.graph.adapt import (  # noqa: F401 - the rules register themselves
    attention,
    branches,
    elementwise,
    functions,
    products,
    slices,
    spatial,
)
from torch_onnx_compat.graph.adapt.alternatives import ALTERNATIVES
from torch_onnx_compat.graph.adapt.byte_tensors import widen_bytes
from torch_onnx_compat.graph.adapt.high_rank import lower_ranks
from torch_onnx_compat.graph.builder import Builder, Scope
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.facts.node import node_facts
from torch_onnx_compat.graph.obstacle import Refusal
from torch_onnx_compat.graph.opset.lowering import RULES, Rule
from torch_onnx_compat.graph.replacement import replace
from torch_onnx_compat.graph.tidy.tidy import fold_constants
from torch_onnx_compat.graph.unused import RemoveUnusedNodes
from torch_onnx_compat.graph.walk import all_nodes
from torch_onnx_compat.targets.target import Target

_NOT_FOLDED = frozenset({"If", "Loop", "Scan", "SequenceMap", "RandomNormalLike", "RandomUniformLike", "Bernoulli"})
_NOT_FOLDED |= {"Multinomial", "Dropout"}
"""Operators whose result may differ from run to run, or that hold subgraphs."""
_MOST_STEPS = 4
"""Passes over the graph, at most: a node that a rule wrote may be replaced again in the next pass."""


def adapt_to_target(model: ir.Model, target: Target) -> dict[str, int]:
    """Rewrites, in place, the nodes that the target does not run right, or runs better in another form.

    A node stays where no alternative is known that the target runs. Nodes that depend only on constants and known sizes
    are folded where the target objects to one of them.

    Returns:
        How many nodes of each operator were rewritten.
    """
    opset = model.opset_imports[""]
    if not any(_is_unwanted(node, opset, target) for node in all_nodes(model.graph)):
        return {}
    shapes.infer_model(model)
    counts: dict[str, int] = {}
    if any(_is_bad(node, opset, target) for node in _constant_nodes(model)):
        fold_constants(model)
    for kind, rewrite in (("bytes", widen_bytes), ("many axes", lower_ranks)):
        counts[f"tensors of {kind}"] = rewrite(model, lambda node: _is_bad(node, opset, target))
    scope = Scope(model)
    for _ in range(_MOST_STEPS):
        changed = False
        for node in [n for n in all_nodes(model.graph) if _is_unwanted(n, opset, target)]:
            if _rewrite(node, scope, opset, target):
                counts[node.op_type] = counts.get(node.op_type, 0) + 1
                changed = True
        if not changed:
            break
    RemoveUnusedNodes()(model)  # such as the sizes of a Resize that became a product
    return {name: count for name, count in counts.items() if count}


def _constant_nodes(model: ir.Model) -> Iterator[ir.Node]:
    """The nodes whose results do not depend on the model's inputs; a Shape of known sizes is one of them."""
    known: set[ir.Value] = set()
    for node in model.graph:
        inputs = [value for value in node.inputs if value is not None]
        fixed = all(value in known or constant_tensor(value) is not None for value in inputs)
        fixed = fixed or (node.op_type == "Shape" and inputs[0].shape is not None and inputs[0].shape.is_static())
        if fixed and inputs and node.op_type not in _NOT_FOLDED and not node.domain:
            known.update(node.outputs)
            yield node


def _is_bad(node: ir.Node, opset: int, target: Target) -> bool:
    if node.domain:
        return False
    facts = node_facts(node, opset) if target.asks(node.op_type) else {}
    return target.judge(node.op_type, opset, facts) is not None


def _has_better_form(node: ir.Node, opset: int, target: Target) -> bool:
    asked = not node.domain and target.asks(node.op_type)
    return asked and target.has_better_form(node.op_type, opset, node_facts(node, opset))


def _is_unwanted(node: ir.Node, opset: int, target: Target) -> bool:
    return _is_bad(node, opset, target) or _has_better_form(node, opset, target)


def _rewrite(node: ir.Node, scope: Scope, opset: int, target: Target) -> bool:
    """Replaces the node; returns whether that succeeded.

    An alternative that the target runs is preferred. If there is none, a node that is wrong, not merely slow or rough,
    is replaced by one whose nodes have alternatives of their own, which the next pass tries.
    """
    ways = (True, False) if _is_bad(node, opset, target) else (True,)
    return any(_try(rule, node, scope, opset, target, strict) for strict in ways for rule in _rules(node, opset))


def _try(rule: Rule, node: ir.Node, scope: Scope, opset: int, target: Target, strict: bool) -> bool:
    op = Builder(scope, node, opset)
    before = dict(node.attributes)
    try:
        outputs = rule(op, node)
        if outputs is not None and all(_is_acceptable(new, node, opset, target, strict) for new in op.nodes):
            return replace(node, op, outputs)
    except Refusal:
        pass
    node.attributes.clear()
    node.attributes.update(before)
    return False


def _is_acceptable(new: ir.Node, replaced: ir.Node, opset: int, target: Target, strict: bool) -> bool:
    """Whether a new node may stay: the target runs it, or, if not `strict`, another alternative may replace it."""
    if schema.obstacle(new, opset, opset) is not None:
        return False
    return not _is_bad(new, opset, target) or (
        not strict and new.op_type != replaced.op_type and new.op_type in ALTERNATIVES
    )


def _rules(node: ir.Node, opset: int) -> Iterator[Rule]:
    yield from ALTERNATIVES.get(node.op_type, ())
    for below, rule in sorted(RULES.get(node.op_type, {}).items(), reverse=True):
        if below <= opset:
            yield rule
