"""Loads symbolics/, rewrites/ and the entry points of installed plugins into the default registry, once."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from importlib.metadata import EntryPoint, entry_points

from torch_onnx_compat.catalogue.registry import DEFAULT, Registry
from torch_onnx_compat.errors import CompatError

ENTRY_POINT_GROUP = "torch_onnx_compat.catalogue"
BUILT_IN = ("torch_onnx_compat.symbolics", "torch_onnx_compat.rewrites")

_lock = threading.Lock()
_loaded: set[str] = set()


def catalogue() -> Registry:
    """The default registry, filled at the first call: the built-in entries, then plugins in order of name.

    Raises:
        CompatError: A plugin cannot be imported; the message names its distribution.
        ClashError: A plugin claims what another entry claims.
    """
    with _lock:
        families = [f"{name}.{family}" for name in BUILT_IN for family in importlib.import_module(name).FAMILIES]
        if not _loaded.issuperset(families):
            for module in families:
                _load_once(module)
            DEFAULT.arrange(families)  # somebody may have imported one of them before
        for point in _plugins(tuple(sys.path)):
            _load_plugin(point)
    return DEFAULT


@functools.lru_cache(maxsize=1)
def _plugins(path: tuple[str, ...]) -> list[EntryPoint]:
    """The entry points on sys.path; to look for them reads a file of each distribution."""
    return sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: (p.name, p.value))


def _load_once(module: str) -> None:
    if module not in _loaded:
        importlib.import_module(module)
        _loaded.add(module)


def _load_plugin(point: EntryPoint) -> None:
    key = f"{point.name} = {point.value}"
    if key in _loaded:
        return
    try:
        point.load()
    except CompatError:
        raise
    except Exception as error:
        owner = point.dist.name if point.dist else "unknown distribution"
        raise CompatError(
            f"plugin {point.name!r} of {owner}: importing {point.value!r} failed with {type(error).__name__}: {error}; "
            f"uninstall or repair it."
        ) from error
    _loaded.add(key)
