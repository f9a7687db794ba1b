"""One back end's attempt at the file: export -> finish -> check -> publish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

from torch_onnx_compat import backends
from torch_onnx_compat.backends import ExportJob
from torch_onnx_compat.check.blame import add_location
from torch_onnx_compat.check.cases import Cases, Verify
from torch_onnx_compat.check.compare import Comparison
from torch_onnx_compat.check.lint import lint
from torch_onnx_compat.check.on_target import verify_on_target
from torch_onnx_compat.check.verify import verify as verify_file
from torch_onnx_compat.clock import Clock
from torch_onnx_compat.control_flow import RewrittenJob
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.finish import FileOptions, finish, node_counts
from torch_onnx_compat.graph.weights import drop_weights
from torch_onnx_compat.memory import forget_locals, trim
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.plan import Plan
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.publish import draft, is_large, publish, stages_beside
from torch_onnx_compat.result import ExportResult
from torch_onnx_compat.surgery.on_graph.operation import CutGraph, Operation
from torch_onnx_compat.surgery.on_graph.outline import drop_bodies
from torch_onnx_compat.targets import Target


@dataclass
class Attempt:
    """What the attempts of all back ends have in common."""

    prepared: Prepared
    observation: Observation
    cases: Cases | None
    how: Verify
    clock: Clock
    file: FileOptions
    destination: Any
    external: bool | None
    operation: Operation = field(default_factory=Operation)

    def run(
        self, job: ExportJob, rejected: Mapping[str, CompatError], decisions: RewrittenJob | None = None
    ) -> ExportResult:
        """Makes the file, checks it, and puts it in its place.

        Args:
            job: What to export and how.
            rejected: What the attempts before came to, by back end; for the result.
            decisions: The Python decisions that were rewritten for this attempt, if any.

        Raises:
            UnsupportedError: The back end cannot, or its file does not suit the target.
            VerificationError: The file computes something else.
        """
        if decisions is not None and self.cases is not None:
            self.cases.further = decisions.found.equal_at
        with self.clock("export"):
            raw = backends.export(job.plan.exporter, job)
        if decisions is not None:
            decisions.report(job.plan)
        with self.clock("finish"):
            whole = finish(raw, job, self.file, self._metadata(job.plan))
            pieces = self.operation.apply(whole, job.subject.outputs.paths)
            model = pieces.network
        with self.clock("check"):
            lint(model, job.plan.target)
            nodes = node_counts(model)
            functions, lent = (
                {f"{domain}::{name}" for domain, name, _ in held} for held in (model.functions, pieces.without_body)
            )
            unknown = {name for name in nodes if "::" in name} - functions
        with draft(model, self.destination, self._is_external(model)) as written:
            if not pieces.without_body:
                for part in (whole, model):
                    drop_weights(part)
            with self.clock("check"):
                trim()
                names = [str(value.name) for value in whole.graph.outputs]
                table = self._verify(written.path, pieces, names, bool(unknown))
                if self.how.on_target and self.cases is not None:
                    table += self._on_target(written.path, pieces, names, job.plan.target)
            if pieces.without_body:
                drop_bodies(model, pieces.without_body)
                written.write(model)
            with self.clock("publish"), stages_beside(pieces.stages, self.destination) as put_stages:
                published = publish(written, self.destination)
                put_stages()
        notes = [
            *self.prepared.notes,
            *raw.notes,
            *pieces.notes,
            *job.subject.outputs.dropped,
            *(decisions.notes if decisions else ()),
            *(self.cases.notes if self.cases else ()),
        ]
        if unknown and self.cases and not table:
            notes.append(f"not verified: onnxruntime has no {', '.join(sorted(unknown))}.")
        notes_of = job.plan.notes
        return ExportResult(
            path=published if not isinstance(published, bytes) else None,
            model_bytes=published if isinstance(published, bytes) else None,
            exporter=job.plan.exporter,
            opset=model.opset_imports[""],
            target=job.plan.target.name,
            applied=tuple(n for n in notes_of if n.verdict == "applied"),
            declined=tuple(n for n in notes_of if n.verdict == "declined"),
            unused=job.plan.unused,
            table=table,
            notes=tuple(dict.fromkeys(notes)),
            rejected={name: str(error) for name, error in rejected.items()},
            seconds=dict(self.clock.seconds),
            nodes=nodes,
            custom_nodes=tuple(sorted(unknown | lent)),
            source=decisions.source if decisions else "",
            preprocess=pieces.preprocess,
            postprocess=pieces.postprocess,
            parts=pieces.parts,
            is_whole=self.prepared.ends is None and not pieces.is_cut,
        )

    def _verify(self, path: Path, pieces: CutGraph, names: list[str], has_unknown: bool) -> tuple[Comparison, ...]:
        if self.cases is None or not self.file.export_params:
            return ()
        try:
            table = verify_file(path, names, self.cases, self.how, pieces.before, pieces.after)
        except VerificationError as error:
            if has_unknown and not error.table:  # the caller allowed nodes that only the engine has
                return ()
            forget_locals(error)
            if not pieces.is_cut:
                add_location(error, path, self.prepared)
            raise
        if pieces.parts:
            verify_file(None, names, self.cases, self.how, pieces.parts)
        return table

    def _on_target(self, path: Path, pieces: CutGraph, names: list[str], target: Target) -> tuple[Comparison, ...]:
        assert self.cases is not None
        return verify_on_target(path, names, self.cases, target, self.how, pieces.before, pieces.after)

    def _is_external(self, model: ir.Model) -> bool:
        if self.destination is None or hasattr(self.destination, "write"):
            return False
        return is_large(model) or bool(self.external)

    def _metadata(self, plan: Plan) -> dict[str, Any]:
        from torch_onnx_compat import __version__

        return {
            "version": __version__,
            "torch": torch.__version__,
            "exporter": plan.exporter,
            "target": plan.target.name,
            "entries": ", ".join(dict.fromkeys(n.entry for n in plan.notes if n.verdict == "applied")),
            "verified": "no" if self.cases is None else "yes",
            "tolerance": f"rtol={self.how.rtol or 'by dtype'}, atol={self.how.atol or 'by dtype'}",
        }
