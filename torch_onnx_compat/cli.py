"""The command line, `torch-onnx-compat`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import typer
import typer.core

from torch_onnx_compat import arguments, cli_sweep, cli_targets, export, zoo
from torch_onnx_compat.catalogue import catalogue as load_catalogue
from torch_onnx_compat.check.doctor import doctor
from torch_onnx_compat.console import EXIT_CODES, Steps, print_json, print_table, reporting, usage
from torch_onnx_compat.diagnosis import Diagnosis, explain
from torch_onnx_compat.entry import EXPORTERS, Entry, Symbolic
from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.report import write_report
from torch_onnx_compat.targets import load_target
from torch_onnx_compat.zoo.weights import load_checkpoint


class _Commands(typer.core.TyperGroup):
    """Commands that are told apart from misspelt ones in this package's words."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            ctx.fail(str(unknown_name("command", args[0], self.commands)))
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Commands,
    epilog=EXIT_CODES,
    help="Exports PyTorch models to ONNX, patched where torch's exporters fail or err, and verified.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

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
Preprocess = Annotated[str, typer.Option(help="keep, extract (into a file of its own) or fold (into the first layer).")]
Postprocess = Annotated[str, typer.Option(help="keep, or strip (into a file of its own).")]
Report = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a report: .html, .md or .json.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.command("export", epilog=EXIT_CODES)
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
    preprocess: Preprocess = "keep",
    postprocess: Postprocess = "keep",
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not compare the file with the model.")] = False,
    report: Report = None,
    open: Annotated[bool, typer.Option("--open", help="Show the report.")] = False,
    netron: Annotated[bool, typer.Option("--netron", help="Show the file in Netron, if that is installed.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Exports a model, and compares the file with it in onnxruntime."""
    with reporting(json, debug) as step:
        options = _options(target, opset, exporter, ("auto", *EXPORTERS), include, exclude, allow_approximate)
        axes = arguments.dynamic(dynamic)
        sample = _load(spec, size, shape, weights, step)
        try:
            result = export.export_compat(
                sample.model,
                sample.args,
                output,
                kwargs=sample.kwargs,
                dynamic=axes,
                verify=False if no_verify else sample.verify,
                allow_custom_domains=allow_custom_domains,
                allow_baked=tuple(allow_baked or ()),
                outputs=arguments.places(outputs),
                submodule=submodule,
                split=arguments.places(split) or (),
                preprocess=cast(Any, preprocess),
                postprocess=cast(Any, postprocess),
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


@app.command("plan", epilog=EXIT_CODES)
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
        options = _options(target, opset, exporter, EXPORTERS, include, exclude, allow_approximate)
        axes = arguments.dynamic(dynamic)
        sample = _load(spec, size, shape, weights, step)
        step("plan")
        result = export.plan(sample.model, sample.args, kwargs=sample.kwargs, dynamic=axes, **options)
    print_json(result.to_dict()) if json else typer.echo(str(result))


@app.command("catalogue", epilog=EXIT_CODES)
def catalogue_command(
    name: Annotated[str | None, typer.Argument(help="One entry, to be told in full.")] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Lists the catalogue, or tells one entry in full."""
    with reporting(json, debug), usage():
        entries = load_catalogue()
        chosen = [entries[name]] if name else sorted(entries, key=lambda e: (_kind(e), e.name))
    rows = [entry_row(entry) for entry in chosen]
    if json:
        print_json(rows[0] if name else rows)
    elif name:
        width = max(map(len, rows[0]))
        typer.echo("\n".join(f"{key:{width}}  {value}" for key, value in rows[0].items()))
        typer.echo("\n" + (sys.modules[chosen[0].owner].__doc__ or "").strip())
    else:
        print_table(rows)


@app.command("zoo", epilog=EXIT_CODES)
def zoo_command(
    name: Annotated[str | None, typer.Argument(help="A zoo; none lists the zoos.")] = None,
    filter: Annotated[str, typer.Option("--filter", metavar="GLOB", help="Only names that match.")] = "*",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Lists the zoos, or the models of one."""
    with reporting(json, debug), usage():
        names = zoo.find(name).names() if name else sorted(zoo.zoos())
    chosen = [n for n in names if fnmatchcase(n, filter)]
    print_json(chosen) if json else typer.echo("\n".join(chosen))


@app.command("doctor", epilog=EXIT_CODES)
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
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Looks for what will stand in the way of an export, without exporting; exits 1 if something does."""
    with reporting(json, debug) as step:
        options = _options(target, opset, exporter, ("auto", *EXPORTERS), include, exclude, False)
        del options["allow_approximate"]
        axes = arguments.dynamic(dynamic)
        sample = _load(spec, size, shape, weights, step)
        step("examine")
        found = doctor(sample.model, sample.args, kwargs=sample.kwargs, dynamic=axes, **options)
    if json:
        print_json(found.to_dict())
    elif found.findings:
        print_table([vars(finding) for finding in found.findings])
    else:
        typer.echo(str(found))
    raise typer.Exit(0 if found.ok else 1)


@app.command("explain", epilog=EXIT_CODES)
def explain_command(
    text: Annotated[
        str, typer.Argument(metavar="[TEXT|FILE]", help="An error, a file that holds it, or - for standard input.")
    ] = "-",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tells what an error of an exporter, an ONNX tool or an engine means, and what to do; exits 1 if it is unknown."""
    with reporting(json, debug):
        found = explain(arguments.text(text))
    if json:
        print_json([diagnosis.to_dict() for diagnosis in found])
    elif found:
        typer.echo("\n\n".join(_told(diagnosis) for diagnosis in found))
    else:
        typer.echo("nothing known is said here.", err=True)
    raise typer.Exit(0 if found else 1)


cli_targets.register(app)
cli_sweep.register(app)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and exits; see `EXIT_CODES` for the exit codes."""
    typer.main.get_command(app)(args=argv, prog_name="torch-onnx-compat")


def entry_row(entry: Entry) -> dict[str, str]:
    """What the lists of the catalogue show of an entry, column by column."""
    last = "" if entry.opset[1] >= 99 else str(entry.opset[1])
    return {
        "name": entry.name,
        "kind": _kind(entry),
        "replaces": entry.op if isinstance(entry, Symbolic) else getattr(entry, "replaces", ""),
        "needed": str(entry.need),
        "opset": f"{entry.opset[0]}..{last}" if last else f"{entry.opset[0]}+",
        "targets": ", ".join(sorted(entry.targets)) or "any",
        "exactness": entry.exactness.value + (f", {entry.error:g}" if entry.error else ""),
        "source": entry.source,
    }


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


def _told(diagnosis: Diagnosis) -> str:
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


def _kind(entry: Entry) -> str:
    return type(entry).__name__.lower()


def _options(
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
        entries = load_catalogue()
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


def _load(spec: str, size: str | None, shapes: list[str] | None, weights: Path | None, step: Steps) -> zoo.Sample:
    step(f"load {spec}")
    with usage():
        sample = zoo.load(spec, arguments.size(size))
        sample = sample.with_shapes(dict(map(arguments.shape, shapes or ()))).checked(spec)
        if weights is not None:
            load_checkpoint(sample.model, weights)
    return sample


if __name__ == "__main__":
    main()
