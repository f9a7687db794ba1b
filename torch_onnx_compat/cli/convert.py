"""The command `convert`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from torch_onnx_compat.cli import arguments
from torch_onnx_compat.cli.arguments import inputs_from, sizes_by_axis
from torch_onnx_compat.cli.console import EXIT_CODES, UsageError, print_json, print_text, reporting, usage
from torch_onnx_compat.cli.files import PANEL
from torch_onnx_compat.cli.options import (
    CUTS,
    ENGINE,
    AnyTarget,
    CalibrationFile,
    Debug,
    File,
    Inputs,
    Json,
    KeepFloat32,
    Limit,
    Metric,
    NarrowIo,
    Opset,
    Output,
    Precision,
    Seed,
    Sizes,
    check_file,
)
from torch_onnx_compat.publish.destination import check_model_destination
from torch_onnx_compat.targets import choose_opset, load_target

Dynamic = Annotated[
    list[str] | None,
    typer.Option(
        metavar="AXES",
        help="Free fixed axes: batch (axis 0 of every input), or image:2=height,3=width. Repeatable.",
        rich_help_panel=ENGINE,
    ),
]
Static = Annotated[
    list[str] | None,
    typer.Option(metavar="AXIS=SIZE", help="Fix a dynamic axis. Repeatable.", rich_help_panel=ENGINE),
]
Simplify = Annotated[
    bool,
    typer.Option(
        "--simplify",
        help="Fold constants and normalisations, resolve branches of constant conditions, remove redundant nodes.",
        rich_help_panel=ENGINE,
    ),
]
Start = Annotated[
    str | None,
    typer.Option(metavar="VALUES", help="Begin at these values; they become the inputs.", rich_help_panel=CUTS),
]
Outputs = Annotated[
    str | None, typer.Option(metavar="VALUES", help="Give these values, in this order.", rich_help_panel=CUTS)
]
Rename = Annotated[
    list[str] | None,
    typer.Option(metavar="OLD=NEW", help="Rename an input, an output or a value. Repeatable.", rich_help_panel=CUTS),
]
SetAttribute = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NODE:ATTRIBUTE=VALUE",
        help="Set an attribute, e.g. Conv_3:pads=[1,1,1,1]; null takes it away. Repeatable.",
        rich_help_panel=CUTS,
    ),
]
Constant = Annotated[
    list[str] | None,
    typer.Option(
        metavar="INPUT=VALUE",
        help="Make an input a weight, e.g. training=false or table=rows.npy. Repeatable.",
        rich_help_panel=CUTS,
    ),
]
InitializersAsInputs = Annotated[
    str | None,
    typer.Option(
        "--initializers-as-inputs",
        metavar="NAMES",
        help="Make these weights inputs, too, which have them as defaults; all, or none.",
        rich_help_panel=CUTS,
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
        help="keep, strip (into a file of its own), or Detections to put behind: "
        "'form=nms-dense channels_first=true box_format=cxcywh'.",
        rich_help_panel=CUTS,
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command to the command line."""
    app.command("convert", epilog=EXIT_CODES, rich_help_panel=PANEL)(convert_command)


def convert_command(
    file: File,
    output: Output,
    target: AnyTarget = None,
    opset: Opset = None,
    dynamic: Dynamic = None,
    static: Static = None,
    simplify: Simplify = False,
    start: Start = None,
    outputs: Outputs = None,
    rename: Rename = None,
    set_attribute: SetAttribute = None,
    constant: Constant = None,
    initializers_as_inputs: InitializersAsInputs = None,
    preprocess: Preprocess = "keep",
    postprocess: Postprocess = "keep",
    precision: Precision = "float32",
    limit: Limit = None,
    keep_float32: KeepFloat32 = None,
    calibration: CalibrationFile = None,
    metric: Metric = None,
    narrow_io: NarrowIo = False,
    inputs: Inputs = None,
    sizes: Sizes = None,
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Converts a file, made by whatever tool, and compares the new one with it."""
    with reporting(json, debug, output) as step:
        with usage():
            check_file(file)
            check_model_destination(output)
            if target is not None:
                choose_opset(opset, load_target(target))
        surgery = {
            "start": arguments.places(start) or (),
            "outputs": arguments.places(outputs),
            "rename": arguments.pairs("--rename", rename, "an old and a new name, e.g. input.1=image"),
            "attributes": arguments.attributes(set_attribute),
            "constants": arguments.constants(constant),
            "keep_initializers_as_inputs": _which_initializers(initializers_as_inputs),
            "preprocess": arguments.preprocess(preprocess),
            "postprocess": arguments.postprocess(postprocess, ("keep", "strip")),
        }
        fixed = {name: values[0] for name, values in sizes_by_axis("--static", static, 1).items()}
        tried = sizes_by_axis("--sizes", sizes)
        normalize = surgery["preprocess"] if not isinstance(surgery["preprocess"], str) else None
        given = [inputs_from(path, file, normalize) for path in inputs or ()]
        free = _free_axes(dynamic)
        narrower = arguments.precision(precision, limit, keep_float32, calibration, metric, narrow_io=narrow_io)
        narrower = arguments.with_calibration_of_file(narrower, calibration, file)
        from torch_onnx_compat.files import convert

        result = convert(
            file,
            output,
            opset=opset,
            target=target,
            dynamic=free,
            static=fixed or None,
            simplify=simplify,
            precision=narrower,
            inputs=given,
            sizes=tried,
            seed=seed,
            progress=step,
            **surgery,
        )
    print_json(result.to_dict()) if json else print_text(str(result))


def _free_axes(texts: list[str] | None) -> Any:
    found = arguments.dynamic(texts)
    names = [name for axes in found.values() for name in axes.values()] if isinstance(found, dict) else []
    if found == arguments.AUTO or not all(isinstance(name, str) for name in names):
        raise UsageError(f"--dynamic {texts}: of a file, wanted batch, or axes by input, e.g. image:2=height.")
    return found


def _which_initializers(text: str | None) -> Any:
    return {None: None, "all": True, "none": False}[text] if text in (None, "all", "none") else arguments.places(text)
