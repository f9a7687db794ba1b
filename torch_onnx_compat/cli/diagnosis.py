"""The commands `doctor` and `explain`: what stands in the way, before an export and after a failed one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from torch_onnx_compat.catalogue.entry import EXPORTERS
from torch_onnx_compat.cli import arguments
from torch_onnx_compat.cli.console import EXIT_CODES, print_json, print_table, print_text, reporting
from torch_onnx_compat.cli.options import (
    Debug,
    Dynamic,
    Exclude,
    Exporter,
    Include,
    Json,
    Limit,
    Model,
    Opset,
    Precision,
    Pretrained,
    Shape,
    Size,
    Spec,
    Target,
    Weights,
    export_options,
)

if TYPE_CHECKING:
    from torch_onnx_compat.diagnosis import Diagnosis


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command("doctor", epilog=EXIT_CODES, rich_help_panel="When something is wrong")(doctor_command)
    app.command("explain", epilog=EXIT_CODES, rich_help_panel="When something is wrong")(explain_command)


def doctor_command(
    spec: Spec,
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
    precision: Precision = "float32",
    limit: Limit = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Looks for what will stand in the way of an export, without exporting; exits 1 if something does."""
    with reporting(json, debug) as step:
        options = export_options(target, opset, exporter, ("auto", *EXPORTERS), include, exclude)
        narrower = arguments.precision(precision, limit, None, None, None, narrow_io=False)
        model = Model(spec, size, shape, weights, pretrained, dynamic)
        sample = model.load(step)
        axes = model.axes(sample)
        from torch_onnx_compat.doctor.doctor import doctor

        step("examine")
        found = doctor(sample.model, sample.args, kwargs=sample.kwargs, dynamic=axes, precision=narrower, **options)
    if json:
        print_json(found.to_dict())
    elif found.findings:
        print_table([vars(finding) for finding in found.findings])
    else:
        typer.echo(str(found))
    raise typer.Exit(0 if found.ok else 1)


def explain_command(
    text: Annotated[
        str, typer.Argument(metavar="[TEXT|FILE]", help="An error, a file that holds it, or - for standard input.")
    ] = "-",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tells what an error of an exporter, an ONNX tool or an engine means, and what to do; exits 1 if it is unknown."""
    from torch_onnx_compat.diagnosis import explain

    with reporting(json, debug):
        found = explain(arguments.text(text))
    if json:
        print_json([diagnosis.to_dict() for diagnosis in found])
    elif found:
        print_text("\n\n".join(_lines_of(diagnosis) for diagnosis in found))
    else:
        typer.echo(
            "nothing known is said here. Give the whole error, with its last lines; or see what stands in the way of "
            "the model itself: torch-onnx-compat doctor SPEC.",
            err=True,
        )
    raise typer.Exit(0 if found else 1)


def _lines_of(diagnosis: Diagnosis) -> str:
    about = {
        "cause": diagnosis.cause,
        "action": diagnosis.action,
        "entries": ", ".join(diagnosis.entries),
        "operator": diagnosis.operator,
        "place": diagnosis.place,
        "said by": diagnosis.tool,
        "sources": ", ".join(diagnosis.sources),
    }
    return "\n".join(f"{key:8}  {value}" for key, value in about.items() if value)
