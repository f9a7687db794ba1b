"""Cuts the preprocessing off a graph: the host runs it as a stage, and the file begins after it."""

from __future__ import annotations

import json
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.graph.excerpt import excerpt
from torch_onnx_compat.graph.names import claim_name, rename
from torch_onnx_compat.surgery.on_graph.cut_graph import CutGraph
from torch_onnx_compat.surgery.on_graph.leading import Leading, asks_batch, find_leading
from torch_onnx_compat.surgery.on_graph.stage import make_stage

METADATA = "torch_onnx_compat.preprocess"
_SHOWN = 16
"""Constants of at most this many numbers are listed in the description."""


def extract(cut: CutGraph) -> None:
    """Moves the preprocessing of each input into a stage; notes the inputs for which it finds none.

    The network keeps the names of its inputs; they now stand for the outputs of the stage.
    """
    model = cut.network
    found = [find_leading(model, source) for source in model.graph.inputs]
    moved = [one for one in found if one.end is not None]
    cut.notes += [f"preprocess: input {one.source.name!r} is as it was: {one.reason}." for one in found if not one.end]
    if not moved:
        return
    for one in moved:
        _read_batch_from_end(model, one)
        claim_name(model, _end(one), f"{one.source.name}_prepared")
    description = {str(one.source.name): [_describe(node) for node in one.nodes] for one in moved}
    sources, ends = [one.source for one in moved], [_end(one) for one in moved]
    feeds = {str(end.name): str(source.name) for source, end in zip(sources, ends, strict=True)}
    before = excerpt(model, sources, ends, "preprocess")
    cut.preprocess = make_stage("preprocess", before, feeds, description)
    network = excerpt(model, [one.end or one.source for one in found], list(model.graph.outputs), str(model.graph.name))
    for end, source in feeds.items():
        rename(network, next(value for value in network.graph.inputs if value.name == end), source)
    network.metadata_props[METADATA] = json.dumps(description)
    cut.network = network


def _read_batch_from_end(model: ir.Model, leading: Leading) -> None:
    """Lets the network read the size of the batch from the stage's output instead of from the model's input."""
    inside, end = set(leading.nodes), _end(leading)
    values = [leading.source, *(v for node in leading.nodes for v in node.outputs if v is not end)]
    asking = {user for value in values for user, _ in value.uses() if asks_batch(user)}
    for node in asking:
        outside = [(user, index) for user, index in node.outputs[0].uses() if user not in inside]
        again = ir.node("Shape", [end], {"start": 0, "end": 1})
        again.outputs[0].name = f"{node.outputs[0].name}_again"
        again.outputs[0].type, again.outputs[0].shape = node.outputs[0].type, node.outputs[0].shape
        producer = end.producer()
        assert producer is not None
        model.graph.insert_after(producer, again)
        for user, index in outside:
            user.replace_input_with(index, again.outputs[0])
    model.graph.sort()


def _end(leading: Leading) -> ir.Value:
    assert leading.end is not None
    return leading.end


def _describe(node: ir.Node) -> dict[str, Any]:
    """A node as plain data: its operator, its attributes, and its small constants."""
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in attributes.items() if _is_plain(v)}
    constants = [_numbers(value) for value in node.inputs]
    result: dict[str, Any] = {"operator": node.op_type}
    if node.op_type == "Cast":
        return {**result, "to": ir.DataType(attributes["to"]).name.lower()}
    if any(c is not None for c in constants):
        result["inputs"] = ["computed" if c is None else c for c in constants]
    return {**result, **plain}


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, float, str)) or (
        isinstance(value, (tuple, list)) and all(isinstance(item, (int, float, str)) for item in value)
    )


def _numbers(value: ir.Value | None) -> Any:
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.size > _SHOWN:
        return None
    return tensor.numpy().reshape(-1).tolist() if tensor.size != 1 else tensor.numpy().reshape(-1)[0].item()
