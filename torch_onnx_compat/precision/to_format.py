"""Brings a proven network to the format that a caller asks for."""

from __future__ import annotations

from collections.abc import Sequence

from torch_onnx_compat.inputs import Inputs
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
    if isinstance(asked, Half):
        return narrow_network(job, asked)
    if isinstance(asked, Int8):
        return quantize_network(job, asked, target, calibration)
    return quantize_uncalibrated(job, asked, target)
