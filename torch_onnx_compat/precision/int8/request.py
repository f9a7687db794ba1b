"""What a caller may ask of a file in eight or four bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import isfinite
from typing import Any, ClassVar

from torch import Tensor

from torch_onnx_compat.errors import ArgumentError
from torch_onnx_compat.targets import Target
from torch_onnx_compat.targets.placement import DEQUANTIZE

Metric = Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], float]
"""The loss of a file's outputs, given those that are wanted."""

TOP1 = "top1"

LIMITS = {None: 0.1, TOP1: 0.01}
"""The default limits: a tenth of the outputs' size, which is 20 dB; one row of a hundred."""

BITS = (8, 4)
BLOCK_SIZES = (16, 32, 64, 128, 256)

LEAST_BLOCK_OPSET = 21
"""DequantizeLinear in blocks, and weights in four bits."""

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
            raise ArgumentError(
                f"Int8(calibration={type(self.calibration).__name__}): wanted a list or another iterable of inputs, "
                f"such as [(x,), {{'x': x}}]."
            )
        if isinstance(self.calibration, Tensor):
            raise ArgumentError(
                "Int8(calibration=Tensor): wanted a list of inputs; pass x.split(32) for the rows of one tensor."
            )
        _check(type(self).__name__, self.limit, self.metric, self.keep)
        if type(self.at_most) is not int or self.at_most < 1:
            raise ArgumentError(f"Int8(at_most={self.at_most!r}): wanted a whole number from 1.")

    @property
    def bound(self) -> float:
        """The largest loss that passes."""
        return _bound(self.limit, self.metric)

    def read(self) -> Int8:
        """The same with its calibration inputs in a tuple: an iterator can be read only once."""
        if self.calibration is None:
            return self
        return replace(self, calibration=tuple(islice(iter(self.calibration), self.at_most)))

    def check(self, opset: int, target: Target) -> None:
        """Refuses what cannot hold eight bits.

        Raises:
            CompatError: The opset is too low.
            ArgumentError: The target's profile says nothing of quantized files.
        """
        if opset < LEAST_OPSET:
            raise ArgumentError(
                f"precision=Int8 needs opset {LEAST_OPSET} or later, not {opset}: before, QuantizeLinear has no axis; "
                f"pass opset_version={LEAST_OPSET} or more."
            )
        if target.placement is None:
            raise ArgumentError(
                f"precision=Int8: the profile of target {target.name!r} has no table [quantization], so it is not "
                f"known whether it runs QuantizeLinear. Export in float32 and quantize with the engine's own tool, or "
                f"add the table to a profile of your own (docs/targets.md)."
            )


@dataclass(frozen=True)
class WithoutCalibration:
    """What the forms that need no calibration inputs have in common.

    Args:
        limit: Largest loss that passes; None takes 0.1, and 0.01 for ``"top1"``.
        metric: The loss of the outputs of one input, as for `Int8`.
        keep: Places that stay in float32: module paths such as ``"head"``, or operators such as ``"MatMul"``.
        samples: Further inputs to judge on, as for export_compat's `samples`, which are judged on too.
    """

    limit: float | None = None
    metric: Metric | str | None = None
    keep: Sequence[str] = ()
    samples: Sequence[Any] = ()

    keep_io: ClassVar[bool] = True

    def __post_init__(self) -> None:
        kind = type(self).__name__
        _check(kind, self.limit, self.metric, self.keep)
        if isinstance(self.samples, str) or not isinstance(self.samples, Sequence):
            raise ArgumentError(f"{kind}(samples={self.samples!r}): wanted a list, such as [(x,), {{'x': x}}].")

    @property
    def bound(self) -> float:
        """The largest loss that passes."""
        return _bound(self.limit, self.metric)


@dataclass(frozen=True)
class Dynamic(WithoutCalibration):
    """A file whose matrix products run in eight bits, with the range of what they read found at run time.

    Weights are in int8, with a scale for each channel. See `WithoutCalibration` for the arguments.
    """

    name: ClassVar[str] = "int8-dynamic"

    def check(self, opset: int, target: Target) -> None:
        """Refuses what cannot hold the form; every opset that is written has it.

        Raises:
            ArgumentError: The target's profile has no operators in this form.
        """
        if target.placement is None or not target.placement.dynamic:
            raise _not_offered("Dynamic", target, "dynamic")


@dataclass(frozen=True)
class WeightOnly(WithoutCalibration):
    """A file whose matrix products read weights of few bits, and compute in float32.

    Args:
        limit: As for `WithoutCalibration`, as the next three.
        metric: See there.
        keep: See there.
        samples: See there.
        bits: 8 or 4.
        block_size: How many weights along the axis that is added up share a scale: a power of two from 16 to 256.
    """

    bits: int = 8
    block_size: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bits not in BITS:
            raise ArgumentError(f"WeightOnly(bits={self.bits!r}): wanted {' or '.join(map(str, BITS))}.")
        if self.block_size not in BLOCK_SIZES:
            raise ArgumentError(f"WeightOnly(block_size={self.block_size!r}): wanted one of {BLOCK_SIZES}.")

    @property
    def name(self) -> str:
        """``int8-weights`` or ``int4-weights``."""
        return f"int{self.bits}-weights"

    def least_opset(self, target: Target) -> int:
        """The lowest opset that holds the target's form."""
        placement = target.placement
        return LEAST_BLOCK_OPSET if placement is not None and placement.weight_only == DEQUANTIZE else 1

    def check(self, opset: int, target: Target) -> None:
        """Refuses what cannot hold the form.

        Raises:
            CompatError: The opset is too low for the target's form.
            ArgumentError: The target's profile has no such form.
        """
        placement = target.placement
        if placement is None or self.bits not in placement.weight_only_bits:
            raise _not_offered(f"WeightOnly(bits={self.bits})", target, "weight_only_bits")
        if opset < self.least_opset(target):
            raise ArgumentError(
                f"precision=WeightOnly for {target.name!r} needs opset {LEAST_BLOCK_OPSET} or later, not {opset}: "
                f"before, DequantizeLinear has no blocks; pass opset_version={LEAST_BLOCK_OPSET} or more."
            )


Request = Int8 | Dynamic | WeightOnly
"""What may be asked of a file of few bits."""


def _check(kind: str, number: float | None, metric: Any, keep: Any) -> None:
    """Refuses a limit, metric or list of places that is none."""
    if not callable(metric) and metric not in (None, TOP1):
        raise ArgumentError(f"{kind}(metric={metric!r}): wanted 'top1', metric(outputs, wanted) or None.")
    if isinstance(keep, str) or not isinstance(keep, Sequence):
        raise ArgumentError(f"{kind}(keep={keep!r}): wanted a list, such as ['head'].")
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool) and isfinite(number)
    if number is not None and not (is_number and number > 0):
        raise ArgumentError(f"{kind}(limit={number!r}): wanted a number above 0, such as 0.05, or None.")


def _bound(limit: float | None, metric: Any) -> float:
    return LIMITS[TOP1 if metric == TOP1 else None] if limit is None else limit


def _not_offered(asked: str, target: Target, key: str) -> ArgumentError:
    return ArgumentError(
        f"precision={asked}: the profile of target {target.name!r} does not offer it (quantization.{key}), so it is "
        f"not known whether it runs such a file. Leave precision out, or add the key to a profile of your own "
        f"(docs/targets.md)."
    )
