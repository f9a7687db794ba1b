"""The commands `export` and `plan`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from torch_onnx_compat.catalogue.entry import EXPORTERS
from torch_onnx_compat.cli import arguments, config
from torch_onnx_compat.cli.console import EXIT_CODES, FAILED, UsageError, print_json, print_text, reporting, usage
from torch_onnx_compat.cli.options import (
    CUTS,
    ENGINE,
    ENTRIES,
    OTHER,
    Approximate,
    CalibrationFile,
    Debug,
    Dynamic,
    Exclude,
    Exporter,
    Include,
    Json,
    KeepFloat32,
    Limit,
    Metric,
    Model,
    ModuleOutputs,
    NarrowIo,
    Opset,
    Output,
    Precision,
    Pretrained,
    Shape,
    Size,
    Spec,
    State,
    Target,
    Weights,
    check_engine,
    check_installed,
    check_report,
    export_options,
    with_notes,
)
from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.publish.destination import check_model_destination
from torch_onnx_compat.targets import load_target

PROOF = "How it is proven"

OPTIMIZE: dict[str, Any] = {"quick": True, "size": "size", "latency": "latency", "none": False}
"""What `export_compat` calls it, by the option's values."""

CustomDomains = Annotated[
    bool,
    typer.Option("--allow-custom-domains", help="Let nodes stand that are not ONNX's own.", rich_help_panel=ENGINE),
]
Baked = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE:LINE",
        help="Freeze this Python decision at its value for the example. Repeatable.",
        rich_help_panel=ENTRIES,
    ),
]
Submodule = Annotated[
    str | None, typer.Option(metavar="MODULE", help="Export this part of the model only.", rich_help_panel=CUTS)
]
Split = Annotated[
    str | None,
    typer.Option(metavar="MODULES", help="Cut the network after these modules, too.", rich_help_panel=CUTS),
]
KeepAsFunction = Annotated[
    str | None,
    typer.Option(
        metavar="MODULES", help="Keep these classes or modules whole, as functions of the file.", rich_help_panel=CUTS
    ),
]
Preprocess = Annotated[
    str,
    typer.Option(
        help="keep, extract (into a file of its own), fold (into the first layer), or a Normalize to put before: "
        "'mean=0.485,0.456,0.406 std=0.229,0.224,0.225 scale=1/255 layout=NHWC'.",
        rich_help_panel=CUTS,
    ),
]
Postprocess = Annotated[
    str,
    typer.Option(
        help="keep, strip (into a file of its own), nms, nms-dense or efficient-nms (after a known detector), or "
        "Detections to put behind: 'form=nms-dense boxes=0 scores=1 box_format=cxcywh'.",
        rich_help_panel=CUTS,
    ),
]
Report = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a report: .html, .md or .json.", rich_help_panel=OTHER)
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command("export", epilog=EXIT_CODES, cls=config.ExportCommand, rich_help_panel="Export")(export_command)
    app.command("plan", epilog=EXIT_CODES, rich_help_panel="Export")(plan_command)


def export_command(
    spec: Spec,
    output: Output,
    target: Target = "onnxruntime",
    opset: Opset = None,
    exporter: Exporter = "auto",
    dynamic: Dynamic = None,
    include: Include = None,
    exclude: Exclude = None,
    size: Size = None,
    shape: Shape = None,
    weights: Weights = None,
    pretrained: Pretrained = False,
    allow_approximate: Approximate = False,
    allow_custom_domains: CustomDomains = False,
    allow_baked: Baked = None,
    outputs: ModuleOutputs = None,
    submodule: Submodule = None,
    split: Split = None,
    state: State = None,
    keep_as_function: KeepAsFunction = None,
    preprocess: Preprocess = "keep",
    postprocess: Postprocess = "keep",
    precision: Precision = "float32",
    limit: Limit = None,
    keep_float32: KeepFloat32 = None,
    calibration: CalibrationFile = None,
    metric: Metric = None,
    narrow_io: NarrowIo = False,
    optimize: Annotated[
        str,
        typer.Option(
            help="quick (the first exporter's file that is right), size (the smallest), latency (the fastest in the "
            "target's engine) or none (not folded and cleaned).",
            rich_help_panel=ENGINE,
        ),
    ] = "quick",
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Do not compare the file with the model.", rich_help_panel=PROOF)
    ] = False,
    verify_on_target: Annotated[
        bool,
        typer.Option(
            "--verify-on-target",
            help="Run the file in the target's own engine too, every case.",
            rich_help_panel=PROOF,
        ),
    ] = False,
    report: Report = None,
    stock: Annotated[
        bool,
        typer.Option(
            "--stock", help="Let the report show what torch's own export makes; takes one more.", rich_help_panel=OTHER
        ),
    ] = False,
    open: Annotated[bool, typer.Option("--open", help="Show the report.", rich_help_panel=OTHER)] = False,
    netron: Annotated[
        bool, typer.Option("--netron", help="Show the file in Netron, if that is installed.", rich_help_panel=OTHER)
    ] = False,
    make_all: Annotated[
        bool,
        typer.Option(
            "--all", help="Make every export that the project's file names.", is_eager=True, callback=config.make_all
        ),
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Exports a model, and compares the file with it in onnxruntime.

    SPEC may be the name of an export in torch_onnx_compat.toml, or in pyproject.toml; --all makes all of them.
    """
    with reporting(json, debug, output, report) as step:
        _check_report_options(report, {"--stock": stock, "--open": open})
        if optimize not in OPTIMIZE:
            raise UsageError(str(unknown_name("--optimize", optimize, tuple(OPTIMIZE))))
        options = export_options(target, opset, exporter, ("auto", *EXPORTERS), include, exclude)
        model = Model(spec, size, shape, weights, pretrained, dynamic)
        narrower = arguments.precision(precision, limit, keep_float32, calibration, metric, narrow_io=narrow_io)
        before, behind = arguments.preprocess(preprocess), arguments.postprocess(postprocess)
        with usage():
            check_model_destination(output)
        _check_proof(no_verify, verify_on_target, target)
        if netron:
            check_installed("--netron", "netron", "netron")
        sample = model.load(step)
        axes = model.axes(sample)
        narrower = arguments.with_calibration(narrower, calibration, sample)
        from torch_onnx_compat.export import export_compat
        from torch_onnx_compat.report import write_report

        try:
            result = export_compat(
                sample.model,
                sample.args,
                output,
                kwargs=sample.kwargs,
                dynamic=axes,
                verify=False if no_verify else replace(sample.verify, on_target=verify_on_target),
                allow_approximate=allow_approximate,
                allow_custom_domains=allow_custom_domains,
                allow_baked=tuple(allow_baked or ()),
                outputs=arguments.places(outputs),
                submodule=submodule,
                split=arguments.places(split) or (),
                state=arguments.places(state) or (),
                keep_as_function=arguments.places(keep_as_function) or (),
                preprocess=before,
                postprocess=behind,
                precision=narrower,
                optimize=OPTIMIZE[optimize],
                metadata={**sample.metadata, **model.metadata(sample)},
                progress=step,
                **options,
            )
        except CompatError as error:
            _report(report, open, partial(write_report, subject=error))
            raise
        result = with_notes(result, model.notes(sample))
        _report(
            report,
            open,
            lambda path: result.report(path, sample.model, sample.args, sample.kwargs, stock=stock, progress=step),
        )
        if netron:
            _netron(output)
    print_json(result.to_dict()) if json else print_text(str(result))


def _check_report_options(report: Path | None, options: dict[str, bool]) -> None:
    for option, given in options.items():
        if given and report is None:
            raise UsageError(f"{option} is for a report; give --report FILE, too.")
    check_report(report)


def _check_proof(no_verify: bool, on_target: bool, target: str) -> None:
    if no_verify and on_target:
        raise UsageError("--no-verify and --verify-on-target exclude each other; give one of them.")
    if on_target:
        check_engine("--verify-on-target", load_target(target))


def plan_command(
    spec: Spec,
    target: Target = "onnxruntime",
    opset: Opset = None,
    exporter: Annotated[str, typer.Option(help="torchscript or dynamo.", rich_help_panel=ENGINE)] = "torchscript",
    dynamic: Dynamic = None,
    include: Include = None,
    exclude: Exclude = None,
    size: Size = None,
    shape: Shape = None,
    weights: Weights = None,
    pretrained: Pretrained = False,
    allow_approximate: Approximate = False,
    show_source: Annotated[
        bool,
        typer.Option("--show-source", help="Show how the model's functions would be rewritten.", rich_help_panel=OTHER),
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tells which entries an export applies or declines, and why; writes nothing and compares nothing."""
    with reporting(json, debug) as step:
        options = export_options(target, opset, exporter, EXPORTERS, include, exclude)
        model = Model(spec, size, shape, weights, pretrained, dynamic)
        sample = model.load(step)
        axes = model.axes(sample)
        from torch_onnx_compat.export import plan

        step("plan")
        result = plan(
            sample.model,
            sample.args,
            kwargs=sample.kwargs,
            dynamic=axes,
            allow_approximate=allow_approximate,
            show_source=show_source,
            **options,
        )
    print_json(result.to_dict()) if json else print_text(str(result))
    raise typer.Exit(FAILED if result.obstacle else 0)


def _report(path: Path | None, show: bool, write: Callable[[Path], Any]) -> None:
    if path is not None:
        write(path)
        if show:
            typer.launch(str(path))


def _netron(path: Path) -> None:
    import importlib

    importlib.import_module("netron").start(str(path))
