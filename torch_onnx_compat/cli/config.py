"""A project's exports in a file: `torch_onnx_compat.toml`, or the table `tool.torch_onnx_compat` of pyproject.toml.

    [defaults]                  # options of every export
    target = "openvino"

    [export.backbone]           # torch-onnx-compat export backbone
    model = "timm:resnet18"     # what stands first on the command line
    pretrained = true           # every other key is an option of `export`, without its two dashes
    output = "build/backbone.onnx"
    dynamic = "batch"

Paths in the file are taken from its folder, those on the command line from where the user is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
import typer.core

from torch_onnx_compat.cli.console import (
    INTERRUPTED,
    USAGE,
    UsageError,
    collected_json,
    error_document,
    is_usage_error,
    print_json,
)
from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.zoo import spec as specs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAME = "torch_onnx_compat.toml"
_SECTIONS = ("defaults", "export")
_OF_SPECS = set(":/\\")
"""What the name of an export does not hold, since a model is named by it."""


@dataclass(frozen=True)
class Project:
    """The exports of a project."""

    path: Path
    exports: Mapping[str, Mapping[str, Any]]
    """By name, the options of each, the defaults among them."""


def find_project(folder: Path) -> Project | None:
    """Reads the file of a folder, or of the nearest one above that has exports.

    Raises:
        UsageError: It is no TOML, or holds what has no meaning here.
    """
    for parent in (folder, *folder.parents):
        for path in (parent / NAME, parent / "pyproject.toml"):
            table = _read(path) if path.is_file() else None
            if table is not None:
                return _project(path, table)
    return None


def _read(path: Path) -> Any:
    """The exports in a file; None where a pyproject.toml has none."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: is no TOML: {error}.") from error
    return content if path.name == NAME else content.get("tool", {}).get("torch_onnx_compat")


def _project(path: Path, table: Mapping[str, Any]) -> Project:
    for key in table:
        if key not in _SECTIONS:
            raise UsageError(f"{path}: {unknown_name('section', key, _SECTIONS)}")
    defaults, exports = table.get("defaults", {}), table.get("export", {})
    if not isinstance(exports, dict) or not all(isinstance(options, dict) for options in exports.values()):
        raise UsageError(f"{path}: 'export' holds no tables; wanted one for each export: [export.NAME].")
    for name in exports:
        if set(name) & _OF_SPECS:
            raise UsageError(f"{path}: export {name!r}: a name with ':' or a slash is that of a model; choose another.")
    return Project(path, {name: {**defaults, **options} for name, options in exports.items()})


class ExportCommand(typer.core.TyperCommand):
    """`export`, whose argument may be the name of an export in the project's file."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Puts in place of an export's name what the file says; options on the command line go before."""
        ctx.meta[_WORDS] = list(args)
        position = self.position_of_model(ctx, args)
        if position is not None and not set(args[position]) & _OF_SPECS and not Path(args[position]).is_file():
            try:
                args[position] = self._take_from_project(ctx, args[position])
            except UsageError as error:
                ctx.fail(str(error))
        return super().parse_args(ctx, args)

    def position_of_model(self, ctx: Any, args: list[str]) -> int | None:
        """Which word names the model; None if there is none, or the command line is wrong in another way."""
        for position, word in enumerate(args):
            if word.startswith("-"):
                continue
            try:
                found, *_ = self.make_parser(ctx).parse_args([*args[:position], _MARK, *args[position + 1 :]])
            except Exception:  # super().parse_args says it better, in typer's own classes
                return None
            if found.get("spec") == _MARK:
                return position
        return None

    def _take_from_project(self, ctx: Any, name: str) -> str:
        """The model of an export; its options become the command's defaults."""
        project = find_project(Path.cwd())
        if project is None or (name not in project.exports and name.endswith(specs.SUFFIXES)):
            try:
                specs.check(name)
            except CompatError as error:
                none = "" if project else f" Nor is it the name of an export: there is no {NAME} here or above."
                raise UsageError(f"{error}{none}") from error
            return name
        if name not in project.exports:
            raise UsageError(f"{project.path}: {unknown_name('export', name, project.exports)}")
        options = dict(project.exports[name])
        if "model" not in options:
            raise UsageError(f"{project.path}: export {name!r} has no 'model'; wanted e.g. model = \"timm:resnet18\".")
        model = str(options.pop("model"))
        folder = Path(os.path.relpath(project.path.parent))
        known = {param.opts[0].lstrip("-").replace("-", "_"): param for param in self.params}
        ctx.default_map = {}
        for key, value in options.items():
            param = known.get(key.replace("-", "_"))
            if param is None or param.name in ("spec", "make_all"):
                raise UsageError(f"{project.path}: export {name!r}: {unknown_name('option', key, known)}")
            option = _as_option(value, bool(getattr(param, "multiple", False)))
            ctx.default_map[param.name] = _from_folder(folder, param, option)
        imports = ExitStack()
        imports.enter_context(specs.path_entry(project.path.parent))
        ctx.call_on_close(imports.close)
        return specs.from_folder(model, folder)


_MARK = "\0"
_WORDS = "torch_onnx_compat.words"


def _as_option(value: Any, repeats: bool) -> Any:
    """A value of the file as the command line would hold it: one text for a list, where the option is not repeated."""
    if repeats:
        return [str(item) for item in value] if isinstance(value, list) else [str(value)]
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _from_folder(folder: Path, param: Any, value: Any) -> Any:
    """The value of an option; what names a file in the project's folder, as it is named from here."""
    is_path = param.metavar == "FILE"
    is_path |= param.name == "target" and str(value).endswith(".toml")
    is_path |= param.name == "weights" and specs.is_path(str(value), folder)
    return str(folder / str(value)) if is_path else value


def _code_of(command: Any, words: list[str]) -> int:
    """The exit code of a command line, which is told if it is wrong."""
    try:
        return command.main(words, "torch-onnx-compat export", standalone_mode=False) or 0
    except Exception as error:
        if not is_usage_error(error):
            raise
        message = error.format_message()  # type: ignore[attr-defined]
        typer.echo(f"error: {message}", err=True)
        if "--json" in words:
            print_json(error_document(message, "UsageError", USAGE))
        return USAGE


def make_all(ctx: typer.Context, value: bool) -> None:
    """Makes every export of the project's file, each as if it were alone, and exits with the first failure's code."""
    if not value or ctx.resilient_parsing:
        return
    try:
        project = find_project(Path.cwd())
    except UsageError as error:
        ctx.fail(str(error))
    if project is None or not project.exports:
        ctx.fail(f"--all: no exports are named in {NAME} or pyproject.toml, here or above; see docs/command_line.md.")
    rest = [word for word in ctx.meta[_WORDS] if word != "--all"]
    _check_words_of_all(ctx, rest)
    codes: dict[str, int] = {}
    documents: dict[str, Any] = {}
    for name in project.exports:
        typer.echo(f"{name}:", err=True)
        with collected_json() as printed:
            codes[name] = _code_of(ctx.command, [name, *rest])
        if printed:
            documents[name] = printed[-1]
        if codes[name] == INTERRUPTED:
            break
    failed = [name for name in project.exports if codes.get(name, INTERRUPTED)]
    without = f"; not {', '.join(failed)}." if failed else "."
    typer.echo(f"{len(project.exports) - len(failed)} of {len(project.exports)} exports made{without}", err=True)
    if documents:
        print_json(documents)
    interrupted = INTERRUPTED in codes.values()
    raise typer.Exit(INTERRUPTED if interrupted else next((code for code in codes.values() if code), 0))


def _check_words_of_all(ctx: Any, words: list[str]) -> None:
    """Refuses what cannot be meant of all exports: a name, and one file for what each of them writes."""
    position = ctx.command.position_of_model(ctx, words)
    if position is not None:
        ctx.fail(f"--all makes every export and takes no name; leave out one of --all and {words[position]!r}.")
    try:
        found, *_ = ctx.command.make_parser(ctx).parse_args(list(words))
    except Exception:  # each export says it, in typer's own classes
        return
    for option in ("output", "report"):
        if isinstance(found.get(option), str):
            ctx.fail(f"--all: --{option} {found[option]} would be written by every export; leave it to {NAME}.")
