"""The commands `export` and `plan`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from torch_onnx_compat.cli import arguments
from torch_onnx_compat.cli.console import EXIT_CODES, print_json, reporting
from torch_onnx_compat.cli.options import (
    Approximate,
    Debug,
    Dynamic,
    Exclude,
    Exporter,
    Include,
    Json,
    Opset,
    Shape,
    Size,
    Spec,
    Target,
    Weights,
    export_options,
    load_sample,
)
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.export import export_compat, plan
from torch_onnx_compat.report import write_report

CustomDomains = Annotated[bool, typer.Option("--allow-custom-domains", help="Let nodes stand that are not ONNX's own.")]
Baked = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE:LINE", help="Freeze this Python decision at its value for the example. Repeatable."),
]
Outputs = Annotated[
    str | None, typer.Option(metavar="MODULES", help="Give what these modules return, e.g. layer3,fc; see surgery.md.")
]
Submodule = Annotated[str | None, typer.Option(metavar="MODULE", help="Export this part of the model only.")]
Split = Annotated[str | None, typer.Option(metavar="MODULES", help="Cut the network after these modules, too.")]
State = Annotated[
    str | None, typer.Option(metavar="ATTRIBUTES", help="What modules keep between calls, as inputs and outputs.")
]
KeepAsFunction = Annotated[
    str | None, typer.Option(metavar="MODULES", help="Keep these classes or modules whole, as functions of the file.")
]
Preprocess = Annotated[str, typer.Option(help="keep, extract (into a file of its own) or fold (into the first layer).")]
Postprocess = Annotated[
    str,
    typer.Option(
        help="keep, strip (into a file of its own), nms, nms-dense or efficient-nms (after a known detector)."
    ),
]
Precision = Annotated[str, typer.Option(help="float32, float16 or bfloat16; what must stay in float32 is measured.")]
Limit = Annotated[
    float | None, typer.Option(metavar="ERROR", help="Largest error of a value in float16 or bfloat16, relative.")
]
KeepFloat32 = Annotated[
    str | None, typer.Option(metavar="PLACES", help="Modules and operators that stay in float32, e.g. head,Softmax.")
]
Report = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a report: .html, .md or .json.")]


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command("export", epilog=EXIT_CODES)(export_command)
    app.command("plan", epilog=EXIT_CODES)(plan_command)


def export_command(
    spec: Spec,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the ONNX file goes.")],
    target: Target = "onnxruntime",
    opset: Opset = None,
    exporter: Exporter = "auto",
    dynamic: Dynamic = None,
    include: Include = None,
    exclude: Exclude = None,
    size: Size = None,
    shape: Shape = None,
    weights: Weights = None,
    allow_approximate: Approximate = False,
    allow_custom_domains: CustomDomains = False,
    allow_baked: Baked = None,
    outputs: Outputs = None,
    submodule: Submodule = None,
    split: Split = None,
    state: State = None,
    keep_as_function: KeepAsFunction = None,
    preprocess: Preprocess = "keep",
    postprocess: Postprocess = "keep",
    precision: Precision = "float32",
    limit: Limit = None,
    keep_float32: KeepFloat32 = None,
    narrow_io: Annotated[
        bool, typer.Option("--narrow-io", help="Give the file's inputs and outputs the narrow type, too.")
    ] = False,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not compare the file with the model.")] = False,
    verify_on_target: Annotated[
        bool, typer.Option("--verify-on-target", help="Run the file in the target's own engine too, every case.")
    ] = False,
    report: Report = None,
    open: Annotated[bool, typer.Option("--open", help="Show the report.")] = False,
    netron: Annotated[bool, typer.Option("--netron", help="Show the file in Netron, if that is installed.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Exports a model, and compares the file with it in onnxruntime."""
    with reporting(json, debug) as step:
        if no_verify and verify_on_target:
            raise CompatError("--no-verify and --verify-on-target exclude each other; give one of them.")
        options = export_options(target, opset, exporter, ("auto", *EXPORTERS), include, exclude, allow_approximate)
        axes = arguments.dynamic(dynamic)
        half = arguments.precision(precision, limit, keep_float32, narrow_io=narrow_io)
        sample = load_sample(spec, size, shape, weights, step)
        try:
            result = export_compat(
                sample.model,
                sample.args,
                output,
                kwargs=sample.kwargs,
                dynamic=axes,
                verify=False if no_verify else replace(sample.verify, on_target=verify_on_target),
                allow_custom_domains=allow_custom_domains,
                allow_baked=tuple(allow_baked or ()),
                outputs=arguments.places(outputs),
                submodule=submodule,
                split=arguments.places(split) or (),
                state=arguments.places(state) or (),
                keep_as_function=arguments.places(keep_as_function) or (),
                preprocess=cast(Any, preprocess),
                postprocess=cast(Any, postprocess),
                precision=half,
                progress=step,
                **options,
            )
        except CompatError as error:
            _report(report, open, partial(write_report, subject=error))
            raise
        if report is not None:
            step("report")
        _report(report, open, lambda path: result.report(path, sample.model, sample.args, sample.kwargs))
        if netron:
            _netron(output)
    print_json(result.to_dict()) if json else typer.echo(str(result))


def plan_command(
    spec: Spec,
    target: Target = "onnxruntime",
    opset: Opset = None,
    exporter: Annotated[str, typer.Option(help="torchscript or dynamo.")] = "torchscript",
    dynamic: Dynamic = None,
    include: Include = None,
    exclude: Exclude = None,
    size: Size = None,
    shape: Shape = None,
    weights: Weights = None,
    allow_approximate: Approximate = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tells which entries an export would apply or decline, and why; writes nothing."""
    with reporting(json, debug) as step:
        options = export_options(target, opset, exporter, EXPORTERS, include, exclude, allow_approximate)
        axes = arguments.dynamic(dynamic)
        sample = load_sample(spec, size, shape, weights, step)
        step("plan")
        result = plan(sample.model, sample.args, kwargs=sample.kwargs, dynamic=axes, **options)
    print_json(result.to_dict()) if json else typer.echo(str(result))


def _report(path: Path | None, show: bool, write: Callable[[Path], Any]) -> None:
    if path is not None:
        write(path)
        if show:
            typer.launch(str(path))


def _netron(path: Path) -> None:
    try:
        netron = importlib.import_module("netron")
    except ImportError as error:
        raise CompatError(f"--netron: Netron is not installed; pip install netron, then netron {path}.") from error
    netron.start(str(path))
