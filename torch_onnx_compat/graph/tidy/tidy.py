"""Folds and cleans an exported graph as stock dynamo's optimiser does, without the rule that takes quadratic time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import onnx_ir.passes.common as passes

from torch_onnx_compat.caller.undo import put_back
from torch_onnx_compat.graph.slim.slim import slim
from torch_onnx_compat.graph.tidy.fused_weights import restore_types
from torch_onnx_compat.graph.tidy.identities import RemoveIdentities
from torch_onnx_compat.graph.tidy.loops import forget_carried_shapes
from torch_onnx_compat.graph.tidy.products import turn_products
from torch_onnx_compat.graph.tidy.sequences import slice_split_sequences, unroll_maps
from torch_onnx_compat.graph.unused import RemoveUnusedNodes
from torch_onnx_compat.graph.walk import all_graphs


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
        forget_carried_shapes(model)
        if fold:
            passes.InlinePass()(model)
            slice_split_sequences(model)
            unroll_maps(model)
        if is_fixed:
            slim(model, ties=not whole)
            for lift in _lift_passes():
                lift(model)
        if fold:
            from torch_onnx_compat.graph.tidy.fold import fold_passes  # imports onnxscript, which takes a while

            for step in [*fold_passes(whole), *_lift_passes()]:
                step(model)
            restore_types(model)
        for step in _clean_passes():
            step(model)
        turn_products(model)
        _separate_outputs(model)
        passes.NameFixPass()(model)


def fold_constants(model: ir.Model) -> None:
    """Computes the nodes that depend on constants alone, with large results too, in place."""
    from torch_onnx_compat.graph.tidy.fold import constant_folding_pass

    steps: list[Callable[[ir.Model], Any]] = [
        constant_folding_pass(whole=True),
        RemoveUnusedNodes(),
        *_lift_passes(),
    ]
    for step in steps:
        step(model)


def _lift_passes() -> list[Callable[[ir.Model], Any]]:
    return [
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.LiftSubgraphInitializersToMainGraphPass(),
    ]


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
        RemoveIdentities(),
        passes.DeduplicateInitializersPass(),
        passes.CommonSubexpressionEliminationPass(),
        RemoveUnusedNodes(),
        passes.RemoveUnusedFunctionsPass(),
        passes.RemoveUnusedOpsetsPass(),
    ]
