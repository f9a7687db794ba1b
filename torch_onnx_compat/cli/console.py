"""What the command line shows: steps and errors on standard error, tables and JSON on standard output."""

from __future__ import annotations

import json as jsonlib
import math
import os
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from torch_onnx_compat.cli.spelling import as_options
from torch_onnx_compat.errors import ArgumentError, CompatError, VerificationError

if TYPE_CHECKING:
    from rich.progress import Progress

FAILED, USAGE, WRONG, INTERRUPTED = 1, 2, 3, 130
EXIT_CODES = (
    "Exit codes: 0 done; 1 the model cannot be exported like this; 2 the command line is wrong, or what it names "
    "cannot be loaded; 3 the exported file does not compute what the model computes, and was not kept; 130 interrupted."
)


class UsageError(ArgumentError):
    """The command line is wrong, or what it names cannot be loaded."""


class Steps:
    """Shows on standard error which step is running, and since when: a spinner on a terminal, else a line per step."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._progress: Progress | None = None
        self._count = 0
        self.last = ""
        """The step that is running."""

    @property
    def seconds(self) -> float:
        """Time since the command began."""
        return time.monotonic() - self._start

    def __call__(self, step: str) -> None:
        """Says that a step begins; a second beginning of the same one is not repeated."""
        self.last, previous = step, self.last
        if step == previous:
            return
        self._count += 1
        if not sys.stderr.isatty():
            print(f"{self.seconds:6.1f} s  {step} ...", file=sys.stderr, flush=True)
            return
        text = f"step {self._count}: {step}"
        if self._progress is None:
            self._progress = _spinner()
            self._progress.add_task(text)
            self._progress.start()
        else:
            self._progress.update(self._progress.task_ids[0], description=text)

    def stop(self) -> None:
        """Takes the spinner away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def _spinner() -> Progress:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


class Outputs:
    """The files that a command makes, so that an interrupted one can say what is left of them."""

    def __init__(self, *paths: Path | None) -> None:
        self._before = {path: _stamp(path) for path in paths if path is not None}

    def __str__(self) -> str:
        return " ".join(f"{path} {self._state(path, before)}." for path, before in self._before.items())

    def _state(self, path: Path, before: tuple[int, ...] | None) -> str:
        now = _stamp(path)
        if now != before:
            return "is written"
        return "was not written" if now is None else "is the old file, as it was"


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What tells a file from the one that takes its place."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


@contextmanager
def reporting(json: bool, debug: bool, *outputs: Path | None) -> Iterator[Steps]:
    """Turns errors into one message and an exit code; what the model's own code prints goes to standard error.

    Args:
        json: Whether an error is told on standard output too.
        debug: Whether an error is raised, with its traceback.
        outputs: Files that the command makes.
    """
    step, files = Steps(), Outputs(*outputs)
    try:
        with redirect_stdout(sys.stderr):
            yield step
    except KeyboardInterrupt as error:
        step.stop()
        during = f" during {step.last!r}" if step.last else ""
        typer.echo(f"interrupted{during} after {step.seconds:.1f} s. {files}".rstrip(), err=True)
        raise typer.Exit(INTERRUPTED) from error
    except typer.Exit:
        raise
    except Exception as error:
        step.stop()
        if debug:
            raise
        _fail(error, json)
    finally:
        step.stop()


def _fail(error: Exception, json: bool) -> None:
    code = USAGE if isinstance(error, ArgumentError) else WRONG if isinstance(error, VerificationError) else FAILED
    known = isinstance(error, CompatError)
    message = as_options(str(error)) if known else f"{type(error).__name__}: {error}; --debug shows the traceback."
    typer.secho("error: ", fg=typer.colors.RED, err=True, nl=False)
    typer.echo(message, err=True)
    if json:
        table = [row.to_dict() for row in error.table] if isinstance(error, VerificationError) else []
        print_json(error_document(message, type(error).__name__, code, table))
    raise typer.Exit(code)


def error_document(message: str, kind: str, code: int, table: Sequence[Any] = ()) -> dict[str, Any]:
    """What --json prints of an error."""
    return {"error": message, "kind": kind, "exit_code": code, "table": list(table)}


def is_usage_error(error: BaseException) -> bool:
    """Whether the parser refuses the command line; its class is click's, or that of typer's copy of click."""
    return hasattr(error, "format_message")


@contextmanager
def usage() -> Iterator[None]:
    """Marks what goes wrong here as the command line's fault."""
    try:
        yield
    except UsageError:
        raise
    except CompatError as error:
        raise UsageError(str(error)) from error


_collected: list[Any] | None = None
"""What `print_json` was given in place of printing it; None where it prints."""


@contextmanager
def collected_json() -> Iterator[list[Any]]:
    """Gives what `print_json` is called with inside, which is not printed."""
    global _collected
    before, _collected = _collected, []
    try:
        yield _collected
    finally:
        _collected = before


def print_json(value: Any) -> None:
    """Prints plain data as JSON."""
    if _collected is not None:
        _collected.append(value)
        return
    typer.echo(jsonlib.dumps(_finite(value), indent=2))


def _finite(value: Any) -> Any:
    """The value with null for the numbers that JSON cannot write."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def print_text(text: str) -> None:
    """Prints text; on a terminal, lines that are too long for it go on at a word, further to the right.

    Notes speak of options where they name keywords.
    """
    lines = text.split("\n")
    text = "\n".join(as_options(line) if line.lstrip().startswith("note:") else line for line in lines)
    if sys.stdout.isatty():
        from rich.console import Console

        text = fit(text, Console().width)
    typer.echo(text)


def fit(text: str, width: int) -> str:
    """The text with its long lines broken between words, and what follows in them indented by four more.

    Args:
        text: Lines.
        width: Characters that a line may have.
    """
    lines: list[str] = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        wrap = textwrap.TextWrapper(
            width,
            initial_indent=indent,
            subsequent_indent=f"{indent}    ",
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
        )
        lines += wrap.wrap(line.lstrip()) or [""]
    return "\n".join(lines)


def number(value: float, form: str = ".3g") -> str:
    """A number for a table; nothing for one that is not known."""
    return "" if math.isnan(value) else format(value, form)


def filled(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The rows of a table without the columns in which nobody has something."""
    return [{name: text for name, text in row.items() if any(other[name] for other in rows)} for row in rows]


def print_table(rows: Sequence[dict[str, str]]) -> None:
    """Prints rows of plain text, all of the same columns.

    Where nobody looks at a terminal, each row is one line. On a terminal that is too narrow for the longest words of
    all columns, each row is a few lines, one for each column that has something to say.
    """
    if not rows:
        return
    columns = list(rows[0])
    if not sys.stdout.isatty():
        widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in columns}
        for row in ({name: name for name in columns}, *rows):
            typer.echo("  ".join(row[name].ljust(widths[name]) for name in columns).rstrip())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = Console().width
    longest = {name: max(len(word) for row in rows for word in [*name.split(), *row[name].split()]) for name in columns}
    if sum(longest.values()) + 2 * (len(columns) - 1) > width:
        typer.echo(fit("\n".join(map(_lines_of, rows)), width))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, min_width=longest[column])
    for row in rows:
        table.add_row(*(Text(row[column]) for column in columns))
    Console().print(table)


def _lines_of(row: dict[str, str]) -> str:
    """A row that is too wide for the terminal: its first column, and below it the others."""
    (_, first), *others = row.items()
    return "\n".join([first, *(f"  {name}: {text}" for name, text in others if text)])
