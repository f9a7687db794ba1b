"""Where something happened: the innermost statement that is neither torch's nor ours; the module of a node."""

from __future__ import annotations

import functools
import importlib.util
import re
import traceback
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LIBRARIES = ("torch", "onnxscript", "onnx_ir", "onnxruntime", "sympy", "mpmath", "numpy")
"""Packages in which no code of a model is: the exporters', what torch computes sizes with, and numpy."""
_INSTALLED = re.compile(rf"/(?:site|dist)-packages/(?:{'|'.join((*_LIBRARIES, 'torch_onnx_compat'))})/")
"""Where they lie on the machine of somebody who sends a traceback."""
_OWN = tuple(
    f"{folder}/".replace("\\", "/")
    for folder in (Path(__file__).parent, *(Path(__file__).parents[1] / name for name in ("symbolics", "rewrites")))
)
"""This package; in a checkout the entries lie beside it."""


@functools.cache
def _machinery() -> tuple[str, ...]:
    """The folders of these packages and of this one; others may have folders of the same names."""
    return (*_OWN, *(f"{folder}/" for name in _LIBRARIES for folder in _folders(name)))


@functools.cache
def _folders(package: str) -> tuple[str, ...]:
    """Where a package lies; nowhere if it is not installed."""
    spec = importlib.util.find_spec(package)
    return tuple(str(folder).replace("\\", "/") for folder in (spec and spec.submodule_search_locations) or ())


@functools.lru_cache(maxsize=4096)
def is_user_file(filename: str) -> bool:
    """Whether a file is neither of an exporter, torch among them, nor of this package's machinery."""
    path = filename.replace("\\", "/")
    return not path.startswith(("<", *_machinery())) and not _INSTALLED.search(path)


def is_torchs_layer(filename: str) -> bool:
    """Whether a file is one of torch.nn's."""
    return filename.replace("\\", "/").startswith(tuple(f"{folder}/nn/" for folder in _folders("torch")))


def short(filename: str, line: int | None) -> str:
    """``models/resnet.py:41``: the file with its folder, and the line."""
    return f"{'/'.join(filename.replace(chr(92), '/').split('/')[-2:])}:{line}"


class PlaceSet(Collection[str]):
    """Places that a caller names, and which of them something was found at.

    A place is named as `short` writes it (``models/resnet.py:41``), with its whole path, or by the file's name alone.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = tuple(map(str, texts))
        self._met: set[str] = set()
        self._asked: dict[str, bool] = {}

    def __contains__(self, place: object) -> bool:
        found = {text for text in self._texts if _is_named(str(place), text)}
        self._met |= found
        self._asked[str(place)] = bool(found)
        return bool(found)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def asked(self) -> tuple[str, ...]:
        """The places that were looked up."""
        return tuple(self._asked)

    @property
    def met(self) -> tuple[str, ...]:
        """Those of them that the caller names."""
        return tuple(place for place, is_named in self._asked.items() if is_named)

    @property
    def unmet(self) -> tuple[str, ...]:
        """The names of which no place was looked up."""
        return tuple(text for text in dict.fromkeys(self._texts) if text not in self._met)


def _is_named(place: str, text: str) -> bool:
    parts = text.replace("\\", "/").split("/")
    return place == "/".join(parts[-2:]) or place.rpartition("/")[2] == text


def module_path(scopes: Iterable[str], modules: Collection[str]) -> str:
    """Path of the module in which TorchScript traced a node, as far as the model has such modules.

    A child of a Sequential or ModuleList has its parent's path in its own scope: ``features``, ``features.1``,
    ``features.1.0``, ``attn`` are ``features.1.0.attn``.

    Args:
        scopes: Names of the nested scopes, the outermost first.
        modules: Paths of the model's modules.
    """
    path: list[str] = []
    for scope in scopes:
        names = scope.split(".")
        shared = (n for n in range(min(len(path), len(names) - 1), -1, -1) if path[len(path) - n :] == names[:n])
        found = next((step for n in shared if ".".join(step := path + names[n:]) in modules), None)
        if found is None:
            break
        path = found
    return ".".join(path)


def user_statement(error: BaseException) -> str | None:
    """The innermost statement of the user's code in an error's traceback, or in the one that its text quotes."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if is_user_file(frame.f_code.co_filename):
            return short(frame.f_code.co_filename, line)
    for filename, line in reversed(re.findall(r'File "([^"]+)", line (\d+)', plain(str(error)))):
        if is_user_file(filename):
            return short(filename, int(line))
    return None


def plain(text: str) -> str:
    """Text without terminal colours."""
    return _ANSI.sub("", text)


def first_line(error: BaseException) -> str:
    """The first line of an error that says something; the last one of TorchScript, which quotes code before."""
    lines = [line.strip() for line in plain(str(error)).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1 if lines[0].startswith(_INTERPRETER) else 0]


_INTERPRETER = "The following operation failed in the TorchScript interpreter"
