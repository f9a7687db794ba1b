"""Public names of a package that are imported at their first use (PEP 562), so that the command line starts fast."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from torch_onnx_compat.garbage import pause_collection


class _Package(ModuleType):
    """A package whose public names win over submodules that are called alike, such as `plan` and `rewrite`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and name in self._lazy_homes:
            return  # the import of a submodule binds it to its package
        super().__setattr__(name, value)


def import_on_demand(package: str, homes: Mapping[str, str]) -> None:
    """Gives a package public names, each imported at its first use.

    Args:
        package: The package's ``__name__``.
        homes: The module that defines each name.
    """
    module = sys.modules[package]

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        with pause_collection():
            value = getattr(import_module(homes[name]), name)
        vars(module)[name] = value
        return value

    vars(module).update(
        _lazy_homes=homes, __getattr__=get, __dir__=lambda: sorted({*vars(module), *homes}), __all__=sorted(homes)
    )
    module.__class__ = _Package
