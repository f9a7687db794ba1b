"""The source of a function before and after its rewriting, both printed by ast so that formatting does not differ."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable

from torch_onnx_compat.control_flow.find.source import Definition, FunctionNode, definition


def lines_before_and_after(
    code: types.CodeType, lower_definition: Callable[[Definition], FunctionNode]
) -> tuple[list[str], list[str]]:
    """The lines of both sources, without comments."""
    old = ast.unparse(definition(code).node).splitlines()
    new = ast.unparse(ast.fix_missing_locations(lower_definition(definition(code)))).splitlines()
    return old, new
