"""Finds the statements whose decisions a trace would freeze, and the functions that hold them."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from torch_onnx_compat.backends.decisions import DecisionLog
from torch_onnx_compat.control_flow.source import lexical_chain
from torch_onnx_compat.places import is_user_file, short


@dataclass(frozen=True)
class Event:
    """One decision of one run: where it was taken, on what."""

    filename: str
    line: int
    conversion: str
    from_data: bool
    sizes: tuple[int, ...]
    codes: tuple[types.CodeType, ...]
    """The code that was running, then the code it is written inside of."""

    @property
    def place(self) -> str:
        """``models/net.py:41``."""
        return short(self.filename, self.line)


class SiteLog(DecisionLog):
    """A decision log that also keeps the code which took each decision.

    Args:
        inputs: How many of the trace's inputs are the model's.
    """

    def __init__(self, inputs: int) -> None:
        super().__init__(inputs)
        self.events: list[Event] = []

    def _add(self, conversion: str, from_data: bool, sizes: tuple[int, ...]) -> None:
        super()._add(conversion, from_data, sizes)
        frame = _converting_frame()
        if frame is not None:
            codes = tuple(f.f_code for f in lexical_chain(frame))
            self.events.append(Event(frame.f_code.co_filename, frame.f_lineno, conversion, from_data, sizes, codes))


_OURS = ("torch_onnx_compat.control_flow", "torch_onnx_compat.backends.decisions", "torch_onnx_compat.watch")


def _converting_frame() -> types.FrameType | None:
    """The frame that converts, if it is the model's own: torch's own code is not rewritten."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_OURS):
        frame = frame.f_back
    return frame if frame is not None and is_user_file(frame.f_code.co_filename) else None


@dataclass
class Sites:
    """Lines with decisions, by file, and the outermost code around each."""

    lines: dict[str, set[int]] = field(default_factory=dict)
    codes: dict[types.CodeType, None] = field(default_factory=dict)

    def add(self, event: Event) -> bool:
        """Takes an event's line and code up; whether it is new."""
        lines = self.lines.setdefault(event.filename, set())
        new = event.line not in lines or any(c not in self.codes for c in event.codes)
        lines.add(event.line)
        self.codes.update(dict.fromkeys(event.codes))
        return new

    def __bool__(self) -> bool:
        return bool(self.codes)


def functions_of(codes: Iterable[types.CodeType]) -> dict[types.CodeType, list[types.FunctionType]]:
    """The living functions that run each code; empty for functions that a call made and left behind."""
    wanted = list(codes)
    found: dict[types.CodeType, list[types.FunctionType]] = {code: [] for code in wanted}
    by_id = {id(code): code for code in wanted}
    for holder in gc.get_referrers(*wanted) if wanted else ():
        if isinstance(holder, types.FunctionType) and id(holder.__code__) in by_id:
            found[by_id[id(holder.__code__)]].append(holder)
    return found
