"""What became of a file in eight bits: what each layer costs, what stayed in float32 and why, what the file loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch_onnx_compat.precision.int8.other_sizes import SizeLoss, in_words
from torch_onnx_compat.precision.verdict import columns

SHOWN = 12
"""Rows of the table that are printed; all are in the result."""

UNNAMED = "the caller's metric"


@dataclass(frozen=True)
class LayerLoss:
    """One node that the target has in eight bits.

    Attributes:
        place: Where in the model it is.
        op_type: Its operator.
        rounding: What eight bits change of what it reads and gives, relative to it, the worst of these tensors; None
            where it was not measured.
        effect: How far the outputs are off when it alone is in eight bits, relative to them; None where it was not
            measured.
        method: How the range of what it reads was found.
        kept: Whether it is in float32.
        why: Why it is.
    """

    place: str
    op_type: str
    rounding: float | None = None
    effect: float | None = None
    method: str = ""
    kept: bool = False
    why: str = ""


@dataclass(frozen=True)
class Trial:
    """A file that was judged on its way.

    Attributes:
        kept: How many layers were in float32.
        loss: Its loss in onnxruntime, as the metric says.
        rendered: The loss where every pair rounds, and everything else is in float32.
    """

    kept: int
    loss: float
    rendered: float

    @property
    def worst(self) -> float:
        """The larger of the two."""
        return max(self.loss, self.rendered)


@dataclass(frozen=True)
class Quantized:
    """A file in eight bits.

    Attributes:
        limit: The largest loss that passes.
        metric: What the loss is.
        is_proven: Whether the file was judged on inputs that it was not calibrated with.
        judged_on: On how many inputs it was judged.
        calibrated_on: With how many it was calibrated; 0 where the form needs none.
        final: The file.
        trials: The files that were judged on the way, the first with every layer in eight bits.
        float32_loss: The loss of the file before, in float32.
        distance: How far the outputs are off, relative to them, whatever the metric is.
        agreement: Of outputs (N, C), the share of rows whose largest value is in the same place; None for others.
        method: How the ranges were chosen: one method, or the best for each tensor.
        narrow: How many nodes are in eight bits.
        layers: What each layer costs, the worst first.
        runs: How many runs of the graph measuring took.
        notes: What else the caller should know.
        format: The format's name.
        sizes: The sizes that the dynamic axes have in the inputs that it was judged on.
        elsewhere: What it loses at other sizes of one axis, in some of these inputs brought to that size.
    """

    limit: float
    metric: str
    is_proven: bool
    judged_on: int
    calibrated_on: int
    final: Trial
    trials: tuple[Trial, ...]
    float32_loss: float
    distance: float
    agreement: float | None
    method: str
    narrow: int
    layers: tuple[LayerLoss, ...]
    runs: int
    notes: tuple[str, ...] = ()
    format: str = "int8"
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    elsewhere: tuple[SizeLoss, ...] = ()

    @property
    def kept(self) -> tuple[LayerLoss, ...]:
        """The layers that stayed in float32."""
        return tuple(layer for layer in self.layers if layer.kept)

    @property
    def allowance(self) -> float:
        """How far an engine's outputs may be off, relative to their size: its kernels round in other places."""
        return 2 * self.distance

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        told = {**vars(self), "notes": list(self.notes), "final": vars(self.final)}
        told["sizes"] = {axis: list(sizes) for axis, sizes in self.sizes.items()}
        return {**told, **{name: [vars(row) for row in told[name]] for name in ("trials", "layers", "elsewhere")}}

    def __str__(self) -> str:
        total = len(self.layers)
        done = f"{total - len(self.kept)} of {total} layers, {self.narrow} nodes; {self.verdict}"
        lines = [f"{self.format}: {done if self.narrow else 'no layer; the file is in float32'}"]
        lines.append(f"  loss ({self.metric}, limit {self.limit:.2g}) against eager float64")
        cells: list[tuple[str, ...]] = [("", "in float32", "file", "rounded at each pair")]
        cells.append(("float32", f"{total} layers", f"{self.float32_loss:.2g}", ""))
        cells += [
            ("final" if trial == self.final else "tried", f"{trial.kept} layers", *_losses(trial))
            for trial in sorted(self.trials, key=lambda trial: -trial.kept)
        ]
        lines += columns(cells)
        agreement = "" if self.agreement is None else f"; the same largest value in {self.agreement:.1%} of the rows"
        lines.append(f"  outputs off by {self.distance:.2g} of their size{agreement}{self._by}")
        if self.elsewhere:
            lines.append(f"  loss at other sizes: {', '.join(map(str, self.elsewhere))}")
        if self.layers:
            rows: list[tuple[str, ...]] = [("place", "node", "effect alone", "rounding", "range", "in float32")]
            rows += [_cells(layer) for layer in self.layers[:SHOWN]]
            lines += columns(rows)
        if total > SHOWN:
            lines.append(f"  … and {total - SHOWN} more in result.precision.layers")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    @property
    def _by(self) -> str:
        return f"; ranges by {self.method}" if self.method else ""

    @property
    def verdict(self) -> str:
        """In words, how the file was judged."""
        inputs = f"{self.judged_on} input{'s' if self.judged_on > 1 else ''}"
        of = f", of {in_words(self.sizes)}" if self.sizes else ""
        if not self.calibrated_on:
            return f"judged on {inputs}{of}; nothing was calibrated"
        if self.is_proven:
            return f"within the limit on {inputs} that it was not calibrated with{of}"
        return f"not proven: judged on the {inputs} that it was calibrated with{of}"


def trials_of(told: Quantized) -> list[tuple[str, ...]]:
    """The files that were judged as texts, a row each: how many layers are in float32, losses, verdict."""
    return [
        (str(trial.kept), *_losses(trial), "the file" if trial == told.final else "tried")
        for trial in sorted(told.trials, key=lambda trial: -trial.kept)
    ]


def table_of(layers: Sequence[LayerLoss]) -> list[tuple[str, ...]]:
    """The layers as texts, a row each."""
    return [_cells(layer) for layer in layers]


def _cells(layer: LayerLoss) -> tuple[str, ...]:
    return (layer.place, layer.op_type, _number(layer.effect), _number(layer.rounding), layer.method, layer.why)


def _losses(trial: Trial) -> tuple[str, str]:
    return f"{trial.loss:.2g}", f"{trial.rendered:.2g}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"
