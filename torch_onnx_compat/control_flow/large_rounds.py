"""Rounds of a loop that no input at hand has: they are searched for decisions, and must not fill the memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.backend import ExportFailed
from torch_onnx_compat.control_flow.run.session import Session
from torch_onnx_compat.tracing import below_function_modes, without_tracing
from torch_onnx_compat.watch import Watcher

LARGEST_GROWTH = 256
"""How much larger than all before them the tensors may be that rounds make which no inputs here have."""

LEAST = 2**22
"""Elements that they may have in any case."""


class LargeRounds(Watcher):
    """Ends the search at a loop whose unrolled rounds grow without end: each doubles a length, say.

    Args:
        session: Of the run.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._largest = LEAST // LARGEST_GROWTH

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a loop is being unrolled."""
        return bool(self._session.open_loops)

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Makes the call, and looks at the size of what it has made.

        Raises:
            ExportFailed: It is too large for a round that only other inputs may have.
        """
        result = self.pass_on(func, args, kwargs)
        if isinstance(result, Tensor) and result.layout is torch.strided:
            with without_tracing(), below_function_modes():
                count = int(result.numel())
            if any(loop.is_over for loop in self._session.open_loops):
                if count > LARGEST_GROWTH * self._largest:
                    raise ExportFailed("the rounds of a loop make larger and larger tensors")
            else:
                self._largest = max(self._largest, count)
        return result
