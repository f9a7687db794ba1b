"""Commands about inference engines: `targets` lists them, `check` holds a file against one, `measure` profiles one."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torch_onnx_compat.cli.console import EXIT_CODES, print_json, print_table, print_text, reporting, usage
from torch_onnx_compat.cli.options import Debug, Json, check_engine, complete_targets
from torch_onnx_compat.publish.destination import check_destination
from torch_onnx_compat.targets import Target, known_targets, load_target
from torch_onnx_compat.targets.profile import ALIASES, DIRECTORY, resolve_alias, to_toml
from torch_onnx_compat.targets.target import BETTER, PASSED

if TYPE_CHECKING:
    from torch_onnx_compat.check.compatibility import Group
    from torch_onnx_compat.targets import Row


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command("targets", epilog=EXIT_CODES, rich_help_panel="What there is")(targets_command)
    app.command("check", epilog=EXIT_CODES, rich_help_panel="A file that is there")(check_command)
    app.command("measure", epilog=EXIT_CODES, rich_help_panel="Engines")(measure_command)


def targets_command(
    name: Annotated[
        str | None, typer.Argument(help="One target, to be told in full.", autocompletion=complete_targets)
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Lists the targets: the opset each is exported at, and whether its profile comes from running it."""
    with reporting(json, debug), usage():
        chosen = [load_target(name)] if name else [load_target(known) for known in known_targets()]
    rows = [_about(target) for target in chosen]
    if json:
        print_json(rows[0] if name else rows)
    elif name:
        print_text("\n".join(f"{key:13}  {value}" for key, value in rows[0].items()))
        print_table([_objection(row) for row in chosen[0].rows if row.verdict not in (*PASSED, *BETTER)])
    else:
        shown = ("name", "version", "opset", "known from", "dynamic axes", "also called")
        print_table([{key: row[key] for key in shown} for row in rows])


def _about(target: Target) -> dict[str, str]:
    """What the list of targets shows of one, column by column."""
    high = "" if target.opsets[1] >= 99 else str(target.opsets[1])
    verdicts = Counter(row.verdict for row in target.rows)
    rows = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    return {
        "name": target.name,
        "version": target.version,
        "opset": f"{target.opset} of {target.opsets[0]}..{high}",
        "known from": f"{_origin(target)} {target.date}",
        "dynamic axes": target.dynamic,
        "also called": ", ".join(alias for alias in (*ALIASES, "tensorrt") if resolve_alias(alias) == target.name),
        "operators": f"{len(target.works)} {'work' if target.runs else 'are built'}; rows: {rows or 'none'}",
        "how": target.how,
    }


def _origin(target: Target) -> str:
    if not target.measured:
        return "documents"
    return "running it" if target.runs else "building"


def _objection(row: Row) -> dict[str, str]:
    return {"operator": row.op_type, "verdict": row.verdict, "where": row.condition, "from": row.source}


def check_command(
    file: Annotated[Path, typer.Argument(help="An ONNX file, made by whatever tool.")],
    target: Annotated[
        str,
        typer.Option(
            help="Inference engine, perhaps opencv@5.0, or a TOML profile of one.", autocompletion=complete_targets
        ),
    ] = "onnxruntime",
    execute: Annotated[bool, typer.Option("--run", help="Run it in the engine, compared with onnxruntime.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tells which operators of a file an engine runs right; exits 1 if there are others."""
    with reporting(json, debug) as step:
        with usage():
            profile = load_target(target)
            if execute:
                check_engine("--run", profile)
            from torch_onnx_compat.graph.loading import load_graph

            model = load_graph(file)
        from torch_onnx_compat.check.compatibility import operator_groups, run

        step("check")
        groups = operator_groups(model, profile)
        ran = None
        if execute:
            step(f"run in {profile.name}")
            ran = run(file, profile)
    good = not any(g.verdict in ("wrong", "refused", "crashes") for g in groups) and (
        not ran or ran[0] in ("works", "built")
    )
    print_json(_plain(profile, groups, ran)) if json else _show(profile, groups, ran)
    raise typer.Exit(0 if good else 1)


def _plain(target: Target, groups: Sequence[Group], ran: tuple[str, str] | None) -> dict[str, Any]:
    return {
        "target": target.name,
        "version": target.version,
        "measured": target.measured,
        "runs": target.runs,
        "operators": [group.to_dict() for group in groups],
        "run": None if ran is None else {"verdict": ran[0], "reason": ran[1]},
    }


def _show(target: Target, groups: Sequence[Group], ran: tuple[str, str] | None) -> None:
    kind = f"measured {target.date}" if target.measured else "from its documentation, not measured"
    if not target.runs:
        kind = f"parsed and built {target.date}, never run: nothing is known of the values that its kernels compute"
    typer.echo(f"{target.name} {target.version}, {kind}")
    rows = [
        {
            "operator": group.operator,
            "count": str(len(group.places)),
            "verdict": group.verdict,
            "because": group.reason,
            "from": group.source,
            "at": "" if group.verdict in ("works", "built") else ", ".join(list(dict.fromkeys(group.places))[:2]),
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
    operators: Annotated[
        list[str] | None, typer.Option("--operator", metavar="NAME", help="Only this one; the rest stays. Repeatable.")
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Runs probes in an engine and writes its profile."""
    with reporting(json, debug, output) as step:
        with usage():
            from torch_onnx_compat.engines import find_engine

            found = find_engine(resolve_alias(engine))
            check_destination(output)
        from torch_onnx_compat.engines.probes import probes_for
        from torch_onnx_compat.engines.profile import measure, measure_operators

        if install:
            step(f"install {', '.join(found.packages)}")
            found.install()
        probes = list(probes_for(found, own))
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        step(f"measure {found.name} on {len(probes)} probes")
        profile = measure_operators(found, probes, operators, today) if operators else measure(found, probes, today)
        path = output or DIRECTORY / f"{found.name}.toml"
        path.write_text(to_toml(profile), encoding="utf-8")
    about = {"engine": found.name, "version": profile.version, "file": str(path), "how": profile.how}
    print_json(about) if json else typer.echo(f"{path}: {found.name} {profile.version}, {profile.how}")
