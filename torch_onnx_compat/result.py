"""What an export yields: the file, who made it, what was done to the model, and the proof."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import onnx
import onnxruntime
import torch
from torch import Tensor

from torch_onnx_compat.catalogue.entry import Exporter
from torch_onnx_compat.check.compare import Comparison, comparison_lines, uncompared
from torch_onnx_compat.check.localise import localise
from torch_onnx_compat.check.run_failure import explain_run
from torch_onnx_compat.check.verdicts import AxisProof
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.inputs.feeds import Signature, feeds_by_name
from torch_onnx_compat.plan import Note
from torch_onnx_compat.precision.int8.verdict import Quantized
from torch_onnx_compat.precision.verdict import Precision
from torch_onnx_compat.session import inputs_of, open_session
from torch_onnx_compat.shape_ranges import ShapeRange, tensorrt_command
from torch_onnx_compat.surgery.on_graph.stage import Stage


@dataclass(frozen=True)
class ExportResult:
    """An exported and checked file.

    Attributes:
        path: The file; None when it was written to a file object or kept in memory.
        model_bytes: The serialised model when it was kept in memory (``f=None``).
        exporter: The back end that made it.
        opset: Opset of the default domain in the file.
        target: The engine it was made for.
        applied: Entries that changed something, with their places.
        declined: Entries that refused a place, with their reasons.
        unused: Entries that were asked for by name and found nothing to do.
        table: The verification table; empty when verification was off.
        notes: What else the caller should know.
        rejected: Back ends that were tried first, each with the reason it lost.
        seconds: Time spent in each step.
        nodes: How many nodes of each operator the file holds.
        custom_nodes: Operators of other domains than ONNX's own that the engine must have.
        source: What was rewritten in the model's own functions for its Python decisions, as a unified diff.
        preprocess: What the host does to the inputs before the file, where that was taken out of it.
        postprocess: What the host does to the outputs after the file, where that was taken out of it.
        parts: The file once more, split into a chain.
        is_whole: Whether the file takes what the model takes, and gives what it gives.
        signature: How forward was called for the export.
        axes: What is known of each dynamic axis: proven for all sizes, or tried at some.
        shapes: Of each input that has dynamic axes the smallest, the usual and the largest shape: what an engine is to
            be built for. An axis goes as far as the caller's bound, otherwise as far as the file was tried.
        precision: What is in the narrower format, what stayed in float32 and why, and how far the file is off; None
            where the file has the model's own types. `table` and `axes` then tell of the graph before.
    """

    path: Path | None
    model_bytes: bytes | None
    exporter: Exporter
    opset: int
    target: str
    applied: tuple[Note, ...]
    declined: tuple[Note, ...]
    unused: tuple[str, ...]
    table: tuple[Comparison, ...]
    notes: tuple[str, ...]
    rejected: dict[str, str]
    seconds: dict[str, float]
    nodes: Counter[str] = field(default_factory=Counter)
    custom_nodes: tuple[str, ...] = ()
    source: str = ""
    preprocess: Stage | None = None
    postprocess: Stage | None = None
    parts: tuple[Stage, ...] = ()
    is_whole: bool = True
    signature: Signature | None = field(default=None, repr=False)
    axes: tuple[AxisProof, ...] = ()
    precision: Precision | Quantized | None = None
    shapes: Mapping[str, ShapeRange] = field(default_factory=dict)

    def session(self, **options: Any) -> onnxruntime.InferenceSession:
        """Opens the file in onnxruntime.

        Args:
            **options: Passed on to InferenceSession, e.g. ``providers``.

        Raises:
            CompatError: The file was written to a file object, which cannot be read back.
        """
        return open_session(self._source(), **options)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """Runs the file in onnxruntime on inputs given as forward takes them, e.g. an image (N, 3, H, W).

        Arguments are taken by position and by name, nested and complex ones too. What was no tensor when the file was
        exported may be left out, as it is part of the file. A file that takes other inputs than forward, such as one
        whose preprocessing was taken out, takes its own inputs in order or by name.

        Raises:
            CompatError: An argument is missing, unknown, or of another value than the file holds; or onnxruntime
                refuses the inputs: says which, why, and what is near them that works.
        """
        session = self.session()
        feeds = self._feeds({value.name: value.type for value in session.get_inputs()}, args, kwargs)
        try:
            outputs = session.run(None, feeds)
        except Exception as error:
            raise CompatError(str(explain_run(self._source(), feeds, error))) from error
        return tuple(torch.from_numpy(output) for output in outputs)

    def feeds(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The file's inputs, arrays by name, from arguments given as for a call.

        Raises:
            CompatError: An argument is missing, unknown, or of another value than the file holds.
        """
        inputs = inputs_of(self.model_proto.graph)  # no session: onnxruntime may lack kernels for a narrow file
        return self._feeds({value.name: value.type for value in inputs}, args, kwargs)

    def _feeds(self, types: Mapping[str, str], args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if self.signature is not None and types.keys() <= set(self.signature.names):
            given = self.signature.feeds(args, kwargs)
        else:
            given = feeds_by_name(list(types), args, kwargs)
        return {name: _array(given[name], kind) for name, kind in types.items()}

    def save(self, destination: str | os.PathLike[str] | BinaryIO) -> None:
        """Writes the file to another place, its weights inside.

        Args:
            destination: Path or binary file object.
        """
        onnx.save(self.model_proto, destination)

    def report(
        self,
        path: str | os.PathLike[str],
        model: Any = None,
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        stock: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Path:
        """Writes a report: the verdict, what was applied, the proof, operators, times and how to run the file.

        Args:
            path: Where to; the ending says how: .html, .md or .json.
            model: The original model; with it the report shows the changes in the graph and the error of every layer.
            args: Positional inputs to compare the layers on.
            kwargs: Keyword inputs.
            stock: Whether torch.onnx.export exports the model, too, for the graph before the changes. Takes about as
                long as the export did.
            progress: Called with the name of each step as it begins.

        Returns:
            The path.

        Raises:
            CompatError: The ending is none of these, or the file cannot be written.
        """
        from torch_onnx_compat.report import before, module_paths, write_report

        if model is None:
            if stock:
                raise CompatError("report(stock=True) exports the model again; pass model and args, too.")
            return write_report(path, self)
        step = progress or (lambda name: None)
        layers = without = None
        if self.is_whole:  # else its layers cannot be told from the model's own inputs and outputs
            step("layers")
            layers = localise(model, self._source(), args, kwargs=kwargs)
        if stock:
            step("stock")
            without = before(self, model, args, kwargs)
        step("report")
        return write_report(path, self, layers, without, module_paths(model, args, kwargs))

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The file as an onnx.ModelProto."""
        source = self._source()
        return onnx.load_model_from_string(source) if isinstance(source, bytes) else onnx.load(source)

    def _source(self) -> Path | bytes:
        if self.path is not None:
            return self.path
        if self.model_bytes is not None:
            return self.model_bytes
        raise CompatError("the model was written to a file object and is not kept; export to a path or with f=None.")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON."""
        return {
            "path": None if self.path is None else str(self.path),
            "exporter": self.exporter,
            "opset": self.opset,
            "target": self.target,
            "applied": [_note(n) for n in self.applied],
            "declined": [_note(n) for n in self.declined],
            "unused": list(self.unused),
            "table": [row.to_dict() for row in self.table],
            "notes": list(self.notes),
            "axes": [vars(axis) for axis in self.axes],
            "shapes": {name: vars(shapes) for name, shapes in self.shapes.items()},
            "precision": None if self.precision is None else self.precision.to_dict(),
            "rejected": dict(self.rejected),
            "seconds": {k: round(v, 3) for k, v in self.seconds.items()},
            "nodes": dict(sorted(self.nodes.items())),
            "custom_nodes": list(self.custom_nodes),
            "source": self.source,
            "stages": [stage.to_dict() for stage in (self.preprocess, self.postprocess, *self.parts) if stage],
        }

    def _verdict(self) -> str:
        """What the proof came to: outputs of which no case has a value are not verified."""
        if not self.table:
            return "NOT verified"
        cases = f"{len({row.case for row in self.table})} cases"
        empty = uncompared(self.table)
        if len(empty) == len({row.output for row in self.table}):
            return f"NOT verified: in {cases} no output had a value to compare"
        named = f", but for {', '.join(empty)}, of which no case had a value to compare" if empty else ""
        return f"verified on {cases}{named}"

    def __str__(self) -> str:
        where = str(self.path) if self.path is not None else "a model in memory"
        lines = [f"{where}: {self._verdict()}"]
        lines.append(
            f"  exporter {self.exporter}, opset {self.opset}, target {self.target}, {sum(self.nodes.values())} nodes, "
            f"{sum(self.seconds.values()):.1f} s"
        )
        for name, reason in self.rejected.items():
            usual = " as usual" if name == self.exporter else ""
            lines.append(f"  {name}{usual} was tried first and lost: {reason}")
        lines += [f"  {note}" for note in self.applied]
        lines += [f"  {note}" for note in self.declined]
        lines += [f"  {name}: asked for and unused" for name in self.unused]
        lines += [f"  custom node {name}" for name in self.custom_nodes]
        lines += [f"  {stage}" for stage in (self.preprocess, self.postprocess, *self.parts) if stage]
        lines += [f"  {axis}" for axis in self.axes]
        command = tensorrt_command(self.target, where, self.shapes, self.shapes) if self.path is not None else None
        lines += [f"  build: {command}"] if command else []
        lines += [f"  note: {note}" for note in self.notes]
        if self.precision is not None:
            lines += [f"  {line}" for line in str(self.precision).splitlines()]
        lines += comparison_lines(self.table)
        return "\n".join(lines)


def _array(tensor: Tensor, wanted: str) -> Any:
    """A tensor as a file's input; float32 is rounded where the file's inputs are narrow, which forward's are not."""
    if wanted == "tensor(float16)" and tensor.dtype is torch.float32:
        tensor = tensor.half()
    return tensor.detach().cpu().resolve_conj().resolve_neg().numpy()


def _note(note: Note) -> dict[str, Any]:
    return {"entry": note.entry, "places": list(note.places), "reason": note.reason}
