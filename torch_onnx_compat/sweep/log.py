"""The file of rows: appended line by line, by one sweep at a time; read back after any kind of end."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.sweep.job import Row

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    """The rows of a file; of those of one key the last. A last line that a kill cut off is left out.

    Raises:
        CompatError: The file cannot be read, or another line is no row.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise CompatError(f"{os.fspath(path)}: cannot be read: {error.strerror or error}.") from error
    rows: dict[str, Row] = {}
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            row = Row.from_line(line)
        except CompatError as error:
            raise CompatError(f"{os.fspath(path)}:{number}: {error}") from error
        rows.pop(row.key, None)
        rows[row.key] = row
    return list(rows.values())


class Log:
    """Appends rows to a file that nobody else appends to meanwhile; a context manager.

    Args:
        path: The file; made where there is none.

    Raises:
        CompatError: It cannot be written, or another sweep writes to it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise CompatError(f"{self.path}: cannot be written: {error.strerror or error}.") from error
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a killed sweep's lock goes with it
            except OSError as error:
                os.close(self._file)
                raise CompatError(f"{self.path}: another sweep writes to it; wait, or give another file.") from error
        data = self.path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.truncate(self._file, data.rfind(b"\n") + 1)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._file)

    def append(self, row: Row) -> None:
        """Writes a row in one piece."""
        line = row.to_line()
        while line:
            line = line[os.write(self._file, line) :]
