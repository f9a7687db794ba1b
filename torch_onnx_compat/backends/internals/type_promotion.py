"""What torch's pass for type promotion in a captured program refuses, or leaves in another type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from torch_onnx_compat.ops import ONNX_TYPES

if TYPE_CHECKING:
    import onnx_ir as ir


def match_numbers(program: ExportedProgram) -> None:
    """Writes the numbers of a call as floats where one of them is: `clamp(x, 1, 5e4)` has the bounds 1.0 and 5e4 then.

    Torch's pass for type promotion makes tensors of numbers whose type is not the result's, and finds no overload for
    a tensor beside a number. The results are the same: with one float among its numbers a call computes in floats.
    """
    for module in program.graph_module.modules():  # branches and bodies of loops are graphs of their own
        if isinstance(module, GraphModule):
            _match_numbers_in(module)


def _match_numbers_in(module: GraphModule) -> None:
    for node in module.graph.nodes:
        if not isinstance(node.target, OpOverload):
            continue
        arguments = node.target._schema.arguments
        numbers = {argument.name for argument in arguments if "number" in str(argument.type)}
        given = {**{argument.name: value for argument, value in zip(arguments, node.args, strict=False)}, **node.kwargs}
        if any(_kind(given[name]) is float for name in numbers & given.keys()):
            changed = {name: _as_float(value, node) if name in numbers else value for name, value in given.items()}
            node.args = tuple(changed.values())[: len(node.args)]
            node.kwargs = {name: changed[name] for name in node.kwargs}
    module.recompile()


def _kind(number: Any) -> type | None:
    """Int or float, for a number of a captured program that is known or computed; None for anything else."""
    value = number.meta.get("val") if isinstance(number, Node) else number
    if isinstance(value, (float, torch.SymFloat)):
        return float
    return int if type(value) is int or isinstance(value, torch.SymInt) else None


def _as_float(value: Any, user: Node) -> Any:
    """A whole number as a float if that is exact, for a node that uses it; anything else as it is."""
    if _kind(value) is not int or (type(value) is int and abs(value) > 2**53):
        return value
    if type(value) is int:
        return float(value)
    with user.graph.inserting_before(user):
        made = user.graph.call_function(torch.sym_float, (value,))
    made.meta["val"] = torch.sym_float(value.meta["val"])
    return made


def output_types(program: ExportedProgram) -> list[torch.dtype | None]:
    """The element types of a captured program's results; None for what is no tensor."""
    (returned,) = next(node for node in reversed(program.graph.nodes) if node.op == "output").args
    written = len(returned) - len(program.graph_signature.user_outputs)  # buffers come first
    values = [node.meta.get("val") if isinstance(node, Node) else node for node in returned[written:]]
    return [getattr(value, "dtype", None) for value in values]


def cast_outputs(model: ir.Model, types: list[torch.dtype | None]) -> None:
    """Gives outputs the element types that they have in the program, in place.

    Torch's pass computes functions of halves in float32, and casts what other operators read back, not an output.

    Args:
        model: What torch made of the program; one with other outputs than that is refused when the file is finished.
        types: Of the program's results.
    """
    import onnx_ir as ir  # it imports SymPy, and the catalogue, which imports this module, needs neither

    outputs = model.graph.outputs
    for index, (value, dtype) in enumerate(zip(list(outputs), types, strict=False)):
        if dtype not in (torch.float16, torch.bfloat16) or value.dtype in (None, ONNX_TYPES[dtype]):
            continue
        cast = ir.node("Cast", [value], {"to": int(ONNX_TYPES[dtype])})
        cast.outputs[0].type, cast.outputs[0].shape = ir.TensorType(ir.DataType(ONNX_TYPES[dtype])), value.shape
        model.graph.append(cast)
        outputs[index] = cast.outputs[0]
