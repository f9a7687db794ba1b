"""Distinguishes errors that the model raises itself from errors of operations."""

from __future__ import annotations

import ast
import functools
import linecache
import traceback

from torch_onnx_compat.places import is_user_file


def raises_on_purpose(error: BaseException) -> bool:
    """Whether an error comes from a ``raise`` or ``assert`` of the model's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not is_user_file(frames[-1].filename):
        return False
    return frames[-1].lineno in _raising_lines(frames[-1].filename)


@functools.lru_cache(maxsize=64)
def _raising_lines(filename: str) -> frozenset[int]:
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return frozenset()
    raising = (node for node in ast.walk(tree) if isinstance(node, (ast.Raise, ast.Assert)))
    return frozenset(line for node in raising for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))
