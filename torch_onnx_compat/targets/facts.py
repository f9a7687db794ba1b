"""What a profile's conditions can ask of a node: its facts, by name.

Attributes have their own names, with ONNX's default where omitted; a list of equal numbers counts as that number, a
list of different ones as "mixed". Beside them stand:

* version: the opset that gave the operator its present definition;
* type, rank: of the first input;
* inputs, outputs: how many are given and used;
* input.K: constant, computed or absent, for the inputs after the first;
* rank.1: of the second input;
* reused: yes where the first input is computed and read by other nodes too, else no;
* gates: of an activation: another where its result is multiplied by another value than its input, else no;
* group: of a convolution: one, depthwise or some;
* step: of a Slice: 1, more, or negative;
* shapes: broadcast where the inputs of an elementwise operator differ in shape, else equal;
* scales: of a Resize: whole; exact where they are fractions, but the sizes come out whole; else rounded;
* slope: of a PRelu: one, by channel (C, 1, ...) or other;
* last_window: of a pool, inside, or with ceil_mode beyond the end or on the padding;
* pads_sign: negative where a Pad crops;
* parts: even or uneven, of a Split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from torch_onnx_compat.graph import schema

_ELEMENTWISE = frozenset(
    [
        *("Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min"),
        *("Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor"),
    ]
)
_TYPES = frozenset({"to", "dtype"})
_MANY = 4
_NEWEST = onnx.defs.onnx_opset_version()
_PER_AXIS = {"strides": 1, "dilations": 1, "pads": 0, "output_padding": 0}
"""What the specification says of attributes that hold a number for each axis, where they are absent."""
_INFERRED = frozenset({"kernel_shape", "output_shape"})
"""Attributes that, where they are absent, follow from the shapes of the inputs."""


def node_facts(node: ir.Node, opset: int) -> dict[str, Any]:
    """The facts of a node of the default domain; those that the graph does not tell are left out."""
    facts = _attributes(node, opset)
    definition = schema.find(node.op_type, opset)
    if definition is not None:
        facts["version"] = definition.since_version
    given = [value for value in node.inputs if value is not None]
    facts["inputs"] = min(len(given), _MANY)
    facts["outputs"] = sum(bool(v.uses()) or v.is_graph_output() for v in node.outputs) or 1
    for index in range(1, min(len(node.inputs), _MANY + 1)):
        facts[f"input.{index}"] = _kind(node.inputs[index])
    if definition is not None:
        for index in range(max(len(node.inputs), 1), min(len(definition.inputs), _MANY + 1)):
            facts[f"input.{index}"] = "absent"
    for index, value in enumerate(node.inputs[:2]):
        if value is not None and value.shape is not None:
            facts[f"rank.{index}" if index else "rank"] = len(value.shape)
    if given and given[0].dtype is not None:
        facts["type"] = given[0].dtype.name.lower()
    first = node.inputs[0] if node.inputs else None
    facts["reused"] = "yes" if first is not None and first.producer() and _is_reused(first) else "no"
    facts.update(_special(node, given))
    return facts


def _is_reused(value: ir.Value) -> bool:
    return len({id(use.node) for use in value.uses()}) > 1 or value.is_graph_output()


def _attributes(node: ir.Node, opset: int) -> dict[str, Any]:
    facts = dict(_defaults(node.op_type, opset))
    for name, attribute in node.attributes.items():
        if attribute.is_ref() or attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            continue
        value = _plain(name, attribute.value)
        if value is not None:
            facts[name] = value
    return facts


@cache
def _defaults(op_type: str, opset: int) -> Mapping[str, Any]:
    """What an attribute that a node does not have stands for; also one that only a newer version has."""
    found: dict[str, Any] = {}
    for definition in (schema.find(op_type, _NEWEST), schema.find(op_type, opset)):
        for name, attribute in definition.attributes.items() if definition else ():
            if attribute.default_value.name:
                found[name] = _plain(name, onnx.helper.get_attribute_value(attribute.default_value))
            elif name not in _INFERRED:
                found.setdefault(name, _PER_AXIS.get(name, "absent"))
    return {name: value for name, value in found.items() if value is not None}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if name in _TYPES and isinstance(value, int):
        return ir.DataType(value).name.lower()
    if isinstance(value, (int, str)):
        return int(value) if isinstance(value, int) else value
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, int) for v in value):
        return value[0] if len(set(value)) == 1 else "mixed"
    return None


def _kind(value: ir.Value | None) -> str:
    if value is None:
        return "absent"
    return "constant" if _numbers(value) is not None else "computed"


def _numbers(value: ir.Value | None) -> Any:
    if value is None or value.is_graph_input():
        return None
    return ir.convenience.get_const_tensor(value)


def _special(node: ir.Node, given: list[ir.Value]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if node.op_type in _ELEMENTWISE and len(given) > 1:
        shapes = [v.shape for v in given]
        if all(s is not None for s in shapes):
            facts["shapes"] = "equal" if len({str(s) for s in shapes}) == 1 else "broadcast"
    special = _SPECIAL.get(node.op_type)
    return {**facts, **(special(node) if special else {})}


def _pads(node: ir.Node) -> dict[str, Any]:
    pads = _numbers(node.inputs[1]) if len(node.inputs) > 1 else None
    return {} if pads is None else {"pads_sign": "negative" if (pads.numpy() < 0).any() else "positive"}


def _step(node: ir.Node) -> dict[str, Any]:
    if len(node.inputs) < 5 or node.inputs[4] is None:
        return {"step": "1"}
    steps = _numbers(node.inputs[4])
    if steps is None:
        return {}
    least, most = steps.numpy().min(), steps.numpy().max()
    return {"step": "negative" if least < 0 else "1" if most == 1 else "more"}


def _slope(node: ir.Node) -> dict[str, Any]:
    x, slope = node.inputs[:2]
    if x is None or slope is None or slope.shape is None or x.shape is None:
        return {}
    sizes = [int(s) if isinstance(s, int) else 0 for s in slope.shape]
    if all(size == 1 for size in sizes):
        return {"slope": "one"}
    channel = [i for i, size in enumerate(sizes) if size != 1] == [len(sizes) - len(x.shape) + 1]
    return {"slope": "channel" if channel and len(x.shape) > 1 else "other"}


def _convolution(node: ir.Node) -> dict[str, Any]:
    group = node.attributes["group"].as_int() if "group" in node.attributes else 1
    x = node.inputs[0]
    channels = x.shape[1] if x is not None and x.shape is not None and len(x.shape) > 1 else None
    return {"group": "one" if group == 1 else "depthwise" if group == channels else "some"}


def _gates(node: ir.Node) -> dict[str, Any]:
    products = [use.node for use in node.outputs[0].uses() if use.node.op_type == "Mul"]
    others = [value for product in products for value in product.inputs if value is not node.outputs[0]]
    return {"gates": "another" if any(value is not node.inputs[0] for value in others) else "no"}


def _last_window(node: ir.Node) -> dict[str, Any]:
    x = node.inputs[0]
    if "ceil_mode" not in node.attributes or not node.attributes["ceil_mode"].value:
        return {"last_window": "inside"}
    if x is None or x.shape is None:
        return {}
    kernel: Any = node.attributes["kernel_shape"].value
    rank = len(kernel)
    ones, zeros = [1] * rank, [0] * 2 * rank
    strides, dilations, pads = (
        node.attributes[name].value if name in node.attributes else default
        for name, default in (("strides", ones), ("dilations", ones), ("pads", zeros))
    )
    found = set()
    for axis, (k, s, d) in enumerate(zip(kernel, strides, dilations, strict=True)):
        size, begin, end = x.shape[axis + 2], pads[axis], pads[axis + rank]
        if not isinstance(size, int):
            return {}
        room = size + begin + end - d * (k - 1) - 1
        last = -(-room // s) * s
        found.add("inside" if room % s == 0 else "padding" if last >= size + begin else "beyond")
    return {"last_window": min(found, key=("padding", "beyond", "inside").index)}


def _scales(node: ir.Node) -> dict[str, Any]:
    tensor = _numbers(node.inputs[2]) if len(node.inputs) > 2 else None
    if tensor is not None and tensor.size:
        scales = tensor.numpy()
    else:
        before, after = node.inputs[0], node.outputs[0]
        if before is None or before.shape is None or after.shape is None:
            return {}
        sizes = [*before.shape, *after.shape]
        if not all(isinstance(s, int) and s for s in sizes):
            return {}
        scales = np.array(list(after.shape), float) / np.array(list(before.shape), float)
    if (scales == scales.round()).all():
        return {"scales": "whole"}
    shape = node.inputs[0].shape if node.inputs[0] is not None else None
    if shape is None or len(shape) != len(scales) or not all(isinstance(s, int) for s in shape):
        return {}
    sizes = scales * np.array(list(shape), float)
    return {"scales": "exact" if np.allclose(sizes, sizes.round(), atol=1e-4) else "rounded"}


def _parts(node: ir.Node) -> dict[str, Any]:
    lengths = [len(o.shape) for o in node.outputs if o.shape is not None]
    if len(lengths) != len(node.outputs):
        return {}
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    sizes = {str(o.shape[axis]) for o in node.outputs if o.shape is not None}
    return {"parts": "even" if len(sizes) == 1 else "uneven"}


_SPECIAL: Mapping[str, Callable[[ir.Node], dict[str, Any]]] = {
    **dict.fromkeys(("Clip", "Erf", "HardSigmoid", "Relu", "Sigmoid", "Softplus", "Tanh"), _gates),
    **dict.fromkeys(("Conv", "ConvTranspose"), _convolution),
    "AveragePool": _last_window,
    "MaxPool": _last_window,
    "PRelu": _slope,
    "Pad": _pads,
    "Resize": _scales,
    "Slice": _step,
    "Split": _parts,
}
