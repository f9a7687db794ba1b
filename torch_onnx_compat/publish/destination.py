"""Which destinations cannot be written to: said before any work, and without a slow import."""

from __future__ import annotations

import errno
import io
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from torch_onnx_compat.errors import CompatError


def check_destination(destination: Any) -> None:
    """Says before any work what cannot be written to; what was there is left as it is.

    A symbolic link stands for the file that it leads to. A hard link is taken off the old file, whose other names
    keep the old model.

    Args:
        destination: A path, a binary file object, or None.

    Raises:
        CompatError: It is none of these, there is no such folder, or the path is a device's, a folder's or another
            special file's.
    """
    if destination is None:
        return
    if hasattr(destination, "write"):
        _check_file_object(destination)
        return
    try:
        target = resolve(destination, destination)
        check_place(target, destination)
        if not target.parent.exists():
            raise CompatError(f"cannot write {str(destination)!r}: there is no folder {str(target.parent)!r}; make it.")
        if not stat.S_ISDIR(target.parent.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        with tempfile.TemporaryFile(dir=target.parent):
            pass  # permissions alone do not tell: a file system may be read-only or full
    except OSError as error:
        raise cannot_write(destination, error) from error


_OTHERS = frozenset({".py", ".pt", ".pt2", ".pth", ".safetensors", ".toml", ".ipynb"})
"""Endings of what a model is made of: no file of these names is replaced."""


def check_model_destination(destination: Any) -> None:
    """The same for a model's file, which replaces none that a model is made of.

    Args:
        destination: As for check_destination().

    Raises:
        CompatError: As for check_destination(), or there is a file of Python, of weights or of settings.
    """
    check_destination(destination)
    if destination is None or hasattr(destination, "write"):
        return
    place = resolve(destination, destination)
    if place.suffix in _OTHERS and place.is_file():
        raise CompatError(
            f"cannot write {str(destination)!r}: there is a {place.suffix} file, which would be lost; give another "
            f"name, such as {place.stem}.onnx."
        )


def resolve(destination: Any, named: Any) -> Path:
    """The path of a destination, a symbolic link at its end resolved."""
    try:
        path = Path(destination)
    except TypeError:
        raise CompatError(
            f"f is a {type(destination).__name__}; wanted a path, a file opened for writing bytes, or None."
        ) from None
    text = str(path)
    if "\0" in text:
        raise CompatError(f"f={text!r} holds a null character, which no path may; leave it out.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CompatError(
            f"f={text!r} is not valid Unicode, and engines do not open such a path; choose another name."
        ) from None
    if path.is_symlink():
        path = Path(os.path.realpath(path))
        if path.is_symlink():
            raise CompatError(f"f={str(named)!r} is a symbolic link that leads back to itself; choose another path.")
    return path


def check_place(place: Path, named: Any) -> None:
    """Refuses to replace what is no regular file."""
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISREG(mode):
        return
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
    }
    kind = kinds.get(stat.S_IFMT(mode), "a special file")
    raise CompatError(
        f"cannot write {str(named)!r}: it is {kind}, and a rename would replace it; give the path of a file (or, in "
        f"Python, a file opened for writing bytes)."
    )


def _check_file_object(file: Any) -> None:
    kind = type(file).__name__
    if isinstance(file, io.TextIOBase) or hasattr(file, "encoding"):
        raise CompatError(f"f is a text file ({kind}); wanted one opened for writing bytes: open(path, 'wb').")
    if getattr(file, "closed", False) is True:
        raise CompatError(f"f is a closed file ({kind}); wanted an open one.")
    writable = getattr(file, "writable", None)
    if callable(writable) and not writable():
        raise CompatError(f"f is a file opened for reading ({kind}); wanted one opened for writing bytes.")


def cannot_write(destination: Any, error: OSError) -> CompatError:
    """The error for a place that cannot be written to."""
    reason = error.strerror or type(error).__name__
    return CompatError(f"cannot write {str(destination)!r}: {reason}; the old file, if any, is as it was.")
