"""Distinguishes errors that the model raises itself from errors of operations, and finds what catches them."""

from __future__ import annotations

import ast
import functools
import linecache
import traceback
import types

from torch_onnx_compat.backends.caught import value_of
from torch_onnx_compat.backends.checks import Place, kinds_caught
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.stack import frames_of_model


def raises_on_purpose(error: BaseException) -> bool:
    """Whether an error comes from a ``raise`` or ``assert`` of the model's own code."""
    stack = traceback.extract_tb(error.__traceback__)
    if not stack or not is_user_file(stack[-1].filename):
        return False
    return stack[-1].lineno in _raising_lines(stack[-1].filename)


def find_catcher(error: BaseException) -> str:
    """The place of the model's code that would catch an error raised here, and go on; empty if there is none."""
    for frame in frames_of_model():
        if is_user_file(frame.f_code.co_filename):
            place = Place.of(frame)
            if any(_catches(kind, error, frame) for kind in kinds_caught(place)):
                return short(place.filename, place.line)
    return ""


def _catches(kind: ast.expr | None, error: BaseException, frame: types.FrameType) -> bool:
    if kind is None:
        return True
    try:
        return isinstance(error, value_of(kind, {**frame.f_globals, **frame.f_locals}))
    except (LookupError, AttributeError, TypeError):  # a class that only running the code would tell
        return True


@functools.lru_cache(maxsize=64)
def _raising_lines(filename: str) -> frozenset[int]:
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return frozenset()
    raising = (node for node in ast.walk(tree) if isinstance(node, (ast.Raise, ast.Assert)))
    return frozenset(line for node in raising for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))
