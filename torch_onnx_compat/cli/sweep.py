"""The command `sweep`: many models into one file of rows, with progress, a summary and what has changed."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torch_onnx_compat.cli import arguments
from torch_onnx_compat.cli.console import EXIT_CODES, print_json, print_table, reporting, usage
from torch_onnx_compat.cli.options import check_report
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.targets import load_target
from torch_onnx_compat.zoo import spec as specs

if TYPE_CHECKING:
    from torch_onnx_compat.sweep.against import Change
    from torch_onnx_compat.sweep.job import By, Row
    from torch_onnx_compat.sweep.summary import Count
    from torch_onnx_compat.sweep.sweep import Progress as Told
    from torch_onnx_compat.zoo.sample import Size

Models = Annotated[
    list[str],
    typer.Argument(help="A zoo, a model such as timm:resnet18, or @FILE with one on each line, perhaps with a size."),
]


def register(app: typer.Typer) -> None:
    """Adds the command to the command line."""
    app.command("sweep", epilog=EXIT_CODES, rich_help_panel="Export")(sweep_command)


def sweep_command(
    models: Models,
    filter: Annotated[str, typer.Option("--filter", metavar="GLOB", help="Only names of a zoo that match.")] = "*",
    chance: Annotated[int, typer.Option("--random", metavar="N", help="Only so many, drawn by --seed.")] = 0,
    seed: Annotated[int, typer.Option(help="Of --random.")] = 0,
    target: Annotated[str, typer.Option(help="Inference engine, or a TOML profile of one.")] = "onnxruntime",
    opset: Annotated[int | None, typer.Option(help="ONNX opset; the target's preferred one by default.")] = None,
    size: Annotated[str | None, typer.Option(metavar="HxW", help="Height and width of the example pictures.")] = None,
    stock: Annotated[bool, typer.Option("--stock", help="Export with torch.onnx.export alone too, both ways.")] = False,
    jobs: Annotated[int, typer.Option(help="Models at a time.", min=1)] = 1,
    time_limit: Annotated[float, typer.Option(help="Seconds that one export may take.")] = 300.0,
    memory_limit: Annotated[int, typer.Option(help="Resident memory that one export may have, in MB.")] = 8000,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="JSON lines; what is in it is not done again.")
    ] = Path("sweep.jsonl"),
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page.")] = None,
    against: Annotated[Path | None, typer.Option(metavar="FILE", help="Compare with an earlier sweep's rows.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Exports and verifies many models, each in a process of its own; exits 3 if a file is wrong."""
    with reporting(json, debug, output, report) as step:
        with usage():
            engine = load_target(target).name
            wanted = arguments.size(size)
            check_report(report)
            chosen = _chosen(models, filter, chance, seed)
            from torch_onnx_compat.sweep.against import changes
            from torch_onnx_compat.sweep.job import BY
            from torch_onnx_compat.sweep.log import read_rows
            from torch_onnx_compat.sweep.page import write_page
            from torch_onnx_compat.sweep.sweep import sweep

            old = read_rows(against) if against is not None else []
        step(f"sweep {len(chosen)} models{_only_exported(engine)}")
        step.stop()
        by: Sequence[By] = BY if stock else ("ours",)
        with _Bar() as bar:
            rows = sweep(
                chosen,
                output,
                target=target,
                by=by,
                size=wanted,
                opset=opset,
                seconds=time_limit,
                memory=memory_limit,
                jobs=jobs,
                progress=bar,
            )
        changed = changes(old, rows)
        if report is not None:
            write_page(report, rows, changed)
    print_json(_plain(rows, changed)) if json else _show(rows, changed, against)
    raise typer.Exit(3 if any(row.verdict == "wrong" and row.by == "ours" for row in rows) else 0)


def _only_exported(engine: str) -> str:
    """A remark where files cannot be run in their target."""
    from torch_onnx_compat.engines import ENGINES

    adapter = ENGINES.get(engine)
    if engine == "onnxruntime" or (adapter is not None and adapter.interpreter() is not None):
        return ""
    return f" ({engine} is not installed here: files are run in onnxruntime only)"


def _chosen(models: Sequence[str], pattern: str, chance: int, seed: int) -> list[tuple[str, Size | None]]:
    found: list[tuple[str, Size | None]] = []
    for model in models:
        if model.startswith("@"):
            found += _read_list(Path(model[1:]))
        elif ":" in model or model.endswith(".pt2"):
            found.append((model, None))
        else:
            found += [(f"{model}:{name}", None) for name in specs.find(model).names() if fnmatchcase(name, pattern)]
    if not found:
        raise CompatError(
            f"no model of {', '.join(models)} matches {pattern!r}; `torch-onnx-compat zoo NAME` lists all."
        )
    if chance:
        found = random.Random(seed).sample(found, min(chance, len(found)))
    return found


def _read_list(path: Path) -> list[tuple[str, Size | None]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise CompatError(f"{path}: cannot be read: {error.strerror or error}.") from error
    words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return [(spec, arguments.size(rest[0]) if rest else None) for spec, *rest in words]


class _Bar:
    """Shows on standard error how far a sweep has come: a bar on a terminal, a line per model elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=self._console, disable=not self._console.is_terminal)
        self._task = self._progress.add_task("sweep")
        self._failed: Counter[str] = Counter()
        self._done = 0
        self._start = time.monotonic()

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, told: Told) -> None:
        if told.row is None:
            self._progress.update(self._task, total=told.total, completed=told.cached)
            return
        self._done += 1
        row = told.row
        if row.verdict != "verified":
            self._failed[row.verdict] += 1
        rate = self._done / (time.monotonic() - self._start)
        left = (told.total - told.cached - self._done) / rate
        failed = ", ".join(f"{n} {verdict}" for verdict, n in self._failed.items()) or "no failure"
        text = f"{60 * rate:.1f}/min, {left / 60:.0f} min left, {failed}"
        self._progress.update(self._task, advance=1, description=text)
        if self._progress.disable or row.verdict != "verified":
            line = f"{row.spec} {row.by}: {row.verdict}{f': {row.reason}' if row.reason else ''}"
            self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)


def _plain(rows: Sequence[Row], changed: Sequence[Change]) -> dict[str, Any]:
    from torch_onnx_compat.sweep.summary import count

    return {
        "counts": [{**vars(c), "total": c.total} for c in count(rows)],
        "changes": [vars(change) for change in changed],
        "rows": [vars(row) for row in rows],
    }


def _show(rows: Sequence[Row], changed: Sequence[Change], against: Path | None) -> None:
    from torch_onnx_compat.sweep.summary import causes_of_failure, count

    print_table([_count_row(c) for c in count(rows)])
    failures = [
        {"verdict": v, "models": str(len(held)), "by": held[0].by, "reason": reason, "e.g.": held[0].spec}
        for v, reason, held in causes_of_failure(rows)
    ]
    if failures:
        typer.echo()
        print_table(failures)
    if against is not None:
        typer.echo(f"\nagainst {against}: {'no change' if not changed else ''}")
        print_table([{"change": c.kind, "model": c.spec, "by": c.by, "what": c.text} for c in changed])


def _count_row(c: Count) -> dict[str, str]:
    from torch_onnx_compat.sweep.summary import TITLES

    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in c.verdicts.items())
    return {
        "exported by": TITLES[c.by],
        "models": str(c.total),
        "verdicts": verdicts,
        "median s": f"{c.export_s:.1f}",
        "nodes": f"{c.nodes:.0f}",
        "MB": f"{c.memory:.0f}",
    }
