"""One candidate's way to the file: export -> finish -> check."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

from torch_onnx_compat import backends
from torch_onnx_compat.backends import ExportedGraph
from torch_onnx_compat.candidates import Candidate
from torch_onnx_compat.catalogue.entry import Entry
from torch_onnx_compat.check.blame import add_location
from torch_onnx_compat.check.cases import Cases
from torch_onnx_compat.check.compare import Comparison
from torch_onnx_compat.check.lint import lint
from torch_onnx_compat.check.on_target import verify_on_target
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.check.verify import verify as verify_file
from torch_onnx_compat.clock import Clock
from torch_onnx_compat.diagnosis import with_reasons
from torch_onnx_compat.errors import CompatError, RandomModel, VerificationError, with_lines
from torch_onnx_compat.finish import finish, node_counts
from torch_onnx_compat.graph.slim.remains import note_on_sizes
from torch_onnx_compat.graph.weights import drop_weights
from torch_onnx_compat.inputs.feeds import Signature
from torch_onnx_compat.memory import forget_locals, trim
from torch_onnx_compat.observe import EXAMPLE, Observation
from torch_onnx_compat.own_entries import notes_on_unused
from torch_onnx_compat.plan import Plan
from torch_onnx_compat.precision.formats import Half
from torch_onnx_compat.precision.int8.request import Request
from torch_onnx_compat.precision.int8.verdict import Quantized
from torch_onnx_compat.precision.measuring_inputs import inputs_to_measure, long_examples, ordinary_cases
from torch_onnx_compat.precision.narrow import PrecisionJob
from torch_onnx_compat.precision.verdict import Precision
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.publish.publish import Draft, draft, is_large
from torch_onnx_compat.questions.run import SymbolicRuns
from torch_onnx_compat.request import File, Proof
from torch_onnx_compat.result import ExportResult
from torch_onnx_compat.shape_ranges import shape_ranges
from torch_onnx_compat.surgery.on_graph.cut_graph import CutGraph
from torch_onnx_compat.surgery.on_graph.operation import Operation
from torch_onnx_compat.surgery.on_graph.outline import drop_bodies
from torch_onnx_compat.targets import Target
from torch_onnx_compat.version import __version__


@dataclass(frozen=True)
class ProvenFile:
    """A file that passed every check, before it is published."""

    result: ExportResult
    draft: Draft
    outputs: Sequence[str]


@dataclass
class Attempt:
    """Makes the file of one candidate after the other: what they have in common."""

    prepared: Prepared
    observation: Observation
    operation: Operation
    file: File
    proof: Proof
    clock: Clock
    runs: SymbolicRuns | None = None
    own: Sequence[Entry] = ()
    """The caller's entries for this call."""

    def __post_init__(self) -> None:
        verify, samples = self.proof.verify, self.proof.samples
        narrower = self.file.precision
        self.samples = (*samples, *(narrower.samples if narrower is not None else ()))
        self.cases = None if verify is None else Cases(self.observation, verify, self.samples, self.runs)

    @contextmanager
    def proven(self, candidate: Candidate) -> Iterator[ProvenFile]:
        """Makes the file and checks it; where it is not published meanwhile, nothing of it is left afterwards.

        Raises:
            UnsupportedError: The back end cannot, or its file is not one that the target runs.
            VerificationError: The file computes something else.
            RandomModel: Random numbers decide what the original computes.
        """
        job, decisions = candidate.job, candidate.decisions
        with self.clock("export"):
            exported = backends.export(job.plan.exporter, job)
        if self.cases is not None:
            further = decisions.survey.equal_at if decisions is not None else {}
            taken = decisions.decisions if decisions is not None else {}
            on_values = decisions.on_values if decisions is not None else None
            traced = decisions.survey.trace_sizes if decisions is not None else ()
            self.cases.begin(further, exported, job.allow_baked, taken, on_values, traced, is_strict=candidate.is_stock)
        if decisions is not None:
            decisions.report(job.plan)
        with self.clock("finish"):
            whole = finish(exported, job, replace(self.file, opset=job.opset), self._metadata(job.plan))
            cut = self.operation.apply(whole, job.subject.outputs.paths)
            for name in cut.done:
                job.plan.applied(name, "")
        with self.clock("check"):
            lint(cut.network, job.plan.target, cut.without_body)
            counts = node_counts(cut.network)
            other = "dynamo" if job.plan.exporter == "torchscript" else "torchscript"
            made = _Made(whole, cut, counts, note_on_sizes(cut.network, sum(counts.values()), other))
        with draft(cut.network, self.file.destination, self._is_external(cut.network)) as written:
            if not cut.without_body and self.file.precision is None:
                for part in (whole, cut.network):
                    drop_weights(part)
            with self.clock("check"):
                trim()
                try:
                    table = self._check(written.path, made, job.plan.target)
                except (RandomModel, VerificationError) as error:
                    raise _explained(error, job.plan, exported) from error.__cause__
            made = self._write_final_form(written, made, job.plan.target, {row.case for row in table})
            if self._has_other_form(cut):
                with self.clock("check"):
                    table += self._check_on_target(written.path, made, job.plan.target)
            with self.clock("publish"):
                written.write_stages({stage.name: stage.model_bytes for stage in cut.stages})
                outcome = written.outcome()
            names = [str(value.name) for value in cut.network.graph.outputs]
            yield ProvenFile(self._result(candidate, exported, made, table, outcome), written, names)

    def _result(
        self,
        candidate: Candidate,
        exported: ExportedGraph,
        made: _Made,
        table: tuple[Comparison, ...],
        published: Path | bytes | None,
    ) -> ExportResult:
        job, decisions, cut = candidate.job, candidate.decisions, made.cut
        notes = [
            *([candidate.given_up] if candidate.given_up else []),
            *self.prepared.notes,
            *exported.notes,
            *cut.notes,
            *made.notes,
            *job.subject.outputs.dropped,
            *(decisions.notes if decisions else ()),
            *(self.cases.notes if self.cases else ()),
            *notes_on_unused(self.own, [job.plan]),
        ]
        if made.unknown and self.cases and not table:
            notes.append(f"not verified: onnxruntime has no {', '.join(sorted(made.unknown))}.")
        proofs = self.cases.proofs if self.cases and table else ()
        return ExportResult(
            path=published if not isinstance(published, bytes) else None,
            model_bytes=published if isinstance(published, bytes) else None,
            exporter=job.plan.exporter,
            opset=cut.network.opset_imports[""],
            target=job.plan.target.name,
            applied=tuple(n for n in job.plan.notes if n.verdict == "applied"),
            declined=tuple(n for n in job.plan.notes if n.verdict == "declined"),
            unused=job.plan.unused,
            table=table,
            notes=tuple(dict.fromkeys(notes)),
            rejected={name: str(error) for name, error in candidate.rejected.items()},
            seconds=dict(self.clock.seconds),
            nodes=made.nodes,
            custom_nodes=tuple(sorted(made.unknown | made.without_body)),
            source=decisions.source if decisions else "",
            preprocess=cut.preprocess,
            postprocess=cut.postprocess,
            parts=cut.parts,
            is_whole=self.prepared.boundary is None and not cut.is_cut,
            signature=Signature.of(self.prepared.inputs, self.prepared.model),
            axes=proofs,
            shapes=shape_ranges(self.prepared.inputs, proofs),
            precision=made.precision,
        )

    def _write_final_form(self, written: Draft, made: _Made, target: Target, proven_at: set[str]) -> _Made:
        """Writes the file once more where it is not to be as it was checked."""
        cut, narrower = made.cut, self.file.precision
        if narrower is not None:
            with self.clock("precision"):
                made = self._narrow(made, narrower, target, proven_at)
        if cut.without_body:
            drop_bodies(cut.network, cut.without_body)
        if cut.without_body or narrower is not None:
            written.write(cut.network)
        return made

    def _narrow(self, made: _Made, narrower: Half | Request, target: Target, proven_at: set[str]) -> _Made:
        """Brings the network to a narrower format."""
        from torch_onnx_compat.precision.to_format import bring_to_format  # imports onnxruntime's quantisers

        cut, observation = made.cut, self.observation
        if cut.parts or (cut.is_cut and not narrower.keep_io):
            other = "split" if cut.parts else "preprocess='extract' or postprocess='strip'"
            remedy = "leave one of them out" if cut.parts else "pass keep_io=True"
            raise CompatError(f"precision and {other} cannot be combined: the parts pass float32 on; {remedy}.")
        precision_job = PrecisionJob(
            network=cut.network,
            names=[str(value.name) for value in made.whole.graph.outputs],
            observation=observation,
            cases=() if self.cases is None else self.cases.ordinary,
            inputs=inputs_to_measure(observation, self.cases, self.samples),
            before=cut.before,
            after=cut.after,
            special=ordinary_cases(observation, proven_at),
            longer=long_examples(observation),
            seconds=sum(self.clock.seconds.values()),
        )
        further = precision_job.inputs[1 : 1 + len(self.samples)]
        narrow = bring_to_format(precision_job, narrower, target, further)
        lint(narrow.model, target, cut.without_body)
        cut.network = narrow.model
        return replace(made, nodes=node_counts(narrow.model), precision=narrow.precision)

    def _check(self, path: Path, made: _Made, target: Target) -> tuple[Comparison, ...]:
        names = [str(value.name) for value in made.whole.graph.outputs]
        table = self._verify(path, made.cut, names, bool(made.unknown))
        return table if self._has_other_form(made.cut) else table + self._check_on_target(path, made, target)

    def _has_other_form(self, cut: CutGraph) -> bool:
        """Whether the file is not written as it is checked in onnxruntime; its engine gets what is written."""
        return self.file.precision is not None or bool(cut.without_body)

    def _check_on_target(self, path: Path, made: _Made, target: Target) -> tuple[Comparison, ...]:
        cut, how = made.cut, self.proof.verify
        if self.cases is None or how is None or not how.on_target:
            return ()
        names = [str(value.name) for value in made.whole.graph.outputs]
        within = 0.0 if made.precision is None else made.precision.allowance
        return verify_on_target(path, names, self.cases, target, how, cut.before, cut.after, within=within)

    def _verify(self, path: Path, cut: CutGraph, names: list[str], has_unknown: bool) -> tuple[Comparison, ...]:
        how = self.proof.verify
        if self.cases is None or how is None or not self.file.export_params:
            return ()
        try:
            table = verify_file(path, names, self.cases, how, cut.before, cut.after)
        except VerificationError as error:
            if has_unknown and not error.table:  # the caller allowed nodes that only the engine has
                return ()
            forget_locals(error)
            if not cut.is_cut:
                add_location(error, path, self.prepared)
            raise
        if cut.parts:
            verify_file(None, names, self.cases, how, cut.parts)
        return table

    def _is_external(self, model: ir.Model) -> bool:
        if self.file.destination is None or hasattr(self.file.destination, "write"):
            return False
        return is_large(model) or bool(self.file.external_data)

    def _metadata(self, plan: Plan) -> dict[str, Any]:
        how = self.proof.verify or Verify()
        return {
            "version": __version__,
            "torch": torch.__version__,
            "exporter": plan.exporter,
            "target": plan.target.name,
            "entries": ", ".join(dict.fromkeys(n.entry for n in plan.notes if n.verdict == "applied")),
            "verified": "no" if self.cases is None else "yes",
            "tolerance": f"rtol={how.rtol or 'by dtype'}, atol={how.atol or 'by dtype'}",
            "sizes": json.dumps(self.prepared.inputs.named_sizes()),
        }


@dataclass(frozen=True)
class _Made:
    """What an exporter's graph became."""

    whole: ir.Model
    """Before anything was cut off."""
    cut: CutGraph
    nodes: Counter[str]
    notes: list[str]
    precision: Precision | Quantized | None = None

    @property
    def unknown(self) -> set[str]:
        """Operators of other domains than ONNX's own that the file does not define."""
        return {name for name in self.nodes if "::" in name} - _names(self.cut.network.functions)

    @property
    def without_body(self) -> set[str]:
        """Operators that the file defines for its check only."""
        return _names(self.cut.without_body)


def _explained(error: CompatError, plan: Plan, exported: ExportedGraph) -> CompatError:
    """The error of a proof with what is known of its reason."""
    if not isinstance(error, VerificationError):
        return with_reasons(error, plan)
    if not error.table or error.table[-1].case != EXAMPLE or not exported.table_places:
        return error
    places = ", ".join(sorted(exported.table_places))
    line = (
        f"{places} asks for a size as a key, and a trace finds no size in a dictionary or set: the file goes on as if "
        f"the key were not there. Compare the size with == instead (if height == 224: ...), or, if it never varies, "
        f"pass exporter='dynamo' and leave its axis out of dynamic."
    )
    return with_lines(error, [line])


def _names(functions: Iterable[tuple[str, str, str]]) -> set[str]:
    return {f"{domain}::{name}" for domain, name, _ in functions}
