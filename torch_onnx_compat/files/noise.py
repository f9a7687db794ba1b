"""An original that rounds otherwise: the same file with a random change of a rounding behind every node that rounds.

It is to files what `check/perturb.py` is to models: how far the original's own values move says how far a right
conversion may be off, at every single value. `make_narrow` rounds to a narrower type instead, for engines that compute
in one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph import shapes
from torch_onnx_compat.graph.walk import all_graphs

Make = Callable[[ir.Value], tuple[list[ir.Node], ir.Value]]
"""Makes nodes that change a value: they, and the changed one."""

STEP = "torch_onnx_compat_step"
"""The input that says how large the changes are, in units of the last place."""

LOWEST_OPSET = 13
"""The lowest opset in which the nodes that are added here have their present form."""

TERMS = 4.0
"""Change of the terms of a sum, in changes of a result: partial sums are rounded one after the other."""

_EPS = {ir.DataType.FLOAT: 2.0**-23, ir.DataType.DOUBLE: 2.0**-52, ir.DataType.FLOAT16: 2.0**-10}
_SHORTER = {ir.DataType.FLOAT: ir.DataType.FLOAT16, ir.DataType.DOUBLE: ir.DataType.FLOAT}
"""A type that holds the values of few digits, such as whole numbers: these are exact, and stay as they are."""

_EXACT_NAMES = """
Abs ArgMax ArgMin Bernoulli Cast CastLike Ceil Clip Compress Concat ConcatFromSequence Constant ConstantOfShape
DepthToSpace Dropout Expand EyeLike Flatten Floor Gather GatherElements GatherND Identity If Loop Max MaxPool
MaxRoiPool MaxUnpool Min Neg NonMaxSuppression NonZero OneHot OptionalGetElement Pad RandomNormal RandomNormalLike
RandomUniform RandomUniformLike Relu Reshape ReverseSequence Round Scan Scatter ScatterElements ScatterND SequenceAt
SequenceMap Shape Sign Size Slice SpaceToDepth Split Squeeze Tile TopK Transpose Trilu Unique Unsqueeze Where
"""
_EXACT = frozenset(_EXACT_NAMES.split())
"""Operators that move, choose or compare values, or round them to whole numbers, and those that hold graphs."""

_SUMS_NAMES = """
AveragePool BatchNormalization Conv ConvTranspose CumSum DFT Einsum GRU Gemm GlobalAveragePool GridSample
GroupNormalization InstanceNormalization LRN LSTM LayerNormalization LogSoftmax LpNormalization MatMul
MeanVarianceNormalization RMSNormalization RNN ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd
ReduceSum ReduceSumSquare Resize RoiAlign Softmax
"""
_SUMS = frozenset(_SUMS_NAMES.split())
"""Operators that add up many terms: their rounding is relative to the terms, which may cancel."""


def make_noisy(model: ir.Model) -> None:
    """Puts the changes into a graph, in place; adds the input STEP, a float32 number.

    Args:
        model: A graph of opset LOWEST_OPSET or later, without functions of its own.
    """
    shapes.infer_model(model)
    step = ir.Value(name=STEP, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(()))
    graphs, count = list(all_graphs(model)), itertools.count()
    for graph in graphs:
        for node in list(graph):
            if not node.domain and node.op_type in _SUMS:
                _change_terms(node, step, count)
            if node.domain or node.op_type not in _EXACT:
                for value in list(node.outputs):
                    _change(graph, node, value, partial(_nodes, step=step, factor=1.0, count=count), count)
    model.graph.inputs.append(step)


def make_narrow(model: ir.Model, dtype: ir.DataType) -> None:
    """Rounds the inputs, the weights and every result to a narrower type, in place; all of them stay float32.

    Args:
        model: A graph without functions of its own.
        dtype: float16 or bfloat16.
    """
    shapes.infer_model(model)
    count = itertools.count()
    narrow = partial(_round, dtype=dtype, count=count)
    for value in model.graph.inputs:
        if value.dtype is ir.DataType.FLOAT and value.name not in model.graph.initializers:
            _round_input(model.graph, value, narrow)
    for graph in list(all_graphs(model)):
        for value in graph.initializers.values():
            _round_weight(value, dtype)
        for node in list(graph):
            if node.domain or node.op_type not in _EXACT - {"Cast", "Constant"}:
                for value in [value for value in node.outputs if value.dtype is ir.DataType.FLOAT]:
                    _change(graph, node, value, narrow, count)


def _round_input(graph: ir.Graph, value: ir.Value, narrow: Make) -> None:
    nodes, rounded = narrow(value)
    for user, index in list(value.uses()):
        if user not in nodes:
            user.replace_input_with(index, rounded)
    graph.insert_before(graph[0], nodes)


def _round_weight(value: ir.Value, dtype: ir.DataType) -> None:
    if value.const_value is not None and value.dtype is ir.DataType.FLOAT:
        array = value.const_value.numpy()
        value.const_value = ir.tensor(array.astype(dtype.numpy()).astype(array.dtype), name=value.name)


def _round(value: ir.Value, *, dtype: ir.DataType, count: Iterator[int]) -> tuple[list[ir.Node], ir.Value]:
    """The nodes that round a value, and the rounded one."""
    short = ir.node("Cast", [value], {"to": dtype.value})
    back = ir.node("Cast", [short.outputs[0]], {"to": ir.DataType.FLOAT.value})
    for node in (short, back):
        node.outputs[0].name = f"torch_onnx_compat_noise_{next(count)}"
    back.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
    return [short, back], back.outputs[0]


def _change_terms(node: ir.Node, step: ir.Value, count: Iterator[int]) -> None:
    value, graph = node.inputs[0], node.graph
    if value is None or value.dtype not in _EPS or graph is None:
        return
    nodes, changed = _nodes(value, step, TERMS, count)
    node.replace_input_with(0, changed)
    graph.insert_before(node, nodes)


def _change(graph: ir.Graph, node: ir.Node, value: ir.Value, make: Make, count: Iterator[int]) -> None:
    """Puts nodes behind a value; whoever read it reads what they give, which gets its name."""
    if value.dtype not in _EPS or not value.name:
        return
    name = value.name
    users, places = list(value.uses()), [i for i, output in enumerate(graph.outputs) if output is value]
    value.name = f"{name}_exact_{next(count)}"
    nodes, changed = make(value)
    changed.name, changed.shape = name, value.shape
    for user, index in users:
        user.replace_input_with(index, changed)
    for index in places:
        graph.outputs[index] = changed
    graph.insert_after(node, nodes)


def _nodes(value: ir.Value, step: ir.Value, factor: float, count: Iterator[int]) -> tuple[list[ir.Node], ir.Value]:
    """The nodes that change a value, and the changed one."""
    dtype = value.dtype
    assert dtype is not None
    nodes: list[ir.Node] = []

    def add(op_type: str, *inputs: ir.Value, **attributes: object) -> ir.Value:
        node = ir.node(op_type, inputs, attributes)  # type: ignore[arg-type]
        node.outputs[0].name = f"torch_onnx_compat_noise_{next(count)}"
        nodes.append(node)
        return node.outputs[0]

    def constant(number: float, kind: ir.DataType) -> ir.Value:
        return add("Constant", value=ir.tensor(np.array(number, kind.numpy())))

    wide = dtype if dtype is not ir.DataType.FLOAT16 else ir.DataType.FLOAT
    source = value if wide is dtype else add("Cast", value, to=wide.value)
    noise = add("RandomUniformLike", source, low=-1.0, high=1.0, dtype=wide.value)
    scale = step if wide is ir.DataType.FLOAT else add("Cast", step, to=wide.value)
    scale = add("Mul", scale, constant(_EPS[dtype] * factor, wide))
    changed = add("Add", source, add("Mul", add("Mul", source, noise), scale))
    if dtype in _SHORTER:
        short = add("Cast", add("Cast", value, to=_SHORTER[dtype].value), to=dtype.value)
        changed = add("Where", add("Equal", short, value), value, changed)
    else:
        changed = add("Cast", changed, to=dtype.value)
    changed.type = ir.TensorType(dtype)
    return nodes, changed
