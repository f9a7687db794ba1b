"""Distinguishes errors that the model raises itself from errors of operations, and finds what catches them."""

from __future__ import annotations

import ast
import functools
import linecache
import traceback

from torch_onnx_compat.backends.checks import Place, is_caught
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.stack import frames_of_model


def raises_on_purpose(error: BaseException) -> bool:
    """Whether an error comes from a ``raise`` or ``assert`` of the model's own code."""
    stack = traceback.extract_tb(error.__traceback__)
    if not stack or not is_user_file(stack[-1].filename):
        return False
    return stack[-1].lineno in _raising_lines(stack[-1].filename)


def find_catcher() -> str:
    """The place of the model's code that would catch an error raised here, and go on; empty if there is none."""
    places = (Place.of(frame) for frame in frames_of_model() if is_user_file(frame.f_code.co_filename))
    return next((short(place.filename, place.line) for place in places if is_caught(place)), "")


@functools.lru_cache(maxsize=64)
def _raising_lines(filename: str) -> frozenset[int]:
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return frozenset()
    raising = (node for node in ast.walk(tree) if isinstance(node, (ast.Raise, ast.Assert)))
    return frozenset(line for node in raising for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))
