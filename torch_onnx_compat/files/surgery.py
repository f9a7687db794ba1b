"""Surgery on a file: other inputs, outputs, names, attributes and stages, and the oracle that it is held against."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import onnx
import onnx_ir as ir

from torch_onnx_compat.errors import CompatError, UnsupportedError, unknown_name
from torch_onnx_compat.files.attributes import Attributes, set_attributes
from torch_onnx_compat.files.axes import forget_shapes
from torch_onnx_compat.files.oracle import Oracle, Picture
from torch_onnx_compat.files.reading import OnnxFile, read, weights_of
from torch_onnx_compat.files.runner import Array
from torch_onnx_compat.files.stages import put_detections_behind, put_normalize_before
from torch_onnx_compat.graph.excerpt import ancestors, operands_of
from torch_onnx_compat.graph.names import all_values, rename
from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.graph.unused import RemoveUnusedNodes
from torch_onnx_compat.publish.publish import draft, is_large
from torch_onnx_compat.request import check_list
from torch_onnx_compat.surgery.around_model.detections import Detections
from torch_onnx_compat.surgery.around_model.normalize import Normalize
from torch_onnx_compat.surgery.on_graph.cut_graph import CutGraph
from torch_onnx_compat.surgery.on_graph.operation import POSTPROCESS, PREPROCESS, Operation
from torch_onnx_compat.targets import Target


@dataclass(frozen=True)
class Surgery:
    """What becomes of a file besides its conversion; names are those of the original.

    Attributes:
        start: Values at which the new file begins; they are its inputs.
        outputs: Values that the new file gives, in order; None for the original's outputs.
        rename: New names of values, inputs and outputs among them, by the old ones.
        attributes: Attributes of nodes: by the node's name, or that of one of its outputs, the values by name; None
            takes an attribute away.
        constants: Inputs that become weights, with their values.
        keep_initializers_as_inputs: Whether weights are inputs too, which have them as defaults: all, none, or those
            that are named. None leaves them as they are.
        preprocess: A Normalize that is put before the file, ``"extract"`` or ``"fold"``, as for export_compat.
        postprocess: A Detections that is put behind it, or ``"strip"``.
    """

    start: Sequence[str] = ()
    outputs: Sequence[str] | None = None
    rename: Mapping[str, str] = field(default_factory=dict)
    attributes: Attributes = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    keep_initializers_as_inputs: bool | Sequence[str] | None = None
    preprocess: Literal["keep", "extract", "fold"] | Normalize = "keep"
    postprocess: Literal["keep", "strip"] | Detections = "keep"

    def __post_init__(self) -> None:
        for keyword in ("start", "outputs", "keep_initializers_as_inputs"):
            value = getattr(self, keyword)
            if not isinstance(value, bool):
                check_list(keyword, value)
        if not isinstance(self.preprocess, Normalize) and self.preprocess not in PREPROCESS:
            raise unknown_name("preprocess", str(self.preprocess), PREPROCESS)
        if not isinstance(self.postprocess, Detections) and self.postprocess not in POSTPROCESS:
            raise unknown_name("postprocess", str(self.postprocess), POSTPROCESS)
        if self.rename and (self.preprocess == "extract" or self.postprocess == "strip"):
            raise CompatError("rename and preprocess='extract' or postprocess='strip' are two steps; convert twice.")
        if self.start and (self.preprocess != "keep" or self.constants):
            raise CompatError("start and preprocess, or constants, both say what the file takes; pass one of them.")

    @property
    def is_asked(self) -> bool:
        """Whether anything is to be done."""
        return self != Surgery()

    def without_weights_as_inputs(self, model: ir.Model, precision: str) -> Surgery:
        """The same, but weights that are inputs too become constants: as inputs they would keep their types.

        Raises:
            CompatError: The caller wants such weights to be inputs.
        """
        if self.keep_initializers_as_inputs:
            raise CompatError(
                f"precision={precision!r} and keep_initializers_as_inputs={self.keep_initializers_as_inputs!r} "
                f"contradict each other: weights that are inputs keep their types; leave one of them out."
            )
        has_any = model.ir_version >= 4 and any(v.name in model.graph.initializers for v in model.graph.inputs)
        return replace(self, keep_initializers_as_inputs=False) if has_any else self

    @property
    def ending(self) -> Detections | None:
        """The detections that are an engine's own operator, with which the file ends, if any."""
        is_asked = isinstance(self.postprocess, Detections) and self.postprocess.node is not None
        return self.postprocess if is_asked and isinstance(self.postprocess, Detections) else None

    def check_target(self, target: Target | None) -> None:
        """Refuses an operator of one engine for another.

        Raises:
            UnsupportedError: The file would end with an operator of TensorRT, and is for another engine.
        """
        if self.ending is not None and target is not None and not self.ending.suits(target.name):
            raise UnsupportedError(
                f"postprocess: Detections('efficient-nms') is an operator of TensorRT, which {target.name} lacks; put "
                f"'nms' or 'nms-dense' behind the file."
            )

    @property
    def adds_nodes(self) -> bool:
        """Whether nodes are added or folded, so that the opset has to be one for which these are written."""
        return self.preprocess != "keep" or self.postprocess != "keep"


@dataclass(frozen=True)
class Operated:
    """What surgery made of a file.

    Attributes:
        cut: The new graph with the stages that were cut off it.
        oracle: What it should compute.
        done: What was done, in order.
        notes: What else the caller should know.
    """

    cut: CutGraph
    oracle: Oracle
    done: tuple[str, ...]
    notes: tuple[str, ...]


Prepare = Callable[[OnnxFile], ir.Model]
"""Reads the graph of a file in a form on which surgery works."""

Example = Callable[[OnnxFile], Mapping[str, Any]]
"""Gives the outputs of a file on an example, by name."""


@contextmanager
def operate(
    file: OnnxFile, surgery: Surgery, given: Sequence[Mapping[str, Any]], prepare: Prepare, example: Example
) -> Iterator[Operated]:
    """Carries out surgery on a file; what the oracle runs lies in temporary folders until the end.

    Args:
        file: The original.
        surgery: What is to be done.
        given: The caller's inputs, which say of what shape and type a picture is.
        prepare: Reads a graph.
        example: Runs a file on an example.

    Raises:
        CompatError: A name is unknown, or the graph cannot be cut like this.
    """
    model, done = prepare(file), []
    if surgery.attributes:
        done.append(set_attributes(model, surgery.attributes))
        forget_shapes(model)
    infer_model(model)
    outputs = [str(v.name) for v in model.graph.outputs] if surgery.outputs is None else list(surgery.outputs)
    with _reference(file, surgery, [*outputs, *surgery.start]) as reference:
        notes = _cut(model, surgery, outputs, done)
        done += _set_initializers(model, surgery.keep_initializers_as_inputs)
        known_names = {str(value.name) for value in all_values(model)}
        picture, boxes = None, None
        drawn = reference
        if isinstance(surgery.preprocess, Normalize):
            picture = put_normalize_before(model, surgery.preprocess, given)
            drawn = _with_picture(reference, model, picture)
            done.append(f"Normalize before input {picture.name!r}")
        if isinstance(surgery.postprocess, Detections):
            values = example(reference)
            boxes = put_detections_behind(model, surgery.postprocess, {name: values[name] for name in outputs})
            done.append(f"{surgery.postprocess.form} behind the outputs")
        cut = _cut_stages(model, surgery)
        done += [text.replace("_", " ") for text in cut.done]
        names = dict(zip(_names(cut.network), _names(cut.network), strict=True))
        names |= _rename(cut.network, surgery.rename, known_names, done)
        constants = {name: _as_input(reference, name, value) for name, value in surgery.constants.items()}
        known = {value.name for value in reference.proto.graph.input} | set(surgery.start)
        oracle = Oracle(
            file=reference,
            drawn=_without(drawn, constants, set(names)),
            values=tuple(dict.fromkeys([*outputs, *surgery.start])),
            inputs={names[old]: old for old in names if old in known and old not in constants},
            outputs={names.get(name, name): name for name in outputs},
            constants=constants,
            picture=picture,
            boxes=boxes,
        )
        yield Operated(cut, oracle, tuple(done), (*notes, *cut.notes))


# The reference


@contextmanager
def _reference(file: OnnxFile, surgery: Surgery, wanted: Sequence[str]) -> Iterator[OnnxFile]:
    """The original with the attributes that were set on purpose, and these values among its outputs."""
    present = {value.name for value in file.proto.graph.output}
    extra = [name for name in dict.fromkeys(wanted) if name not in present]
    if not (extra or surgery.attributes or surgery.keep_initializers_as_inputs):
        yield file
        return
    model = file.graph()
    if surgery.attributes:
        set_attributes(model, surgery.attributes)
        forget_shapes(model)
        infer_model(model)
    model.graph.outputs.extend(_value(model, name) for name in extra)
    _set_initializers(model, surgery.keep_initializers_as_inputs)
    with draft(model, None, is_large(model)) as written:
        place = written.path.with_name(file.path.name)  # messages name the original
        shutil.move(written.path, place)
        yield replace(read(place), shown=file.path)


def _with_picture(reference: OnnxFile, model: ir.Model, picture: Picture) -> OnnxFile:
    """The reference as a file that takes the picture, for drawing it."""
    proto = onnx.ModelProto()
    proto.CopyFrom(reference.proto)
    value = next(value for value in model.graph.inputs if value.name == picture.name)
    for one in proto.graph.input:
        if one.name == picture.name:
            one.CopyFrom(ir.serde.serialize_value(value))
    return OnnxFile(reference.path, proto, reference.shown)


def _without(file: OnnxFile, constants: Mapping[str, Array], left: set[str]) -> OnnxFile:
    """A file whose inputs are drawn, without these, and without the defaults of weights that are no inputs any more."""
    graph = file.proto.graph
    weights = weights_of(graph)
    gone = {v.name for v in graph.input if v.name in constants or (v.name in weights and v.name not in left)}
    if not gone:
        return file
    proto = onnx.ModelProto()
    proto.CopyFrom(file.proto)
    del proto.graph.input[:]
    proto.graph.input.extend(value for value in graph.input if value.name not in gone)
    for name, array in constants.items():  # the drawing infers shapes, for which every value has to come from somewhere
        proto.graph.initializer.append(ir.serde.serialize_tensor(ir.tensor(array, name=name)))
    return OnnxFile(file.path, proto, file.shown)


# Cutting


def _value(model: ir.Model, name: str) -> ir.Value:
    found = next((value for value in _main_values(model) if value.name == name), None)
    if found is None:
        raise unknown_name("value", name, (str(v.name) for v in _main_values(model)))
    return found


def _main_values(model: ir.Model) -> list[ir.Value]:
    """Inputs, and what the nodes outside of branches and bodies compute."""
    return [*model.graph.inputs, *(v for node in model.graph for v in node.outputs if v.name)]


def _cut(model: ir.Model, surgery: Surgery, outputs: Sequence[str], done: list[str]) -> list[str]:
    """Gives the graph other inputs and outputs, in place; returns notes."""
    for name, array in surgery.constants.items():
        _bind(model, name, array)
        done.append(f"input {name!r} is a weight")
    if surgery.outputs is not None:
        if not outputs:
            raise CompatError("outputs is empty; wanted the names of values.")
        model.graph.outputs[:] = _separate(model, [_value(model, name) for name in outputs])
        done.append(f"outputs: {', '.join(outputs)}")
    if surgery.start:
        _begin_at(model, surgery.start)
        done.append(f"begins at {', '.join(surgery.start)}")
    if surgery.outputs is None and not surgery.start:
        return []
    RemoveUnusedNodes()(model)
    unused = [v for v in model.graph.inputs if not v.uses() and not v.is_graph_output()]
    for value in unused:
        if value.name in surgery.start:
            raise CompatError(f"start: the outputs do not depend on {value.name!r}.")
        model.graph.inputs.remove(value)
    return [f"input {v.name!r} is not in the file: the outputs asked for do not depend on it." for v in unused]


def _separate(model: ir.Model, values: Sequence[ir.Value]) -> list[ir.Value]:
    if len(set(values)) < len(values):
        raise CompatError("outputs: a value is named twice.")
    for value in values:
        if value.is_graph_input():
            raise CompatError(f"outputs: {value.name!r} is an input; wanted values that the file computes.")
    return list(values)


def _begin_at(model: ir.Model, start: Sequence[str]) -> None:
    values = [_value(model, name) for name in start]
    read = {v for node in ancestors(list(model.graph.outputs), values) for v in operands_of(node)} - set(values)
    missing = [str(v.name) for v in read if v in model.graph.inputs and v.name not in model.graph.initializers]
    if missing:
        raise CompatError(
            f"start: the outputs do not follow from {', '.join(start)} alone, but from {', '.join(sorted(missing))}, "
            f"too; name that, or values between."
        )
    inputs = []
    for value in values:
        if value.is_graph_output():
            raise CompatError(f"start and outputs both name {value.name!r}; the file would compute nothing there.")
        if value.is_graph_input():
            inputs.append(value)
            continue
        new = ir.Value(name=value.name, type=value.type, shape=value.shape)
        value.name = f"{value.name}_before"
        for user, index in list(value.uses()):
            user.replace_input_with(index, new)
        inputs.append(new)
    model.graph.inputs[:] = inputs


def _bind(model: ir.Model, name: str, value: Any) -> None:
    inputs = {str(v.name): v for v in model.graph.inputs}
    if name not in inputs:
        raise unknown_name("input", name, inputs)
    found = inputs[name]
    array = np.asarray(value).astype(found.dtype.numpy()) if found.dtype is not None else np.asarray(value)
    _check_shape(name, array, found)
    found.const_value = ir.tensor(array, name=name)
    found.shape = ir.Shape(array.shape)
    model.graph.inputs.remove(found)
    model.graph.initializers[name] = found


def _check_shape(name: str, array: Array, value: ir.Value) -> None:
    if value.shape is None:
        return
    wanted = [axis if isinstance(axis, int) else None for axis in value.shape]
    fits = len(wanted) == array.ndim and all(w in (None, s) for w, s in zip(wanted, array.shape, strict=True))
    if not fits:
        raise CompatError(f"constants: {name!r} is of shape {array.shape}; the file takes {value.shape}.")


def _as_input(file: OnnxFile, name: str, value: Any) -> Array:
    kind = next(v for v in file.graph().graph.inputs if v.name == name).dtype
    return np.asarray(value) if kind is None else np.asarray(value).astype(kind.numpy())


def _set_initializers(model: ir.Model, wanted: bool | Sequence[str] | None) -> list[str]:
    """Lists weights among the inputs, or takes them out of there; returns what was done."""
    if wanted is None:
        return []
    weights = model.graph.initializers
    names = list(weights) if wanted is True else list(wanted or ())
    for name in names:
        if name not in weights:
            raise unknown_name("weight", name, weights)
    kept = [v for v in model.graph.inputs if v.name not in weights or v.name in names]
    model.graph.inputs[:] = [*kept, *(weights[name] for name in names if weights[name] not in kept)]
    return [f"weights that are inputs too: {len(names)}" if names else "weights are no inputs any more"]


# Stages and names


def _cut_stages(model: ir.Model, surgery: Surgery) -> CutGraph:
    before = surgery.preprocess if isinstance(surgery.preprocess, str) else "keep"
    after = surgery.postprocess if isinstance(surgery.postprocess, str) else "keep"
    return Operation(before, after).apply(model, [()] * len(model.graph.outputs))


def _names(model: ir.Model) -> list[str]:
    return [str(value.name) for value in (*model.graph.inputs, *model.graph.outputs)]


def _rename(model: ir.Model, names: Mapping[str, str], known: set[str], done: list[str]) -> dict[str, str]:
    """Renames values, in place; returns the new names by the old ones."""
    values = {str(value.name): value for value in all_values(model)}
    for old, new in names.items():
        if old not in known or old not in values:
            raise unknown_name("value", old, known & set(values))
        if not isinstance(new, str) or not new or (new in values and new not in names):
            raise CompatError(f"rename: {old!r} cannot be {new!r}: wanted a name that no value has.")
    if len(set(names.values())) < len(names):
        raise CompatError("rename: two values would have one name.")
    for number, old in enumerate(names):  # two values may change their names
        rename(model, values[old], f"torch_onnx_compat_{number}")
    for old, new in names.items():
        rename(model, values[old], new)
        done.append(f"{old} -> {new}")
    return dict(names)
