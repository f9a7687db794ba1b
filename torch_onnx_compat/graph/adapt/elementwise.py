"""Alternatives of elementwise operators, reductions and normalizations.

Math:   the formulas of https://onnx.ai/onnx/operators/; softplus(x) = max(x, 0) + log(1 + exp(-|x|)) and logsumexp with
        the maximum subtracted first do not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.adapt.alternatives import alternative
from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.facts.special import gelu_parts
from torch_onnx_compat.graph.opset.lowering import Outputs, attribute, first_input, input_at

_SQUARES = 4
"""Largest whole exponent that is written as a product."""


@alternative("Softplus")
def softplus(op: Builder, node: ir.Node) -> ir.Value:
    """Writes max(x, 0) + log(1 + exp(-|x|))."""
    x = first_input(node)
    return op.Add(op.Relu(x), op.Log(op.Add(op.Exp(op.Neg(op.Abs(x))), 1)))


@alternative("Mul")
def gelu_of_half(op: Builder, node: ir.Node) -> Outputs:
    """Writes the end of a Gelu, (x * (1 + erf(...))) * 0.5, as x * ((1 + erf(...)) * 0.5), which no converter fuses."""
    parts = gelu_parts(node)
    return None if parts is None else op.Mul(parts[0], op.Mul(parts[1], parts[2]))


@alternative("Softmax")
def softmax_of_product(op: Builder, node: ir.Node) -> Outputs:
    """Writes the Neg before it as a product with -1, which no converter takes for the beginning of a softmin."""
    negated = first_input(node).producer()
    if negated is None or negated.op_type != "Neg":
        return None
    return op.clone(node, [op.Mul(first_input(negated), -1)])


@alternative("HardSigmoid")
def hard_sigmoid(op: Builder, node: ir.Node) -> ir.Value:
    """Writes clip(alpha * x + beta, 0, 1)."""
    line = op.Add(op.Mul(first_input(node), attribute(node, "alpha", 0.2)), attribute(node, "beta", 0.5))
    return op.Clip(line, 0.0, 1.0)


@alternative("HardSwish")
def hard_swish(op: Builder, node: ir.Node) -> ir.Value:
    """Writes x * clip(x + 3, 0, 6) / 6."""
    x = first_input(node)
    return op.Mul(op.Mul(x, op.Clip(op.Add(x, 3), 0.0, 6.0)), 1 / 6)


@alternative("Celu")
def celu(op: Builder, node: ir.Node) -> ir.Value:
    """Writes max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)), whose exponential never sees a positive number."""
    x, alpha = first_input(node), attribute(node, "alpha", 1.0)
    negative = op.Neg(op.Relu(op.Neg(x)))
    return op.Add(op.Relu(x), op.Mul(op.Sub(op.Exp(op.Div(negative, alpha)), 1), alpha))


@alternative("PRelu")
def prelu(op: Builder, node: ir.Node) -> ir.Value:
    """Writes relu(x) - slope * relu(-x)."""
    x, slope = node.inputs
    return op.Sub(op.Relu(x), op.Mul(op.Relu(op.Neg(x)), slope))


@alternative("Clip")
def clip(op: Builder, node: ir.Node) -> ir.Value:
    """Writes min(max(x, low), high)."""
    x, low, high = first_input(node), input_at(node, 1), input_at(node, 2)
    x = op.Max(x, low) if low is not None else x
    return op.Min(x, high) if high is not None else x


@alternative("Pow")
def pow_of_whole_number(op: Builder, node: ir.Node) -> Outputs:
    """Writes small constant exponents as products and roots."""
    x, exponent = first_input(node), node.inputs[1]
    numbers = op.numbers(exponent) if exponent is not None else None
    if numbers is None or numbers.size != 1 or numbers.ndim > op.rank(x):
        return None
    power = float(numbers.reshape(()))
    if power in (0.5, -0.5):
        return op.Sqrt(x) if power > 0 else op.Reciprocal(op.Sqrt(x))
    if power not in range(1, _SQUARES + 1):
        return None
    product = x
    for _ in range(int(power) - 1):
        product = op.Mul(product, x)
    return product


@alternative("Mod")
def mod(op: Builder, node: ir.Node) -> ir.Value:
    """Writes a - b * (a / b without its fraction); for integers with fmod=0 the result gets the sign of b."""
    a, b = node.inputs
    assert a is not None
    if op.dtype(a).is_floating_point():
        quotient = op.Div(a, b)
        whole = op.Mul(op.Sign(quotient), op.Floor(op.Abs(quotient)))
        return op.Sub(a, op.Mul(whole, b))
    rest = op.Sub(a, op.Mul(op.Div(a, b), b))  # Div of integers truncates
    if attribute(node, "fmod", 0):
        return rest
    return op.Where(op.Less(op.Mul(rest, b), 0), op.Add(rest, b), rest)


@alternative("Add", "Sum")
def sum_as_difference(op: Builder, node: ir.Node) -> Outputs:
    """Writes a - (-b), which is a + b to the bit, for engines that fuse a sum with its operands."""
    if len(node.inputs) != 2:
        return None
    a, b = node.inputs
    return op.Sub(a, op.Neg(b))


@alternative("Max", "Min", "Sum")
def variadic_by_binary(op: Builder, node: ir.Node) -> Outputs:
    """Combines the inputs two at a time."""
    first, *others = [value for value in node.inputs if value is not None]
    if len(others) < 2:
        return None
    for other in others:
        first = op.Add(first, other) if node.op_type == "Sum" else op.node(node.op_type, [first, other], {})[0]
    return first


@alternative("Cast")
def cast_to_bool(op: Builder, node: ir.Node) -> Outputs:
    """Writes x != 0."""
    x = first_input(node)
    if attribute(node, "to") != ir.DataType.BOOL or op.dtype(x) == ir.DataType.BOOL:
        return None
    return op.Not(op.Equal(x, 0))


@alternative("Gather", "GatherElements", "GatherND")
def gather_of_bool(op: Builder, node: ir.Node) -> Outputs:
    """Gathers booleans as ones and zeros in float32."""
    x = first_input(node)
    if op.dtype(x) != ir.DataType.BOOL:
        return None
    as_numbers = op.Cast(x, to=ir.DataType.FLOAT)
    return op.Cast(op.clone(node, [as_numbers, *node.inputs[1:]])[0], to=ir.DataType.BOOL)


@alternative("GatherElements")
def gather_of_cropped_data(op: Builder, node: ir.Node) -> Outputs:
    """Slices the data to the sizes of the index along the axes that are not gathered."""
    x, index = node.inputs
    assert x is not None
    assert index is not None
    if x.shape is None or index.shape is None:
        return None
    gathered = attribute(node, "axis", 0) % len(x.shape)
    pairs = enumerate(zip(x.shape, index.shape, strict=True))
    axes = [i for i, (a, b) in pairs if i != gathered and str(a) != str(b)]
    if not axes:
        return None
    known = [size for size in (index.shape[axis] for axis in axes) if isinstance(size, int)]
    ends = known if len(known) == len(axes) else op.Gather(op.Shape(index), axes, axis=0)
    cut = op.Slice(x, [0] * len(axes), ends, axes)
    cut.shape = ir.Shape([index.shape[i] if i in axes else size for i, size in enumerate(x.shape)])
    return op.clone(node, [cut, index])


def reduce_axes(op: Builder, how: str, x: ir.Value, axes: list[int], keepdims: int = 1) -> ir.Value:
    """Adds a reduction; its axes are an input or an attribute, depending on the opset."""
    if op.opset >= (13 if how == "ReduceSum" else 18):
        return op.node(how, [x, axes], {"keepdims": keepdims})[0]
    return op.node(how, [x], {"axes": axes, "keepdims": keepdims})[0]


_OF_SUMS: dict[str, Callable[[Builder, ir.Value, list[int], int], ir.Value]] = {
    "ReduceL1": lambda op, x, axes, keep: reduce_axes(op, "ReduceSum", op.Abs(x), axes, keep),
    "ReduceL2": lambda op, x, axes, keep: op.Sqrt(reduce_axes(op, "ReduceSum", op.Mul(x, x), axes, keep)),
    "ReduceSumSquare": lambda op, x, axes, keep: reduce_axes(op, "ReduceSum", op.Mul(x, x), axes, keep),
    "ReduceLogSum": lambda op, x, axes, keep: op.Log(reduce_axes(op, "ReduceSum", x, axes, keep)),
}


@alternative("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum")
def reduction_by_sum(op: Builder, node: ir.Node) -> Outputs:
    """Writes the reduction's formula with ReduceSum."""
    axes = _axes(op, node)
    return None if axes is None else _OF_SUMS[node.op_type](op, first_input(node), axes, attribute(node, "keepdims", 1))


@alternative("ReduceLogSumExp")
def log_sum_exp(op: Builder, node: ir.Node) -> Outputs:
    """Writes m + log(sum(exp(x - m))) with m the maximum."""
    x, axes, keep = first_input(node), _axes(op, node), attribute(node, "keepdims", 1)
    if axes is None:
        return None
    most = reduce_axes(op, "ReduceMax", x, axes)
    total = op.Log(reduce_axes(op, "ReduceSum", op.Exp(op.Sub(x, most)), axes))
    found = op.Add(total, most)
    return found if keep else squeeze_axes(op, found, axes)


@alternative("ReduceMean")
def mean_as_pool(op: Builder, node: ir.Node) -> Outputs:
    """Writes the mean over all axes after the channels as GlobalAveragePool."""
    x, axes = first_input(node), _axes(op, node)
    if axes is None or op.rank(x) < 3 or sorted(axes) != list(range(2, op.rank(x))):
        return None
    pooled = op.GlobalAveragePool(x)
    return pooled if attribute(node, "keepdims", 1) else squeeze_axes(op, pooled, axes)


@alternative("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")
def reduction_keeping_axes(op: Builder, node: ir.Node) -> Outputs:
    """Reduces with keepdims=1 and explicit axes; a Squeeze removes the axes that the node does not keep."""
    x, axes = first_input(node), _axes(op, node)
    if axes is None or not axes:
        return None
    if attribute(node, "keepdims", 1):
        return reduce_axes(op, node.op_type, x, axes)
    return squeeze_axes(op, reduce_axes(op, node.op_type, x, axes), axes)


@alternative("ReduceMean")
def mean_by_sum(op: Builder, node: ir.Node) -> Outputs:
    """Divides the sum by the number of elements."""
    x, axes = first_input(node), _axes(op, node)
    sizes = [op.size(x, axis) for axis in axes] if axes else [None]
    if axes is None or None in sizes:
        return None
    total = reduce_axes(op, "ReduceSum", x, axes, attribute(node, "keepdims", 1))
    return op.Mul(total, 1 / math.prod(size or 1 for size in sizes))


@alternative("ReduceSum")
def sum_of_mean(op: Builder, node: ir.Node) -> Outputs:
    """Multiplies the mean by the known number of elements; before opset 18 the axes of ReduceMean are an attribute."""
    x, axes = first_input(node), _axes(op, node)
    counts = [op.size(x, axis) for axis in axes or ()]
    if not counts or None in counts or not op.dtype(x).is_floating_point():
        return None
    mean = reduce_axes(op, "ReduceMean", x, axes or [], attribute(node, "keepdims", 1))
    return op.Mul(mean, float(math.prod(count or 0 for count in counts)))


def squeeze_axes(op: Builder, x: ir.Value, axes: list[int]) -> ir.Value:
    """Removes axes of size 1."""
    return op.Squeeze(x, axes) if op.opset >= 13 else op.Squeeze(x, axes=axes)


def unsqueeze_axes(op: Builder, x: ir.Value, axes: list[int]) -> ir.Value:
    """Adds axes of size 1."""
    return op.Unsqueeze(x, axes) if op.opset >= 13 else op.Unsqueeze(x, axes=axes)


def _axes(op: Builder, node: ir.Node) -> list[int] | None:
    """The reduced axes, counted from the first; None where they are not known."""
    x, given = first_input(node), input_at(node, 1)
    rank = op.rank(x)
    if given is not None:
        numbers = op.numbers(given)
        if numbers is None:
            return None
        axes = [int(axis) for axis in numbers.reshape(-1)]
    else:
        axes = list(attribute(node, "axes", ()) or ())
    if not axes and attribute(node, "noop_with_empty_axes", 0):
        return None
    return [axis % rank for axis in axes] if axes else list(range(rank))


@alternative("BatchNormalization")
def batch_normalization(op: Builder, node: ir.Node) -> ir.Value | None:
    """Writes x * a + b by channel, a = scale / sqrt(variance + epsilon), where the four parameters are constants."""
    x, *given = node.inputs
    constants = [None if value is None else ir.convenience.get_const_tensor(value) for value in given]
    tensors = [tensor.numpy().astype(np.float64) for tensor in constants if tensor is not None]
    if x is None or len(tensors) != 4 or len(node.outputs) > 1 or attribute(node, "training_mode", 0):
        return None
    scale, bias, mean, variance = tensors
    factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
    shape = (-1, *[1] * (op.rank(x) - 2))
    dtype = op.dtype(x)
    product = op.Mul(x, op.constant(factor.reshape(shape), dtype))
    return op.Add(product, op.constant((bias - mean * factor).reshape(shape), dtype))


@alternative("LayerNormalization")
def layer_normalization(op: Builder, node: ir.Node) -> Outputs:
    """Writes (x - mean) / sqrt(var + epsilon) * scale + bias."""
    x, scale, bias = first_input(node), node.inputs[1], input_at(node, 2)
    rank = op.rank(x)
    axes = list(range(attribute(node, "axis", -1) % rank, rank))
    centred = op.Sub(x, reduce_axes(op, "ReduceMean", x, axes))
    variance = reduce_axes(op, "ReduceMean", op.Mul(centred, centred), axes)
    y = op.Mul(op.Div(centred, op.Sqrt(op.Add(variance, attribute(node, "epsilon", 1e-5)))), scale)
    return op.Add(y, bias) if bias is not None else y
