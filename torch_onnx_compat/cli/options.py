"""Arguments and options that several commands share, and what they mean."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torch_onnx_compat.catalogue.entry import EXPORTERS
from torch_onnx_compat.cli import arguments
from torch_onnx_compat.cli.console import Steps, UsageError, usage
from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.targets import choose_opset, known_targets, load_target
from torch_onnx_compat.targets.profile import ALIASES
from torch_onnx_compat.zoo import spec as specs

if TYPE_CHECKING:
    from torch_onnx_compat import targets
    from torch_onnx_compat.zoo.sample import Sample

MODEL, ENGINE, ENTRIES, OTHER = "The model", "The engine and the file", "What is patched", "Output"
CUTS, PRECISION, TRIED = "What is cut", "Precision", "What it is tried on"
"""Headings of groups of options in a command's help."""


def complete_targets(incomplete: str) -> list[str]:
    """The targets whose names begin so, for the shell."""
    return [name for name in (*known_targets(), *ALIASES) if name.startswith(incomplete)]


def _models(incomplete: str) -> list[str]:
    return [f"{name}:" for name in specs.zoos() if name.startswith(incomplete)]


Spec = Annotated[
    str,
    typer.Argument(
        help="timm:resnet18, torchvision:raft_small, smp:unet-resnet18, ultralytics:yolo11n, hf:org/name (or "
        "hf:FOLDER, perhaps with #task), yolo11n.pt, model.pt2, scripted.pt, file.py:factory or "
        "package.module:factory. A factory takes nothing and returns model, (model, args) or (model, args, kwargs).",
        autocompletion=_models,
    ),
]
Target = Annotated[
    str,
    typer.Option(
        help="Inference engine (`torch-onnx-compat targets` lists them), or a TOML profile of one.",
        autocompletion=complete_targets,
        rich_help_panel=ENGINE,
    ),
]
AnyTarget = Annotated[
    str | None,
    typer.Option(
        help="Inference engine (`torch-onnx-compat targets` lists them), or a TOML profile of one.",
        autocompletion=complete_targets,
        rich_help_panel=ENGINE,
    ),
]
Opset = Annotated[
    int | None,
    typer.Option(help="ONNX opset; the target's preferred one by default.", rich_help_panel=ENGINE),
]
Exporter = Annotated[
    str,
    typer.Option(
        help="auto, torchscript or dynamo.",
        autocompletion=lambda incomplete: [n for n in ("auto", *EXPORTERS) if n.startswith(incomplete)],
        rich_help_panel=ENGINE,
    ),
]
Dynamic = Annotated[
    list[str] | None,
    typer.Option(
        metavar="AXES",
        help="batch (axis 0 of every input), auto (what is known of a named model), or image:0=batch,2=height, with "
        "bounds ids:1=tokens:1..512. Repeatable.",
        rich_help_panel=MODEL,
    ),
]
Include = Annotated[
    list[str] | None,
    typer.Option(metavar="ENTRY", help="Apply this entry, needed or not. Repeatable.", rich_help_panel=ENTRIES),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="ENTRY", help="Never apply this entry. Repeatable.", rich_help_panel=ENTRIES),
]
Size = Annotated[
    str | None,
    typer.Option(
        metavar="HxW", help="Height and width of the example pictures; 224 is a square.", rich_help_panel=MODEL
    ),
]
Shape = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=1x3xHxW", help="A random example input of this shape. Repeatable.", rich_help_panel=MODEL
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NAME",
        help="Checkpoint (a state_dict) to load, strictly and with weights_only=True; or weights that the model's "
        "library downloads, by name: DEFAULT, IMAGENET1K_V2, a1_in1k.",
        rich_help_panel=MODEL,
    ),
]
Pretrained = Annotated[
    bool,
    typer.Option(
        "--pretrained",
        help="As --weights DEFAULT. Without weights a named model's are random.",
        rich_help_panel=MODEL,
    ),
]
ModuleOutputs = Annotated[
    str | None,
    typer.Option(
        "--outputs",
        metavar="MODULES",
        help="Give what these modules return, e.g. layer3,fc; see surgery.md.",
        rich_help_panel=CUTS,
    ),
]
State = Annotated[
    str | None,
    typer.Option(
        metavar="ATTRIBUTES", help="What modules keep between calls, as inputs and outputs.", rich_help_panel=CUTS
    ),
]
Approximate = Annotated[
    bool,
    typer.Option("--allow-approximate", help="Let entries apply that state an error.", rich_help_panel=ENTRIES),
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the ONNX file goes.")]
File = Annotated[Path, typer.Argument(help="An ONNX file, made by whatever tool.")]
Precision = Annotated[
    str,
    typer.Option(
        help="float32, float16, bfloat16, int8, int8-dynamic, int8-weights or int4-weights; what must stay in float32 "
        "is measured.",
        rich_help_panel=PRECISION,
    ),
]
Limit = Annotated[
    float | None,
    typer.Option(
        metavar="ERROR",
        help="Largest error of a value in float16 or bfloat16, relative; largest loss in fewer bits.",
        rich_help_panel=PRECISION,
    ),
]
CalibrationFile = Annotated[
    Path | None,
    typer.Option(
        "--calibration",
        metavar="FILE",
        help="Inputs to calibrate int8 with: .npz of arrays by argument of forward, or by input of a file; or .npy of "
        "the only one. They are taken in batches of the example's size; rows that fill none are left out.",
        rich_help_panel=PRECISION,
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="How eight and four bits are judged: distance (of the outputs, relative) or top1 (share of rows with "
        "another class).",
        rich_help_panel=PRECISION,
    ),
]
KeepFloat32 = Annotated[
    str | None,
    typer.Option(
        metavar="PLACES",
        help="Modules and operators that stay in float32, e.g. head,Softmax.",
        rich_help_panel=PRECISION,
    ),
]
NarrowIo = Annotated[
    bool,
    typer.Option(
        "--narrow-io", help="Give the file's inputs and outputs the narrow type, too.", rich_help_panel=PRECISION
    ),
]
Inputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--input",
        metavar="FILE",
        help="Inputs by name, one array each in an .npz; or a picture. Repeatable.",
        rich_help_panel=TRIED,
    ),
]
Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--sizes", metavar="AXIS=64,65", help="Sizes of a dynamic axis to try. Repeatable.", rich_help_panel=TRIED
    ),
]
Seed = Annotated[int, typer.Option(help="Of the random inputs.", rich_help_panel=TRIED)]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.", rich_help_panel=OTHER)
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=OTHER)]


def export_options(
    target: str,
    opset: int | None,
    exporter: str,
    exporters: Sequence[str],
    include: list[str] | None,
    exclude: list[str] | None,
) -> dict[str, Any]:
    """Keywords that export_compat, plan and doctor share, their names checked before anything slow begins."""
    with usage():
        profile = load_target(target)
        choose_opset(opset, profile)
        if exporter not in exporters:
            raise unknown_name("exporter", exporter, exporters)
        _check_entries([*(include or ()), *(exclude or ())])
    return {
        "target": target,
        "opset_version": opset,
        "exporter": exporter,
        "include": tuple(include or ()),
        "exclude": tuple(exclude or ()),
    }


def _check_entries(names: Sequence[str]) -> None:
    if names:  # the catalogue needs torch, which takes a second or two
        from torch_onnx_compat.catalogue.catalogue import catalogue

        entries = catalogue()
        for name in names:
            entries[name]


class Model:
    """A model as the command line describes it: checked at once, loaded when it is needed.

    Args:
        spec: Its name.
        size: ``480x640``.
        shapes: ``image=1x3x224x224``, each.
        weights: A checkpoint, or weights by name.
        pretrained: Whether the library's own weights are asked for.
        dynamic: The texts of ``--dynamic``.

    Raises:
        UsageError: One of them is wrong, so far as that can be told without torch.
    """

    def __init__(
        self,
        spec: str,
        size: str | None,
        shapes: list[str] | None,
        weights: str | None,
        pretrained: bool,
        dynamic: list[str] | None = None,
    ) -> None:
        if pretrained and weights is not None:
            raise UsageError(f"--pretrained and --weights {weights} both name weights; give one of them.")
        self.spec = spec
        self.size = arguments.size(size)
        self.shapes = dict(map(arguments.shape, shapes or ()))
        self.weights = "DEFAULT" if pretrained else weights
        self._dynamic = arguments.dynamic(dynamic)
        with usage():
            specs.check(spec)

    def load(self, step: Steps) -> Sample:
        """The model with the example that the options ask for."""
        step(f"load {self.spec}")
        with usage():
            sample = specs.load(self.spec, self.size, self.weights).with_shapes(self.shapes)
            self._check_size(sample)
            return sample.validate(self.spec)

    def _check_size(self, sample: Sample) -> None:
        """Refuses a size that no input has."""
        from torch_onnx_compat.inputs import tree

        shapes = [tuple(tensor.shape) for tensor in tree.tensors_in((sample.args, dict(sample.kwargs)))]
        if self.size is not None and not any(len(s) > 2 and s[-2:] == self.size for s in shapes):
            height, width = self.size
            given = " The --shape given is of another size." if self.shapes else ""
            raise UsageError(
                f"--size {height}x{width}: no input of {self.spec} is a picture of this size: "
                f"{', '.join(map(str, shapes)) or 'there is no example'}.{given} Leave --size out."
            )

    def axes(self, sample: Sample) -> Any:
        """The axes that may vary, as export_compat takes them."""
        if self._dynamic != arguments.AUTO:
            return self._dynamic
        if not sample.dynamic:
            raise UsageError(
                f"--dynamic auto: nothing is known of the axes of {self.spec}; name them, e.g. --dynamic image:0=batch."
            )
        return sample.dynamic

    def notes(self, sample: Sample) -> tuple[str, ...]:
        """What a reader of the result should know about the model."""
        if not sample.random:
            return (sample.note,) if sample.note else ()
        which = "" if sample.random == "all" else f" ({sample.random})"
        random = (
            f"random weights{which}: {self.spec} was built without trained ones; --pretrained or --weights gives them."
        )
        return (random, sample.note) if sample.note else (random,)

    def metadata(self, sample: Sample) -> dict[str, str]:
        """What the file should say of its weights: whoever finds it later has no message to read."""
        return {"weights": f"random ({sample.random}): built without trained ones"} if sample.random else {}


def check_file(file: Path) -> None:
    """Says before any work that a file is not there.

    Raises:
        CompatError: It is not.
    """
    if not file.is_file():
        raise CompatError(f"{file}: no such file.")


def check_engine(option: str, target: targets.Target) -> None:
    """Says before any work that a target's engine does not run here.

    Raises:
        UsageError: There is no adapter for it, or it is not installed.
    """
    from torch_onnx_compat.engines import find_installed

    try:
        find_installed(target)
    except CompatError as error:
        raise UsageError(f"{option}: {error}") from error


def check_report(path: Path | None) -> None:
    """Says before any work that a report cannot be written.

    Raises:
        UsageError: Its ending is unknown, or its place cannot be written to.
    """
    if path is None:
        return
    from torch_onnx_compat.publish.destination import check_destination

    with usage():
        if path.suffix not in (".html", ".md", ".json"):
            raise CompatError(f"--report {str(path)!r}: the ending is {path.suffix!r}; wanted .html, .md or .json.")
        check_destination(path)


def check_installed(option: str, module: str, package: str) -> None:
    """Says before any work that an option needs a package.

    Raises:
        UsageError: It is not installed.
    """
    if importlib.util.find_spec(module) is None:
        raise UsageError(f"{option}: {module} is not installed; pip install {package}.")


def with_notes(result: Any, notes: tuple[str, ...]) -> Any:
    """The result with notes on the model before its own."""
    return replace(result, notes=(*notes, *result.notes)) if notes else result
