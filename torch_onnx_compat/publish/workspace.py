"""Temporary folders beside the files that are made in them, and the locks that tell the living from the dead."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from torch_onnx_compat.publish.weights_beside import is_mentioned

if sys.platform != "win32":
    import fcntl

_PREFIX = ".torch_onnx_compat_"
_HELD = "held"
"""A file in a folder whose process locked it. A folder without it is one that is just being made, or removed."""
_WEIGHTS = "weights.json"


@contextmanager
def workspace(parent: Path, refuse: Callable[[OSError], Exception]) -> Iterator[Path]:
    """A temporary folder that is removed in the end, and by a later call if the process is killed before.

    Args:
        parent: Where to make it.
        refuse: Makes the error to raise where it cannot be made.
    """
    folder = parent / f"{_PREFIX}{secrets.token_hex(8)}"
    try:
        try:
            try:
                remove_stale(parent)
                folder.mkdir(mode=0o700)
            except OSError as error:
                raise refuse(error) from error
            with hold(folder, 1.0) as is_held:
                # Another process that holds it looks whether it is stale, and may remove it at any time.
                if is_held is None or (is_held and _mark(folder)):
                    yield folder
                    return
            with workspace(parent, refuse) as another:
                yield another
        finally:
            _remove(folder)
    finally:  # once more, as the first may have been interrupted
        _remove(folder)


def _mark(folder: Path) -> bool:
    """Says that the folder is held; False where another process took it, still empty, for a dead one's."""
    try:
        (folder / _HELD).touch()
    except FileNotFoundError:
        return False
    return True


def _remove(folder: Path) -> None:
    """Removes a folder, the mark last, so that what a kill leaves of it is still known as stale."""
    try:
        inside = list(folder.iterdir())
    except FileNotFoundError:  # never made, or another process took it for a dead one's since it was let go
        return
    for path in inside:
        if path.name != _HELD:
            with contextlib.suppress(OSError):
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def hold(folder: Path, patience: float) -> Iterator[bool | None]:
    """Keeps others from holding a folder at the same time; the system lets go of it when the process ends.

    Args:
        folder: The folder.
        patience: Seconds to wait while another process, or another thread, holds it.

    Yields:
        Whether it is held, and there; None where nobody can hold it, as on Windows and some network file systems.
    """
    handle = -1
    try:
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                handle = os.open(folder, os.O_RDONLY)
        is_gone = handle < 0 and not folder.exists()
        yield False if is_gone else _lock(handle, patience) if handle >= 0 else None
    finally:
        if handle >= 0:
            os.close(handle)


def _lock(handle: int, patience: float) -> bool | None:
    if sys.platform == "win32":
        return None
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.005)
        except OSError:
            return None


def remove_stale(parent: Path) -> None:
    """Removes the workspaces of processes that were killed, and the weights that they would have removed."""
    if sys.platform == "win32":
        return
    length = len(_PREFIX) + 16
    with os.scandir(parent) as entries:
        found = [Path(e.path) for e in entries if e.name.startswith(_PREFIX) and e.is_dir(follow_symlinks=False)]
    folders = [path for path in found if len(path.name) == length]
    if not folders:
        return
    with hold(parent, 1.0) as is_alone:
        for folder in folders if is_alone else ():
            try:
                _remove_if_stale(folder)
            except OSError:  # another process was faster, or the folder is somebody else's
                continue


def _remove_if_stale(folder: Path) -> None:
    with hold(folder, 0.0) as is_held:
        if not is_held:
            return
        if not (folder / _HELD).exists():
            folder.rmdir()  # only if it is empty
            return
        _remove_spare_weights(folder)
        _remove(folder)


def note_weights(folder: Path, files: Mapping[Path, Path]) -> None:
    """Writes down which weights are to be removed if the process is killed and no model takes them.

    Args:
        folder: The workspace.
        files: By the place of the weights, where they are now.
    """
    rows = [[place.name, *_identity(path)] for place, path in files.items()]
    (folder / _WEIGHTS).write_text(json.dumps(rows), encoding="utf-8")


def _remove_spare_weights(folder: Path) -> None:
    note = folder / _WEIGHTS
    try:
        rows = json.loads(note.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # it was killed before it had anything to remove
        return
    for name, *identity in rows:
        path = folder.parent / name
        if path.is_file() and _identity(path) == identity and not is_mentioned(path):
            path.unlink()


def _identity(path: Path) -> list[int]:
    """Tells a file from one that has its name later."""
    status = path.stat()
    return [status.st_ino, status.st_size, status.st_mtime_ns]
