"""The two formats of half the width: their limits, and what a caller may ask of a file in one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, ClassVar

import onnx_ir as ir
import torch

from torch_onnx_compat.catalogue.entry import MIN_OPSET
from torch_onnx_compat.errors import ArgumentError, unknown_name
from torch_onnx_compat.precision.int8.request import BITS, Dynamic, Int8, Request, WeightOnly
from torch_onnx_compat.targets import Target
from torch_onnx_compat.targets.target import BFLOAT16_OPSET


@dataclass(frozen=True)
class Half:
    """How a file is brought to a format of half the width.

    Args:
        keep_io: Whether the file's inputs and outputs keep their types; False makes the float32 ones narrow as well.
        keep: Places that stay in float32: module paths such as ``"head"``, or operators such as ``"Softmax"``.
        limit: Largest error of an output value, relative to the value or to what is usual around it (see
            `judge.errors_of`); None takes 20 units of the format's last place.
        samples: Further inputs to measure on, as for export_compat's `samples`, which are measured too.
    """

    keep_io: bool = True
    keep: Sequence[str] = ()
    limit: float | None = None
    samples: Sequence[Any] = ()

    name: ClassVar[str] = ""
    onnx_type: ClassVar[ir.DataType]
    torch_type: ClassVar[torch.dtype]
    least_opset: ClassVar[int] = 1

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if not isinstance(self.keep_io, bool):
            raise ArgumentError(f"{kind}(keep_io={self.keep_io!r}): wanted True or False.")
        for name in ("keep", "samples"):
            value = getattr(self, name)
            if isinstance(value, str) or not isinstance(value, Sequence):
                raise ArgumentError(f"{kind}({name}={value!r}): wanted a list, such as {_LISTS[name]}.")
        number = self.limit
        if number is None:
            return
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not isfinite(number) or number <= 0:
            raise ArgumentError(f"{kind}(limit={number!r}): wanted a number above 0, such as 1e-2, or None.")

    @property
    def unit(self) -> float:
        """The distance from 1 to the next number of the format."""
        return torch.finfo(self.torch_type).eps

    @property
    def largest(self) -> float:
        """The largest finite number of the format."""
        return torch.finfo(self.torch_type).max

    @property
    def bound(self) -> float:
        """The largest error that passes."""
        return UNITS * self.unit if self.limit is None else self.limit

    def reach(self, number: float) -> str:
        """Where a magnitude lies in the format's range."""
        where = "beyond" if number > self.largest else "near"
        return f"{where} {self.name}'s largest number, {self.largest:.5g}"

    def loss_text(self, loss: float, peak: float) -> str:
        """What is said of a loss, with the cause where values are so small that the format has few steps there."""
        lost = f"loses {loss:.1%} by itself" if loss < 10 else "loses everything by itself"
        least = torch.finfo(self.torch_type).tiny
        return f"{lost}, as its values are below {self.name}'s {least:.1e}" if 0 < peak < least else lost

    @property
    def too_strict(self) -> tuple[str, str]:
        """What is said of a limit that a single rounding exceeds, and what to do."""
        return (
            f"the limit {self.bound:.1e} is less than a single rounding to {self.name} costs, {self.unit / 2:.1e}",
            f"pass a limit of some units, such as {UNITS * self.unit:.2g}, the default",
        )


UNITS = 20.0
"""The default limit, in units of the last place."""

_LISTS = {"keep": "['head']", "samples": "[(x,), {'x': x}]"}


@dataclass(frozen=True)
class Float16(Half):
    """A file in float16; see `Half` for the arguments."""

    name = "float16"
    onnx_type = ir.DataType.FLOAT16
    torch_type = torch.float16


@dataclass(frozen=True)
class Bfloat16(Half):
    """A file in bfloat16; see `Half` for the arguments."""

    name = "bfloat16"
    onnx_type = ir.DataType.BFLOAT16
    torch_type = torch.bfloat16
    least_opset = 13


FORMATS: dict[str, Callable[..., Half | Request]] = {
    **{kind.name: kind for kind in (Float16, Bfloat16, Int8, Dynamic)},
    **{WeightOnly(bits=bits).name: partial(WeightOnly, bits=bits) for bits in BITS},
}


def precision_from_keyword(precision: Any) -> Half | Request | None:
    """What the keyword `precision` means: a format's name, an object that says more, or None for float32.

    The calibration inputs of an Int8 are read.

    Raises:
        CompatError: It is none of these.
    """
    if precision is None or isinstance(precision, (Half, Dynamic, WeightOnly)):
        return precision
    if isinstance(precision, Int8):
        return precision.read()
    if not isinstance(precision, str):
        raise ArgumentError(
            f"precision={precision!r} is a {type(precision).__name__}; wanted 'float32', "
            f"{', '.join(map(repr, FORMATS))}, or Float16(...), Bfloat16(...), Int8(...), Dynamic(...) or "
            f"WeightOnly(...)."
        )
    if precision == "float32":
        return None
    if precision not in FORMATS:
        raise unknown_name("precision", precision, ("float32", *FORMATS))
    return FORMATS[precision]()


def holds_bfloat16(model: Any) -> bool:
    """Whether a model has weights in bfloat16."""
    return isinstance(model, torch.nn.Module) and any(p.dtype is torch.bfloat16 for p in model.parameters())


def least_opset(precision: Half | Request | None, model: Any, target: Target) -> int:
    """The first opset that has what the file will hold."""
    if isinstance(precision, Bfloat16) or holds_bfloat16(model):
        return BFLOAT16_OPSET
    return precision.least_opset(target) if isinstance(precision, WeightOnly) else MIN_OPSET
