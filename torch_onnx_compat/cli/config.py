"""A project's exports in a file: `torch_onnx_compat.toml`, or the table `tool.torch_onnx_compat` of pyproject.toml.

    [defaults]                  # options of every export
    target = "openvino"

    [export.backbone]           # torch-onnx-compat export backbone
    model = "timm:resnet18"     # what stands first on the command line
    pretrained = true           # every other key is an option of `export`, without its two dashes
    output = "build/backbone.onnx"
    dynamic = "batch"

Paths are taken from the file's folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
import typer.core

from torch_onnx_compat.cli.console import INTERRUPTED, USAGE, UsageError
from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.zoo import spec as specs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAME = "torch_onnx_compat.toml"
_SECTIONS = ("defaults", "export")


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
    return Project(path, {name: {**defaults, **options} for name, options in exports.items()})


class ExportCommand(typer.core.TyperCommand):
    """`export`, whose argument may be the name of an export in the project's file."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Puts in place of an export's name what the file says; options on the command line go before."""
        ctx.meta[_WORDS] = list(args)
        before = Path.cwd()
        ctx.call_on_close(lambda: os.chdir(before))
        position = self._position_of_model(ctx, args)
        if position is not None and not set(args[position]) & set(":./\\"):
            try:
                args[position] = self._take_from_project(ctx, args[position])
            except UsageError as error:
                ctx.fail(str(error))
        return super().parse_args(ctx, args)

    def _position_of_model(self, ctx: Any, args: list[str]) -> int | None:
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
        """The model of an export; its options become the command's defaults, and its folder the current one."""
        project = find_project(Path.cwd())
        if project is None:
            try:
                specs.check(name)
            except CompatError as error:
                raise UsageError(
                    f"{error} Nor is it the name of an export: there is no {NAME} here or above that names one."
                ) from error
            return name
        if name not in project.exports:
            raise UsageError(f"{project.path}: {unknown_name('export', name, project.exports)}")
        options = dict(project.exports[name])
        if "model" not in options:
            raise UsageError(f"{project.path}: export {name!r} has no 'model'; wanted e.g. model = \"timm:resnet18\".")
        model = str(options.pop("model"))
        known = {param.opts[0].lstrip("-").replace("-", "_"): param for param in self.params}
        ctx.default_map = {}
        for key, value in options.items():
            param = known.get(key.replace("-", "_"))
            if param is None or param.name in ("spec", "make_all"):
                raise UsageError(f"{project.path}: export {name!r}: {unknown_name('option', key, known)}")
            ctx.default_map[param.name] = _as_option(value, bool(getattr(param, "multiple", False)))
        os.chdir(project.path.parent)
        return model


_MARK = "\0"
_WORDS = "torch_onnx_compat.words"


def _as_option(value: Any, repeats: bool) -> Any:
    """A value of the file as the command line would hold it: one text for a list, where the option is not repeated."""
    if repeats:
        return [str(item) for item in value] if isinstance(value, list) else [str(value)]
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _code_of(command: Any, words: list[str]) -> int:
    """The exit code of a command line, which is told if it is wrong."""
    try:
        return command.main(words, "torch-onnx-compat export", standalone_mode=False) or 0
    except Exception as error:
        if not hasattr(error, "format_message"):  # click's class, or that of typer's copy of click
            raise
        typer.echo(f"error: {error.format_message()}", err=True)
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
    codes = {}
    for name in project.exports:
        typer.echo(f"{name}:", err=True)
        codes[name] = _code_of(ctx.command, [name, *rest])
        if codes[name] == INTERRUPTED:
            raise typer.Exit(INTERRUPTED)
    failed = [name for name, code in codes.items() if code]
    without = f"; not {', '.join(failed)}." if failed else "."
    typer.echo(f"{len(codes) - len(failed)} of {len(codes)} exports made{without}", err=True)
    raise typer.Exit(next((code for code in codes.values() if code), 0))
