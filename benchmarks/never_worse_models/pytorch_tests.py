"""What PyTorch's own tests export: higher-order operators, axes, names, draws, numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from never_worse_models.table import B, X, Y, add, rand


class Cond(nn.Module):
    """torch.cond on values."""

    def forward(self, x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x + 1.0, lambda x: x - 42.0, [x])


add("cond", Cond(), (rand(3),), None, [(rand(3).abs(),), (-rand(3).abs(),)])


class CondOfLayers(nn.Module):
    """torch.cond between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: self.one(x), lambda x: self.two(x), [x])


add("cond_of_layers", CondOfLayers(), (X,), None, [(X.abs(),), (-X.abs(),)])
add("cat_of_lists", lambda x, y: torch.cat([x, y], 1), (X, rand(3, 5)), {0: {0: "bx"}, 1: {0: "by"}}, [(Y, rand(5, 5))])
add("linear_all_axes", nn.Linear(4, 2), (X,), {0: {0: "b", 1: "c"}}, [(Y,)])
add("lstm", nn.LSTM(4, 5), (rand(6, 3, 4), (rand(1, 3, 5), rand(1, 3, 5))), {0: {1: "b"}}, [])
add("view_of_fixed", lambda x: x.view(12, -1), (X,), {0: {0: "b", 1: "c"}}, [])


class Flag(nn.Module):
    """Asks whether it is exported."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sin() * 0 + x if torch.onnx.is_in_onnx_export() else x


add("export_flag", Flag(), (X,), B, [(Y,)])


# Draws, numbers

add("topk", lambda x: torch.topk(x, 3), (rand(3, 8),), B, [(rand(5, 8),)])
add("topk_indices", lambda x: x.flatten(1).topk(2).indices, (rand(3, 8),), B, [(rand(5, 8),)])
add("sort", lambda x: torch.sort(x, 1), (rand(3, 8),), B, [(rand(5, 8),)])
add("bucketize", torch.bucketize, (X, torch.arange(-2.0, 2.0)), B, [(Y, torch.arange(-2.0, 2.0))])
add("number_argument", lambda x, k: x * k + 1, (X, 3), B, [(Y, 3)])
add("float_argument", lambda x, k: x * k + 1, (X, 2.5), B, [(Y, 2.5)])
add("bool_argument", lambda x, k: x * 2 if k else x, (X, True), B, [(Y, True)])
add("number_result", lambda x: (x + 1, x.size(1)), (X,), B, [(Y,)])
add("size_result", lambda x: (x + 1, x.size(0)), (X,), B, [(Y,)])
add("none_result", lambda x: (x + 1, None), (X,), B, [(Y,)])
