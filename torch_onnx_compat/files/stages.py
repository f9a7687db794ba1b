"""Puts a Normalize before a file, or a Detections behind it, by export_compat itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from torch import Tensor, nn

from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.export import export_compat
from torch_onnx_compat.files.oracle import Boxes, Picture
from torch_onnx_compat.files.runner import Value
from torch_onnx_compat.graph.names import claim_name
from torch_onnx_compat.surgery.around_model.detections import Detections
from torch_onnx_compat.surgery.around_model.normalize import Normalize
from torch_onnx_compat.surgery.on_graph.join import put_before, put_behind

_SIZE = 32
"""Height and width of an example picture of free size."""


class _Nothing(nn.Module):
    """Returns what it gets; what is put around it is all that its file holds.

    Args:
        dtype: The type of the network that it stands for.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.type_of_network = nn.Parameter(torch.zeros((), dtype=dtype), requires_grad=False)

    def forward(self, value: Any) -> Any:
        return value


class _Candidates(nn.Module):
    """Boxes and scores in the form in which an engine's own operator takes them."""

    def __init__(self, detections: Detections) -> None:
        super().__init__()
        self._detections = detections

    def forward(self, value: Any) -> dict[str, Tensor]:
        boxes, scores = self._detections.candidates_of(value)
        return {"boxes": boxes, "scores": scores}


def put_normalize_before(model: ir.Model, normalize: Normalize, given: Sequence[Mapping[str, Any]]) -> Picture:
    """Puts preprocessing before an input of a graph, in place.

    Args:
        model: The graph.
        normalize: The preprocessing; its `input` names the input, the first one by default.
        given: The caller's inputs, which say of what shape and type the picture is; by default it is of uint8, and of
            any size where it is stretched to the network's.

    Raises:
        CompatError: There is no such input, it is no picture, or nothing says what size a letterbox is made of.
    """
    inputs = {str(v.name): v for v in model.graph.inputs if v.name not in model.graph.initializers}
    name = normalize.input or next(iter(inputs), "")
    if name not in inputs:
        raise unknown_name("input", name, inputs)
    value = inputs[name]
    if value.shape is None or len(value.shape) != 4 or value.dtype is None or not value.dtype.is_floating_point():
        raise CompatError(f"preprocess: input {name!r} is {value.type} of shape {value.shape}; wanted pictures NCHW.")
    sizes = tuple(value.shape)[2:]
    if normalize.size is not None and any(
        isinstance(s, int) and s != w for s, w in zip(sizes, normalize.size, strict=True)
    ):
        raise CompatError(f"preprocess: Normalize(size={normalize.size}), but input {name!r} is {value.shape}.")
    dtype = torch.from_numpy(np.zeros(0, value.dtype.numpy())).dtype
    picture, axes = _example(
        normalize, value, next((torch.from_numpy(np.array(g[name])) for g in given if name in g), None)
    )
    made = export_compat(
        _Nothing(dtype),
        (picture,),
        preprocess=replace(normalize, input=None),
        dynamic={"value": axes} if axes else None,
        opset_version=model.opset_imports[""],
    )
    put_before(model, ir.from_proto(made.model_proto), name)
    return Picture(name, normalize, dtype)


def _example(normalize: Normalize, value: ir.Value, given: Tensor | None) -> tuple[Tensor, dict[int, str]]:
    """A picture, and the names of its axes that may vary."""
    assert value.shape is not None
    names: dict[str, Any] = dict(zip("NCHW", value.shape, strict=True))
    free = {"H": "height", "W": "width"}
    for letter, default in {"N": "batch", "C": "", **free}.items():
        size = names[letter]
        names[letter] = size if isinstance(size, int) else str(size.value or default or "channels")
    if given is None and normalize.size is not None:
        if normalize.fit == "letterbox":
            raise CompatError(
                "preprocess: a letterbox needs a picture of fixed size; give inputs, with one such picture."
            )
        names |= free
    if given is None:
        usual = {"N": 2, "C": 3, "H": _SIZE, "W": _SIZE}
        shape = [names[c] if isinstance(names[c], int) else usual[c] for c in normalize.layout]
        given = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    if given.dim() != len(normalize.layout):
        raise CompatError(
            f"preprocess: the picture given is of shape {tuple(given.shape)}; Normalize(layout={normalize.layout!r})."
        )
    axes = {i: names[letter] for i, letter in enumerate(normalize.layout) if isinstance(names[letter], str)}
    return given, {i: name if name.isidentifier() else f"axis_{i}" for i, name in axes.items()}


def put_detections_behind(model: ir.Model, detections: Detections, example: Mapping[str, Value]) -> Boxes:
    """Puts suppression behind the outputs of a graph, in place; before an engine's own operator, what it is given.

    Args:
        model: The graph.
        detections: Which outputs are boxes and scores.
        example: Outputs of the graph, by name.

    Raises:
        CompatError: The outputs are not as declared.
    """
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in example.items()}
    detections.check_is_whole(tensors)
    names = [_output_name("boxes", detections.boxes, tensors)]
    if detections.scores is not None:
        names.append(_output_name("scores", detections.scores, tensors))
    declared = {str(value.name): value.shape for value in model.graph.outputs}
    axes: dict[str, dict[int, str]] = {}
    for name in names:
        at = 2 if detections.channels_first and tensors[name].dim() == 3 else 1
        shape = declared[name]
        for axis, called in ((0, "batch"), (at, "candidates")):
            if shape is None or not isinstance(shape[axis], int):
                axes.setdefault(f"value_{names.index(name)}", {})[axis] = called
    within = replace(detections, boxes=0, scores=None if len(names) == 1 else 1)
    has_node = detections.node is not None
    made = export_compat(
        _Candidates(within) if has_node else _Nothing(torch.float32),
        (tuple(tensors[name] for name in names),),
        postprocess="keep" if has_node else within,
        dynamic=axes or None,
        opset_version=model.opset_imports[""],
    )
    stage = ir.from_proto(made.model_proto)
    put_behind(model, stage, dict(zip((str(v.name) for v in stage.graph.inputs), names, strict=True)))
    pads = any(axis for one in axes.values() for axis in one)
    return Boxes(detections if pads else detections.fit_candidates(tensors), pads)


def put_operator_behind(model: ir.Model, detections: Detections) -> str:
    """Puts TensorRT's own suppression behind the boxes and scores that a graph gives, in place.

    Source: TensorRT's efficientNMSPlugin, its inputs and outputs.

    Returns:
        A note on what was not run.
    """
    call, most = detections.node, detections.max_detections
    assert call is not None
    boxes, _ = inputs = list(model.graph.outputs)
    node = ir.Node(
        call.domain,
        call.op_type,
        inputs,
        ir.convenience.convert_attributes(dict(call.attributes)),
        num_outputs=4,
        name=call.op_type,
    )
    batch = None if boxes.shape is None else boxes.shape[0]
    number = ir.DataType.INT32
    shapes = {"num_detections": (number, [batch, 1]), "detection_boxes": (boxes.dtype, [batch, most, 4])}
    shapes |= {"detection_scores": (boxes.dtype, [batch, most]), "detection_classes": (number, [batch, most])}
    model.graph.append(node)
    model.graph.outputs[:] = node.outputs
    for value, (name, (dtype, shape)) in zip(node.outputs, shapes.items(), strict=True):
        assert dtype is not None
        claim_name(model, value, name)
        value.type, value.shape = ir.TensorType(dtype), ir.Shape(shape)
    model.opset_imports.setdefault(call.domain, 1)
    return f"{call.name} itself was not run; the boxes and scores that it gets were compared."


def _output_name(what: str, which: int | str, outputs: Mapping[str, Tensor]) -> str:
    names = list(outputs)
    if isinstance(which, int) and 0 <= which < len(names):
        return names[which]
    if which not in outputs:
        raise unknown_name(f"output for the {what}", str(which), names)
    return str(which)
