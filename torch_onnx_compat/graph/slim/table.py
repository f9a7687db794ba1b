"""Functions by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Table(dict[str, Function]):
    """Functions by the operator that they are for."""

    def of(self, *op_types: str) -> Callable[[Function], Function]:
        """Adds the decorated function for some operators, whose names may stand in one text, separated by spaces."""

        def add(function: Function) -> Function:
            self.update(dict.fromkeys(" ".join(op_types).split(), function))
            return function

        return add
