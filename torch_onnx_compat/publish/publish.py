"""Puts a file in its place: written beside it under another name, then renamed over it, or not at all.

The rename of the model is the one step that takes the old file away and brings the new one. Weights beside the model
never take the place of others: new ones get a name that is free, old ones go after the rename. So the file loads,
the old one or the new one, whenever the process is stopped. Stages change before the model, and are put back when a
later step fails; only a process that is killed between two renames leaves new stages beside an old model.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.graph.stream import write_model
from torch_onnx_compat.publish.destination import cannot_write, check_model_destination, check_place, resolve
from torch_onnx_compat.publish.weights_beside import is_mentioned, locations, mentions, relocate, weights_of
from torch_onnx_compat.publish.workspace import hold, note_weights, workspace

INLINE_LIMIT = 1_500_000_000
"""Weights, in bytes, up to which they lie in the file itself; protobuf ends at 2 GiB."""

_PATIENCE = 10.0
"""Seconds to wait while another process publishes to the same folder."""


@dataclass(frozen=True)
class Draft:
    """A written file that is not in its place yet."""

    path: Path
    """In a temporary folder beside its place, or in the system's where it has none."""
    external: bool
    """Whether the weights lie in a file of their own."""
    destination: Any
    """What it is meant for, as messages name it."""
    target: Path | None
    """Its place, symbolic links resolved; None for a file object and for memory."""
    stages: dict[Path, Path] = field(default_factory=dict)
    """By place, the drafts of what was cut off the file."""

    def write(self, model: ir.Model) -> None:
        """Writes the model, or another form of it.

        Raises:
            CompatError: The folder cannot be written to, or the disk is full.
        """
        try:
            _write(model, self.path, self.external)
        except OSError as error:
            raise cannot_write(self.destination, error) from error

    def write_stages(self, stages: Mapping[str, bytes]) -> None:
        """Writes what was cut off the file, to be put beside it: ``model.preprocess.onnx`` beside ``model.onnx``.

        Args:
            stages: Serialised models by name; nothing is written for a file object and for memory.

        Raises:
            CompatError: One cannot be written, or its place is taken by what is no file.
        """
        if self.target is None:
            return
        for name, data in stages.items():
            place = self.target.with_name(f"{self.target.stem}.{name}{self.target.suffix}")
            try:
                place = resolve(place, place)
                check_place(place, place)
                partial = self.path.parent / f"stage_{place.name}"
                partial.write_bytes(data)
            except OSError as error:
                raise cannot_write(place, error) from error
            self.stages[place] = partial

    def outcome(self) -> Path | bytes | None:
        """What the export yields: the path, the model's bytes where it stays in memory, None for a file object."""
        if self.target is not None:
            return self.target
        return self.path.read_bytes() if self.destination is None else None


def external_data_path(path: Path) -> Path:
    """The file beside a draft that holds its weights where they are too large for the model's own.

    A published model's have this name too, unless it was taken; the model itself says.
    """
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
    check_model_destination(destination)
    in_memory = destination is None or hasattr(destination, "write")
    target = None if in_memory else resolve(destination, destination)
    parent = Path(tempfile.gettempdir()) if target is None else target.parent
    with workspace(parent, partial(cannot_write, destination)) as folder:
        made = Draft(folder / ("model.onnx" if target is None else target.name), external, destination, target)
        made.write(model)
        yield made


def publish(draft: Draft) -> None:
    """Moves a draft, its weights and its stages to their places; the last step of an export.

    Args:
        draft: The checked file.

    Raises:
        CompatError: A place cannot be written to; what was there is as it was.
    """
    if draft.target is None:
        if draft.destination is not None:
            _write_to(draft.destination, draft.path.read_bytes())
        return
    try:
        with hold(draft.target.parent, _PATIENCE) as is_alone:
            _Exchange(draft, draft.target, bool(is_alone)).carry_out()
    except OSError as error:
        raise cannot_write(draft.destination, error) from error


class _Exchange:
    """The renames of one export, and the way back.

    Args:
        draft: The new files.
        target: The model's place.
        is_alone: Whether no other process publishes to the folder meanwhile.
    """

    def __init__(self, draft: Draft, target: Path, is_alone: bool) -> None:
        self._draft, self._target, self._is_alone = draft, target, is_alone
        self._folder = draft.path.parent
        self._weights = external_data_path(draft.path)
        self._backups: dict[Path, Path] = {}

    def carry_out(self) -> None:
        self._check()
        old = [path for path in weights_of(self._target) if not is_mentioned(path, self._target)]
        has_weights = self._draft.external and bool(locations(self._draft.path))
        place_of_weights = self._free_place() if has_weights else None
        noted = {path: path for path in old}
        if place_of_weights is not None:
            noted[place_of_weights] = self._weights
        note_weights(self._folder, noted)  # for whoever finds the folder after the process was killed
        try:
            if place_of_weights is not None:
                relocate(self._draft.path, place_of_weights.name)
                os.rename(self._weights, place_of_weights)
            self._back_up_stages()
            for place, new in self._draft.stages.items():
                os.replace(new, place)
            os.replace(self._draft.path, self._target)
            _remove(old)
        except BaseException:  # an interrupt, too
            if self._draft.path.exists():
                self._undo(place_of_weights)
            else:  # the last rename was done, so the new files are whole
                _remove(old)
            raise

    def _check(self) -> None:
        default = _mode_of_new_files(self._folder)
        for place, new in {self._target: self._draft.path, **self._draft.stages}.items():
            check_place(place, place)
            _copy_mode(place, new, default)
        if self._weights.exists():  # empty where every tensor is too small to lie outside
            _copy_mode(self._target, self._weights, default)

    def _free_place(self) -> Path:
        """A name that no other weights have, and that the old model does not await."""
        plain = external_data_path(self._target)
        if self._is_alone and not os.path.lexists(plain) and not mentions(self._target, plain.name):
            return plain
        return self._target.with_name(f"{self._target.name}.{secrets.token_hex(8)}.data")

    def _back_up_stages(self) -> None:
        for number, place in enumerate(self._draft.stages):
            if place.exists():
                backup = self._folder / f"backup_{number}"
                try:
                    os.link(place, backup)
                except OSError:  # a file system without links
                    shutil.copy2(place, backup)
                self._backups[place] = backup

    def _undo(self, place_of_weights: Path | None) -> None:
        for place, new in self._draft.stages.items():
            if new.exists():
                continue
            if place in self._backups:
                os.replace(self._backups[place], place)
            else:
                place.unlink(missing_ok=True)
        if place_of_weights is not None and not self._weights.exists():
            place_of_weights.unlink(missing_ok=True)


def _remove(files: list[Path]) -> None:
    for path in files:
        with contextlib.suppress(OSError):  # on Windows, weights that a session has open; they do no harm
            path.unlink()


def _mode_of_new_files(folder: Path) -> int:
    """The permissions that the process gives to the files it makes; the umask cannot be read without setting it."""
    probe = folder / "new_file"
    probe.touch()
    try:
        return stat.S_IMODE(probe.stat().st_mode)
    finally:
        probe.unlink()


def _copy_mode(place: Path, new: Path, default: int) -> None:
    """Gives a new file the permissions, and where the process may do so the owner, of the one that it replaces."""
    if not place.exists():
        new.chmod(default)
        return
    old, now = place.stat(), new.stat()
    if (old.st_uid, old.st_gid) != (now.st_uid, now.st_gid):
        with contextlib.suppress(OSError, AttributeError):
            os.chown(new, old.st_uid, old.st_gid)
    new.chmod(stat.S_IMODE(old.st_mode))


def _write_to(file: Any, data: bytes) -> None:
    rest = memoryview(data)
    try:
        while rest:
            count = file.write(rest)
            if not isinstance(count, int) or not 0 < count < len(rest):  # else an unbuffered file took a part
                return
            rest = rest[count:]
    except Exception as error:
        raise CompatError(
            f"cannot write to f, a {type(file).__name__}: {type(error).__name__}: {error}; it may hold a part."
        ) from error


def _write(model: ir.Model, path: Path, external: bool) -> None:
    if external:
        ir.save(model, path, external_data=external_data_path(path).name)
        return
    with path.open("wb") as file:
        write_model(model, file)
