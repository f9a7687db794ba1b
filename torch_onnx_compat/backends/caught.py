"""Whether the model catches the error of a check, by the classes that its statements name."""

from __future__ import annotations

import ast
import builtins
import sys
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from torch_onnx_compat.backends.checks import Place, innermost_statements, is_guard, is_warning, kinds_caught


def is_check_caught(checks: Iterable[Place], callers: Iterable[Place]) -> bool:
    """Whether statements around any of the callers may catch what a check raises.

    Args:
        checks: Where the check may be; if it is at none of these, nobody knows what it raises.
        callers: All statements of the model's code on the stack.
    """
    caught = [(kind, place) for place in callers for kind in kinds_caught(place)]
    if not caught:
        return False
    raised = next(([*_kinds_raised(place)] for place in checks if is_guard(place)), [None])
    return any(_catches(kind, raised, _namespace_of(place.filename)) for kind, place in caught)


def _kinds_raised(check: Place) -> Iterator[Any]:
    """The classes of the errors that a check raises; None for what only running the code would tell."""
    statement = next(innermost_statements(check))
    if isinstance(statement, ast.Assert):
        yield AssertionError
        return
    raising = [node for node in ast.walk(statement) if isinstance(node, ast.Raise)]
    if not raising and not isinstance(statement, ast.If) and not is_warning(statement):
        yield None  # one of torch's assertions
    for node in raising:
        named = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        try:
            yield None if named is None else value_of(named, _namespace_of(check.filename))
        except (LookupError, AttributeError):
            yield None


def _catches(kind: ast.expr | None, raised: Collection[Any], namespace: Mapping[str, Any]) -> bool:
    if kind is None:
        return bool(raised)
    try:
        named = value_of(kind, namespace)
        return any(error is None or issubclass(error, named) for error in raised)
    except (LookupError, AttributeError, TypeError):  # a class that only running the code would tell
        return True


def value_of(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """What names, their attributes, and tuples of them stand for.

    Raises:
        LookupError: Nothing tells but running the code.
        AttributeError: The same.
    """
    if isinstance(node, ast.Tuple):
        return tuple(value_of(item, namespace) for item in node.elts)
    if isinstance(node, ast.Attribute):
        return getattr(value_of(node.value, namespace), node.attr)
    if isinstance(node, ast.Name):
        return {**vars(builtins), **namespace}[node.id]
    raise LookupError(ast.unparse(node))


def _namespace_of(filename: str) -> Mapping[str, Any]:
    """The namespace of the module that a file was imported as; empty if there is none."""
    modules = (module for module in list(sys.modules.values()) if isinstance(module, types.ModuleType))
    return next((vars(module) for module in modules if vars(module).get("__file__") == filename), {})
