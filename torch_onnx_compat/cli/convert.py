"""Commands that work on ONNX files alone: `convert`, `compare`, `run` and `bench`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torch_onnx_compat.cli.arguments import read_arrays
from torch_onnx_compat.cli.console import (
    EXIT_CODES,
    FAILED,
    WRONG,
    UsageError,
    print_json,
    print_table,
    print_text,
    reporting,
    usage,
)
from torch_onnx_compat.cli.files import PANEL, File
from torch_onnx_compat.cli.options import (
    ENGINE,
    Debug,
    Json,
    Model,
    Pretrained,
    Shape,
    Size,
    Weights,
    check_file,
    complete_targets,
)
from torch_onnx_compat.destination import check_destination
from torch_onnx_compat.targets import choose_opset, load_target
from torch_onnx_compat.targets.profile import resolve_alias

if TYPE_CHECKING:
    from torch_onnx_compat.files import Bench

PROOF = "What it is tried on"
_NO_ENGINES = ("onnxruntime",)

Inputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--input", metavar="FILE.npz", help="Inputs by name, one array each. Repeatable.", rich_help_panel=PROOF
    ),
]
Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--sizes", metavar="AXIS=64,65", help="Sizes of a dynamic axis to try. Repeatable.", rich_help_panel=PROOF
    ),
]
Seed = Annotated[int, typer.Option(help="Of the random inputs.", rich_help_panel=PROOF)]
Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help="Inference engine that is installed here. Repeatable.",
        autocompletion=complete_targets,
        rich_help_panel=ENGINE,
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command("convert", epilog=EXIT_CODES, rich_help_panel=PANEL)(convert_command)
    app.command("compare", epilog=EXIT_CODES, rich_help_panel=PANEL)(compare_command)
    app.command("run", epilog=EXIT_CODES, rich_help_panel=PANEL)(run_command)
    app.command("bench", epilog=EXIT_CODES, rich_help_panel=PANEL)(bench_command)


def convert_command(
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the new file goes.")],
    target: Annotated[
        str | None,
        typer.Option(
            help="Inference engine to suit the file to, or a TOML profile of one.",
            autocompletion=complete_targets,
            rich_help_panel=ENGINE,
        ),
    ] = None,
    opset: Annotated[
        int | None, typer.Option(help="ONNX opset; the target's, else the file's own.", rich_help_panel=ENGINE)
    ] = None,
    dynamic: Annotated[
        str | None, typer.Option(metavar="batch", help="Free axis 0 of every input.", rich_help_panel=ENGINE)
    ] = None,
    static: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS=SIZE", help="Fix a dynamic axis. Repeatable.", rich_help_panel=ENGINE),
    ] = None,
    simplify: Annotated[
        bool, typer.Option("--simplify", help="Fold constants, and remove redundant nodes.", rich_help_panel=ENGINE)
    ] = False,
    inputs: Inputs = None,
    sizes: Sizes = None,
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Converts a file to another opset, target or axes, and compares the new one with it."""
    with reporting(json, debug, output) as step:
        with usage():
            check_file(file)
            check_destination(output)
            if target is not None:
                choose_opset(opset, load_target(target))
            fixed = {name: values[0] for name, values in _sizes("--static", static, 1).items()}
            tried = _sizes("--sizes", sizes)
            given = [_load(path) for path in inputs or ()]
        from torch_onnx_compat.files import convert

        result = convert(
            file,
            output,
            opset=opset,
            target=target,
            dynamic=dynamic,
            static=fixed or None,
            simplify=simplify,
            inputs=given,
            sizes=tried,
            seed=seed,
            progress=step,
        )
    print_json(result.to_dict()) if json else print_text(str(result))


def compare_command(
    file: File,
    other: Annotated[
        str | None, typer.Argument(help="Another ONNX file, or a model as `export` takes them.", show_default=False)
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Instead of another file: an engine that is installed here.",
            autocompletion=complete_targets,
            rich_help_panel=ENGINE,
        ),
    ] = None,
    layers: Annotated[bool, typer.Option("--layers", help="Search for the first value that differs.")] = False,
    inputs: Inputs = None,
    sizes: Sizes = None,
    seed: Seed = 0,
    size: Size = None,
    shape: Shape = None,
    weights: Weights = None,
    pretrained: Pretrained = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compares a file with another one, with a model, or with itself in another engine; exits 3 if they differ."""
    with reporting(json, debug) as step:
        with usage():
            check_file(file)
            if (other is None) == (target is None):
                raise UsageError("give another file or a model, or --target, and not both.")
            given, tried = [_load(path) for path in inputs or ()], _sizes("--sizes", sizes)
        from torch_onnx_compat.files.compare import compare, compare_with_model

        if other is None or Path(other).suffix == ".onnx":
            step("compare")
            engine = None if target is None else resolve_alias(target)
            found = compare(file, other, engine=engine, layers=layers, inputs=given, sizes=tried, seed=seed)
        else:
            sample = Model(other, size, shape, weights, pretrained).load(step)
            step("compare")
            found = compare_with_model(file, other, sample.model, sample.args, sample.kwargs, layers=layers)
    print_json(found.to_dict()) if json else print_text(str(found))
    raise typer.Exit(0 if found.is_equal else WRONG)


def run_command(
    file: File,
    target: Annotated[
        str, typer.Option(help="Engine.", autocompletion=complete_targets, rich_help_panel=ENGINE)
    ] = "onnxruntime",
    inputs: Annotated[
        Path | None, typer.Option("--input", metavar="FILE.npz", help="Inputs by name.", rich_help_panel=PROOF)
    ] = None,
    sizes: Sizes = None,
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
            given = None if inputs is None else _load(inputs)
            wanted = {name: values[0] for name, values in _sizes("--sizes", sizes, 1).items()}
        import numpy as np

        from torch_onnx_compat.files import run

        step(f"run {file}")
        feeds, outputs = run(file, engine=target, inputs=given, sizes=wanted, seed=seed)
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
    rounds: Annotated[int, typer.Option(help="How often each file has its turn.", rich_help_panel=PROOF)] = 5,
    runs: Annotated[int, typer.Option(help="Runs in a turn.", rich_help_panel=PROOF)] = 10,
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Times files in engines, in turns, on one thread; --sizes batch=1,8 times them at each of these sizes."""
    with reporting(json, debug) as step:
        with usage():
            for file in files:
                check_file(file)
            grid = _grid(_sizes("--sizes", sizes))
        from torch_onnx_compat.files import bench

        found = bench(
            files, engines=target or _NO_ENGINES, sizes=grid, rounds=rounds, runs=runs, seed=seed, progress=step
        )
    print_json([row.to_dict() for row in found]) if json else print_table([_timed(row) for row in found])
    raise typer.Exit(FAILED if any(row.error for row in found) else 0)


def _timed(row: Bench) -> dict[str, str]:
    if row.error:
        numbers = dict.fromkeys(("median ms", "p90 ms", "processor ms", "load ms", "memory MB", "rows/s"), "")
    else:
        numbers = {
            "median ms": f"{row.median_ms:.3g}",
            "p90 ms": f"{row.p90_ms:.3g}",
            "processor ms": f"{row.processor_ms:.3g}",
            "load ms": f"{row.load_ms:.3g}",
            "memory MB": f"{row.memory_mb:.0f}",
            "rows/s": f"{row.throughput:.3g}",
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


def _grid(sizes: Mapping[str, tuple[int, ...]]) -> list[dict[str, int]]:
    """Every combination of the sizes."""
    grid: list[dict[str, int]] = [{}]
    for name, values in sizes.items():
        grid = [{**one, name: value} for one in grid for value in values]
    return grid


def _sizes(option: str, texts: list[str] | None, most: int | None = None) -> dict[str, tuple[int, ...]]:
    """``["batch=1,8"]`` as sizes by axis."""
    found = {}
    for text in texts or ():
        name, _, numbers = text.partition("=")
        values = tuple(map(int, numbers.split(","))) if re.fullmatch(r"\d+(,\d+)*", numbers) else ()
        if not name or not values or (most is not None and len(values) > most):
            wanted = "one size, e.g. batch=1" if most == 1 else "sizes, e.g. batch=1,8"
            raise UsageError(f"{option} {text!r}: wanted the name of a dynamic axis and {wanted}.")
        found[name] = values
    return found


def _load(path: Path) -> dict[str, Any]:
    arrays = read_arrays("--input", path)
    if "" in arrays:
        raise UsageError(f"--input {path}: one array without a name; wanted an .npz with one for each input.")
    return arrays
