"""What a caller may ask of a file in eight bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import isfinite
from typing import Any, ClassVar

from torch import Tensor

from torch_onnx_compat.errors import CompatError, UnsupportedError
from torch_onnx_compat.targets import Target

Metric = Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], float]
"""The loss of a file's outputs, given those that are wanted."""

TOP1 = "top1"

LIMITS = {None: 0.1, TOP1: 0.01}
"""The default limits: a tenth of the outputs' size, which is 20 dB; one row of a hundred."""

LEAST_OPSET = 13
"""QuantizeLinear has an axis from here on, without which weights have one scale for all channels."""


@dataclass(frozen=True)
class Int8:
    """A file in eight bits, with QuantizeLinear and DequantizeLinear.

    Args:
        calibration: Example inputs, in the form of export_compat's `samples`: tensors, tuples of arguments, or dicts of
            keyword arguments. A list, a DataLoader or another iterable, which is read once. Every second is held out:
            the file is judged on it. None takes the export's example and its `samples`.
        limit: Largest loss that passes; None takes 0.1, and 0.01 for ``"top1"``.
        metric: The loss of the outputs of one calibration input: ``metric(outputs, wanted)``, two tuples of float32
            tensors, gives a number from 0; the losses of all inputs are averaged. ``"top1"`` is the share of rows of
            the first output whose largest value is in another place. None takes the largest distance of an output
            from eager float64's, relative to its size, both as root mean squares.
        keep: Places that stay in float32: module paths such as ``"head"``, or operators such as ``"Add"``.
        at_most: How many calibration inputs are read.
    """

    calibration: Iterable[Any] | None = None
    limit: float | None = None
    metric: Metric | str | None = None
    keep: Sequence[str] = ()
    at_most: int = 128

    name: ClassVar[str] = "int8"
    keep_io: ClassVar[bool] = True
    samples: ClassVar[Sequence[Any]] = ()

    def __post_init__(self) -> None:
        if isinstance(self.calibration, (str, dict)) or not isinstance(self.calibration, (Iterable, type(None))):
            raise CompatError(
                f"Int8(calibration={type(self.calibration).__name__}): wanted a list or another iterable of inputs, "
                f"such as [(x,), {{'x': x}}]."
            )
        if isinstance(self.calibration, Tensor):
            raise CompatError(
                "Int8(calibration=Tensor): wanted a list of inputs; pass x.split(32) for the rows of one tensor."
            )
        if not callable(self.metric) and self.metric not in (None, TOP1):
            raise CompatError(f"Int8(metric={self.metric!r}): wanted 'top1', metric(outputs, wanted) or None.")
        if isinstance(self.keep, str) or not isinstance(self.keep, Sequence):
            raise CompatError(f"Int8(keep={self.keep!r}): wanted a list, such as ['head'].")
        number = self.limit
        is_number = isinstance(number, (int, float)) and not isinstance(number, bool) and isfinite(number)
        if number is not None and not (is_number and number > 0):
            raise CompatError(f"Int8(limit={number!r}): wanted a number above 0, such as 0.05, or None.")
        if type(self.at_most) is not int or self.at_most < 1:
            raise CompatError(f"Int8(at_most={self.at_most!r}): wanted a whole number from 1.")

    @property
    def bound(self) -> float:
        """The largest loss that passes."""
        if self.limit is not None:
            return self.limit
        return LIMITS[TOP1 if self.metric == TOP1 else None]

    def read(self) -> Int8:
        """The same with its calibration inputs in a tuple: an iterator can be read only once."""
        if self.calibration is None:
            return self
        return replace(self, calibration=tuple(islice(iter(self.calibration), self.at_most)))

    def check(self, opset: int, target: Target) -> None:
        """Refuses what cannot hold eight bits.

        Raises:
            CompatError: The opset is too low.
            UnsupportedError: The target's profile says nothing of quantized files.
        """
        if opset < LEAST_OPSET:
            raise CompatError(
                f"precision=Int8 needs opset {LEAST_OPSET} or later, not {opset}: before, QuantizeLinear has no axis; "
                f"pass opset_version={LEAST_OPSET} or more."
            )
        if target.placement is None:
            raise UnsupportedError(
                f"precision=Int8: the profile of target {target.name!r} has no table [quantization], so it is not "
                f"known whether it runs QuantizeLinear. Export in float32 and quantize with the engine's own tool, or "
                f"add the table to a profile of your own (docs/targets.md)."
            )
