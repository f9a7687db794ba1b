"""The command line, `torch-onnx-compat`."""

from __future__ import annotations

import json as jsonlib
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
import typer.core
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from torch_onnx_compat import export, zoo
from torch_onnx_compat.catalogue import catalogue as load_catalogue
from torch_onnx_compat.entry import EXPORTERS, Entry, Symbolic
from torch_onnx_compat.errors import CompatError, VerificationError, unknown_name
from torch_onnx_compat.targets import load_target
from torch_onnx_compat.zoo.weights import load_checkpoint

FAILED, USAGE, WRONG = 1, 2, 3
EPILOG = (
    "Exit codes: 0 done; 1 the model cannot be exported like this; 2 the command line is wrong, or what it names "
    "cannot be loaded; 3 the exported file does not compute what the model computes, and was not kept."
)


class UsageError(CompatError):
    """The command line is wrong, or what it names cannot be loaded."""


class _Printable(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


class _Commands(typer.core.TyperGroup):
    """Commands that are told apart from misspelt ones in this package's words."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            ctx.fail(str(unknown_name("command", args[0], self.commands)))
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Commands,
    epilog=EPILOG,
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
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.command("export", epilog=EPILOG)
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
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not compare the file with the model.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Exports a model, and compares the file with it in onnxruntime."""
    with _reporting(json, debug) as step:
        options = _options(target, opset, exporter, ("auto", *EXPORTERS), include, exclude, allow_approximate)
        axes = _dynamic(dynamic)
        sample = _load(spec, size, shape, weights, step)
        result = export.export_compat(
            sample.model,
            sample.args,
            output,
            kwargs=sample.kwargs,
            dynamic=axes,
            verify=not no_verify,
            allow_custom_domains=allow_custom_domains,
            allow_baked=tuple(allow_baked or ()),
            progress=step,
            **options,
        )
    _print(result, json)


@app.command("plan", epilog=EPILOG)
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
    with _reporting(json, debug) as step:
        options = _options(target, opset, exporter, EXPORTERS, include, exclude, allow_approximate)
        axes = _dynamic(dynamic)
        sample = _load(spec, size, shape, weights, step)
        step("plan")
        result = export.plan(sample.model, sample.args, kwargs=sample.kwargs, dynamic=axes, **options)
    _print(result, json)


@app.command("catalogue", epilog=EPILOG)
def catalogue_command(
    name: Annotated[str | None, typer.Argument(help="One entry, to be told in full.")] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Lists the catalogue, or tells one entry in full."""
    with _reporting(json, debug), _usage():
        entries = load_catalogue()
        chosen = [entries[name]] if name else sorted(entries, key=lambda e: (_kind(e), e.name))
    rows = [entry_row(entry) for entry in chosen]
    if json:
        _print_json(rows[0] if name else rows)
    elif name:
        width = max(map(len, rows[0]))
        typer.echo("\n".join(f"{key:{width}}  {value}" for key, value in rows[0].items()))
        typer.echo("\n" + (sys.modules[chosen[0].owner].__doc__ or "").strip())
    else:
        _print_table(rows)


@app.command("zoo", epilog=EPILOG)
def zoo_command(
    name: Annotated[str | None, typer.Argument(help="A zoo; none lists the zoos.")] = None,
    filter: Annotated[str, typer.Option("--filter", metavar="GLOB", help="Only names that match.")] = "*",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Lists the zoos, or the models of one."""
    with _reporting(json, debug), _usage():
        names = zoo.find(name).names() if name else sorted(zoo.zoos())
    chosen = [n for n in names if fnmatchcase(n, filter)]
    _print_json(chosen) if json else typer.echo("\n".join(chosen))


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and exits; see `EPILOG` for the exit codes."""
    typer.main.get_command(app)(args=argv, prog_name="torch-onnx-compat")


def entry_row(entry: Entry) -> dict[str, str]:
    """What the lists of the catalogue show of an entry, column by column."""
    last = "" if entry.opset[1] >= 99 else str(entry.opset[1])
    return {
        "name": entry.name,
        "kind": _kind(entry),
        "replaces": entry.op if isinstance(entry, Symbolic) else getattr(entry, "replaces", ""),
        "needed": str(entry.need),
        "opset": f"{entry.opset[0]}..{last}",
        "targets": ", ".join(sorted(entry.targets)) or "any",
        "exactness": entry.exactness.value + (f", {entry.error:g}" if entry.error else ""),
        "source": entry.source,
    }


def _kind(entry: Entry) -> str:
    return type(entry).__name__.lower()


class _Steps:
    """Shows on standard error which step is running: a spinner on a terminal, a line per step elsewhere."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._status: Status | None = None
        self._last = ""

    def __call__(self, step: str) -> None:
        self._last, previous = step, self._last
        if step == previous:
            return
        if not self._console.is_terminal:
            self._console.print(f"{step} ...", markup=False, highlight=False, soft_wrap=True)
        elif self._status is None:
            self._status = self._console.status(step)
            self._status.start()
        else:
            self._status.update(step)

    def stop(self) -> None:
        if self._status is not None:
            self._status.stop()


@contextmanager
def _reporting(json: bool, debug: bool) -> Iterator[_Steps]:
    """Turns errors into one message and an exit code; what the model's own code prints goes to standard error."""
    step = _Steps()
    try:
        with redirect_stdout(sys.stderr):
            yield step
    except Exception as error:
        step.stop()
        if debug:
            raise
        _fail(error, json)
    finally:
        step.stop()


def _fail(error: Exception, json: bool) -> None:
    code = USAGE if isinstance(error, UsageError) else WRONG if isinstance(error, VerificationError) else FAILED
    known = isinstance(error, CompatError)
    message = str(error) if known else f"{type(error).__name__}: {error}; --debug shows the traceback."
    typer.secho("error: ", fg=typer.colors.RED, err=True, nl=False)
    typer.echo(message, err=True)
    if json:
        table = [row.to_dict() for row in error.table] if isinstance(error, VerificationError) else []
        _print_json({"error": message, "kind": type(error).__name__, "exit_code": code, "table": table})
    raise typer.Exit(code)


@contextmanager
def _usage() -> Iterator[None]:
    """Marks what goes wrong here as the command line's fault."""
    try:
        yield
    except UsageError:
        raise
    except CompatError as error:
        raise UsageError(str(error)) from error


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
    with _usage():
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


def _load(spec: str, size: str | None, shapes: list[str] | None, weights: Path | None, step: _Steps) -> zoo.Sample:
    step(f"load {spec}")
    with _usage():
        sample = zoo.load(spec, _size(size))
        sample = sample.with_shapes(dict(map(_shape, shapes or ()))).checked(spec)
        if weights is not None:
            load_checkpoint(sample.model, weights)
    return sample


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    sizes = _sizes(text)
    if len(sizes) != 2:
        raise UsageError(f"--size {text!r}: wanted height x width in pixels, e.g. 480x640.")
    return sizes[0], sizes[1]


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.partition("=")
    if not equals or not name or not _sizes(sizes):
        raise UsageError(f"--shape {text!r}: wanted the input's name and its sizes, e.g. image=1x3x224x224.")
    return name, _sizes(sizes)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x"))) if re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", text) else ()


def _dynamic(texts: list[str] | None) -> str | Mapping[str, Any] | None:
    """``["batch"]`` as it is; ``["image:0=batch,2=height"]`` as ``{"image": {0: "batch", 2: "height"}}``."""
    if not texts:
        return None
    if len(texts) == 1 and texts[0].isidentifier():
        return texts[0]
    axes: dict[str, dict[int, str]] = {}
    for text in texts:
        name, colon, pairs = text.partition(":")
        for pair in pairs.split(","):
            found = re.fullmatch(r"(-?\d+)=(\w+)", pair)
            if not colon or not name or found is None:
                raise UsageError(
                    f"--dynamic {text!r}: wanted 'batch' alone, or an input with axes and their names, "
                    f"e.g. image:0=batch,2=height."
                )
            axes.setdefault(name, {})[int(found[1])] = found[2]
    return axes


def _print(result: _Printable, json: bool) -> None:
    _print_json(result.to_dict()) if json else typer.echo(str(result))


def _print_json(value: Any) -> None:
    typer.echo(jsonlib.dumps(_finite(value), indent=2))


def _finite(value: Any) -> Any:
    """The value with null for the numbers that JSON cannot write."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def _print_table(rows: list[dict[str, str]]) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=240)  # a file or pipe: one line per entry
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = [key for key in (rows[0] if rows else ()) if key != "source"]
    for column in columns:
        table.add_column(column, no_wrap=column == "name", overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[column]) for column in columns))
    console.print(table)


if __name__ == "__main__":
    main()
