"""The result of localise()."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SHOWN = 12
"""Nodes that are printed; all are in the result."""


@dataclass(frozen=True)
class Layer:
    """The error of a file at the result of one module."""

    module: str
    error: float
    """Largest difference relative to the largest value."""
    tolerance: float
    """Largest difference that rounding explains."""


@dataclass(frozen=True)
class Loss:
    """A node in half the width that should be in float32.

    Attributes:
        module: Path of the module, as far as it is known; empty for the model itself.
        operator: ONNX operator.
        node: Name of the node.
        statement: Statement of the model's code, ``file.py:line``; empty where no tensor of the model was matched.
        torch_operator: The operator that eager torch calls there.
        why: What it loses, or how large its values become.
        loss: Largest error by itself, relative to its values; 0 where that is not the reason.
        largest: Its largest value, or the largest sum on the way to it.
    """

    module: str
    operator: str
    node: str
    statement: str
    torch_operator: str
    why: str
    loss: float
    largest: float

    def __str__(self) -> str:
        statement = f", {self.statement}" if self.statement else ""
        what = f"{self.torch_operator} in the model, " if self.torch_operator else ""
        return f"{self.module or 'the model itself'}{statement}: {what}{self.operator} {self.node!r}: {self.why}"


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
        format: ``float16`` or ``bfloat16``, of a file in half the width of a model in float32.
        off: How far each output of such a file is off, as the judge of narrow files says it.
        lost: The nodes of such a file that should be in float32: what overflows first, then what loses most.
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
    format: str = ""
    off: tuple[str, ...] = ()
    lost: tuple[Loss, ...] = ()

    def __str__(self) -> str:
        if not self.found:
            return f"no layer differs by more than rounding{f' to {self.format}' if self.format else ''}."
        return self._loss() if self.format and self.lost else self._difference()

    def _loss(self) -> str:
        lines = [f"the file is in {self.format}, which is not enough: {'; '.join(self.off)}."]
        lines += [f"  {loss}" for loss in self.lost[:SHOWN]]
        more = [f"  … and {len(self.lost) - SHOWN} more"] if len(self.lost) > SHOWN else []
        return "\n".join(
            [*lines, *more, f"  These belong into float32; export_compat(precision={self.format!r}) keeps them."]
        )

    def _difference(self) -> str:
        place = f"{self.module or 'the model itself'} ({self.kind})" if self.kind else self.module or "the model itself"
        statement = f", {self.statement}" if self.statement else ""
        model = f"first difference at {place}{statement}: {self.torch_operator or 'a result'} in the model, "
        if not self.operator:
            return f"{model}which the file does not compute."
        return f"{model}{self.operator} {self.node!r} in the file; {self._values()}."

    def _values(self) -> str:
        return self.detail or f"{self.got:.6g} for {self.wanted:.6g}"

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {
            **vars(self),
            "off": list(self.off),
            "layers": [vars(layer) for layer in self.layers],
            "lost": [vars(loss) for loss in self.lost],
        }
