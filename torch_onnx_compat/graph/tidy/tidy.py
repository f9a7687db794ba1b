"""Folds and cleans an exported graph as stock dynamo's optimiser does, without the rule that takes quadratic time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnxscript import rewriter
from onnxscript.optimizer._constant_folding import FoldConstantsPass
from onnxscript.rewriter.rules.common import _no_op

from torch_onnx_compat.caller import put_back
from torch_onnx_compat.graph.slim.slim import slim
from torch_onnx_compat.graph.slim.weights import is_second_form
from torch_onnx_compat.graph.tidy.fused_weights import restore_types
from torch_onnx_compat.graph.tidy.products import turn_products
from torch_onnx_compat.graph.tidy.sequences import slice_split_sequences, unroll_maps
from torch_onnx_compat.graph.unused import RemoveUnusedNodes
from torch_onnx_compat.graph.walk import all_graphs, all_nodes

_FOLD_INPUT_LIMIT = 8192
"""Largest constant, in elements, that is folded with others; folding larger ones would duplicate weights."""
_FOLD_OUTPUT_LIMIT = 512 * 512
"""Largest result of folding, in elements."""


def tidy(model: ir.Model, *, fold: bool, whole: bool = False, is_fixed: bool = True) -> None:
    """Folds and cleans a model in place; its results stay the same.

    Args:
        model: The model.
        fold: Whether to fold constants and apply onnxscript's rewrite rules, as torch's dynamo exporter does; torch's
            TorchScript exporter has folded its constants already.
        whole: Whether to fold large constants too, for engines that do not run nodes which depend on constants alone.
        is_fixed: Whether the weights are the ones that the model will run with; they are not if they are inputs.
    """
    passes.NameFixPass()(model)  # torch gives one name to several values where it exports complex numbers
    with put_back() as stack:
        for name in ("onnx_ir", "onnxscript.optimizer"):
            log = logging.getLogger(name)
            stack.callback(log.setLevel, log.level)
            log.setLevel(logging.ERROR)
        if fold:
            passes.InlinePass()(model)
            slice_split_sequences(model)
            unroll_maps(model)
        if is_fixed:
            slim(model, ties=not whole)
            for lift in _lift_passes():
                lift(model)
        if fold:
            for step in _fold_passes(whole):
                step(model)
            restore_types(model)
        for step in _clean_passes():
            step(model)
        turn_products(model)
        _separate_outputs(model)
        passes.NameFixPass()(model)


def fold_constants(model: ir.Model) -> None:
    """Computes the nodes that depend on constants alone, with large results too, in place."""
    steps: list[Callable[[ir.Model], Any]] = [
        _constant_folding_pass(whole=True),
        RemoveUnusedNodes(),
        *_lift_passes(),
    ]
    for step in steps:
        step(model)


def _constant_folding_pass(whole: bool) -> FoldConstantsPass:
    return FoldConstantsPass(
        shape_inference=True,
        input_size_limit=_FOLD_OUTPUT_LIMIT if whole else _FOLD_INPUT_LIMIT,
        output_size_limit=_FOLD_OUTPUT_LIMIT,
        should_fold=partial(_should_fold, whole),
    )


def _should_fold(whole: bool, node: ir.Node) -> bool | None:
    """Whether to fold a node where onnxscript would decide otherwise."""
    if node.op_type == "ConstantOfShape" and whole:
        return True  # Onnxscript leaves it, as it makes a small file large; nodes behind it would stay, too.
    if not whole and is_second_form(node):
        return False
    return None


def _lift_passes() -> list[Callable[[ir.Model], Any]]:
    return [
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.LiftSubgraphInitializersToMainGraphPass(),
    ]


def _fold_passes(whole: bool) -> list[Callable[[ir.Model], Any]]:
    fold: list[Callable[[ir.Model], Any]] = [
        _constant_folding_pass(whole),
        # torch's own order rewrites nodes that nobody reads; removing these first saves most of the time.
        RemoveUnusedNodes(),
        rewriter.RewritePass(_rules()),
        _restore_constants,
        RemoveUnusedNodes(),
    ]
    return [
        RemoveUnusedNodes(),
        *fold,  # twice, as onnxscript's optimiser does by default
        *fold,
        *_lift_passes(),
    ]


def _restore_constants(model: ir.Model) -> None:
    """Registers constants again that a later constant of the same name pushed out of the table of initializers.

    Onnxscript's Clip rule names the bounds after the clipped value, which may be clipped more than once.
    """
    initializers = model.graph.initializers
    for node in all_nodes(model.graph):
        for value in node.inputs:
            is_lost = value is not None and value.const_value is not None and value.producer() is None
            if value is None or not is_lost or value.is_initializer() or value.is_graph_input():
                continue
            name, number = value.name, 1
            while f"{name}_{number}" in initializers:
                number += 1
            value.name = f"{name}_{number}"
            initializers[value.name] = value


def _separate_outputs(model: ir.Model) -> None:
    """Gives each output of a body a value of its own, made in the body.

    Of a value that a body gives twice, onnxruntime makes zeros; one from outside it refuses. onnx_ir's OutputFixPass
    knows the former only, and renames inputs of the model that are outputs.
    """
    for graph in all_graphs(model):
        made: set[ir.Value] = {*graph.inputs, *(value for node in graph for value in node.outputs)}
        for index, value in enumerate(graph.outputs) if graph is not model.graph else ():
            if value not in made:
                node = ir.node("Identity", [value])
                node.outputs[0].type, node.outputs[0].shape = value.type, value.shape
                graph.append(node)
                graph.outputs[index] = node.outputs[0]
            made.discard(value)


def _clean_passes() -> list[ir.passes.InPlacePass]:
    return [
        passes.IdentityEliminationPass(),
        passes.DeduplicateInitializersPass(),
        passes.CommonSubexpressionEliminationPass(),
        RemoveUnusedNodes(),
        passes.RemoveUnusedFunctionsPass(),
        passes.RemoveUnusedOpsetsPass(),
    ]


def _rules() -> list[Any]:
    """Onnxscript's default rewrite rules, but for three kinds.

    SlicesSplit's matcher searches the whole graph at every node. ScatterAllStatic's check raises a TypeError where a
    size is dynamic; `slim` does the same and more. The rules that leave out x + 0 and x * 1 take numbers
    below 1e-8 for 0, as those that keep a divisor from being 0, and 1.00001 for 1: exact ones stand for them.
    """
    inexact = {id(rule) for rule in _no_op.rules}
    left_out = ("SlicesSplit", "ScatterAllStatic")
    default = [r for r in rewriter._DEFAULT_REWRITE_RULES if getattr(r, "name", "") not in left_out]
    return [*_exact_no_ops(), *(rule for rule in default if id(rule) not in inexact)]


def _exact_no_ops() -> list[Any]:
    """Rules that leave out x + 0, 0 + x, x - 0, x * 1, 1 * x and x / 1, for a scalar that is exactly that."""

    def rule(pattern: Callable[..., Any], number: int) -> Any:
        def is_number(_: Any, constant: ir.Value, **__: Any) -> bool:
            value = constant.const_value
            return value is not None and value.shape.rank() == 0 and value.numpy().item() == number

        return rewriter.pattern.RewriteRule(pattern, lambda op, x, **_: op.Identity(x), is_number)

    return [
        rule(lambda op, x, constant: op.Add(x, constant), 0),
        rule(lambda op, x, constant: op.Add(constant, x), 0),
        rule(lambda op, x, constant: op.Sub(x, constant), 0),
        rule(lambda op, x, constant: op.Mul(x, constant), 1),
        rule(lambda op, x, constant: op.Mul(constant, x), 1),
        rule(lambda op, x, constant: op.Div(x, constant), 1),
        _no_op.dropout_zero_rule,
        _no_op.dropout_inference_rule,
    ]
