"""Brings a proven network to the format that a caller asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import onnx_ir as ir

from torch_onnx_compat.graph.shapes import infer_model
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.precision.float32_places import notes_on_float32_places
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.int8.quantize import QuantizedNetwork, quantize_network
from torch_onnx_compat.precision.int8.request import Int8, Request
from torch_onnx_compat.precision.int8.uncalibrated import quantize_uncalibrated
from torch_onnx_compat.precision.narrow import NarrowNetwork, PrecisionJob, narrow_network
from torch_onnx_compat.targets import Target


def bring_to_format(
    job: PrecisionJob, asked: Half | Request, target: Target, calibration: Sequence[Inputs]
) -> NarrowNetwork | QuantizedNetwork:
    """Makes the narrow network, and judges it.

    Args:
        job: The network, the original, and what to measure on.
        asked: The format.
        target: The engine that it is for.
        calibration: Further inputs to take ranges on, for a format that is calibrated.

    Raises:
        CompatError: The opset, the calibration inputs or the metric do not fit.
        VerificationError: onnxruntime does not run the file.
    """
    notes = notes_on_float32_places(asked.keep, job.network)
    if isinstance(asked, Half):
        narrow = narrow_network(job, asked)
        return replace(narrow, precision=replace(narrow.precision, notes=(*narrow.precision.notes, *notes)))
    if isinstance(asked, Int8):
        made = quantize_network(job, asked, target, calibration)
    else:
        made = quantize_uncalibrated(job, asked, target)
    _take_over_shapes(job.network, made.model)
    return replace(made, precision=replace(made.precision, notes=(*made.precision.notes, *notes)))


def _take_over_shapes(known: ir.Model, model: ir.Model) -> None:
    """Gives the values of a graph the types and shapes that they had before: the quantisers' files say few of them."""
    before = {value.name: value for node in known.graph for value in node.outputs if value.shape is not None}
    for node in model.graph:
        for value in node.outputs:
            same = before.get(value.name)
            if same is not None and value.shape is None and value.dtype in (None, same.dtype):
                value.type, value.shape = same.type, same.shape
    infer_model(model)  # those of the pairs
