"""Arguments and options that several commands share, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from torch_onnx_compat import zoo
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.cli import arguments
from torch_onnx_compat.cli.console import Steps, usage
from torch_onnx_compat.errors import unknown_name
from torch_onnx_compat.targets import load_target
from torch_onnx_compat.zoo.weights import load_checkpoint

Spec = Annotated[
    str,
    typer.Argument(
        help="torchvision:raft_small, timm:resnet18, file.py:factory, package.module:factory or model.pt2. A factory "
        "takes nothing and returns model, (model, args) or (model, args, kwargs)."
    ),
]
Target = Annotated[str, typer.Option(help="Inference engine, or a TOML profile of one.")]
Opset = Annotated[int | None, typer.Option(help="ONNX opset; the target's preferred one by default.")]
Exporter = Annotated[str, typer.Option(help="auto, torchscript or dynamo.")]
Dynamic = Annotated[
    list[str] | None,
    typer.Option(metavar="AXES", help="batch (axis 0 of every input), or image:0=batch,2=height. Repeatable."),
]
Include = Annotated[
    list[str] | None, typer.Option(metavar="ENTRY", help="Apply this entry, needed or not. Repeatable.")
]
Exclude = Annotated[list[str] | None, typer.Option(metavar="ENTRY", help="Never apply this entry. Repeatable.")]
Size = Annotated[str | None, typer.Option(metavar="HxW", help="Height and width of the example pictures.")]
Shape = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=1x3xHxW", help="A random example input of this shape. Repeatable."),
]
Weights = Annotated[
    Path | None, typer.Option(help="Checkpoint (a state_dict) to load, strictly and with weights_only=True.")
]
Approximate = Annotated[bool, typer.Option("--allow-approximate", help="Let entries apply that state an error.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def export_options(
    target: str,
    opset: int | None,
    exporter: str,
    exporters: Sequence[str],
    include: list[str] | None,
    exclude: list[str] | None,
    allow_approximate: bool,
) -> dict[str, Any]:
    """Keywords that export_compat and plan share, their names checked before anything slow begins."""
    with usage():
        load_target(target)
        if exporter not in exporters:
            raise unknown_name("exporter", exporter, exporters)
        entries = catalogue()
        for name in (*(include or ()), *(exclude or ())):
            entries[name]
    return {
        "target": target,
        "opset_version": opset,
        "exporter": exporter,
        "include": tuple(include or ()),
        "exclude": tuple(exclude or ()),
        "allow_approximate": allow_approximate,
    }


def load_sample(spec: str, size: str | None, shapes: list[str] | None, weights: Path | None, step: Steps) -> zoo.Sample:
    """The model that a spec names, with the example that the options ask for."""
    step(f"load {spec}")
    with usage():
        sample = zoo.load(spec, arguments.size(size))
        sample = sample.with_shapes(dict(map(arguments.shape, shapes or ()))).validate(spec)
        if weights is not None:
            load_checkpoint(sample.model, weights)
    return sample
