"""The commands `catalogue` and `zoo`: what there is to apply, and to export."""

from __future__ import annotations

import inspect
import sys
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from torch_onnx_compat.catalogue.entry import Entry, Rewrite, Symbolic
from torch_onnx_compat.cli.console import EXIT_CODES, UsageError, print_json, print_table, reporting, usage
from torch_onnx_compat.cli.options import Debug, Json
from torch_onnx_compat.zoo import spec as specs


def register(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command("catalogue", epilog=EXIT_CODES, rich_help_panel="What there is")(catalogue_command)
    app.command("zoo", epilog=EXIT_CODES, rich_help_panel="What there is")(zoo_command)


def catalogue_command(
    name: Annotated[str | None, typer.Argument(help="One entry, to be told in full.")] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Lists the catalogue, or tells one entry in full."""
    from torch_onnx_compat.catalogue.catalogue import catalogue

    with reporting(json, debug), usage():
        entries = catalogue()
        chosen = [entries[name]] if name else list(entries)
    rows = [entry_row(entry) for entry in chosen]
    if json:
        print_json(rows[0] if name else rows)
    elif name:
        width = max(map(len, rows[0]))
        typer.echo("\n".join(f"{key:{width}}  {value}" for key, value in rows[0].items()))
        typer.echo("\n" + (inspect.getdoc(chosen[0].body) or ""))
        typer.echo("\n" + (sys.modules[chosen[0].owner].__doc__ or "").strip())
    else:
        shown = ("family", "name", "kind", "needed", "summary")
        print_table([{column: row[column] for column in shown} for row in rows])


def zoo_command(
    name: Annotated[str | None, typer.Argument(help="A zoo; none lists the zoos.")] = None,
    filter: Annotated[str, typer.Option("--filter", metavar="GLOB", help="Only names that match.")] = "*",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Lists the zoos, or the models of one."""
    with reporting(json, debug), usage():
        names = specs.find(name).names() if name else sorted(specs.zoos())
        chosen = [n for n in names if fnmatchcase(n, filter)]
        if not chosen and filter != "*":
            what = f"model of {name}" if name else "zoo"
            raise UsageError(f"no {what} matches {filter!r}; without --filter, all are listed.")
    print_json(chosen) if json else typer.echo("\n".join(chosen))


def entry_row(entry: Entry) -> dict[str, str]:
    """What the lists of the catalogue show of an entry, column by column."""
    last = "" if entry.opset[1] >= 99 else str(entry.opset[1])
    return {
        "name": entry.name,
        "kind": _kind(entry),
        "family": entry.owner.removeprefix("torch_onnx_compat."),
        "replaces": _replaces(entry),
        "needed": str(entry.need),
        "opset": f"{entry.opset[0]}..{last}" if last else f"{entry.opset[0]}+",
        "targets": ", ".join(sorted(entry.targets)) or "any",
        "exactness": entry.exactness.value + (f", {entry.error:g}" if entry.error else ""),
        "summary": entry.summary,
        "source": entry.source,
    }


def _kind(entry: Entry) -> str:
    """The decorator that declared it."""
    if isinstance(entry, Rewrite) and entry.kind == "function":
        return "decomposition"
    return type(entry).__name__.lower()


def _replaces(entry: Entry) -> str:
    if isinstance(entry, Symbolic):
        return entry.op
    return entry.replaces if isinstance(entry, Rewrite) else f"see {getattr(entry, 'package', '')}"
