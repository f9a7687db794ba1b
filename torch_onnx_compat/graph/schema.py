"""Whether the operator schemas of an opset accept a node: the net under the rules, which knows no rule."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import onnx
import onnx_ir as ir
from onnx.defs import OpSchema

from torch_onnx_compat.graph.obstacle import Obstacle, place

_OPTIONAL = OpSchema.FormalParameterOption.Optional
_VARIADIC = OpSchema.FormalParameterOption.Variadic


@functools.cache
def find(op_type: str, opset: int) -> OpSchema | None:
    """The default-domain schema that is in force at an opset, or None."""
    try:
        return onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        return None


@functools.cache
def introduced(op_type: str) -> int | None:
    """The first opset that has the operator, or None if no opset known here does."""
    return next((v for v in range(1, onnx.defs.onnx_opset_version() + 1) if find(op_type, v) is not None), None)


def drop_new_defaults(node: ir.Node, opset: int) -> None:
    """Removes attributes that the opset has brought, where they say what it assumes without them."""
    new, old = find(node.op_type, opset), find(node.op_type, opset - 1)
    if new is None or old is None or new.since_version < opset:
        return
    for name in [name for name in node.attributes if name not in old.attributes and name in new.attributes]:
        default = new.attributes[name].default_value
        if default.name and ir.serde.deserialize_attribute(default).value == node.attributes[name].value:
            del node.attributes[name]


def obstacle(node: ir.Node, source: int, target: int) -> Obstacle | None:
    """Why the target opset does not accept the node, or None; with the opset towards the source that does."""
    reason = _rejection(node, target)
    if reason is None:
        return None
    step = 1 if target < source else -1
    nearest = next((opset for opset in range(target, source + step, step) if _rejection(node, opset) is None), None)
    bound = f"ask for opset_version {'>=' if target < source else '<='} {nearest}"
    return Obstacle(node.op_type, place(node), reason, "change the model there" if nearest is None else bound)


def _rejection(node: ir.Node, opset: int) -> str | None:
    schema = find(node.op_type, opset)
    if schema is None:
        first = introduced(node.op_type)
        return "no such operator in ONNX" if first is None else f"no such operator before opset {first}"
    if schema.deprecated:
        return f"the operator is deprecated at opset {opset}"
    return next((r for r in (_attributes(node, schema), _inputs(node, schema), _outputs(node, schema)) if r), None)


def _attributes(node: ir.Node, schema: OpSchema) -> str | None:
    for name, attribute in node.attributes.items():
        if name not in schema.attributes:
            return f"attribute {name}={attribute.value!r} is newer than the opset"
    for name, known in schema.attributes.items():
        if known.required and name not in node.attributes:
            return f"attribute {name} is missing"
    return None


def _inputs(node: ir.Node, schema: OpSchema) -> str | None:
    if len(node.inputs) > schema.max_input:
        return f"{len(node.inputs)} inputs are more than the {schema.max_input} that the opset allows"
    for index, formal in enumerate(schema.inputs):
        given = node.inputs[index] if index < len(node.inputs) else None
        if given is None and formal.option not in (_OPTIONAL, _VARIADIC):
            return f"input {formal.name} is missing"
    return _types(node.inputs, schema.inputs)


def _outputs(node: ir.Node, schema: OpSchema) -> str | None:
    if len(node.outputs) > schema.max_output:
        return f"{len(node.outputs)} outputs are more than the {schema.max_output} that the opset allows"
    return _types(node.outputs, schema.outputs)


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
