"""The command line, `torch-onnx-compat`: a module for each group of commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer
import typer.core

from torch_onnx_compat.cli import catalogue, diagnosis, export, sweep, targets
from torch_onnx_compat.cli.console import EXIT_CODES
from torch_onnx_compat.errors import unknown_name


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
for commands in (export, catalogue, diagnosis, targets, sweep):
    commands.register(app)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and exits; see `EXIT_CODES` for the exit codes."""
    typer.main.get_command(app)(args=argv, prog_name="torch-onnx-compat")
