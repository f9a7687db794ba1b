"""Finds the call of the function that takes a decision, where what the function returns has two kinds."""

from __future__ import annotations

import re
import types
from dataclasses import dataclass, field
from itertools import islice

from torch_onnx_compat.control_flow.find.source import lexical_chain
from torch_onnx_compat.control_flow.lower.effects import GENERATED
from torch_onnx_compat.places import is_user_file
from torch_onnx_compat.stack import frames_of_model


@dataclass(frozen=True)
class CallSite:
    """A call in the model's code, or what makes a call: an attribute that is a property."""

    filename: str
    line: int
    span: tuple[int, int, int, int] | None
    """Line and column at which the call begins, and those at which it ends; None where Python does not tell (3.10)."""
    codes: tuple[types.CodeType, ...] = field(default=(), compare=False)
    """The code that makes the call, then the code of the functions that enclose it."""


_MADE = re.compile(rf"({'|'.join(GENERATED)})\d+(_\d+)?")
"""The names of functions that the lowering generates."""


_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


def find_call_site() -> CallSite | None:
    """The call of the model's function that takes the present decision; None if no code of the model makes it."""
    inside = True
    for frame in (f for f in frames_of_model() if is_user_file(f.f_code.co_filename)):
        if inside:
            inside = _MADE.fullmatch(frame.f_code.co_name) is not None
            continue
        if frame.f_code.co_name in _COMPREHENSIONS:
            return None
        codes = tuple(f.f_code for f in lexical_chain(frame))
        return CallSite(frame.f_code.co_filename, frame.f_lineno, _span_of_call(frame), codes)
    return None


def _span_of_call(frame: types.FrameType) -> tuple[int, int, int, int] | None:
    if not hasattr(frame.f_code, "co_positions"):
        return None
    line, end_line, column, end_column = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    if line is None or column is None or end_line is None or end_column is None:
        return None
    return line, column, end_line, end_column
