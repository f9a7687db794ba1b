"""Commands about inference engines: `check` holds a file against a target, `measure` makes an engine's profile."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import onnx_ir as ir
import typer

from torch_onnx_compat.check.compatibility import Group, operator_groups, run
from torch_onnx_compat.cli.console import EXIT_CODES, print_json, print_table, reporting, usage
from torch_onnx_compat.engines import find_engine
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.targets import Target, load_target
from torch_onnx_compat.targets.profile import DIRECTORY, to_toml

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command("check", epilog=EXIT_CODES)(check_command)
    app.command("measure", epilog=EXIT_CODES)(measure_command)


def check_command(
    file: Annotated[Path, typer.Argument(help="An ONNX file, made by whatever tool.")],
    target: Annotated[str, typer.Option(help="Inference engine, perhaps opencv@5.0, or a TOML profile of one.")],
    execute: Annotated[bool, typer.Option("--run", help="Run it in the engine, compared with onnxruntime.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tells which operators of a file an engine runs right; exits 1 if there are others."""
    with reporting(json, debug) as step:
        with usage():
            profile = load_target(target)
            model = _load(file)
        step("check")
        groups = operator_groups(model, profile)
        ran = None
        if execute:
            step(f"run in {profile.name}")
            ran = run(file, profile)
    good = not any(g.verdict in ("wrong", "refused", "crashes") for g in groups) and (not ran or ran[0] == "works")
    print_json(_plain(profile, groups, ran)) if json else _show(profile, groups, ran)
    raise typer.Exit(0 if good else 1)


def _load(file: Path) -> ir.Model:
    try:
        return ir.load(file)
    except Exception as error:  # protobuf's, the file system's and onnx_ir's errors have no common class
        raise CompatError(f"{str(file)!r} cannot be read as an ONNX file: {error}") from error


def _plain(target: Target, groups: Sequence[Group], ran: tuple[str, str] | None) -> dict[str, Any]:
    return {
        "target": target.name,
        "version": target.version,
        "measured": target.measured,
        "operators": [group.to_dict() for group in groups],
        "run": None if ran is None else {"verdict": ran[0], "reason": ran[1]},
    }


def _show(target: Target, groups: Sequence[Group], ran: tuple[str, str] | None) -> None:
    kind = f"measured {target.date}" if target.measured else "from its documentation, not measured"
    typer.echo(f"{target.name} {target.version}, {kind}")
    rows = [
        {
            "operator": group.operator,
            "count": str(len(group.places)),
            "verdict": group.verdict,
            "because": group.reason,
            "from": group.source,
            "at": "" if group.verdict == "works" else ", ".join(list(dict.fromkeys(group.places))[:2]),
        }
        for group in groups
    ]
    print_table(rows)
    if ran is not None:
        typer.echo(f"run: {ran[0]}{f': {ran[1]}' if ran[1] else ''}")


def measure_command(
    engine: Annotated[str, typer.Argument(help="An engine that has an adapter.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where the TOML goes.")] = None,
    install: Annotated[bool, typer.Option("--install", help="Make its virtual environment first.")] = False,
    own: Annotated[bool, typer.Option("--own-probes", help="Leave ONNX's node tests out.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Runs probes in an engine and writes its profile."""
    from torch_onnx_compat.engines.probes import probes_for
    from torch_onnx_compat.engines.profile import measure

    with reporting(json, debug) as step:
        with usage():
            found = find_engine(engine)
        if install:
            step(f"install {', '.join(found.packages)}")
            found.install()
        probes = list(probes_for(found, own))
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        step(f"measure {engine} on {len(probes)} probes")
        profile = measure(found, probes, today)
        path = output or DIRECTORY / f"{engine}.toml"
        path.write_text(to_toml(profile), encoding="utf-8")
    about = {"engine": engine, "version": profile.version, "file": str(path), "how": profile.how}
    print_json(about) if json else typer.echo(f"{path}: {engine} {profile.version}, {profile.how}")
