"""Finds the statements whose decisions a trace would freeze, and the functions that contain them."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.decisions import DecisionLog
from torch_onnx_compat.control_flow.find.source import lexical_chain
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.stack import frames
from torch_onnx_compat.tracing import is_tracing, without_tracing

_UNPACKING = {Tensor.__iter__: 1, Tensor.unbind: 1, torch.unbind: 1, Tensor.split: 2, torch.split: 2}
"""Functions that split a tensor into a tuple, with the position of the axis among their arguments."""


@dataclass(frozen=True)
class Event:
    """One decision of one run."""

    filename: str
    line: int
    conversion: str
    from_data: bool
    sizes: tuple[int, ...]
    codes: tuple[types.CodeType, ...]
    """The code that took the decision, then the code of the functions that enclose it."""

    @property
    def place(self) -> str:
        """``models/net.py:41``."""
        return short(self.filename, self.line)


class SiteLog(DecisionLog):
    """A decision log that also keeps the code objects that took each decision.

    Args:
        inputs: How many of the trace's inputs are the model's.
    """

    def __init__(self, inputs: int) -> None:
        super().__init__(inputs)
        self.events: list[Event] = []

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call is one that a decision log watches, or splits a tensor into a tuple."""
        return func in _UNPACKING or super().concerns(func, args, kwargs)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Notes the number of parts as a decision: the trace fixes it."""
        if func in _UNPACKING and is_tracing():
            place = _UNPACKING[func]
            tensor, dim = args[0], kwargs.get("dim", args[place] if len(args) > place else 0)
            with without_tracing():
                self._add("iteration", False, (int(tensor.shape[dim]),))
        return super().watch(func, args, kwargs)

    def _add(self, conversion: str, from_data: bool, sizes: tuple[int, ...]) -> None:
        super()._add(conversion, from_data, sizes)
        frame = _frame_of_decision()
        if frame is not None:
            codes = tuple(f.f_code for f in lexical_chain(frame))
            self.events.append(Event(frame.f_code.co_filename, frame.f_lineno, conversion, from_data, sizes, codes))


def _frame_of_decision() -> types.FrameType | None:
    """The innermost frame of the model's own code: torch's Python functions may convert the tensors they are given."""
    return next((frame for frame in frames() if is_user_file(frame.f_code.co_filename)), None)


def functions_of(codes: Iterable[types.CodeType]) -> dict[types.CodeType, list[types.FunctionType]]:
    """The function objects that run each code; none for a function that was created by a call and is gone."""
    found: dict[types.CodeType, list[types.FunctionType]] = {code: [] for code in codes}
    by_id = {id(code): found[code] for code in found}
    # One pass over all objects; gc.get_referrers would compare each object with each code.
    for candidate in gc.get_objects() if found else ():
        if type(candidate) is types.FunctionType and id(candidate.__code__) in by_id:
            by_id[id(candidate.__code__)].append(candidate)
    return found
