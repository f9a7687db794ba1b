"""Something that is asked of the sizes of the dynamic axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["condition", "number", "constant", "text", "hash", "rounding", "overflow"]


@dataclass(frozen=True)
class Question:
    """Something that is asked of the sizes of the dynamic axes."""

    kind: Kind
    """A condition has the answers yes and no; the others have one for each size. A constant is a number that an
    exporter's file holds as it is at the example. A rounding is no question of Python's:
    the expression is computed in floating point, which an exporter's file may do in float32. Nor is an overflow: it
    leaves the range of int64, which Python's whole numbers do not have."""
    expression: Any
    """Sympy expression over the symbols of the axes' names."""
    answer: Any
    """At the example's sizes."""
    place: str
    """``models/net.py:41``, the model's own statement."""
    operator: str = ""
    """The operator that asks; empty where Python does."""
    numbers: tuple[int, ...] = ()
    """Numbers that the code around it names, for a question whose answers cannot be told from it."""

    @property
    def chooses_kernel(self) -> bool:
        """Whether an operator asks for a yes or no: mostly it chooses among kernels that compute the same."""
        return bool(self.operator) and self.kind == "condition"

    @property
    def is_asked(self) -> bool:
        """Whether something was asked, after which the model may have gone one way of several."""
        return self.kind not in ("rounding", "overflow")

    @property
    def is_number(self) -> bool:
        """Whether Python makes a plain number of sizes, in the model or while an exporter captures it."""
        return self.kind in ("number", "constant") and not self.operator

    @property
    def is_taken(self) -> bool:
        """Whether Python makes something plain of sizes, of which nobody hears what it does with it."""
        return self.kind in ("number", "constant", "text", "hash") and not self.operator

    @property
    def is_equality(self) -> bool:
        """Whether it asks if two sizes are equal."""
        return type(self.expression).__name__ in ("Equality", "Unequality")

    @property
    def are_unequal(self) -> bool:
        """Whether it asks if two sizes are equal, and they are not. Few sizes are on its other side: the equal ones."""
        return self.is_equality and bool(self.answer) == (type(self.expression).__name__ == "Unequality")

    @property
    def consequence(self) -> str:
        """What a file that is wrong on the other side does."""
        return _CONSEQUENCES.get(self.kind, "the file holds the example's answer")

    def __str__(self) -> str:
        formula = str(self.expression)
        if len(formula) > LONGEST:
            axes = ", ".join(sorted(map(str, self.expression.free_symbols)))
            formula = f"{formula[:LONGEST]}… (a formula of {axes})"
        return f"{self.place} {_TEXTS[self.kind].format(formula)}"


LONGEST = 100
"""Characters of a formula that a reader is shown."""

_TEXTS = {
    "condition": "asks whether {}",
    "number": "asks for {} as a number",
    "constant": "makes a plain number of {}",
    "text": "asks for {} as a text",
    "hash": "asks for {} as a key",
    "rounding": "computes {} in floating point",
    "overflow": "computes {} past int64",
}

_CONSEQUENCES = {"rounding": "the file rounds otherwise", "overflow": "the file's number overflows"}
