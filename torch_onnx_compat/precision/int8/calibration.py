"""The inputs that a graph is calibrated with, and those that the file is judged on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch_onnx_compat.errors import ArgumentError, CompatError
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.inputs.inputs import Inputs, bind
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.precision.int8.request import Int8

EVERY = 2
"""One of so many inputs is held out: judging takes more of them than calibrating does."""


@dataclass(frozen=True)
class Calibration:
    """Inputs to calibrate with, and others to judge on.

    Attributes:
        inputs: What the ranges are taken from.
        held_out: What the file is judged on.
        is_held_out: Whether the two differ; with one input alone they do not.
    """

    inputs: tuple[Inputs, ...]
    held_out: tuple[Inputs, ...]
    is_held_out: bool


def calibration_of(observation: Observation, int8: Int8, samples: Sequence[Inputs]) -> Calibration:
    """Reads the calibration inputs, and holds out every second of them, one at least.

    Args:
        observation: Has the model and its example.
        int8: What was asked for, already read.
        samples: The export's samples, which serve with the example where there are no calibration inputs.

    Raises:
        CompatError: There is none, or one does not fit forward or the example.
    """
    example = observation.prepared.inputs
    if int8.calibration is None:
        found = [example, *samples]
    else:
        found = [_as_inputs(observation, number, item) for number, item in enumerate(int8.calibration)]
    if not found:
        raise ArgumentError("Int8(calibration=…) is empty; wanted a list of inputs. An iterator can be read only once.")
    if len(found) == 1:
        return Calibration(tuple(found), tuple(found), False)
    out = range(EVERY - 1, len(found), EVERY) if len(found) >= EVERY else [len(found) - 1]
    return Calibration(
        tuple(inputs for number, inputs in enumerate(found) if number not in out),
        tuple(found[number] for number in out),
        True,
    )


def _as_inputs(observation: Observation, number: int, item: Any) -> Inputs:
    prepared = observation.prepared
    example = prepared.inputs
    args, kwargs = ((), item) if isinstance(item, Mapping) else (item, None)
    where = f"calibration input {number}"
    try:
        bound = bind(prepared.model, args, kwargs, None).real()
    except CompatError as error:
        raise ArgumentError(
            f"{where}: {error} Items are given to forward as export_compat's args are; of a loader that yields labels "
            f"too, pass (x for x, label in loader)."
        ) from error
    if bound.paths != example.paths:
        names = [[tree.qualified_name(path) for path in inputs.paths] for inputs in (bound, example)]
        raise ArgumentError(
            f"{where} holds the tensors {names[0]} but the example {names[1]}; give each its structure."
        )
    for name, tensor, wanted, axes in zip(bound.names, bound.tensors, example.tensors, example.axes, strict=True):
        sizes = [a == b or d in axes for d, (a, b) in enumerate(zip(tensor.shape, wanted.shape, strict=False))]
        if tensor.dtype is not wanted.dtype or tensor.dim() != wanted.dim() or not all(sizes):
            raise ArgumentError(
                f"{where}: {name} is {_describe(tensor)}, but the example is {_describe(wanted)} and the file's other "
                f"axes are fixed. Pass dynamic='batch' for batches of several sizes, or drop_last=True to the loader."
            )
    return replace(example, tensors=bound.tensors)


def _describe(tensor: Any) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
