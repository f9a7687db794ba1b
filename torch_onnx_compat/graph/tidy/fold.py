"""onnxscript's folding of constants and its rewrite rules, but for what is wrong or slow in them.

A module of its own, as the import of onnxscript takes a fifth of a second that an export through TorchScript can do
without.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import onnx_ir as ir
from onnxscript import rewriter
from onnxscript.optimizer._constant_folding import FoldConstantsPass
from onnxscript.rewriter.rules.common import _no_op

from torch_onnx_compat.graph.slim.weights import is_second_form
from torch_onnx_compat.graph.unused import RemoveUnusedNodes
from torch_onnx_compat.graph.walk import all_nodes

_FOLD_INPUT_LIMIT = 8192
"""Largest constant, in elements, that is folded with others; folding larger ones would duplicate weights."""
_FOLD_OUTPUT_LIMIT = 512 * 512
"""Largest result of folding, in elements."""


def fold_passes(whole: bool) -> list[Callable[[ir.Model], Any]]:
    """Folds constants and applies the rules, twice.

    Args:
        whole: Whether large constants are folded too.
    """
    fold: list[Callable[[ir.Model], Any]] = [
        constant_folding_pass(whole),
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
    ]


def constant_folding_pass(whole: bool) -> FoldConstantsPass:
    """Computes the nodes that depend on constants alone.

    Args:
        whole: Whether large constants are folded too.
    """
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
