"""Changes the inputs and outputs of a model around the call of a twin; the model itself is not edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from torch_onnx_compat.caller.undo import undo_writes
from torch_onnx_compat.errors import ArgumentError, unknown_name
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.inputs.state import state_set_to
from torch_onnx_compat.prepare import Prepared, prepare
from torch_onnx_compat.request import Cut
from torch_onnx_compat.surgery.around_model.detections import ALTERNATIVES, Detections
from torch_onnx_compat.surgery.around_model.heads import detections_of
from torch_onnx_compat.surgery.around_model.normalize import Normalize
from torch_onnx_compat.surgery.around_model.recorder import Recorder, check_values
from torch_onnx_compat.surgery.around_model.selectors import OWN, Selector, parse_all

_OWN = Selector(OWN, None)
STATE_KEY = ":kept"
"""Key of the attributes' values after the call, in a result; no module can have this name."""


@dataclass(frozen=True)
class BoundaryAdapter:
    """Calls a model with the preprocessing, outputs and state that the caller asked for; twin and original alike.

    Attributes:
        outputs: Places in the model whose values are the file's outputs; the model's own result by default.
        normalize: Preprocessing of a picture.
        argument: The parameter of forward that is the picture: its number and name.
        dtype: Floating-point type of the model's parameters.
        detections: Postprocessing of the model's own result.
    """

    outputs: tuple[Selector, ...] = (_OWN,)
    normalize: Normalize | None = None
    argument: tuple[int, str] = (0, "")
    dtype: torch.dtype = torch.float32
    detections: Detections | None = None
    state: tuple[str, ...] = ()
    """Attributes that become inputs, after the model's own, and outputs."""
    pads: bool = True
    """Whether the model may return fewer boxes than `detections.candidates`."""
    marked: bool = False
    """Whether the result also holds the inputs and outputs of the engine's own operator for detections."""

    @property
    def places(self) -> tuple[str, ...]:
        """Paths of the modules that `outputs` names, and of the attributes that are state."""
        return (*(selector.path for selector in self.outputs if selector.path is not None), *self.state)

    def call(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the model; returns a mapping, in the order of the outputs."""
        with state_set_to(model, {text: kwargs[text] for text in self.state}) as read_state:
            result = Recorder(self.outputs, to_the_end=bool(self.state)).run(model, *self.adapt_arguments(args, kwargs))
            if self.detections is not None:
                result[OWN], marks = self.detections.detect(result[OWN], self.pads)
                result |= marks if self.marked else {}
            return {**result, STATE_KEY: read_state()} if self.state else result

    def adapt_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the model's forward: without state, the picture preprocessed."""
        kwargs = {name: value for name, value in kwargs.items() if name not in self.state}
        if self.normalize is None:
            return args, kwargs
        number, name = self.argument
        if name in kwargs:
            return args, {**kwargs, name: self.normalize.apply(kwargs[name], self.dtype)}
        return (*args[:number], self.normalize.apply(args[number], self.dtype), *args[number + 1 :]), kwargs

    def path_of(self, path: tree.Path) -> tree.Path:
        """The path of a tensor in the result, which names the output; the model's own outputs keep their paths."""
        if path[:1] == (STATE_KEY,):
            return (*path[1:], "next")
        own = any(selector.path is None for selector in self.outputs)
        return path[1:] if own and path[:1] == (OWN,) else path


def select(keyword: str, prepared: Prepared, places: Sequence[str] | str) -> tuple[Selector, ...]:
    """Reads the places in a model that the caller named, and checks them in a run on the example.

    Raises:
        CompatError: One names no module, or the module is not called, or more than once, or returns no tensor.
    """
    selectors = parse_all(keyword, places, prepared.model)
    recorder = Recorder(selectors, to_the_end=True)
    run(prepared, prepared.inputs, recorder)
    check_values(keyword, selectors, recorder, prepared.model)
    return selectors


def prepare_as_exported(
    model: Any,
    args: Any,
    kwargs: Mapping[str, Any] | None,
    *,
    state: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
) -> Prepared:
    """The model with the inputs and outputs of a file that was exported with this state and these outputs.

    Args:
        model: As for export_compat.
        args: As for export_compat.
        kwargs: As for export_compat.
        state: As for export_compat.
        outputs: As for export_compat.

    Raises:
        CompatError: As for export_compat.
    """
    prepared = prepare(model, args, kwargs=kwargs, state=state)
    return with_boundary_adapter(prepared, Cut(outputs=outputs, state=state))


def with_boundary_adapter(prepared: Prepared, cut: Cut) -> Prepared:
    """The model with the inputs, outputs and state that the caller asked for, as far as the file computes them.

    Raises:
        CompatError: As in the functions below.
    """
    if cut.state:
        texts = (cut.state,) if isinstance(cut.state, str) else tuple(cut.state)
        prepared = replace(prepared, boundary=replace(adapter_of(prepared), state=texts))
    if isinstance(cut.preprocess, Normalize):
        prepared = with_normalize(prepared, cut.preprocess)
    if cut.outputs is not None:
        prepared = with_outputs(prepared, cut.outputs)
    postprocess = cut.postprocess
    if postprocess in ALTERNATIVES:
        postprocess = detections_of(prepared.model, postprocess)
    if isinstance(postprocess, Detections):
        is_callers = isinstance(cut.postprocess, Detections)
        prepared = with_detections(prepared, postprocess, is_callers=is_callers)
    return prepared


def adapter_of(prepared: Prepared) -> BoundaryAdapter:
    """The model's adapter, or one that changes nothing."""
    assert prepared.boundary is None or isinstance(prepared.boundary, BoundaryAdapter)
    return prepared.boundary or BoundaryAdapter()


def with_outputs(prepared: Prepared, outputs: Sequence[str] | str) -> Prepared:
    """The model with other outputs.

    Args:
        prepared: The model.
        outputs: Places in the model, in order.

    Raises:
        CompatError: As `select`.
    """
    return replace(prepared, boundary=replace(adapter_of(prepared), outputs=select("outputs", prepared, outputs)))


def with_normalize(prepared: Prepared, normalize: Normalize) -> Prepared:
    """The model with preprocessing before it.

    Raises:
        CompatError: There is no such argument, or it is no picture of this layout.
    """
    names = list(prepared.inputs.parameters)
    name = normalize.input or prepared.inputs.arguments[0]
    if name not in prepared.inputs.arguments:
        raise ArgumentError(f"preprocess: {unknown_name('input', name, prepared.inputs.arguments)}")
    normalize.apply(prepared.inputs.tensors[prepared.inputs.arguments.index(name)])
    floats = [p.dtype for p in prepared.model.parameters() if p.is_floating_point()]
    number = names.index(name) if name in names else 0
    boundary = replace(
        adapter_of(prepared),
        normalize=normalize,
        argument=(number, name),
        dtype=(floats or [torch.float32])[0],
    )
    if normalize.fit == "letterbox" and any(d >= 1 for axes in prepared.inputs.axes for d in axes):
        raise ArgumentError("preprocess: a letterbox needs a picture of fixed size; only its batch may be dynamic.")
    return replace(prepared, boundary=boundary)


def with_detections(prepared: Prepared, detections: Detections, *, is_callers: bool = False) -> Prepared:
    """The model with non-maximum suppression after it.

    Args:
        prepared: The model.
        detections: The suppression.
        is_callers: Whether the caller says so, and no head that is known; then it is told which outputs are left out.

    Raises:
        CompatError: Its outputs are not as declared, or `outputs` was passed too.
    """
    boundary = adapter_of(prepared)
    if boundary.outputs != (_OWN,):
        raise ArgumentError("outputs and postprocess=Detections(...) both say what the file gives; pass one of them.")
    recorder = Recorder(boundary.outputs)
    run(prepared, prepared.inputs, recorder)
    limited = detections.fit_candidates(recorder.found[OWN])
    dropped = detections.left_out(recorder.found[OWN]) if is_callers else []
    if dropped:
        note = f"postprocess: not in the file, as neither boxes nor scores: output {', '.join(map(repr, dropped))}."
        prepared = replace(prepared, notes=(*prepared.notes, note))
    pads = any(
        dim for axes in prepared.inputs.axes for dim in axes
    )  # axis 0, the batch, does not change the number of boxes
    return replace(prepared, boundary=replace(boundary, detections=detections if pads else limited, pads=pads))


def with_cuts(prepared: Prepared, cuts: Sequence[Selector]) -> BoundaryAdapter:
    """The adapter with the values at which the graph is to be cut as further outputs."""
    boundary = adapter_of(prepared)
    new = (cut for cut in cuts if cut not in boundary.outputs)
    return replace(boundary, marked=True, outputs=(*boundary.outputs, *new))


def run(prepared: Prepared, inputs: Inputs, recorder: Recorder) -> None:
    """Runs the original, unpatched model, so that the recorder gets its values."""
    args, kwargs = adapter_of(prepared).adapt_arguments(*inputs.call([tensor.clone() for tensor in inputs.tensors]))
    twin = prepared.twin()
    with undo_writes(twin):
        recorder.run(twin, args, kwargs)
