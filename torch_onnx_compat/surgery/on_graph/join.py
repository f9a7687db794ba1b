"""Puts a graph before an input of another one, or behind its outputs."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from torch_onnx_compat.graph.builder import Scope
from torch_onnx_compat.graph.names import claim_name, rename


def put_before(model: ir.Model, stage: ir.Model, name: str) -> None:
    """Puts a stage of one input and one output before an input, in place; the new input has the old one's name.

    Args:
        model: The graph.
        stage: The stage, of the same opset; of no further use.
        name: The input.
    """
    _take_over(model, stage)
    (new,), (result,) = list(stage.graph.inputs), list(stage.graph.outputs)
    old = next(value for value in model.graph.inputs if value.name == name)
    _move(stage, model)
    ir.convenience.replace_all_uses_with(old, result)
    model.graph.inputs[list(model.graph.inputs).index(old)] = new
    old.name = f"{name}_prepared"
    rename(model, new, name)
    model.graph.sort()


def put_behind(model: ir.Model, stage: ir.Model, feeds: Mapping[str, str]) -> None:
    """Puts a stage behind some outputs, in place; its outputs become the graph's, under their names.

    Args:
        model: The graph.
        stage: The stage, of the same opset; of no further use.
        feeds: For each input of the stage, the output that it reads.
    """
    names = [str(value.name) for value in stage.graph.outputs]
    sources = [feeds[str(value.name)] for value in stage.graph.inputs]
    _take_over(model, stage)
    inputs, results = list(stage.graph.inputs), list(stage.graph.outputs)
    outputs = {str(value.name): value for value in model.graph.outputs}
    _move(stage, model)
    for value, source in zip(inputs, sources, strict=True):
        ir.convenience.replace_all_uses_with(value, outputs[source])
    model.graph.outputs[:] = results
    taken = {str(value.name) for value in model.graph.inputs}
    for value, name in zip(results, names, strict=True):
        claim_name(model, value, name if name not in taken else f"{name}_output")


_PREFIX = "stage_"


def _take_over(model: ir.Model, stage: ir.Model) -> None:
    """Gives everything in a stage names that the graph does not have."""
    InlinePass()(stage)
    scope = Scope(model)
    for graph in stage.graphs():
        for value in (*graph.inputs, *graph.initializers.values()):
            _rename(graph, value, scope.unique_name(f"{_PREFIX}{value.name}"))
        for node in graph:
            node.name = scope.unique_name(f"{_PREFIX}{node.name or node.op_type}")
            for value in node.outputs:
                if value.name:
                    value.name = scope.unique_name(f"{_PREFIX}{value.name}")


def _rename(graph: ir.Graph, value: ir.Value, name: str) -> None:
    old = str(value.name)
    is_initializer = graph.initializers.get(old) is value
    if is_initializer:
        del graph.initializers[old]
    value.name = name
    if is_initializer:
        graph.initializers[name] = value


def _move(stage: ir.Model, model: ir.Model) -> None:
    nodes, weights = list(stage.graph), list(stage.graph.initializers.values())
    stage.graph.outputs.clear()
    stage.graph.inputs.clear()
    stage.graph.remove(nodes)
    stage.graph.initializers.clear()
    for value in weights:
        model.graph.register_initializer(value)
    model.graph.extend(nodes)
    for domain, version in stage.opset_imports.items():
        model.opset_imports.setdefault(domain, version)
