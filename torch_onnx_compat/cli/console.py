"""What the command line shows: steps and errors on standard error, tables and JSON on standard output."""

from __future__ import annotations

import json as jsonlib
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table
from rich.text import Text

from torch_onnx_compat.errors import CompatError, VerificationError

FAILED, USAGE, WRONG = 1, 2, 3
EXIT_CODES = (
    "Exit codes: 0 done; 1 the model cannot be exported like this; 2 the command line is wrong, or what it names "
    "cannot be loaded; 3 the exported file does not compute what the model computes, and was not kept."
)


class UsageError(CompatError):
    """The command line is wrong, or what it names cannot be loaded."""


class Steps:
    """Shows on standard error which step is running: a spinner on a terminal, a line per step elsewhere."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._status: Status | None = None
        self._last = ""

    def __call__(self, step: str) -> None:
        """Says that a step begins; a second beginning of the same one is not repeated."""
        self._last, previous = step, self._last
        if step == previous:
            return
        if not self._console.is_terminal:
            self._console.print(f"{step} ...", markup=False, highlight=False, soft_wrap=True)
        elif self._status is None:
            self._status = self._console.status(escape(step))
            self._status.start()
        else:
            self._status.update(escape(step))

    def stop(self) -> None:
        """Takes the spinner away."""
        if self._status is not None:
            self._status.stop()


@contextmanager
def reporting(json: bool, debug: bool) -> Iterator[Steps]:
    """Turns errors into one message and an exit code; what the model's own code prints goes to standard error."""
    step = Steps()
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
        print_json({"error": message, "kind": type(error).__name__, "exit_code": code, "table": table})
    raise typer.Exit(code)


@contextmanager
def usage() -> Iterator[None]:
    """Marks what goes wrong here as the command line's fault."""
    try:
        yield
    except UsageError:
        raise
    except CompatError as error:
        raise UsageError(str(error)) from error


def print_json(value: Any) -> None:
    """Prints plain data as JSON."""
    typer.echo(jsonlib.dumps(_finite(value), indent=2))


def _finite(value: Any) -> Any:
    """The value with null for the numbers that JSON cannot write."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def print_table(rows: list[dict[str, str]]) -> None:
    """Prints rows of plain text, all of the same columns."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=10_000)  # a file or pipe: one line per entry, as wide as it needs
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = list(rows[0] if rows else ())
    for column in columns:
        table.add_column(column, no_wrap=column == "name", overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[column]) for column in columns))
    console.print(table)
