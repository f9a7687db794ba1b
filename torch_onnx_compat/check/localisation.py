"""The result of localise()."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Layer:
    """The error of a file at the result of one module."""

    module: str
    error: float
    """Largest difference relative to the largest value."""
    tolerance: float
    """Largest difference that rounding explains."""


@dataclass(frozen=True)
class Localisation:
    """Where a file first differs from the model.

    Attributes:
        found: Whether it differs by more than rounding explains.
        module: Path of the module; empty for the model itself.
        kind: Class of the module.
        operator: ONNX operator that computes the wrong tensor.
        node: Name of its node.
        tensor: The wrong tensor of the file.
        statement: Statement of the model's code, ``file.py:line``.
        torch_operator: The operator that eager torch calls there.
        wanted: Eager torch's value in float64, at the element that differs most.
        got: The file's value there.
        detail: Shapes, where these differ.
        layers: The errors of all modules whose result stands in the file.
    """

    found: bool
    module: str = ""
    kind: str = ""
    operator: str = ""
    node: str = ""
    tensor: str = ""
    statement: str = ""
    torch_operator: str = ""
    wanted: float | None = None
    got: float | None = None
    detail: str = ""
    layers: tuple[Layer, ...] = ()

    def __str__(self) -> str:
        if not self.found:
            return "no layer differs by more than rounding."
        place = f"{self.module or 'the model itself'} ({self.kind})" if self.kind else self.module or "the model itself"
        statement = f", {self.statement}" if self.statement else ""
        return (
            f"first difference at {place}{statement}: {self.torch_operator} in the model, {self.operator or 'nothing'} "
            f"{self.node!r} in the file; {self.detail or f'{self.got:.6g} for {self.wanted:.6g}'}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {**vars(self), "layers": [vars(layer) for layer in self.layers]}
