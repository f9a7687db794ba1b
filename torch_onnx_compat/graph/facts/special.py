"""Facts of single operators; others stand in `facts/image`, `facts/attention`, `facts/weights` and `facts/bodies`.

* after, of a BatchNormalization: the operator that makes its input, where that is a convolution, or an elementwise
  operator that a convolution leads to through elementwise ones (Mul after x * sigmoid(x)); else other;
* after, of a Slice: Reshape where only elementwise operators and operators that keep places stand between a Reshape and
  the Slice, so that the Slice could be moved up to the Reshape but not before it; else other;
* gates, of an activation: another where its result is multiplied by another value than its input, else no;
* constants, of a Concat: some where an input is a constant, else none;
* divisor, of a Div: norm where the first input is divided by its own ReduceL2, perhaps clipped; repeated norm where an
  Expand follows the norm; else other;
* index, of a GatherElements: smaller where it has fewer cells than the data along another axis, else equal;
* index, of a ScatterElements: larger where it has, or may have, more cells along the axis than the data, whose size
  there is known; else other;
* index, of a ScatterND: negative where it is a constant that counts some place from the end, else other;
* scale, of a LayerNormalization or RMSNormalization: normalized where it has the normalized axes, else broadcast;
* step, of a Slice: 1, more or negative;
* shapes, of an elementwise operator: equal; broadcast where one input has the result's shape; mutual where none has;
* sign, of a Softmax: negated where it reads the result of a Neg, else plain;
* slope, of a PRelu: one, channel (C, 1, ...) or other;
* rank.out, of a Reshape: the result's rank;
* copies, of a Reshape: regrouped where its 0 copies a size that another Reshape, which it alone reads, gives an axis;
  else given;
* parts, of a Split: even or uneven;
* axis, of a DFT: also where it is a constant input;
* axes, of a ReduceX, Squeeze or Unsqueeze: also where they are an input;
* forms, of a Mul: gelu where it halves x * (1 + erf(...)), which some converters take for one operator, else other;
* terms, of an Add or a Sum: twin products where both inputs are products of one value with constants, else other;
* exponent, of a Pow: the number where it is one constant number, else various or computed;
* keepdims.written, of a ReduceX, mode.written, of a Resize, upper.written, of a Trilu, and sampling_ratio.written, of a
  RoiAlign: yes where the attribute is written, no where its default is meant, for which some parsers take another one;
* omitted, of an LSTM, GRU or RNN: yes where an output has no name, no where all have one, as in torch's files;
* result, of a Shape, a Size or a Cast to whole numbers: output where the model yields these, or what is made of them
  one by one; else inner;
* sizes, of an EyeLike, a Resize, a TopK or an Einsum: fixed where those of its first input are known, else dynamic; of
  an LSTM, GRU or RNN the size of the batch;
* state, of an LSTM, GRU or RNN: absent where it has no initial one, zeros where that is constant zeros, else given;
* frame, of an LSTM, GRU or RNN: torch's where nothing is read but the first output, and that only by what joins the
  directions in torch's files, a Squeeze, or a Transpose and a Reshape; else other;
* types, of a Pow: equal where base and exponent have one element type, else mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.facts.attention import ATTENTION_FACTS
from torch_onnx_compat.graph.facts.bodies import BODY_FACTS
from torch_onnx_compat.graph.facts.image import IMAGE_FACTS
from torch_onnx_compat.graph.facts.origin import batch
from torch_onnx_compat.graph.facts.weights import WEIGHTED, weight_fact

_ELEMENTWISE = frozenset(
    {"Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min"}
    | {"Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor"}
)


_CELL_BY_CELL = frozenset(
    {"Abs", "Add", "Celu", "Clip", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu"}
    | {"Log", "Mish", "Mul", "Neg", "PRelu", "Pow", "Relu", "Selu", "Sigmoid", "Softplus", "Sub", "Tanh"}
)
"""Elementwise operators that exporters write activations with."""
_KEEP_PLACES = frozenset({"BatchNormalization", "Cast", "Concat", "Identity", "LogSoftmax", "Pad", "Slice", "Softmax"})
_KEEP_PLACES |= {"Transpose", "Where"}
"""Operators that leave the places along some axes as they are."""
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
RECURRENT = {"GRU": 2, "LSTM": 3, "RNN": 2}
"""Recurrent operators, and how many outputs each of them has."""
STATE = 5
"""The input of each of them that has the initial state, or its first part."""
_SIZED = frozenset({"Einsum", "EyeLike", "Resize", "TopK", *RECURRENT})
WRITTEN = {"Resize": "mode", "RoiAlign": "sampling_ratio", "Trilu": "upper"}
WRITTEN |= {f"Reduce{kind}": "keepdims" for kind in _REDUCTIONS}
"""Attributes for whose default some parsers take another value than ONNX's."""
SHAPES = {"Expand": (1,), "Reshape": (1,), "Resize": (3,), "Slice": (1, 2)}
"""The inputs of whole numbers that torch computes from the shapes of other tensors."""
_WHOLE = frozenset({ir.DataType.INT64, ir.DataType.INT32, None})
_FAR = 12
"""Nodes that a search goes back, at most."""


def special_facts(node: ir.Node, given: list[ir.Value]) -> dict[str, Any]:
    """The facts that depend on the operator; `given` are the node's inputs without omitted ones."""
    facts: dict[str, Any] = {}
    if node.op_type in _ELEMENTWISE and len(given) > 1:
        facts |= _shapes([value.shape for value in given])
    if node.op_type in WRITTEN:
        facts |= _written(node, WRITTEN[node.op_type])
    if node.op_type in _SIZED:
        facts |= _sizes(node)
    if node.op_type in WEIGHTED:
        facts |= weight_fact(node)
    special = _SPECIAL.get(node.op_type)
    return {**facts, **(special(node) if special else {})}


def _shapes(shapes: list[ir.Shape | None]) -> dict[str, str]:
    known: list[list[str]] = [[str(size) for size in shape] for shape in shapes if shape is not None]
    if len(known) != len(shapes):
        return {}
    rank = max(map(len, known))
    padded = [["1"] * (rank - len(shape)) + shape for shape in known]
    result = [next((size for size in sizes if size != "1"), "1") for sizes in zip(*padded, strict=True)]
    if all(shape == known[0] for shape in known):
        return {"shapes": "equal"}
    return {"shapes": "broadcast" if result in padded else "mutual"}


def _constants(node: ir.Node) -> dict[str, Any]:
    return {"constants": "some" if any(constant_tensor(value) is not None for value in node.inputs) else "none"}


def _terms(node: ir.Node) -> dict[str, Any]:
    factors = [_factor(value) for value in node.inputs]
    twins = len(factors) == 2 and factors[0] is not None and factors[0] is factors[1]
    return {"terms": "twin products" if twins else "other"}


def _forms(node: ir.Node) -> dict[str, Any]:
    return {"forms": "gelu" if gelu_parts(node) is not None else "other"}


def gelu_parts(node: ir.Node) -> tuple[ir.Value, ir.Value, ir.Value] | None:
    """x, 1 + erf(...) and the constant, of a Mul that multiplies their product in this order; else None."""
    half = next((value for value in node.inputs if value is not None and constant_tensor(value) is not None), None)
    product = next((_made_by(value, "Mul") for value in node.inputs if value is not half), None)
    if half is None or product is None:
        return None
    for value in product.inputs:
        shifted = _made_by(value, "Add")
        if shifted is not None and any(_made_by(term, "Erf") for term in shifted.inputs):
            x = next((other for other in product.inputs if other is not value), None)
            return (x, shifted.outputs[0], half) if x is not None else None
    return None


def _made_by(value: ir.Value | None, op_type: str) -> ir.Node | None:
    producer = value.producer() if value is not None else None
    return producer if producer is not None and producer.op_type == op_type else None


def _factor(value: ir.Value | None) -> ir.Value | None:
    """The value whose product with a constant matrix, perhaps scaled, shifted or reshaped, is `value`; else None."""
    for _ in range(_FAR):
        producer = value.producer() if value is not None and len(value.uses()) == 1 else None
        if producer is None or not producer.inputs:
            return None
        if any(constant_tensor(other) is None for other in producer.inputs[1:]):
            return None
        value = producer.inputs[0]
        if producer.op_type in ("Gemm", "MatMul"):
            before = _made_by(value, "BatchNormalization")  # an engine may fold it into the product
            return before.inputs[0] if before is not None else value
        if producer.op_type not in ("Add", "Div", "Mul", "Reshape", "Sub"):
            return None
    return None


def _dft_axis(node: ir.Node) -> dict[str, Any]:
    if len(node.inputs) < 3:
        return {}
    axis = constant_tensor(node.inputs[2])
    return {} if axis is None else {"axis": int(axis.numpy().item())}


def _axes(node: ir.Node) -> dict[str, Any]:
    given = node.inputs[1] if len(node.inputs) > 1 else None
    axes = constant_tensor(given)
    if given is None or axes is None:
        return {"axes": "computed"} if given is not None and given.shape != (0,) else {}
    wanted = axes.numpy().reshape(-1).tolist()
    if len(set(wanted)) == 1:
        return {"axes": wanted[0]}
    return {"axes": "absent" if not wanted else "rising" if wanted == sorted(set(wanted)) else "mixed"}


def _power(node: ir.Node) -> dict[str, Any]:
    types = [value.dtype for value in node.inputs if value is not None and value.dtype is not None]
    base = {"types": "equal" if types[0] == types[1] else "mixed"} if len(types) == 2 else {}
    return {**base, **_exponent(node)}


def _exponent(node: ir.Node) -> dict[str, Any]:
    tensor = constant_tensor(node.inputs[1])
    if tensor is None:
        return {"exponent": "computed"}
    values = set(tensor.numpy().reshape(-1).tolist())
    if len(values) != 1:
        return {"exponent": "various"}
    value = float(values.pop())
    return {"exponent": int(value) if value.is_integer() else round(value, 6)}


def _sign(node: ir.Node) -> dict[str, str]:
    return {"sign": "plain" if _made_by(node.inputs[0], "Neg") is None else "negated"}


def _divisor(node: ir.Node) -> dict[str, Any]:
    kinds, value = [], node.inputs[1]
    while value is not None and (producer := value.producer()) is not None:
        kinds.append(producer.op_type)
        value = producer.inputs[0] if producer.inputs else None
        if producer.op_type not in ("Clip", "Expand", "Max"):
            break
    if not kinds or kinds[-1] != "ReduceL2" or value is not node.inputs[0]:
        return {"divisor": "other"}
    return {"divisor": "repeated norm" if "Expand" in kinds else "norm"}


def _scale(node: ir.Node) -> dict[str, Any]:
    shapes = [value.shape for value in node.inputs[:2] if value is not None and value.shape is not None]
    if len(shapes) != 2:
        return {}
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else -1
    normalized = len(shapes[0]) - axis % len(shapes[0])
    return {"scale": "normalized" if len(shapes[1]) == normalized else "broadcast"}


def _index_from_end(node: ir.Node) -> dict[str, Any]:
    tensor = constant_tensor(node.inputs[1])
    return {"index": "negative" if tensor is not None and bool((tensor.numpy() < 0).any()) else "other"}


def _index(node: ir.Node) -> dict[str, Any]:
    shapes = [value.shape for value in node.inputs if value is not None and value.shape is not None]
    if len(shapes) != 2:
        return {}
    axis = (node.attributes["axis"].as_int() if "axis" in node.attributes else 0) % len(shapes[0])
    others = [(a, b) for place, (a, b) in enumerate(zip(*shapes, strict=True)) if place != axis]
    return {"index": "smaller" if any(str(a) != str(b) for a, b in others) else "equal"}


def _index_along(node: ir.Node) -> dict[str, Any]:
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    data, index = (_size_along(value, axis) for value in node.inputs[:2])
    is_larger = data is not None and (index is None or index > data)
    return {"index": "larger" if is_larger else "other"}


def _size_along(value: ir.Value | None, axis: int) -> int | None:
    """A value's size along an axis, where its shape tells it, or the sizes that it is filled or repeated to."""
    size = value.shape[axis] if value is not None and value.shape is not None else None
    filled, repeated = _made_by(value, "ConstantOfShape"), _made_by(value, "Expand")
    listed = _made_by(filled.inputs[0] if filled else repeated.inputs[1] if repeated else None, "Concat")
    if not isinstance(size, int) and listed is not None and all(_is_single(part) for part in listed.inputs):
        tensor = constant_tensor(listed.inputs[axis])
        size = int(tensor.numpy().item()) if tensor is not None else None
    return size if isinstance(size, int) else None


def _is_single(value: ir.Value | None) -> bool:
    return value is not None and value.shape is not None and list(value.shape) == [1]


def _slice(node: ir.Node) -> dict[str, Any]:
    return {"after": "Reshape" if _selects_from_view(node) else "other", **_step(node)}


def _copies(node: ir.Node) -> dict[str, Any]:
    before, sizes = _made_by(node.inputs[0], "Reshape"), constant_tensor(node.inputs[1])
    if before is None or sizes is None or len(before.outputs[0].uses()) > 1 or _takes_zeros(node):
        return {"copies": "given"}
    given = constant_tensor(before.inputs[1])
    kept = () if given is None or _takes_zeros(before) else np.flatnonzero(given.numpy() == 0)
    return {"copies": "given" if set(np.flatnonzero(sizes.numpy() == 0)) <= set(kept) else "regrouped"}


def _takes_zeros(node: ir.Node) -> bool:
    """Whether a 0 in the shape of a Reshape is a size of 0."""
    return "allowzero" in node.attributes and bool(node.attributes["allowzero"].as_int())


def _selects_from_view(node: ir.Node) -> bool:
    waiting, seen = [node.inputs[0]], 0
    while waiting and seen < _FAR:
        value = waiting.pop()
        source = value.producer() if value is not None else None
        if source is None:
            continue
        if source.op_type == "Reshape":
            return True
        if source.op_type in _CELL_BY_CELL or source.op_type in _KEEP_PLACES:
            waiting += source.inputs
        seen += 1
    return False


def _step(node: ir.Node) -> dict[str, Any]:
    if len(node.inputs) < 5 or node.inputs[4] is None:
        return {"step": "1"}
    steps = constant_tensor(node.inputs[4])
    if steps is None:
        return {}
    least, most = steps.numpy().min(), steps.numpy().max()
    return {"step": "negative" if least < 0 else "1" if most == 1 else "more"}


def _after(node: ir.Node) -> dict[str, Any]:
    first = node.inputs[0].producer() if node.inputs[0] is not None else None
    waiting, seen = [first], 0
    while waiting and seen < _FAR:
        source = waiting.pop()
        seen += 1
        if source is None:
            continue
        if source.op_type == "Conv" and first is not None:
            return {"after": first.op_type}
        if source.op_type in _CELL_BY_CELL:
            waiting += [value.producer() for value in source.inputs if value is not None]
    return {"after": "other"}


def _slope(node: ir.Node) -> dict[str, Any]:
    x, slope = node.inputs[:2]
    if x is None or slope is None or slope.shape is None or x.shape is None:
        return {}
    sizes = [int(s) if isinstance(s, int) else 0 for s in slope.shape]
    if all(size == 1 for size in sizes):
        return {"slope": "one"}
    channel = [i for i, size in enumerate(sizes) if size != 1] == [len(sizes) - len(x.shape) + 1]
    return {"slope": "channel" if channel and len(x.shape) > 1 else "other"}


def _gates(node: ir.Node) -> dict[str, Any]:
    products = [use.node for use in node.outputs[0].uses() if use.node.op_type == "Mul"]
    others = [value for product in products for value in product.inputs if value is not node.outputs[0]]
    return {"gates": "another" if any(value is not node.inputs[0] for value in others) else "no"}


def _rank_out(node: ir.Node) -> dict[str, Any]:
    shape = node.outputs[0].shape
    if shape is not None:
        return {"rank.out": len(shape)}
    sizes = node.inputs[1].shape if node.inputs[1] is not None else None
    return {"rank.out": sizes[0]} if sizes is not None and isinstance(sizes[0], int) else {}


def _parts(node: ir.Node) -> dict[str, Any]:
    lengths = [len(o.shape) for o in node.outputs if o.shape is not None]
    if len(lengths) != len(node.outputs):
        return {}
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    sizes = {str(o.shape[axis]) for o in node.outputs if o.shape is not None}
    return {"parts": "even" if len(sizes) == 1 else "uneven"}


def _written(node: ir.Node, name: str) -> dict[str, Any]:
    return {f"{name}.written": "yes" if name in node.attributes else "no"}


def _omitted(node: ir.Node) -> dict[str, Any]:
    named = sum(bool(value.name) for value in node.outputs)
    return {"omitted": "no" if named == RECURRENT[node.op_type] else "yes"}


def _result(node: ir.Node) -> dict[str, Any]:
    waiting, seen = list(node.outputs), set(node.outputs)
    if waiting[0].dtype not in _WHOLE:
        return {}
    while waiting:
        value = waiting.pop()
        if value.is_graph_output():
            return {"result": "output"}
        for reader, index in value.uses():
            if index not in SHAPES.get(reader.op_type, ()):
                found = [one for one in reader.outputs if one.dtype in _WHOLE and one not in seen]
                waiting += found
                seen.update(found)
    return {"result": "inner"}


def _state(node: ir.Node) -> dict[str, Any]:
    given = [value for value in node.inputs[STATE : STATE + 2] if value is not None]
    constants = [constant_tensor(value) for value in given]
    is_zero = all(tensor is not None and not tensor.numpy().any() for tensor in constants)
    return {"state": "absent" if not given else "zeros" if is_zero else "given"}


def _frame(node: ir.Node) -> dict[str, Any]:
    first, *others = node.outputs
    is_alone = not any(value.uses() or value.is_graph_output() for value in others)
    return {"frame": "torch's" if is_alone and _joins_directions(first) else "other"}


def _joins_directions(result: ir.Value) -> bool:
    """Whether nothing reads the result but what joins its directions."""
    readers = [reader for reader, _ in result.uses()]
    if len(readers) != 1 or readers[0].op_type != "Transpose":
        return not result.is_graph_output() and all(reader.op_type == "Squeeze" for reader in readers)
    turned = list(readers[0].attributes["perm"].as_ints()) if "perm" in readers[0].attributes else []
    joined = [reader for reader, _ in readers[0].outputs[0].uses()]
    return turned == [0, 2, 1, 3] and [reader.op_type for reader in joined] == ["Reshape"]


def _sizes(node: ir.Node) -> dict[str, Any]:
    shape = node.inputs[0].shape if node.inputs and node.inputs[0] is not None else None
    if shape is None:
        return {}
    layout = node.attributes["layout"].as_int() if "layout" in node.attributes else 0
    sizes = [shape[1 - layout]] if node.op_type in RECURRENT else shape
    return {"sizes": "fixed" if all(isinstance(size, int) for size in sizes) else "dynamic"}


_SPECIAL: Mapping[str, Callable[[ir.Node], dict[str, Any]]] = {
    **ATTENTION_FACTS,
    **BODY_FACTS,
    **IMAGE_FACTS,
    **dict.fromkeys(("Clip", "Erf", "HardSigmoid", "Relu", "Sigmoid", "Softplus", "Tanh"), _gates),
    **dict.fromkeys((*(f"Reduce{kind}" for kind in _REDUCTIONS), "Squeeze", "Unsqueeze"), _axes),
    **dict.fromkeys(("Add", "Sum"), _terms),
    "BatchNormalization": _after,
    "Concat": _constants,
    "DFT": _dft_axis,
    "Div": _divisor,
    "GatherElements": _index,
    "Mul": _forms,
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _scale),
    "PRelu": _slope,
    "Pow": _power,
    **dict.fromkeys(("Cast", "Shape", "Size"), _result),
    **dict.fromkeys(RECURRENT, lambda node: {**_omitted(node), **_state(node), **_frame(node)}),
    "Reshape": lambda node: {**_rank_out(node), **batch(node), **_copies(node)},
    "ScatterElements": _index_along,
    "ScatterND": _index_from_end,
    "Slice": _slice,
    "Softmax": lambda node: {**ATTENTION_FACTS["Softmax"](node), **_sign(node)},
    "Split": _parts,
}
