"""Makes a part of a model a model of its own, with inputs recorded in a run of the whole model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from torch_onnx_compat.errors import ArgumentError
from torch_onnx_compat.inputs.inputs import Axis, Inputs, bind
from torch_onnx_compat.inputs.probing import first_accepted, other_sizes
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.surgery.around_model.boundary import run
from torch_onnx_compat.surgery.around_model.recorder import Recorder, check_called
from torch_onnx_compat.surgery.around_model.selectors import Selector, parse


def part_of(
    prepared: Prepared, submodule: str, input_names: Sequence[str] | None = None, state: Sequence[str] = ()
) -> Prepared:
    """One module of a model, with its inputs recorded.

    An axis of its inputs is dynamic if its size changes with a dynamic axis of the model. It has that axis's name if
    the two sizes are always equal.

    Args:
        prepared: The whole model.
        submodule: The path of a module; ``"path:1"`` takes the inputs of its second call.
        input_names: Names of the part's inputs.
        state: State that the caller asked for, which must be empty.

    Raises:
        CompatError: It names no module, or the module is not called, or is called several times and no call is named;
            or `state` is not empty.
    """
    if state:
        raise ArgumentError(
            f"submodule={submodule!r} and state={list(state)}: these name attributes of the whole model; export the "
            f"part as a model of its own, with example inputs of its own, and name them there."
        )
    selector = parse("submodule", submodule, prepared.model)
    if not selector.path or selector.part != "output":
        raise ArgumentError(f"submodule: {submodule!r} names no part of the model; wanted a path such as 'layer2'.")
    recorder = Recorder([replace(selector, part="input")], to_the_end=True)
    run(prepared, prepared.inputs, recorder)
    check_called("submodule", selector, recorder, prepared.model)
    module = prepared.model.get_submodule(selector.path)
    inputs = bind(module, *recorder.arguments[selector.text], input_names)
    axes, refused = _axes(prepared, selector, inputs)
    notes = [
        f"submodule {submodule!r}: axis {name!r} is fixed; the model refused other sizes of it" for name in refused
    ]
    return replace(prepared, model=module, inputs=replace(inputs, axes=axes), notes=(*prepared.notes, *notes))


def _axes(prepared: Prepared, selector: Selector, inputs: Inputs) -> tuple[tuple[dict[int, Axis], ...], list[str]]:
    """The part's dynamic axes, and the model's axes at whose other sizes the model does not run."""
    histories = {name: [size] for name, size in prepared.inputs.sizes().items()}
    shapes = [[size] for tensor in inputs.tensors for size in tensor.shape]
    refused = []
    for name in histories:
        other = _record_at(prepared, selector, name, inputs)
        if other is None:
            refused.append(name)
            continue
        sizes, tensors = other
        for root, history in histories.items():
            history.append(sizes[root])
        for history, size in zip(shapes, (s for t in tensors for s in t.shape), strict=True):
            history.append(size)
    names = {tuple(history): name for name, history in histories.items()}
    known = {a.name: a for axes in prepared.inputs.axes for a in axes.values() if not a.terms}
    histories_left = iter(shapes)
    result: list[dict[int, Axis]] = []
    for input_name, tensor in zip(inputs.names, inputs.tensors, strict=True):
        axes = {}
        for dim in range(tensor.dim()):
            seen = tuple(next(histories_left))
            if len(set(seen)) > 1:
                name = names.setdefault(seen, f"{input_name}_{dim}")
                axes[dim] = known.get(name, Axis(name, required=False))
        result.append(axes)
    return tuple(result), refused


def _record_at(
    prepared: Prepared, selector: Selector, name: str, inputs: Inputs
) -> tuple[dict[str, int], tuple[Tensor, ...]] | None:
    """The sizes of the model's axes, and the part's inputs, in a run in which one axis has another size."""

    def record(at_sizes: Inputs) -> tuple[dict[str, int], tuple[Tensor, ...]] | None:
        recorder = Recorder([replace(selector, part="input")])
        run(prepared, at_sizes, recorder)
        other = bind(prepared.model.get_submodule(str(selector.path)), *recorder.arguments[selector.text], None)
        same = [t.dim() for t in other.tensors] == [t.dim() for t in inputs.tensors]
        return (at_sizes.sizes(), other.tensors) if same else None

    return first_accepted(other_sizes(prepared.inputs, name), record)
