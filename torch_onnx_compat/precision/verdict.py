"""What became of a file of half the width: what stayed in float32 and why, what overflows, and how far it is off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch_onnx_compat.precision.judge import CaseError, Error

SHOWN = 12
"""Rows of a table that are printed; all are in the result."""


@dataclass(frozen=True)
class Kept:
    """A node that stayed in float32.

    Attributes:
        place: Where in the model it is.
        op_type: Its operator.
        why: The reason.
        loss: What it would lose by itself, relative to its values; 0 where that is not the reason.
        largest: Its largest value, or the largest sum on the way to it.
    """

    place: str
    op_type: str
    why: str
    loss: float = 0.0
    largest: float = 0.0


@dataclass(frozen=True)
class Precision:
    """A file in float16 or bfloat16.

    Attributes:
        format: ``float16`` or ``bfloat16``.
        limit: The largest error that passes.
        narrow: How many nodes compute in the format.
        wide: How many compute in float32.
        casts: How many casts stand between the two.
        share: Which part of the multiplications of products of matrices, on the example, is in the format; None where
            there are none.
        kept: The nodes that stayed in float32.
        errors: How far each output of each case is off; empty where the file was not compared.
        runs: How many measuring runs of the graph were made.
        judges: What computed the errors.
        notes: What else the caller should know.
    """

    format: str
    limit: float
    narrow: int
    wide: int
    casts: int
    share: float | None
    kept: tuple[Kept, ...]
    errors: tuple[CaseError, ...]
    runs: int
    judges: str
    notes: tuple[str, ...] = ()

    @property
    def worst(self) -> CaseError | None:
        """The row with the largest error."""
        return max(self.errors, key=lambda row: row.rendering.worst, default=None)

    @property
    def allowance(self) -> float:
        """How far an engine's outputs may be off, relative to their size."""
        return self.limit

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        told = {**vars(self), "kept": [vars(row) for row in self.kept], "notes": list(self.notes)}
        return {**told, "errors": [row.to_dict() for row in self.errors]}

    def __str__(self) -> str:
        share = "" if self.share is None else f", {self.share:.0%} of the multiplications"
        lines = [f"{self.format}: {self.narrow} of {self.narrow + self.wide} nodes{share}, {self.casts} casts"]
        lines += [f"  in float32: {count} x {why}" for why, count in self.reasons().most_common(SHOWN)]
        measured = sorted((row for row in self.kept if row.loss or row.largest), key=lambda row: -row.loss)
        if measured:
            cells = [("place", "node", "loss alone", "largest", "why in float32")]
            cells += [(r.place, r.op_type, _loss(r.loss), f"{r.largest:.2g}", r.why) for r in measured[:SHOWN]]
            lines += columns(cells)
            if len(measured) > SHOWN:
                lines.append(f"  … and {len(measured) - SHOWN} more in result.precision.kept")
        if self.errors:
            lines.append(f"  errors against eager float64 by {self.judges}, limit {self.limit:.2g}")
            lines += columns([(*_HEAD, f"eager {self.format}", "verdict"), *map(_cells, self._rows_to_show())])
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def reasons(self) -> Counter[str]:
        """How many nodes stayed in float32 for each reason, those for a measured loss or range taken together."""
        return Counter(_kind(row) for row in self.kept)

    def _rows_to_show(self) -> Sequence[CaseError]:
        first = [row for row in self.errors if row.case == "example"]
        others = sorted((r for r in self.errors if r.case != "example"), key=lambda row: -row.rendering.worst)
        return [*first[:SHOWN], *others[: max(0, SHOWN - len(first))]]


_HEAD = ("case", "output", "file", "rounded at each node", "eager float32")


def _kind(row: Kept) -> str:
    if row.why.startswith(("values up to", "adds up")):
        return "range"
    return "loss" if row.loss else row.why


def _loss(loss: float) -> str:
    return f"{loss:.2g}" if loss else ""


def _cells(row: CaseError) -> tuple[str, ...]:
    errors = (row.file, row.rendering, row.float32, row.eager)
    return (row.case, row.output, *map(_error, errors), _verdict(row))


def _verdict(row: CaseError) -> str:
    if not row.ok:
        return "WRONG"
    return f"ok: {row.why}" if row.why else "ok"


def _error(error: Error | None) -> str:
    return "" if error is None else f"{error.worst:.2g}"


def columns(cells: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows of texts as lines, the columns under each other."""
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]) - 1)]
    return ["  " + "  ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[-1]]) for line in cells]
