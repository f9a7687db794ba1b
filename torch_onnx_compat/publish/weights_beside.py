"""Weights that lie beside a model: which files are whose, and how a model names them."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]

_LARGEST_MODEL = 2**31
"""Bytes; what is larger is no protobuf message."""
_OWN_NAME = r"(\.[0-9a-f]{16})?\.data"


def weights_of(model: Path) -> list[Path]:
    """The files that hold a model's weights and are named after it, as this package and torch name them."""
    pattern = re.compile(re.escape(model.name) + _OWN_NAME)
    candidates = [path for path in _files(model.parent) if pattern.fullmatch(path.name)]
    if not any(mentions(model, path.name) for path in candidates):
        return []
    try:
        names = {os.path.normpath(name) for name in locations(model)}
    except (OSError, DecodeError):
        return []
    return [path for path in candidates if path.name in names]


def is_mentioned(weights: Path, besides: Path | None = None) -> bool:
    """Whether a model in the same folder, other than one, may take its weights from a file."""
    suffixes = {".onnx", Path(re.sub(f"{_OWN_NAME}$", "", weights.name)).suffix}
    models = (path for path in _files(weights.parent) if path.suffix in suffixes and path != besides)
    return any(mentions(path, weights.name) for path in models)


def mentions(model: Path, name: str) -> bool:
    """Whether the name occurs in a file; a model that cannot be read may mention everything."""
    try:
        with model.open("rb") as file:
            if not 0 < os.fstat(file.fileno()).st_size < _LARGEST_MODEL:
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return content.find(name.encode()) >= 0
    except FileNotFoundError:
        return False
    except OSError:
        return True


def locations(model: Path) -> set[str]:
    """The files, relative to its folder, that a model takes tensors from.

    Raises:
        DecodeError: It is no ONNX model.
    """
    return {entry.value for entry in _location_entries(onnx.load(model, load_external_data=False))}


def relocate(model: Path, name: str) -> None:
    """Writes into a model, whose tensors all lie in one file, that this file has another name."""
    if locations(model) <= {name}:
        return
    proto = onnx.load(model, load_external_data=False)
    for entry in _location_entries(proto):
        entry.value = name
    model.write_bytes(proto.SerializeToString())


def _location_entries(model: onnx.ModelProto) -> Iterator[Any]:
    todo: list[Any] = [model.graph, *model.functions]
    while todo:
        part = todo.pop()
        tensors = list(getattr(part, "initializer", ()))
        for sparse in getattr(part, "sparse_initializer", ()):
            tensors += [sparse.values, sparse.indices]
        for node in part.node:
            for attribute in node.attribute:
                tensors += [attribute.t, *attribute.tensors]
                todo += [attribute.g, *attribute.graphs]
        for tensor in tensors:
            yield from (entry for entry in tensor.external_data if entry.key == "location")


def _files(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if entry.is_file()]
