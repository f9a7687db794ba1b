"""Finds the functions that may see a tensor in a number's place: all that run after the first such tensor was made."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch_onnx_compat.places import is_user_file


class NumberUsers:
    """The codes of the model that run, or are returned to, once a tensor stands for a number.

    An argument is one way of several for a number to reach a function: attributes, closures and results are others.
    So every function counts, whatever it is given.
    """

    def __init__(self) -> None:
        self.codes: dict[types.CodeType, None] = {}
        self._is_allowed = self._is_watching = False
        self._before: Any = None

    @contextmanager
    def watch(self) -> Iterator[None]:
        """While active, `begin` has an effect; afterwards the thread's profile function is the caller's again."""
        self._is_allowed = True
        try:
            yield
        finally:
            self._is_allowed = False
            if self._is_watching:
                sys.setprofile(self._before)
                self._is_watching = False

    def begin(self) -> None:
        """Notes functions from here on. A trace without numbers pays nothing."""
        if self._is_allowed and not self._is_watching:
            self._before = sys.getprofile()
            self._is_watching = True
            sys.setprofile(self._note)

    def _note(self, frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call":
            self._add(frame)
        elif event == "return" and is_user_file(frame.f_code.co_filename):
            below = frame.f_back
            while below is not None and not self._add(below):
                below = below.f_back

    def _add(self, frame: types.FrameType) -> bool:
        code = frame.f_code
        is_users = code in self.codes or is_user_file(code.co_filename)
        if is_users:
            self.codes[code] = None
        return is_users
