"""Regions of pictures that are not there: torch's kernels look for them in memory beyond the batch, and say nothing."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch_onnx_compat.backends.internals.modes import DispatchMode

_OPERATORS = frozenset({"roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"})
"""Operators of torchvision that take regions as rows of a picture's number and four coordinates."""


class RegionReads:
    """Looks on where a model reads regions, in the runs of one model.

    The first run tells whether it does; if not, the others need no mode.
    """

    def __init__(self) -> None:
        self._mode = _Refusal()
        self._is_known = False

    def refuse(self) -> AbstractContextManager[Any]:
        """While active, a region of a picture that the batch does not have is an IndexError."""
        if "torchvision" not in sys.modules or (self._is_known and not self._mode.has_seen):
            return nullcontext()
        self._is_known = True
        return self._mode


class _Refusal(DispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self.has_seen = False

    def control(self, func: Any, args: Any, kwargs: Any) -> Any:
        return func(*args, **kwargs)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "torchvision" and func._opname in _OPERATORS:
            self.has_seen = True
            pictures, regions = args[:2]
            numbers = regions[:, 0]
            inside = (numbers >= 0) & (numbers < pictures.shape[0])
            if not bool(inside.all()):
                number = numbers[~inside][0].item()
                raise IndexError(f"{func._opname}: a region of picture {number:g}, and there are {pictures.shape[0]}")
        return func(*args, **(kwargs or {}))
