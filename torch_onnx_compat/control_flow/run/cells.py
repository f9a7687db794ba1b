"""Recurrent cells in other operations, for the bodies of loops and branches that are traced for themselves.

Inside these torch's TorchScript exporter does not know the shapes that it needs to write the cells' chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_onnx_compat.tracing import without_tracing
from torch_onnx_compat.watch import Watcher


class CellWriter(Watcher):
    """Computes torch's recurrent cells by products and slices."""

    def concerns(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call is one of a cell."""
        return func in _CELLS

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Computes a cell."""
        return _CELLS[func](*args, **kwargs)


def _gates(x: Tensor, weight: Tensor, bias: Tensor | None, count: int) -> list[Tensor]:
    """``x @ weight.T + bias`` in equal parts along the last axis."""
    with without_tracing():
        size = int(weight.shape[0]) // count
    found = functional.linear(x, weight, bias)
    return [found[..., number * size : (number + 1) * size] for number in range(count)]


def _gru_cell(
    x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Cho et al. 2014, with the reset gate behind the product as torch has it."""
    reset, update, new = _gates(x, w_ih, b_ih, 3)
    reset_h, update_h, new_h = _gates(h, w_hh, b_hh, 3)
    reset, update = torch.sigmoid(reset + reset_h), torch.sigmoid(update + update_h)
    new = torch.tanh(new + reset * new_h)
    return (h - new) * update + new


def _lstm_cell(
    x: Tensor, state: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Hochreiter and Schmidhuber 1997, with a forget gate."""
    h, c = state
    own, others = _gates(x, w_ih, b_ih, 4), _gates(h, w_hh, b_hh, 4)
    into, forget, cell, out = (a + b for a, b in zip(own, others, strict=True))
    c = torch.sigmoid(forget) * c + torch.sigmoid(into) * torch.tanh(cell)
    return torch.sigmoid(out) * torch.tanh(c), c


_CELLS: dict[Any, Callable[..., Any]] = {torch.gru_cell: _gru_cell, torch.lstm_cell: _lstm_cell}
