"""Commands about ONNX files as they are: `compare`, `run`, `bench`, `localise` and `report`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torch_onnx_compat.cli.arguments import inputs_from, places, sizes_by_axis
from torch_onnx_compat.cli.console import (
    EXIT_CODES,
    FAILED,
    WRONG,
    Steps,
    UsageError,
    filled,
    number,
    print_json,
    print_table,
    print_text,
    reporting,
    usage,
)
from torch_onnx_compat.cli.options import (
    ENGINE,
    OTHER,
    TRIED,
    AnyTarget,
    Debug,
    File,
    Inputs,
    Json,
    Model,
    ModuleOutputs,
    Pretrained,
    Seed,
    Shape,
    Size,
    Sizes,
    Spec,
    State,
    Target,
    Weights,
    check_file,
    check_report,
    complete_targets,
)
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.publish.destination import check_destination
from torch_onnx_compat.targets import load_target
from torch_onnx_compat.targets.profile import resolve_alias

if TYPE_CHECKING:
    from torch_onnx_compat.check.localisation import Localisation
    from torch_onnx_compat.files import Bench
    from torch_onnx_compat.zoo.sample import Sample

PANEL = "A file that is there"
_NO_ENGINES = ("onnxruntime",)

Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help="Inference engines that are installed here, e.g. onnxruntime,openvino. Repeatable.",
        autocompletion=complete_targets,
        rich_help_panel=ENGINE,
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command("compare", epilog=EXIT_CODES, rich_help_panel=PANEL)(compare_command)
    app.command("run", epilog=EXIT_CODES, rich_help_panel=PANEL)(run_command)
    app.command("bench", epilog=EXIT_CODES, rich_help_panel=PANEL)(bench_command)
    app.command("localise", epilog=EXIT_CODES, rich_help_panel=PANEL)(localise_command)
    app.command("report", epilog=EXIT_CODES, rich_help_panel=PANEL)(report_command)


def compare_command(
    file: File,
    other: Annotated[
        str | None, typer.Argument(help="Another ONNX file, or a model as `export` takes them.", show_default=False)
    ] = None,
    target: AnyTarget = None,
    layers: Annotated[bool, typer.Option("--layers", help="Search for the first value that differs.")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="With --layers: draw the error of each layer.", rich_help_panel=OTHER),
    ] = None,
    inputs: Inputs = None,
    sizes: Sizes = None,
    seed: Seed = 0,
    size: Size = None,
    shape: Shape = None,
    weights: Weights = None,
    pretrained: Pretrained = False,
    state: State = None,
    outputs: ModuleOutputs = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compares a file with another one, with a model, or with itself in another engine; exits 3 if they differ."""
    with reporting(json, debug, plot) as step:
        with usage():
            check_file(file)
            check_destination(plot)
            if plot is not None and not layers:
                raise UsageError("--plot draws the error of each layer; add --layers.")
            if (other is None) == (target is None):
                raise UsageError("give another file or a model, or --target, and not both.")
            engine = None if target is None else _engine(target)
            given, tried = [inputs_from(path, file) for path in inputs or ()], sizes_by_axis("--sizes", sizes)
        from torch_onnx_compat.files.compare import compare, compare_with_model

        if other is None or Path(other).suffix == ".onnx":
            step("compare")
            found = compare(file, other, engine=engine, layers=layers, inputs=given, sizes=tried, seed=seed)
        else:
            sample = Model(other, size, shape, weights, pretrained).load(step)
            step("compare")
            found = compare_with_model(
                file,
                other,
                sample.model,
                sample.args,
                sample.kwargs,
                layers=layers,
                state=places(state) or (),
                outputs=places(outputs),
            )
        if plot is not None and found.first is not None:
            from torch_onnx_compat.report.plot import draw

            plot.write_text(draw([vars(layer) for layer in found.first.layers]), encoding="utf-8")
    print_json(found.to_dict()) if json else print_text(str(found))
    raise typer.Exit(0 if found.is_equal else WRONG)


def run_command(
    file: File,
    target: Annotated[
        str, typer.Option(help="Engine.", autocompletion=complete_targets, rich_help_panel=ENGINE)
    ] = "onnxruntime",
    inputs: Annotated[
        Path | None,
        typer.Option("--input", metavar="FILE", help="Inputs by name, .npz, or a picture.", rich_help_panel=TRIED),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=64", help="Size of a dynamic axis; else the example's. Repeatable.", rich_help_panel=TRIED
        ),
    ] = None,
    seed: Seed = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.npz", help="Where the outputs go.")
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Runs a file once in an engine, and tells its outputs."""
    with reporting(json, debug, output) as step:
        with usage():
            check_file(file)
            check_destination(output)
            engine = _engine(target)
            given = None if inputs is None else inputs_from(inputs, file)
            wanted = {name: values[0] for name, values in sizes_by_axis("--sizes", sizes, 1).items()}
        import numpy as np

        from torch_onnx_compat.files import run

        step(f"run {file}")
        feeds, outputs = run(file, engine=engine, inputs=given, sizes=wanted, seed=seed)
        if output is not None:
            with output.open("wb") as stream:
                np.savez(stream, **outputs)  # type: ignore[arg-type]
    rows = [_about("input", name, value) for name, value in feeds.items()]
    rows += [_about("output", name, value) for name, value in outputs.items()]
    print_json(rows) if json else print_table(rows)


def bench_command(
    files: Annotated[list[Path], typer.Argument(help="ONNX files; several stand side by side.")],
    target: Engines = None,
    sizes: Sizes = None,
    batch: Annotated[
        str | None, typer.Option(metavar="1,8", help="Sizes of axis 0 of every input.", rich_help_panel=TRIED)
    ] = None,
    threads: Annotated[int, typer.Option(help="On how many threads engines run.", rich_help_panel=ENGINE)] = 1,
    rounds: Annotated[int, typer.Option(help="How often each file has its turn.", rich_help_panel=TRIED)] = 5,
    runs: Annotated[int, typer.Option(help="Runs in a turn.", rich_help_panel=TRIED)] = 10,
    seed: Seed = 0,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw the timings, too.", rich_help_panel=OTHER)
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Times files in engines, in turns; --sizes batch=1,8 times them at each of these sizes."""
    with reporting(json, debug, plot) as step:
        with usage():
            for file in files:
                check_file(file)
            grid = _grid(sizes_by_axis("--sizes", sizes))
            batches = _batches(batch)
            engines = [_engine(name) for names in target or _NO_ENGINES for name in names.split(",")]
            check_destination(plot)
        from torch_onnx_compat.files import bench

        found = bench(
            files,
            engines=engines,
            sizes=grid,
            batches=batches,
            threads=threads,
            rounds=rounds,
            runs=runs,
            seed=seed,
            progress=step,
        )
        if plot is not None:
            from torch_onnx_compat.files.bench_plot import plot as draw

            plot.write_text(draw(found), encoding="utf-8")
    print_json([row.to_dict() for row in found]) if json else print_table(filled([_timed(row) for row in found]))
    for name, axes in dict.fromkeys((row.file, row.unsaid) for row in found if row.unsaid):
        typer.echo(f"note: {name}: nobody said the size of {', '.join(axes)}; give --sizes {axes[0]}=...", err=True)
    raise typer.Exit(FAILED if any(row.error for row in found) else 0)


def localise_command(
    spec: Spec,
    file: File,
    size: Size = None,
    shape: Shape = None,
    weights: Weights = None,
    pretrained: Pretrained = False,
    state: State = None,
    outputs: ModuleOutputs = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Finds the first layer at which a file computes something else than a model; exits 3 if there is one."""
    with reporting(json, debug) as step:
        model = Model(spec, size, shape, weights, pretrained)
        with usage():
            check_file(file)
        sample = model.load(step)
        found = _localise(sample, file, state, outputs, step)
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
    state: State = None,
    outputs: ModuleOutputs = None,
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
            found = _localise(model.load(step), file, state, outputs, step)
        step("report")
        report_on_file(output, file, profile, found)
    print_json({"report": str(output)}) if json else typer.echo(str(output))


def _localise(sample: Sample, file: Path, state: str | None, outputs: str | None, step: Steps) -> Localisation:
    from torch_onnx_compat.check.file_log import NotRun
    from torch_onnx_compat.check.localise import localise

    step("localise")
    try:
        return localise(
            sample.model,
            file,
            sample.args,
            kwargs=sample.kwargs,
            state=places(state) or (),
            outputs=places(outputs),
        )
    except NotRun as error:
        reason = " ".join(str(error.__cause__).split())
        raise CompatError(
            f"{file}: onnxruntime does not run it on the model's example: {reason} Give --size or --shape, so that the "
            f"example fits the file."
        ) from error


def _timed(row: Bench) -> dict[str, str]:
    numbers = {
        "median ms": number(row.median_ms),
        "p90 ms": number(row.p90_ms),
        "processor ms": number(row.processor_ms),
        "load ms": number(row.load_ms),
        "memory MB": number(row.memory_mb, ".0f"),
        "rows/s": number(row.throughput),
        "engine MB": number(row.engine_mb),
    }
    sizes = ", ".join(f"{name}={size}" for name, size in row.sizes.items())
    return {"file": row.file, "engine": row.engine, "sizes": sizes, **numbers, "error": row.error}


def _about(kind: str, name: str, value: Any) -> dict[str, str]:
    import numpy as np

    array = np.asarray(value) if not isinstance(value, list) else np.zeros(0)
    is_number = array.dtype.kind in "biuf" and array.size
    return {
        "": kind,
        "name": name,
        "type": str(array.dtype),
        "shape": "x".join(map(str, array.shape)) or "number",
        "least": f"{array.min():.6g}" if is_number and array.dtype.kind != "b" else "",
        "mean": f"{array.mean():.6g}" if is_number else "",
        "most": f"{array.max():.6g}" if is_number and array.dtype.kind != "b" else "",
    }


def _engine(name: str) -> str:
    """The name of an engine that the command line names, by an alias or with spaces around it.

    Raises:
        CompatError: No adapter has that name.
    """
    from torch_onnx_compat.engines import find_engine

    return find_engine(resolve_alias(name.strip())).name


def _batches(text: str | None) -> tuple[int, ...]:
    """``"1,8"`` as numbers."""
    if text is None:
        return ()
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", text):
        raise UsageError(f"--batch {text!r}: wanted sizes of axis 0, e.g. 1,8.")
    return tuple(map(int, text.split(",")))


def _grid(sizes: Mapping[str, tuple[int, ...]]) -> list[dict[str, int]]:
    """Every combination of the sizes."""
    grid: list[dict[str, int]] = [{}]
    for name, values in sizes.items():
        grid = [{**one, name: value} for one in grid for value in values]
    return grid
