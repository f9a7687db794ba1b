"""Takes a graph of any opset to another one: onnx's converter up to 18, this package's rules above and downwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from torch_onnx_compat.catalogue.entry import MIN_OPSET
from torch_onnx_compat.errors import UnsupportedError
from torch_onnx_compat.graph import shapes
from torch_onnx_compat.graph.builder import Builder, Scope
from torch_onnx_compat.graph.constants import constant_tensor
from torch_onnx_compat.graph.opset.convert import LOWEST_RAISED, convert
from torch_onnx_compat.graph.replacement import replace
from torch_onnx_compat.graph.walk import all_graphs

SMALL = 4096
"""Elements of the largest constant that onnx's converter gets to see; larger ones are weights, and stay where they are.
"""


def change_opset(model: ir.Model, opset: int) -> ir.Model:
    """The graph at another opset; the given one is changed, or of no further use.

    Args:
        model: The graph.
        opset: The wanted opset, 11 or later.

    Raises:
        UnsupportedError: Operators stand in the way; the message names them.
    """
    source = model.opset_imports.get("", model.opset_imports.get("ai.onnx", opset))
    if source < min(opset, LOWEST_RAISED):
        model = raise_opset(model, max(MIN_OPSET, min(opset, LOWEST_RAISED)))
    convert(model, opset)
    return model


def raise_opset(model: ir.Model, opset: int) -> ir.Model:
    """The graph at this opset, or as it is where it has a later one; by onnx's version converter.

    Args:
        model: The graph; it is of no further use where it had to be raised.
        opset: The wanted opset.

    Raises:
        UnsupportedError: The converter cannot.
    """
    if "ai.onnx" in model.opset_imports:
        model.opset_imports[""] = model.opset_imports.pop("ai.onnx")
    if model.opset_imports.get("", opset) >= opset:
        return model
    if model.functions:
        InlinePass()(model)
    source, version = model.opset_imports[""], model.ir_version
    _refuse_lost_meanings(model, source, opset)
    model.ir_version = max(version, 4)  # before, the converter wants every weight among the inputs
    _prepare(model, source, opset)
    with _without_weights(model) as weights:
        proto = ir.to_proto(model)
    try:
        raised = onnx.version_converter.convert_version(proto, opset)
    except Exception as error:  # the C++ library's errors arrive as RuntimeError and ConvertError
        reason = " ".join(str(error).split())[:300]
        raise UnsupportedError(
            f"opset_version={opset}: onnx's version converter cannot raise the file from opset {source}: {reason}"
        ) from error
    result = ir.from_proto(raised)
    result.ir_version = max(version, onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)]))
    named = {value.name: value for value in result.graph.inputs}
    for weight in weights:
        value = named[weight.name]
        value.const_value = weight.const_value
        result.graph.register_initializer(value)
        if not weight.is_graph_input():
            result.graph.inputs.remove(value)
    result.metadata_props.update(model.metadata_props)
    _repair(result, source, opset)
    return result


def _refuse_lost_meanings(model: ir.Model, source: int, opset: int) -> None:
    """Refuses what later opsets have no form for, and the converter would carry over as it is."""
    for node in (node for graph in all_graphs(model) for node in graph if not node.domain):
        if node.op_type == "Scan" and source < 9:
            reason = "runs over batches, which it has not since 9"
        elif node.op_type == "Dropout" and len(node.outputs) > 1 and _is_read(node.outputs[1]) and source < 12 <= opset:
            reason = "gives a mask that says nothing where nothing is dropped, which is all true since 12"
        elif node.op_type == "Dropout" and len(node.outputs) > 1 and _is_read(node.outputs[1]) and source < 10 <= opset:
            reason = "gives a mask of numbers, which is one of booleans since 10"
        else:
            continue
        raise UnsupportedError(f"opset_version={opset}: {node.op_type}, written for opset {source}, {reason}.")


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _prepare(model: ir.Model, source: int, opset: int) -> None:
    """Writes what the converter would get wrong in a form that means the same before and after.

    Until opset 12, Hardmax takes all axes from one on as a single one; the converter knows that of Softmax only.
    """
    if not source < 13 <= opset:
        return
    scope = Scope(model)
    for node in [
        node for graph in all_graphs(model) for node in graph if node.op_type == "Hardmax" and not node.domain
    ]:
        op = Builder(scope, node, source)
        flat = op.Flatten(node.inputs[0], axis=node.attributes.get_int("axis", 1))
        replace(node, op, op.Reshape(op.Hardmax(flat, axis=1), op.Shape(node.inputs[0])))


def _repair(model: ir.Model, source: int, opset: int) -> None:
    """Says what the converter leaves unsaid, and corrects the types of constants that it makes.

    Before opset 11, Resize counts from the corners, and rounds down.
    """
    if not source < 11 <= opset:
        return
    _correct_constants(model)
    for node in [node for graph in all_graphs(model) for node in graph if node.op_type == "Resize" and not node.domain]:
        node.attributes["coordinate_transformation_mode"] = ir.AttrString(
            "coordinate_transformation_mode", "asymmetric"
        )
        node.attributes["nearest_mode"] = ir.AttrString("nearest_mode", "floor")


@contextmanager
def _without_weights(model: ir.Model) -> Iterator[list[ir.Value]]:
    """Makes large weights plain inputs for a while, so that their numbers are not copied."""
    graph = model.graph
    initializers, inputs = list(graph.initializers.values()), list(graph.inputs)
    weights = [v for v in initializers if v.const_value is not None and v.const_value.size > SMALL]
    try:
        for value in weights:
            del graph.initializers[str(value.name)]
            if not value.is_graph_input():
                graph.inputs.append(value)
        yield weights
    finally:
        graph.inputs.clear()
        graph.inputs.extend(inputs)
        graph.initializers.clear()
        for value in initializers:
            graph.initializers[str(value.name)] = value


def _correct_constants(model: ir.Model) -> None:
    """Gives the numbers that were attributes of Clip and Pad the type of what is clipped or padded, not float32."""
    scope = Scope(model)
    shapes.infer_model(model)
    for node in [node for graph in all_graphs(model) for node in graph if node.op_type in ("Clip", "Pad")]:
        x, *others = node.inputs
        for index, value in enumerate(others, start=1):
            tensor = constant_tensor(value)
            is_number = tensor is not None and (node.op_type == "Clip" or index == 2)
            if is_number and x is not None and x.dtype not in (None, tensor.dtype):
                node.replace_input_with(index, scope.constant(tensor.numpy().astype(x.dtype.numpy())))
