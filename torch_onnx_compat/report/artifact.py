"""The report that torch.onnx.export's ``report=True`` asks for: a Markdown file, also of an export that failed."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.report.write import write_report
from torch_onnx_compat.result import ExportResult


@contextmanager
def keep_report(folder: str | os.PathLike[str]) -> Iterator[Callable[[ExportResult], ExportResult]]:
    """Writes ``onnx_export_<time>_success.md``, as torch calls it, or ``…_failure.md``.

    Yields:
        What the result is given to; it comes back.

    Raises:
        CompatError: There is no such folder, or the report cannot be written.
    """
    place = Path(folder)
    if not place.is_dir():
        raise CompatError(
            f"artifacts_dir={str(folder)!r} is no folder; make it first, or leave artifacts_dir out for this one."
        )
    start = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")

    def write(subject: ExportResult | CompatError, outcome: str) -> None:
        write_report(place / f"onnx_export_{start}_{outcome}.md", subject)

    def succeed(result: ExportResult) -> ExportResult:
        write(result, "success")
        return result

    try:
        yield succeed
    except CompatError as error:
        write(error, "failure")
        raise
