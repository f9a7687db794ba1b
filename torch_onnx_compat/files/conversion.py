"""What a conversion yields: the file, what was done, and the proof."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from torch_onnx_compat.check.compare import Comparison, comparison_lines
from torch_onnx_compat.precision.int8.verdict import Quantized
from torch_onnx_compat.precision.verdict import Precision
from torch_onnx_compat.session import open_session
from torch_onnx_compat.surgery.on_graph.stage import Stage


@dataclass(frozen=True)
class AxisTried:
    """A dynamic axis, and the sizes at which the new file was right."""

    name: str
    tried: tuple[int, ...]

    def __str__(self) -> str:
        return f"axis {self.name}: tried at {', '.join(map(str, self.tried))}"


@dataclass(frozen=True)
class Conversion:
    """A file that was converted and proven against the original file.

    Attributes:
        source: The original.
        path: The new file; None where it was kept in memory.
        model_bytes: The new file where it was kept in memory (``output=None``).
        opset: Opset of the new file.
        source_opset: Opset of the original.
        target: The engine that it was made for; empty for none.
        done: What was done, in order.
        table: One row for each case and output.
        axes: The dynamic axes, each with the sizes that were tried.
        judges: Who computed the reference, and who ran the new file.
        notes: What else the caller should know.
        seconds: Time spent in each step.
        nodes: How many nodes of each operator the new file holds.
        source_nodes: How many the original holds.
        precision: What is in a narrower format, and how far the file is off; None for the original's own types.
        preprocess: The stage that was cut off before the file.
        postprocess: The stage that was cut off behind it.
    """

    source: Path
    path: Path | None
    model_bytes: bytes | None = field(repr=False)
    opset: int
    source_opset: int
    target: str
    done: tuple[str, ...]
    table: tuple[Comparison, ...]
    axes: tuple[AxisTried, ...]
    judges: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: dict[str, float]
    nodes: Counter[str]
    source_nodes: Counter[str]
    precision: Precision | Quantized | None = None
    preprocess: Stage | None = None
    postprocess: Stage | None = None

    def session(self, **options: Any) -> onnxruntime.InferenceSession:
        """Opens the new file in onnxruntime; passes the options to InferenceSession."""
        return open_session(self.path if self.path is not None else self.model_bytes or b"", **options)

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The new file as an onnx.ModelProto."""
        if self.path is not None:
            return onnx.load(self.path, format="protobuf")
        return onnx.load_model_from_string(self.model_bytes or b"")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON."""
        return {
            "source": str(self.source),
            "path": None if self.path is None else str(self.path),
            "opset": self.opset,
            "source_opset": self.source_opset,
            "target": self.target,
            "done": list(self.done),
            "table": [row.to_dict() for row in self.table],
            "axes": [{"name": axis.name, "tried": list(axis.tried)} for axis in self.axes],
            "judges": list(self.judges),
            "notes": list(self.notes),
            "seconds": {k: round(v, 3) for k, v in self.seconds.items()},
            "nodes": dict(sorted(self.nodes.items())),
            "source_nodes": dict(sorted(self.source_nodes.items())),
            "precision": None if self.precision is None else self.precision.to_dict(),
            "preprocess": None if self.preprocess is None else self.preprocess.to_dict(),
            "postprocess": None if self.postprocess is None else self.postprocess.to_dict(),
        }

    def __str__(self) -> str:
        where = str(self.path) if self.path is not None else "a model in memory"
        cases = len({row.case for row in self.table})
        target = f", target {self.target}" if self.target else ""
        counts = f"{sum(self.source_nodes.values())} -> {sum(self.nodes.values())} nodes"
        verb = "equal to" if any(row.compares_values for row in self.table) else "of the types and shapes of"
        lines = [
            f"{where}: {verb} {self.source} on {cases} case{'s' * (cases != 1)}",
            f"  opset {self.source_opset} -> {self.opset}{target}, {counts}, {sum(self.seconds.values()):.1f} s",
            f"  judged by {' and '.join(self.judges)}",
        ]
        stages = [f"stage {stage}" for stage in (self.preprocess, self.postprocess) if stage is not None]
        lines += [f"  {text}" for text in (*self.done, *stages, *map(str, self.axes))]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  {line}" for line in str(self.precision or "").splitlines()]
        return "\n".join([*lines, *comparison_lines(self.table)])
