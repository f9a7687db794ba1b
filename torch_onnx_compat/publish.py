"""Puts a file in its place: written beside it under another name, then renamed over it, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.graph.stream import write_model

INLINE_LIMIT = 1_500_000_000
"""Weights, in bytes, up to which they lie in the file itself; protobuf ends at 2 GiB."""


@dataclass(frozen=True)
class Draft:
    """A written file that is not in its place yet."""

    path: Path
    """In a temporary folder beside its place, or in the system's where it has none."""
    external: bool
    """Whether the weights lie in a file of their own."""
    destination: Any
    """What it is meant for, as messages name it."""

    def write(self, model: ir.Model) -> None:
        """Writes the model, or another form of it.

        Raises:
            CompatError: The folder cannot be written to, or the disk is full.
        """
        try:
            _write(model, self.path, self.external)
        except OSError as error:
            raise _cannot_write(self.destination, error) from error


def external_data_path(path: Path) -> Path:
    """The file beside a model that holds its weights where they are too large for the model's own."""
    return path.with_name(f"{path.name}.data")


def is_large(model: ir.Model) -> bool:
    """Whether the weights must lie outside the file."""
    return (
        sum(v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None) > INLINE_LIMIT
    )


@contextmanager
def draft(model: ir.Model, destination: Any, external: bool) -> Iterator[Draft]:
    """Writes a model where it can be checked, and removes what is left of it in the end.

    Args:
        model: The model.
        destination: Path or binary file that it is meant for; None for memory.
        external: Whether the weights lie in a file of their own.

    Raises:
        CompatError: The folder cannot be written to, or the disk is full.
    """
    target = _as_path(destination)
    parent = target.parent if target is not None else None
    name = target.name if target is not None else "model.onnx"
    try:
        folder = tempfile.mkdtemp(prefix=".torch_onnx_compat_", dir=parent)
    except OSError as error:
        raise _cannot_write(destination, error) from error
    try:
        path = Path(folder) / name
        made = Draft(path, external, destination)
        made.write(model)
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(draft: Draft, destination: Any) -> Path | bytes | None:
    """Moves a draft to its place.

    Args:
        draft: The checked file.
        destination: A path, a binary file object, or None.

    Returns:
        The path, the model's bytes for None, and None for a file object.

    Raises:
        CompatError: The place cannot be written to; what was there is as it was.
    """
    target = _as_path(destination)
    if target is None:
        data = draft.path.read_bytes()
        if destination is None:
            return data
        try:
            destination.write(data)
        except OSError as error:
            raise _cannot_write(destination, error) from error
        return None
    weights, their_place = external_data_path(draft.path), external_data_path(target)
    backup = draft.path.with_name("backup")
    try:
        if weights.exists():
            if their_place.exists():
                os.replace(their_place, backup)
            os.replace(weights, their_place)
        os.replace(draft.path, target)
    except OSError as error:
        if backup.exists():  # the old model goes on with its old weights
            os.replace(backup, their_place)
        raise _cannot_write(destination, error) from error
    return target


@contextmanager
def stages_beside(stages: Mapping[str, bytes], destination: Any) -> Iterator[Callable[[], None]]:
    """Writes stages where the file goes: ``model.preprocess.onnx`` beside ``model.onnx``.

    Args:
        stages: What was cut off the file, serialised, by name.
        destination: Path of the file; beside anything else nothing is written.

    Yields:
        What puts them in their places, under which there is then nothing left to fail but a rename.

    Raises:
        CompatError: One cannot be written; what was there is as it was.
    """
    target = _as_path(destination)
    written: dict[Path, Path] = {}

    def put() -> None:
        for place, partial in written.items():
            os.replace(partial, place)

    try:
        for name, data in stages.items() if target is not None else ():
            assert target is not None
            place = target.with_name(f"{target.stem}.{name}{target.suffix}")
            written[place] = target.with_name(f".{place.name}.partial")
            written[place].write_bytes(data)
        yield put
    except OSError as error:
        raise _cannot_write(place, error) from error
    finally:
        for partial in written.values():
            partial.unlink(missing_ok=True)


def _as_path(destination: Any) -> Path | None:
    if destination is None or hasattr(destination, "write"):
        return None
    try:
        return Path(destination)
    except TypeError:
        raise CompatError(
            f"f is a {type(destination).__name__}; wanted a path, a file opened for writing bytes, or None."
        ) from None


def _write(model: ir.Model, path: Path, external: bool) -> None:
    if external:
        ir.save(model, path, external_data=external_data_path(path).name)
        return
    with path.open("wb") as file:
        write_model(model, file)


def _cannot_write(destination: Any, error: OSError) -> CompatError:
    reason = error.strerror or type(error).__name__
    return CompatError(f"cannot write {str(destination)!r}: {reason}; the old file, if any, is as it was.")
