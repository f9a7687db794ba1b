"""A rendering of a file: all in float32, every narrow result rounded to its format behind the node that computes it.

onnxruntime's CPU computes most narrow nodes in float32, and leaves out the roundings between them: its results are more
exact than those of an engine that has the formats, and an overflow may not show at all. The rendering has them all.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterator

import numpy as np
import onnx
import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.excerpt import copy_of
from torch_onnx_compat.graph.shapes import infer_functions, infer_model
from torch_onnx_compat.graph.walk import all_graphs

FLOAT = ir.DataType.FLOAT

NARROW = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16})


def render(model: ir.Model) -> ir.Model:
    """Makes the rendering of a graph with narrow values; its inputs and outputs are float32.

    Args:
        model: The graph of a file in float16, bfloat16, or with parts in one of them; unchanged.
    """
    return _widened(model, itertools.count())


def widen(model: ir.Model) -> ir.Model:
    """Makes the float32 form of a graph with narrow values, which rounds nowhere; its nodes keep their order.

    Args:
        model: As for render.
    """
    return _widened(model, None)


def _widened(model: ir.Model, count: Iterator[int] | None) -> ir.Model:
    copy = copy_of(model)
    infer_model(copy)  # a value of unknown type would not be rounded
    infer_functions(copy)
    for graph in list(all_graphs(copy)):
        for value in graph.inputs:
            _widen(value)
        for node in list(graph):
            _render_node(node, count)
    weights = [
        value for graph in all_graphs(copy) if isinstance(graph, ir.Graph) for value in graph.initializers.values()
    ]
    for value in weights:
        if value.dtype in NARROW and value.const_value is not None:
            value.const_value = ir.Tensor(np.asarray(value.const_value.numpy()).astype(np.float32), name=value.name)
            value.dtype = FLOAT
    return copy


def _render_node(node: ir.Node, count: Iterator[int] | None) -> None:
    if node.op_type == "Constant" and not node.domain:
        tensor = constant_tensor(node.outputs[0])
        if tensor is not None and tensor.dtype in NARROW:
            wide = ir.Tensor(np.asarray(tensor.numpy()).astype(np.float32))
            node.attributes.clear()
            node.attributes["value"] = ir.AttrTensor("value", wide)
            _widen(node.outputs[0])
        return
    for name in ("to", "dtype", "output_datatype"):
        attribute = node.attributes.get(name)
        if attribute is not None and any(attribute.value == narrow.value for narrow in NARROW):
            node.attributes[name] = ir.AttrInt64(name, FLOAT.value)
    given = node.attributes.get("value") if node.op_type == "ConstantOfShape" else None
    if given is not None and given.as_tensor().dtype in NARROW:
        node.attributes["value"] = ir.AttrTensor("value", ir.Tensor(given.as_tensor().numpy().astype(np.float32)))
    for value in list(node.outputs):
        if value.dtype in NARROW and count is not None:
            _round(node, value, count)
        else:
            _widen(value)


def _widen(value: ir.Value) -> None:
    if value.dtype in NARROW:
        value.dtype = FLOAT


def _round(node: ir.Node, value: ir.Value, count: Iterator[int]) -> None:
    """Rounds a result; whoever read it reads the rounded one, and an output of the graph keeps its name."""
    narrow, graph = value.dtype, node.graph
    assert narrow is not None
    assert graph is not None
    name = value.name
    value.dtype = FLOAT
    value.name = f"{name}_exact_{next(count)}"
    down = ir.node("Cast", [value], {"to": narrow.value})
    up = ir.node("Cast", down.outputs, {"to": FLOAT.value})
    down.outputs[0].name, down.outputs[0].type = f"{name}_narrow_{next(count)}", ir.TensorType(narrow)
    rounded = up.outputs[0]
    rounded.name, rounded.type, rounded.shape = name, ir.TensorType(FLOAT), value.shape
    value.replace_all_uses_with(rounded, replace_graph_outputs=True)
    down.replace_input_with(0, value)
    graph.insert_after(node, [down, up])


def holds_bfloat16(path: str | os.PathLike[str]) -> bool:
    """Whether some value of a file is in bfloat16."""
    return ir.DataType.BFLOAT16 in narrow_types(ir.from_proto(onnx.load(path, load_external_data=False)))


def narrow_types(model: ir.Model) -> Counter[ir.DataType]:
    """How many values of a graph are in each of the narrow types; weights and declared types count."""
    graphs = list(all_graphs(model))
    values = [value for graph in graphs for value in (*graph.inputs, *graph.initializers.values())]
    values += [value for graph in graphs for node in graph for value in node.outputs]
    return Counter(value.dtype for value in values if value.dtype in NARROW)
