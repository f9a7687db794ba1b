"""Checks nodes against the operator schemas of an opset: this catches mistakes and gaps of the rules."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import onnx
import onnx_ir as ir
from onnx.defs import OpSchema

from torch_onnx_compat.graph.obstacle import Obstacle
from torch_onnx_compat.graph.provenance import place

_SINGLE = OpSchema.FormalParameterOption.Single


@functools.cache
def find(op_type: str, opset: int) -> OpSchema | None:
    """The default-domain schema that is in force at an opset, or None."""
    try:
        return onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        return None


@functools.cache
def first_opset(op_type: str) -> int | None:
    """The first opset that has the operator, or None if no opset known here does."""
    return next((v for v in range(1, onnx.defs.onnx_opset_version() + 1) if find(op_type, v) is not None), None)


def is_changed(node: ir.Node, opset: int) -> bool:
    """Whether the opset introduced the node's operator, or a new version of it."""
    known = find(node.op_type, opset)
    return known is None or known.since_version == opset


def drop_new_defaults(node: ir.Node, opset: int) -> None:
    """Removes attributes that the opset introduced, where they have the value that the opset assumes without them."""
    new, old = find(node.op_type, opset), find(node.op_type, opset - 1)
    if new is None or old is None:
        return
    for name in [name for name in node.attributes if name not in old.attributes and name in new.attributes]:
        default = new.attributes[name].default_value
        if default.name and ir.serde.deserialize_attribute(default).value == node.attributes[name].value:
            del node.attributes[name]


def obstacle(node: ir.Node, source: int, target: int) -> Obstacle | None:
    """Why the target opset rejects a node, with the nearest opset that accepts it; None if it is accepted."""
    failed, reason = next(((check, r) for check in _CHECKS if (r := check(node, target))), (None, None))
    if failed is None or reason is None:
        return None
    way = range(target, source + 1) if target < source else range(target, source - 1, -1)
    whole = (opset for opset in way if not any(check(node, opset) for check in _CHECKS))
    # A rule may have given the node a form that no higher opset has; then what matters is the check that it failed.
    partial = (opset for opset in way if failed(node, opset) is None)
    nearest = next(whole, next(partial, None))
    bound = f"ask for opset_version {'>=' if target < source else '<='} {nearest}"
    return Obstacle(node.op_type, place(node), reason, "change the model there" if nearest is None else bound)


def _existence(node: ir.Node, opset: int) -> str | None:
    known = find(node.op_type, opset)
    if known is None:
        first = first_opset(node.op_type)
        return "no such operator in ONNX" if first is None else f"no such operator before opset {first}"
    return f"the operator is deprecated at opset {opset}" if known.deprecated else None


def _attributes(node: ir.Node, opset: int) -> str | None:
    known = find(node.op_type, opset)
    if known is None:
        return None
    for name, attribute in node.attributes.items():
        if name not in known.attributes:
            return f"attribute {name}={attribute.value!r} is newer than the opset"
    missing = [n for n, parameter in known.attributes.items() if parameter.required and n not in node.attributes]
    return f"attribute {missing[0]} is missing" if missing else None


def _arity(node: ir.Node, opset: int) -> str | None:
    known = find(node.op_type, opset)
    if known is None:
        return None
    for what, count, most in (("inputs", node.inputs, known.max_input), ("outputs", node.outputs, known.max_output)):
        if len(count) > most:
            return f"{len(count)} {what} are more than the {most} that the opset allows"
    given = [*node.inputs, *[None] * len(known.inputs)]
    required = (f.name for f, v in zip(known.inputs, given, strict=False) if v is None and f.option == _SINGLE)
    return next((f"input {name} is missing" for name in required), None)


def _element_types(node: ir.Node, opset: int) -> str | None:
    known = find(node.op_type, opset)
    if known is None:
        return None
    return _types(node.inputs, known.inputs) or _types(node.outputs, known.outputs)


_WORDS = {("GridSample", "mode"): {16: ("bilinear", "nearest", "bicubic"), 20: ("linear", "nearest", "cubic")}}
"""Words that an attribute may hold, by the opset that introduced them; the schemas do not list them."""


def _words(node: ir.Node, opset: int) -> str | None:
    for (op_type, name), by_opset in _WORDS.items():
        if node.op_type == op_type and name in node.attributes:
            word, known = (
                node.attributes[name].as_string(),
                by_opset[max(o for o in by_opset if o <= max(opset, min(by_opset)))],
            )
            if word not in known:
                return f"{name}={word!r} is not among {', '.join(known)}"
    return None


_CHECKS = (_existence, _attributes, _words, _arity, _element_types)


def _types(values: Sequence[ir.Value | None], formals: Sequence[OpSchema.FormalParameter]) -> str | None:
    bound: dict[str, str] = {}
    for index, value in enumerate(values):
        if value is None or value.type is None or not formals:
            continue
        formal, given = formals[min(index, len(formals) - 1)], type_name(value.type)
        if given not in formal.types:
            return f"{given} is not among the types that the opset allows for {formal.name}"
        if formal.is_homogeneous and bound.setdefault(formal.type_str, given) != given:
            return f"{bound[formal.type_str]} beside {given} for {formal.name}, where the opset wants one type"
    return None


def type_name(of: ir.TypeProtocol) -> str:
    """The type as schemas spell it, e.g. ``seq(tensor(float))``."""
    if isinstance(of, ir.SequenceType):
        return f"seq({type_name(of.elem_type)})"
    if isinstance(of, ir.OptionalType):
        return f"optional({type_name(of.elem_type)})"
    kind = "sparse_tensor" if isinstance(of, ir.SparseTensorType) else "tensor"
    return f"{kind}({of.dtype.name.lower()})"
