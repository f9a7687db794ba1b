"""Operators as small models: what the operator matrix, its test and the benchmark run.

Each module here is one family and has a list `CASES`; a new module or case is found by itself.
"""

import importlib
import pkgutil

from operator_cases.case import Case

_OTHERS = ("case", "cells", "exports", "naive")


def families() -> dict[str, list[Case]]:
    """The cases by family, in alphabetic order of the families."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _OTHERS)
    return {name: importlib.import_module(f"operator_cases.{name}").CASES for name in names}
