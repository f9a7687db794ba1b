"""The command line, `torch-onnx-compat`: a module for each group of commands.

Nothing slow is imported before a command begins its work: help, versions and misspelt words are told at once.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer
import typer.core

from torch_onnx_compat.cli import advise, catalogue, convert, diagnosis, export, files, sweep, targets
from torch_onnx_compat.cli.console import EXIT_CODES, FAILED, USAGE, error_document, is_usage_error, print_json
from torch_onnx_compat.cli.spelling import learn_options
from torch_onnx_compat.errors import unknown_name
from torch_onnx_compat.version import __version__

_WANTS_JSON = "torch_onnx_compat.wants_json"


class _Commands(typer.core.TyperGroup):
    """Commands that are told apart from misspelt ones in this package's words."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """The command line in its parts; whether it asks for JSON is remembered, for `invoke`."""
        ctx.meta[_WANTS_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Runs a command; where JSON is wanted, an error of the command line is told as JSON, too."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            if is_usage_error(error) and ctx.meta[_WANTS_JSON]:
                print_json(error_document(error.format_message(), "UsageError", USAGE))  # type: ignore[attr-defined]
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            ctx.fail(str(unknown_name("command", args[0], self.commands)))
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: Any) -> Any:
        """The group's options, of which flags show no value in the help."""
        return _without_values(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command, whose flags show no value in the help."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            learn_options(_without_values(command.get_params(ctx)))
        return command


def _without_values(params: list[Any]) -> list[Any]:
    """The options; some of typer's versions show the type of a flag, as if it took a value."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


app = typer.Typer(
    cls=_Commands,
    epilog=EXIT_CODES,
    help="Exports PyTorch models to ONNX, patched where torch's exporters fail or err, and verified.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for commands in (export, advise, sweep, convert, files, targets, diagnosis, catalogue):
    commands.register(app)


def _show_version(value: bool) -> None:
    if value:
        others = ", ".join(f"{name} {_version(name)}" for name in ("torch", "onnx", "onnxruntime"))
        typer.echo(f"torch-onnx-compat {__version__} (Python {platform.python_version()}, {others})")
        raise typer.Exit


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and exits; see `EXIT_CODES` for the exit codes."""
    try:
        typer.main.get_command(app)(args=argv, prog_name="torch-onnx-compat")
    except OSError as error:
        if error.filename is not None or "--debug" in (sys.argv if argv is None else argv):
            raise
        typer.echo(f"error: standard output cannot be written: {error.strerror or error}.", err=True)
        # What is still in the buffer is lost, and Python would complain of it once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
