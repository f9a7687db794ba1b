"""The command `advise`: which form of a file suits an engine, by measurement."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torch_onnx_compat.catalogue.entry import EXPORTERS
from torch_onnx_compat.cli import arguments
from torch_onnx_compat.cli.console import (
    EXIT_CODES,
    UsageError,
    filled,
    number,
    print_json,
    print_table,
    print_text,
    reporting,
)
from torch_onnx_compat.cli.options import (
    ENGINE,
    TRIED,
    CalibrationFile,
    Debug,
    Dynamic,
    Exclude,
    Exporter,
    Include,
    Json,
    Model,
    Opset,
    Pretrained,
    Shape,
    Size,
    Spec,
    Target,
    Weights,
    export_options,
)
from torch_onnx_compat.errors import unknown_name

if TYPE_CHECKING:
    from torch_onnx_compat.advice import Advice
    from torch_onnx_compat.advice.advice import Trial

_KINDS = ("axes", "opset", "precision", "nms")
_WIDTH = 100
"""Characters of a reason in the table; --json has all of them."""


def register(app: typer.Typer) -> None:
    """Adds the command to the command line."""
    app.command("advise", epilog=EXIT_CODES, rich_help_panel="Export")(advise_command)


def advise_command(
    spec: Spec,
    target: Target = "onnxruntime",
    vary: Annotated[
        str, typer.Option(metavar=",".join(_KINDS), help="In which ways the forms differ.", rich_help_panel=TRIED)
    ] = ",".join(_KINDS),
    opset: Opset = None,
    exporter: Exporter = "auto",
    dynamic: Dynamic = None,
    include: Include = None,
    exclude: Exclude = None,
    size: Size = None,
    shape: Shape = None,
    weights: Weights = None,
    pretrained: Pretrained = False,
    calibration: CalibrationFile = None,
    threads: Annotated[int, typer.Option(help="On how many threads the engine runs.", rich_help_panel=ENGINE)] = 1,
    rounds: Annotated[int, typer.Option(help="How often each file has its turn.", rich_help_panel=TRIED)] = 5,
    runs: Annotated[int, typer.Option(help="Runs in a turn.", rich_help_panel=TRIED)] = 10,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Exports a model in several forms, measures each in the target's engine, and recommends one."""
    with reporting(json, debug) as step:
        kinds = _kinds(vary)
        options = export_options(target, opset, exporter, ("auto", *EXPORTERS), include, exclude)
        model = Model(spec, size, shape, weights, pretrained, dynamic)
        eight_bits = arguments.precision("int8", None, None, calibration, None, narrow_io=False)
        sample = model.load(step)
        axes = model.axes(sample)
        calibrated: Any = arguments.with_calibration(eight_bits, calibration, sample)
        from torch_onnx_compat.advice import advise

        found = advise(
            sample.model,
            sample.args,
            kwargs=sample.kwargs,
            dynamic=axes,
            calibration=calibrated.calibration,
            vary=kinds,
            verify=sample.verify,
            threads=threads,
            rounds=rounds,
            runs=runs,
            progress=step,
            **options,
        )
    of_model: dict[str, Any] = {"--dynamic": dynamic, "--include": include, "--exclude": exclude}
    of_model |= {"--size": size, "--shape": shape, "--weights": weights, "--pretrained": pretrained}
    command = _command(spec, found, of_model, calibration)
    if json:
        print_json({**found.to_dict(), "command": command})
        return
    print_table(filled([_cells(trial, found.best) for trial in found.trials]))
    notes = [f"note: {note}" for note in (*found.notes, *model.notes(sample))]
    print_text("\n".join([*notes, "", f"recommended: {found.best.form.name}"]))
    typer.echo(command)  # whole, so that it can be copied


def _kinds(text: str) -> tuple[Any, ...]:
    kinds = tuple(arguments.places(text) or ())
    for kind in kinds:
        if kind not in _KINDS:
            raise UsageError(f"--vary: {unknown_name('kind of form', kind, _KINDS)}")
    return kinds


def _cells(trial: Trial, best: Trial) -> dict[str, str]:
    timing = trial.timing
    measured = {} if timing is None or trial.why else vars(timing)
    nan = float("nan")
    return {
        "form": trial.form.name + (" *" if trial.form == best.form else ""),
        "opset": str(trial.opset or ""),
        "nodes": str(trial.nodes or ""),
        "MB": number(trial.bytes / 1e6) if trial.bytes else "",
        "off by": number(trial.off_by, ".2g"),
        "median ms": number(measured.get("median_ms", nan)),
        "processor ms": number(measured.get("processor_ms", nan)),
        "load ms": number(measured.get("load_ms", nan)),
        "memory MB": number(measured.get("memory_mb", nan), ".0f"),
        "engine MB": number(measured.get("engine_mb", nan)),
        "why not": textwrap.shorten(trial.why, _WIDTH, placeholder=" …"),
    }


def _command(spec: str, found: Advice, of_model: Mapping[str, Any], calibration: Path | None) -> str:
    """The command line that makes the recommended file."""
    words = ["torch-onnx-compat", "export", spec, "-o", "model.onnx", "--target", str(found.options["target"])]
    for option, value in of_model.items():
        for one in value if isinstance(value, list) else [value]:
            if one not in (None, False):
                words += [option] if one is True else [option, str(one)]
    if found.options["exporter"] != "auto":
        words += ["--exporter", found.options["exporter"]]
    if found.options["opset_version"] is not None:
        words += ["--opset", str(found.options["opset_version"])]
    precision = found.options.get("precision")
    if precision is not None:
        words += ["--precision", getattr(precision, "name", precision)]
    if getattr(precision, "name", precision) == "int8":
        words += ["--calibration", str(calibration)]
    return shlex.join(words)
