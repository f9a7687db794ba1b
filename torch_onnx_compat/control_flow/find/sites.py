"""Finds the statements whose decisions a trace would freeze, and the functions that contain them."""

from __future__ import annotations

import traceback
import types
from collections.abc import Iterable
from dataclasses import dataclass

from torch_onnx_compat.backends.decisions import ITERATION, DecisionLog
from torch_onnx_compat.control_flow.find.source import lexical_chain
from torch_onnx_compat.garbage import referrers
from torch_onnx_compat.places import is_user_file, short
from torch_onnx_compat.stack import frames


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

    def note_refused(self, error: Exception) -> None:
        """Notes the statement in which torch's parser refused what a trace has for a bool: it asks the tensor nothing.

        ``scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1)``.
        """
        if not isinstance(error, TypeError) or "must be bool, not Tensor" not in str(error):
            return
        passed = traceback.walk_tb(error.__traceback__)
        for frame, line in [(f, line) for f, line in passed if is_user_file(f.f_code.co_filename)][-1:]:
            codes = tuple(f.f_code for f in lexical_chain(frame))
            self.events.append(Event(frame.f_code.co_filename, line, "bool()", True, (), codes))

    def _unpack(self, size: int, pieces: int, from_data: bool) -> None:
        """Notes the size, as the number of pieces may be the same at the sizes that are tried."""
        self._add(ITERATION, from_data, (size,))

    def _add(self, conversion: str, from_data: bool, sizes: tuple[int, ...], *, is_taken: bool = False) -> None:
        super()._add(conversion, from_data, sizes, is_taken=is_taken)
        frame = _frame_of_decision()
        if frame is not None:
            codes = tuple(f.f_code for f in lexical_chain(frame))
            self.events.append(Event(frame.f_code.co_filename, frame.f_lineno, conversion, from_data, sizes, codes))


def _frame_of_decision() -> types.FrameType | None:
    """The innermost frame of the model's own code: torch's Python functions may convert the tensors they are given."""
    return next((frame for frame in frames() if is_user_file(frame.f_code.co_filename)), None)


AT_ONCE = 64
"""Codes for which all objects are looked at together."""


def functions_of(codes: Iterable[types.CodeType]) -> dict[types.CodeType, list[types.FunctionType]]:
    """The function objects that run each code; none for a function that was created by a call and is gone."""
    found: dict[types.CodeType, list[types.FunctionType]] = {code: [] for code in codes}
    by_id = {id(code): functions for code, functions in found.items()}
    known = list(found)
    # One pass over all objects for some codes: each object is compared with each of them, in C.
    for some in (known[start : start + AT_ONCE] for start in range(0, len(known), AT_ONCE)):
        for candidate in referrers(some):
            if type(candidate) is types.FunctionType and id(candidate.__code__) in by_id:
                by_id[id(candidate.__code__)].append(candidate)
    return found
