"""Facts: properties of a node, by name, that the conditions in a target's profile ask for.

An attribute is a fact under its own name, with ONNX's default where it is omitted, and "absent" where the operator's
version has no such attribute. A list of equal numbers counts as that number, a list of different ones as "mixed", axes
that rise as "rising", pads that are 0 at all starts as "ends", at all ends as "starts". The other facts are:

* version: the opset that introduced the operator's present definition;
* type, rank: of the first input; type, of a Where: of what it chooses from;
* inputs: how many are given;
* outputs: the positions of those that are used, e.g. "0, 2";
* empty: output or input where one is known to have no element, else no;
* input.K: constant, computed or absent, from 0 on; absent also where only another version of the operator has the
  input;
* rank.1: of the second input;
* reused: yes where the first input is computed and read by other nodes too, else no;
* image: yes where it reads an image, else no: see `facts/origin`;
* the facts of single operators, which `facts/special`, `facts/image` and `facts/attention` list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import onnx
import onnx_ir as ir

from torch_onnx_compat.graph import schema
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.facts.origin import reads_image
from torch_onnx_compat.graph.facts.special import special_facts

_TYPES = frozenset({"to", "dtype"})
_MANY = 4
"""Inputs beyond this number are not told apart."""
_NEWEST = onnx.defs.onnx_opset_version()
_PER_AXIS = {"strides": 1, "dilations": 1, "pads": 0, "output_padding": 0}
"""Defaults of attributes that hold a number for each axis: the specification states them, the schemas do not."""
_INFERRED = frozenset({"kernel_shape", "output_shape"})
"""Attributes that follow from the shapes of the inputs where they are omitted."""


def node_facts(node: ir.Node, opset: int) -> dict[str, Any]:
    """The facts of a node of the default domain, without those that the graph does not tell."""
    facts = _attributes(node, opset)
    definition = schema.find(node.op_type, opset)
    if definition is not None:
        facts["version"] = definition.since_version
    given = [value for value in node.inputs if value is not None]
    facts["inputs"] = min(len(given), _MANY)
    used = [str(index) for index, v in enumerate(node.outputs) if v.uses() or v.is_graph_output()]
    facts["outputs"] = ", ".join(used) or "0"
    facts["empty"] = "output" if _is_empty(node.outputs) else "input" if _is_empty(given) else "no"
    for index in range(min(len(node.inputs), _MANY + 1)):
        facts[f"input.{index}"] = _kind(node.inputs[index])
    for index in range(max(len(node.inputs), 1), min(_most_inputs(node.op_type, opset), _MANY + 1)):
        facts[f"input.{index}"] = "absent"
    for index, value in enumerate(node.inputs[:2]):
        if value is not None and value.shape is not None:
            facts[f"rank.{index}" if index else "rank"] = len(value.shape)
    judged = given[1:] if node.op_type == "Where" else given
    if judged and judged[0].dtype is not None:
        facts["type"] = judged[0].dtype.name.lower()
    first = node.inputs[0] if node.inputs else None
    facts["reused"] = "yes" if first is not None and first.producer() and _is_reused(first) else "no"
    facts["image"] = reads_image(node)
    facts.update(special_facts(node, given))
    return facts


@cache
def _most_inputs(op_type: str, opset: int) -> int:
    """The inputs that an operator has in this version or in the newest one, whichever has more."""
    return max((len(d.inputs) for d in (schema.find(op_type, opset), schema.find(op_type, _NEWEST)) if d), default=0)


def _is_empty(values: Sequence[ir.Value]) -> bool:
    return any(value.shape is not None and 0 in value.shape for value in values)


def _is_reused(value: ir.Value) -> bool:
    return len({id(use.node) for use in value.uses()}) > 1 or value.is_graph_output()


def _attributes(node: ir.Node, opset: int) -> dict[str, Any]:
    facts = dict(_defaults(node.op_type, opset))
    for name, attribute in node.attributes.items():
        if attribute.is_ref() or attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            continue
        value = _as_fact(name, attribute.value)
        if value is not None:
            facts[name] = value
    return facts


@cache
def _defaults(op_type: str, opset: int) -> Mapping[str, Any]:
    """The facts of omitted attributes, including those that only another version of the operator has."""
    found: dict[str, Any] = {}
    for definition in (schema.find(op_type, _NEWEST), schema.find(op_type, opset)):
        for name, attribute in definition.attributes.items() if definition else ():
            if attribute.default_value.name:
                found[name] = _as_fact(name, onnx.helper.get_attribute_value(attribute.default_value))
            elif name not in _INFERRED:
                found.setdefault(name, _PER_AXIS.get(name, "absent"))
    for name in _old_attributes(op_type):
        found.setdefault(name, "absent")
    return {name: value for name, value in found.items() if value is not None}


@cache
def _old_attributes(op_type: str) -> frozenset[str]:
    """The attributes that older versions of an operator had and the newest lacks."""
    versions = [d for d in (schema.find(op_type, opset) for opset in range(1, _NEWEST + 1)) if d is not None]
    return frozenset().union(*(d.attributes for d in versions)) - frozenset(versions[-1].attributes if versions else ())


def _as_fact(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if name in _TYPES and isinstance(value, int):
        return ir.DataType(value).name.lower()
    if isinstance(value, (int, str)):
        return int(value) if isinstance(value, int) else value
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, int) for v in value):
        if len(set(value)) == 1:
            return value[0]
        if name == "axes" and list(value) == sorted(set(value)):
            return "rising"
        starts, ends = value[: len(value) // 2], value[len(value) // 2 :]
        return "mixed" if name != "pads" or (any(starts) and any(ends)) else "starts" if any(starts) else "ends"
    return None


def _kind(value: ir.Value | None) -> str:
    if value is None:
        return "absent"
    return "constant" if constant_tensor(value) is not None else "computed"
