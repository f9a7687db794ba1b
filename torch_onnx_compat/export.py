"""export_compat(): a drop-in for torch.onnx.export that patches the model on the way and proves the file.

prepare -> observe -> plan -> rewrite -> export -> finish -> check -> publish, each step a module of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, BinaryIO, Literal

import torch

from torch_onnx_compat import backends
from torch_onnx_compat.attempt import Attempt
from torch_onnx_compat.backends import ExportFailed
from torch_onnx_compat.backends.custom_operators import translated_operators
from torch_onnx_compat.caller.undo import put_back
from torch_onnx_compat.candidates import Candidate, Candidates
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import EXPORTERS, Exporter
from torch_onnx_compat.check.lint import lint
from torch_onnx_compat.check.options import Verify, check_axes
from torch_onnx_compat.clock import Clock
from torch_onnx_compat.control_flow import explain
from torch_onnx_compat.errors import CompatError, UnsupportedError, VerificationError, hint_for, unknown_name
from torch_onnx_compat.export_form import deny_export, find_export_form
from torch_onnx_compat.finish import finish
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.own_entries import own_entries
from torch_onnx_compat.places import PlaceSet
from torch_onnx_compat.plan import DECISIONS, Plan
from torch_onnx_compat.precision.float32_places import check_float32_places
from torch_onnx_compat.precision.formats import Half, least_opset, precision_from_keyword
from torch_onnx_compat.precision.int8.request import Dynamic, Int8, WeightOnly
from torch_onnx_compat.prepare import Prepared, export_conditions, prepare
from torch_onnx_compat.publish.publish import publish
from torch_onnx_compat.questions.run import SymbolicRuns
from torch_onnx_compat.request import (
    FLAGS,
    Cut,
    Exporters,
    File,
    Patch,
    Proof,
    Quality,
    allowed_domains,
    check_flags,
    check_keywords,
    check_list,
    exporters_to_try,
    mode_of,
    quality_of,
)
from torch_onnx_compat.result import ExportResult
from torch_onnx_compat.rewrite import watched_functions
from torch_onnx_compat.selection import Selection, check_quality
from torch_onnx_compat.settle import settle_axes
from torch_onnx_compat.surgery.around_model.boundary import with_boundary_adapter
from torch_onnx_compat.surgery.around_model.custom import CustomNode
from torch_onnx_compat.surgery.around_model.detections import Detections
from torch_onnx_compat.surgery.around_model.normalize import Normalize
from torch_onnx_compat.surgery.around_model.parts import part_of
from torch_onnx_compat.surgery.on_graph.operation import plan_operation
from torch_onnx_compat.targets import Target, choose_opset, load_target
from torch_onnx_compat.zoo.metadata import metadata_of


def export_compat(
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | BinaryIO | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    target: str | os.PathLike[str] | Target = "onnxruntime",
    dynamic: str | Mapping[str, Any] | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    outputs: Sequence[str] | None = None,
    submodule: str | None = None,
    split: Sequence[str] = (),
    state: Sequence[str] = (),
    keep_as_function: Collection[str | type] | Mapping[Any, str | CustomNode | None] = (),
    preprocess: Literal["keep", "extract", "fold"] | Normalize = "keep",
    postprocess: Literal["keep", "strip", "nms", "nms-dense", "efficient-nms"] | Detections = "keep",
    exporter: Literal["auto", "torchscript", "dynamo"] | None = None,
    dynamo: bool | None = None,
    verify: bool | Literal["target"] | Verify = True,
    samples: Sequence[Any] = (),
    precision: Literal["float32", "float16", "bfloat16", "int8", "int8-dynamic", "int8-weights", "int4-weights"]
    | Half
    | Int8
    | Dynamic
    | WeightOnly
    | None = None,
    metadata: Mapping[str, str] | None = None,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    symbolics: Sequence[Any] = (),
    rewrites: Sequence[Any] = (),
    allow_approximate: bool = False,
    allow_custom_domains: bool | Collection[str] = False,
    allow_baked: Collection[str] = (),
    control_flow: bool = True,
    progress: Callable[[str], None] | None = None,
    verbose: bool | None = None,
    external_data: bool | None = None,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    optimize: bool | Literal["size", "latency"] = True,
    training: torch.onnx.TrainingMode = torch.onnx.TrainingMode.EVAL,
    custom_translation_table: Mapping[Any, Callable[..., Any]] | None = None,
    custom_opsets: Mapping[str, int] | None = None,
    do_constant_folding: bool = True,
    autograd_inlining: bool = True,
    report: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    **unsupported: Any,
) -> ExportResult:
    """Exports a patched twin of `model` to ONNX and proves the file; `model` itself is unchanged.

    Takes every argument of torch.onnx.export with its meaning, on either exporter, and those below.

    Args:
        model: Module, ExportedProgram, scripted module or function.
        args: Example positional inputs, e.g. an image (N, 3, H, W). One tensor alone will do. Complex ones, and complex
            results, are real tensors (..., 2) in the file, as torch.view_as_real makes them.
        f: Path or binary file object to write to; None keeps the model in memory. What was there before is replaced
            in one step when the new file has passed every check, else not at all.
        kwargs: Example keyword inputs; the file has all inputs in the order of forward's arguments.
        input_names: ONNX names of the input tensors, in order; the rest are called after their argument.
        output_names: ONNX names of the output tensors, in order; the rest are called after their place in the result.
        opset_version: Opset of the file, 11 or later; the target's preferred one by default.
        target: Engine that will run the file: a name, a Target, or the path of a profile.
        dynamic: Axes that may vary: ``"batch"`` for axis 0 of every input, or by input or argument name
            ``{"image": {0: "batch", 2: "height"}}``. Axes of one name have one size.
        dynamic_axes: The same as torch.onnx.export spells it.
        dynamic_shapes: The same as torch.export spells it.
        outputs: Modules whose results are the file's outputs instead of the model's own: ``["layer3", "fc"]``. ``""``
            is the model's own; ``"head:1"`` a module's second call; ``"fc:input"`` what it is given;
            ``"attn:attention"`` the attention weights (N, heads, L, S) computed in it.
        submodule: Exports this part alone, with the inputs that it gets when the model runs on the example.
        split: Modules after whose results the network is cut into a chain of files as well: ``["layer2", "layer4"]``.
        state: Attributes in which modules keep tensors between calls, ``["encoder.cache"]``: inputs after the model's
            own, and outputs ``encoder_cache_next``.
        keep_as_function: Modules that stay whole, by class or path: ``[Attention, "head"]``. Each call is one node of a
            function that the file holds; or, with ``{Attention: CustomNode("domain::Name", heads=8)}``, of an operator
            that the engine has.
        preprocess: What becomes of the preprocessing that the model begins with: ``"keep"``; ``"extract"`` takes it out
            of the file into ``result.preprocess``; ``"fold"`` takes its arithmetic into the first layer's weights. Or a
            Normalize, which is put before the model: the example is then a raw picture.
        postprocess: What becomes of what follows the last layers: ``"keep"``; ``"strip"`` takes it out of the file into
            ``result.postprocess``; ``"nms"``, ``"nms-dense"`` and ``"efficient-nms"`` put non-maximum suppression after
            a detector whose head is known, ultralytics' YOLO and RT-DETR; Detections after any.
        exporter: ``"auto"`` (default) tries the cheaper back end first and takes the other where its file does not
            pass the checks; ``"torchscript"`` and ``"dynamo"`` try only that one.
        dynamo: torch's spelling of `exporter`.
        verify: Whether, or how, the file is compared with the original in onnxruntime; ``"target"`` runs it in the
            target's own engine too, where that is installed.
        samples: Further inputs to compare on: tuples of arguments, or dicts of keyword arguments.
        precision: ``"float16"`` or ``"bfloat16"`` for a file of half the width; a Float16 or Bfloat16 says more. What
            has to stay in float32 is found by measurement; ``result.precision`` tells what, why, and how far the file
            is off. An Int8 with calibration inputs for a file in eight bits; ``"int8-dynamic"`` or
            a Dynamic for ranges found at run time; ``"int8-weights"``, ``"int4-weights"`` or a WeightOnly for weights.
        metadata: Further entries of the file's metadata, texts by name, e.g. the names of classes. An ultralytics
            model's own, by which its library reads the file, are there without it.
        include: Entries to apply whether needed or not.
        exclude: Entries not to apply.
        symbolics: Further symbolics for this call only.
        rewrites: Further rewrites for this call only.
        allow_approximate: Whether entries with another formula than eager torch's may be applied.
        allow_custom_domains: Whether, or in which domains, nodes that are no standard ONNX operators may stand.
        allow_baked: Places ``file.py:line`` of Python decisions that may be frozen at their value for the example; the
            file is named alone, with its folder or with its whole path.
        control_flow: Whether Python decisions that depend on the inputs are rewritten so that the file takes them.
        progress: Called with the name of each step as it begins.
        verbose: Prints each step.
        external_data: Whether weights lie in a file beside the model; by default only above 1.5 GB.
        export_params: False leaves the weights out; they become inputs.
        keep_initializers_as_inputs: Whether weights are inputs with default values.
        optimize: Whether the graph is folded and cleaned. ``"size"`` and ``"latency"`` make the file of each exporter
            and take the smallest one, or the one that runs fastest on the example in the target's own engine; scales
            behind convolutions are multiplied into their weights.
        training: EVAL (default), TRAINING, or PRESERVE to keep the model's own mode.
        custom_translation_table: As torch.onnx.export's; dynamo only.
        custom_opsets: Versions of custom domains, which are thereby allowed.
        do_constant_folding: As torch.onnx.export's; TorchScript only.
        autograd_inlining: As torch.onnx.export's; TorchScript only.
        report: Whether a Markdown report is written into `artifacts_dir`, of a failed export too, as torch.onnx.export
            does. `ExportResult.report` writes others.
        artifacts_dir: The folder for that report.
        **unsupported: Other keywords of torch.onnx.export: profile, dump_exported_program, operator_export_type,
            export_modules_as_functions and fallback are accepted at their defaults.

    Returns:
        The result: where the file is, what was done, and the verification table.

    Raises:
        UnsupportedError: No back end exports the model for this opset and target; says what stands in the way.
        VerificationError: The files computed something else than the model; holds the table.
        CompatError: An argument is wrong; says which, and what was wanted.
    """
    given = locals()
    check_keywords(unsupported, export_compat.__kwdefaults__ or ())
    check_flags({name: given[name] for name in FLAGS})
    for name in ("output_names", "symbolics", "rewrites", "allow_baked"):
        check_list(name, given[name])
    table = custom_translation_table
    if table is not None and not isinstance(table, Mapping):
        raise CompatError(
            f"custom_translation_table is a {type(table).__name__}; wanted a dict of operator to function."
        )
    resolved = load_target(target)
    narrower = precision_from_keyword(precision)
    cut = Cut(outputs, submodule, split, state, keep_as_function, preprocess, postprocess)
    cut = cut.with_entries(include, exclude)
    quality = quality_of(optimize)
    check_quality(quality, resolved)
    file = File(
        choose_opset(opset_version, resolved, at_least=least_opset(narrower, model, resolved)),
        resolved,
        destination=f,
        output_names=tuple(output_names or ()),
        domains=allowed_domains(allow_custom_domains, custom_opsets),
        optimize=bool(optimize),
        scales=quality is not None,
        export_params=export_params,
        keep_initializers_as_inputs=keep_initializers_as_inputs,
        external_data=external_data,
        precision=narrower,
        is_opset_free=opset_version is None,
        metadata={} if metadata is None else metadata,
    )
    exporters = Exporters(
        exporters_to_try(exporter, dynamo, custom_translation_table),
        custom_opsets or {},
        {
            "custom_translation_table": custom_translation_table,
            "do_constant_folding": do_constant_folding,
            "autograd_inlining": autograd_inlining,
        },
    )
    proof = Proof.from_keywords(verify, samples)
    clock = Clock(progress or (print if verbose else None))

    with _report_into(artifacts_dir if report else None) as done, export_conditions():
        with clock("prepare"):
            patch = Patch(
                catalogue().with_entries([*symbolics, *rewrites]),
                include,
                exclude if control_flow else (*exclude, DECISIONS),
                allow_approximate,
                PlaceSet(allow_baked),
            )
            prepared = prepare(
                model,
                args,
                kwargs=kwargs,
                input_names=None if submodule else input_names,
                output_names=output_names,
                dynamic=dynamic,
                dynamic_axes=dynamic_axes,
                dynamic_shapes=dynamic_shapes,
                training=mode_of(training),
                state=state,
            )
            if submodule is not None:
                prepared = part_of(prepared, submodule, input_names, state)
            translated = translated_operators(patch.registry, custom_translation_table or ())
            prepared = replace(prepared, translated_operators=translated)
            file = replace(file, metadata={**metadata_of(prepared.model, prepared.inputs.tensors), **file.metadata})
            prepared = with_boundary_adapter(prepared, cut)
            check_axes(proof.verify, tuple(prepared.inputs.sizes()))
            kept = () if narrower is None else narrower.keep
            check_float32_places(kept, dict(prepared.model.named_modules(remove_duplicate=False)))

        try:
            return done(_export(prepared, cut, patch, file, exporters, proof, clock, quality))
        except CompatError as error:
            with clock("settle"):
                own_axes = settle_axes(prepared)
                own_form = find_export_form(own_axes or prepared)
            if own_axes is None and own_form is None:
                raise
            prepared = own_form.prepared if own_form is not None else own_axes or prepared
            try:
                with own_form.answer() if own_form is not None else nullcontext():
                    return done(_export(prepared, cut, patch, file, exporters, proof, clock, quality))
            except CompatError:
                if own_axes is None and own_form is not None and own_form.answer is deny_export:
                    raise error from None  # what the model computes without an export is not what was asked for
                raise


def _report_into(
    folder: str | os.PathLike[str] | None,
) -> AbstractContextManager[Callable[[ExportResult], ExportResult]]:
    """What `keep_report` does, where a report is wanted; reports need what an export does not."""
    if folder is None:
        return nullcontext(lambda result: result)
    from torch_onnx_compat.report.artifact import keep_report

    return keep_report(folder)


def _export(
    prepared: Prepared,
    cut: Cut,
    patch: Patch,
    file: File,
    exporters: Exporters,
    proof: Proof,
    clock: Clock,
    quality: Quality | None,
) -> ExportResult:
    with clock("prepare"):
        operation = plan_operation(prepared, cut, file.domains)
    with clock("observe"):
        is_proven = proof.verify is not None
        observation = Observation(prepared, is_compared=is_proven)
        whole = operation.with_cut_outputs(prepared)
        runs = SymbolicRuns(observation, watched_functions(patch.registry.rewrites()))
        candidates = Candidates(whole, observation, patch, file, exporters, clock, runs, is_proven=is_proven)
        selection = Selection(quality, file.target, prepared.inputs, len(exporters.order))
    attempt = Attempt(prepared, observation, operation, file, proof, clock, runs, own_entries(patch.registry))
    with put_back() as stack:
        for candidate in candidates:
            try:
                proven = stack.enter_context(attempt.proven(candidate))
            except (UnsupportedError, VerificationError) as error:
                candidates.reject(error)
            except Exception as error:
                if not (candidate.given_up or selection.files) or isinstance(error, MemoryError):
                    raise
                # The reasons found before are told, and a file that was proven before is taken.
                candidates.reject(ExportFailed(f"{type(error).__name__}: {error}"))
            else:
                if not selection.is_worth_another(proven):
                    break
                candidates.accept()
        if not selection.files:
            raise candidates.failure(*_note_on_unmet(patch.allow_baked))
        with clock("choose") if len(selection.files) > 1 else nullcontext():
            chosen, result = selection.choose()
        publish(chosen.draft)  # the last step that can fail: an error means that the old files are as they were
        return replace(
            result, notes=(*result.notes, *_notes_on_accepted(patch.allow_baked)), seconds=dict(clock.seconds)
        )


def _notes_on_accepted(places: PlaceSet) -> list[str]:
    """What is to be said of the places that the caller lets be frozen: at some, no decision may have been met."""
    notes = [
        f"{place}: frozen at its value for the example, as allow_baked says; where it comes to something else, the "
        f"file may be wrong."
        for place in places.met
    ]
    return [*notes, *_note_on_unmet(places)]


def _note_on_unmet(places: PlaceSet) -> list[str]:
    if not places.unmet:
        return []
    named = ", ".join(map(repr, places.unmet))
    hint = f" {hint_for(places.unmet[0], places.asked)}" if places.asked else ""
    return [f"allow_baked: no decision was met at {named}; wanted the place as messages have it, file.py:line.{hint}"]


def plan(
    model: Any,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    target: str | os.PathLike[str] | Target = "onnxruntime",
    exporter: Exporter = "torchscript",
    opset_version: int | None = None,
    dynamic: str | Mapping[str, Any] | None = None,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    symbolics: Sequence[Any] = (),
    rewrites: Sequence[Any] = (),
    allow_approximate: bool = False,
    show_source: bool = False,
) -> Plan:
    """Says what export_compat would apply to a model, where and why; writes nothing and changes nothing.

    The model is exported as far as the graph, which is dropped; nothing is compared. Where it is not exported,
    `Plan.obstacle` says why, and those entries are listed that a run of the model in eager torch meets.

    Args:
        model: As for export_compat.
        args: As for export_compat.
        kwargs: As for export_compat.
        target: As for export_compat.
        exporter: Back end to plan for.
        opset_version: As for export_compat.
        dynamic: As for export_compat.
        include: As for export_compat.
        exclude: As for export_compat.
        symbolics: As for export_compat.
        rewrites: As for export_compat.
        allow_approximate: As for export_compat.
        show_source: Whether `Plan.source` holds how the model's functions would be rewritten, as a unified diff. Where
            the export needs no such rewriting, decisions are searched for; that costs a few traces.

    Returns:
        The plan.

    Raises:
        CompatError: An argument is wrong, or the model fails on the example.
    """
    resolved = load_target(target)
    if exporter not in EXPORTERS:
        raise unknown_name("exporter", exporter, EXPORTERS)
    with export_conditions():
        registry = catalogue().with_entries([*symbolics, *rewrites])
        prepared = prepare(model, args, kwargs=kwargs, dynamic=dynamic)
        prepared = replace(prepared, translated_operators=translated_operators(registry, ()))
        observation = Observation(prepared)
        patch = Patch(registry, include, exclude, allow_approximate, PlaceSet(()))
        file = File(choose_opset(opset_version, resolved), resolved)
        runs = SymbolicRuns(observation, watched_functions(registry.rewrites()))
        candidates = Candidates(
            prepared, observation, patch, file, Exporters((exporter,)), Clock(None), runs, is_proven=False
        )
        candidate = _first_written(candidates, file)
        job = candidates.job(exporter) if candidate is None else candidate.job
        if candidate is None:
            job.plan.obstacle = str(candidates.failure())
            observation.dry_run(job.subject, job.plan, job.inputs)
        elif candidate.decisions is not None:
            candidate.decisions.report(job.plan)
            job.plan.source = candidate.decisions.source if show_source else ""
        if show_source and (candidate is None or candidate.decisions is None):
            explain(job)
        return job.plan


def _first_written(candidates: Candidates, file: File) -> Candidate | None:
    """The first candidate of which a graph is made that suits the target; None if there is none."""
    for candidate in candidates:
        job = candidate.job
        try:
            whole = finish(backends.export(job.plan.exporter, job), job, replace(file, opset=job.opset), {})
            lint(whole, job.plan.target)
        except (UnsupportedError, VerificationError) as error:
            candidates.reject(error)
        except MemoryError:
            raise
        except Exception as error:
            candidates.reject(ExportFailed(f"{type(error).__name__}: {error}"))
        else:
            return candidate
    return None
