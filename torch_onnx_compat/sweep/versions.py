"""What a row depends on beside its job: versions of packages, and the code itself."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch_onnx_compat
from torch_onnx_compat import zoo
from torch_onnx_compat.sweep.job import By

_PACKAGES = ("torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime", "torchvision")
_CATALOGUE = ("symbolics", "rewrites")
_OF_STOCK = ("zoo/", "check/", "sweep/judge.py", "sweep/measure.py", "sweep/stock.py")
"""What a row of stock torch depends on in this package."""
_PRESENTATION = ("sweep/", "report/", "cli/")
"""What no row of ours depends on."""


@cache
def versions_for(source: str) -> str:
    """The versions of what exports and judges, and of a zoo's own package.

    Args:
        source: What stands before the colon of a spec.
    """
    own = getattr(zoo.find(source), "PACKAGES", ()) if source in zoo.zoos() else ()
    return ", ".join(f"{name} {_version(name)}" for name in dict.fromkeys((*_PACKAGES, *own)))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"


def code_for(spec: str, by: By) -> str:
    """Fingerprint of this package's code, as far as it matters, and of the file that a spec names."""
    source = spec if spec.endswith(".pt2") else spec.rpartition(":")[0]
    own = _file_digest(Path(source)) if source.endswith((".py", ".pt2")) else ""
    return own + _package_digest(by != "ours", source)


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8] + "-" if path.is_file() else ""


@cache
def _package_digest(stock: bool, source: str) -> str:
    others = tuple(f"zoo/{name}" for name in zoo.zoos() if name != source)
    digest = hashlib.sha256()
    for root in map(Path, torch_onnx_compat.__path__):
        inside = root == Path(torch_onnx_compat.__file__).parent
        # In a checkout the second root holds the catalogue, beside much else.
        found = root.rglob("*.py") if inside else (p for c in _CATALOGUE for p in (root / c).rglob("*.py"))
        for name, path in sorted((path.relative_to(root).as_posix(), path) for path in found):
            matters = name.startswith(_OF_STOCK) or not (stock or name.startswith(_PRESENTATION))
            if matters and not name.startswith(others):
                digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:8]
