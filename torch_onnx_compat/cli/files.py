"""Commands about ONNX files that are there, made by whatever tool: `localise` and `report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torch_onnx_compat.cli.console import (
    EXIT_CODES,
    WRONG,
    Steps,
    print_json,
    print_table,
    print_text,
    reporting,
    usage,
)
from torch_onnx_compat.cli.options import (
    Debug,
    Json,
    Model,
    Pretrained,
    Shape,
    Size,
    Spec,
    Target,
    Weights,
    check_file,
    check_report,
)
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.targets import load_target

if TYPE_CHECKING:
    from torch_onnx_compat.check.localisation import Localisation
    from torch_onnx_compat.zoo.sample import Sample

PANEL = "A file that is there"
File = Annotated[Path, typer.Argument(help="An ONNX file, made by whatever tool.")]


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command("localise", epilog=EXIT_CODES, rich_help_panel=PANEL)(localise_command)
    app.command("report", epilog=EXIT_CODES, rich_help_panel=PANEL)(report_command)


def localise_command(
    spec: Spec,
    file: File,
    size: Size = None,
    shape: Shape = None,
    weights: Weights = None,
    pretrained: Pretrained = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Finds the first layer at which a file computes something else than a model; exits 3 if there is one."""
    with reporting(json, debug) as step:
        model = Model(spec, size, shape, weights, pretrained)
        with usage():
            check_file(file)
        sample = model.load(step)
        found = _localise(sample, file, step)
    if json:
        print_json(found.to_dict())
    else:
        print_text("\n".join([str(found), *(f"note: {note}" for note in model.notes(sample))]))
        off = [layer for layer in found.layers if layer.error > layer.tolerance] if found.found else []
        print_table(
            [
                {"module": layer.module, "error": f"{layer.error:.2g}", "rounding explains": f"{layer.tolerance:.2g}"}
                for layer in off
            ]
        )
    raise typer.Exit(WRONG if found.found else 0)


def report_command(
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The report: .html, .md or .json.")],
    target: Target = "onnxruntime",
    spec: Annotated[
        str | None, typer.Option("--model", metavar="SPEC", help="Compare every layer with this model, as `localise`.")
    ] = None,
    size: Size = None,
    shape: Shape = None,
    weights: Weights = None,
    pretrained: Pretrained = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Writes a report about a file: inputs, operators on a target, how to run it, and where it differs from a model."""
    with reporting(json, debug, output) as step:
        model = Model(spec, size, shape, weights, pretrained) if spec is not None else None
        with usage():
            profile = load_target(target)
            check_file(file)
        check_report(output)
        found = None
        from torch_onnx_compat.report import report_on_file

        if model is not None:
            found = _localise(model.load(step), file, step)
        step("report")
        report_on_file(output, file, profile, found)
    print_json({"report": str(output)}) if json else typer.echo(str(output))


def _localise(sample: Sample, file: Path, step: Steps) -> Localisation:
    from torch_onnx_compat.check.localise import localise

    step("localise")
    try:
        return localise(sample.model, file, sample.args, kwargs=sample.kwargs)
    except Exception as error:
        if not type(error).__module__.startswith("onnxruntime"):
            raise
        reason = " ".join(str(error).split())
        raise CompatError(
            f"{file}: onnxruntime does not run it on the model's example: {reason} Give --size or --shape, so that the "
            f"example fits the file."
        ) from error
