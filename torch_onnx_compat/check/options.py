"""How a file is proven: what the caller may set."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import isfinite
from numbers import Real
from typing import Any

from torch_onnx_compat.errors import ArgumentError, unknown_name


@dataclass(frozen=True)
class Verify:
    """How a file is proven.

    Args:
        rtol: Largest difference relative to the value; None takes it from the output's dtype.
        atol: Largest difference of values near zero, relative to the output's typical magnitude; None likewise.
        values: How many times new input values are drawn.
        sizes: Sizes to try, by axis name; an axis that is not named gets 1, the example's and an odd larger one.
        random: Whether inputs may be drawn at random; False where only the example and `samples` make sense.
        seed: Seed of the random inputs.
        on_target: Whether the file is run in the target's own engine too, where that is installed.
    """

    rtol: float | None = None
    atol: float | None = None
    values: int = 1
    sizes: Mapping[str, Collection[int]] = field(default_factory=dict)
    random: bool = True
    seed: int = 0
    on_target: bool = False

    def __post_init__(self) -> None:
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value)):
                raise _wrong(name, value, "a number, such as 1e-3, or None")
        if type(self.values) is not int or self.values < 0:
            raise _wrong("values", self.values, "a whole number from 0")
        if type(self.seed) is not int:
            raise _wrong("seed", self.seed, "a whole number")
        for name in ("random", "on_target"):
            if not isinstance(getattr(self, name), bool):
                raise _wrong(name, getattr(self, name), "True or False")
        _check_sizes(self.sizes)


def check_axes(verify: Verify | None, known: Collection[str]) -> None:
    """Refuses sizes of axes that do not vary; an axis with no sizes to try may be there or not.

    Args:
        verify: How a file is to be proven; None: not at all.
        known: Names of the dynamic axes.

    Raises:
        CompatError: `sizes` names an axis that is none of them; says which there are.
    """
    for axis, sizes in (verify.sizes if verify is not None else {}).items():
        if sizes and axis not in known:
            found = unknown_name("dynamic axis", str(axis), known)
            raise ArgumentError(f"Verify(sizes=...): {found} Dynamic axes here: {', '.join(known) or 'none'}.")


def _check_sizes(wanted: Any) -> None:
    if not isinstance(wanted, Mapping):
        raise _wrong("sizes", wanted, "a dict of axis to sizes, such as {'batch': (1, 5)}")
    for axis, sizes in wanted.items():
        if isinstance(sizes, str) or not isinstance(sizes, Collection) or not all(_is_size(size) for size in sizes):
            raise _wrong(f"sizes[{axis!r}]", sizes, "a list of whole numbers, such as (1, 5)")


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 0


def _wrong(name: str, value: Any, wanted: str) -> ArgumentError:
    return ArgumentError(f"Verify({name}={value!r}): wanted {wanted}.")
