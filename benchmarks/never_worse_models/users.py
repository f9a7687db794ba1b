"""What first users and their complaints brought: dynamic pictures, masks, greedy loops."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from never_worse_models.table import HW, PICTURE, B, X, Y, add, rand


class DynamicViT(nn.Module):
    """Resamples its position embedding if the grid is another one."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.pos = nn.Conv2d(3, 8, 4, 4), nn.Parameter(rand(1, 16, 8))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[2] % 4 != 0:
            raise ValueError(f"height {x.shape[2]} must be a multiple of 4")
        y = self.patch(x)
        h, w = y.shape[2:]
        pos = self.pos
        if h * w != 16 or h != w:
            grid = pos.reshape(1, 4, 4, 8).permute(0, 3, 1, 2)
            grid = F.interpolate(grid, size=(h, w), mode="bicubic", antialias=False)
            pos = grid.permute(0, 2, 3, 1).reshape(1, -1, 8)
        return y.flatten(2).transpose(1, 2) + pos


add("dynamic_vit", DynamicViT(), (PICTURE,), HW, [(rand(2, 3, 24, 20),)])
add("amax", lambda x: (x.amax(1), x.prod(1), x.logsumexp(1), x.max(1)[0]), (X,), B, [(Y,)])


def _masks(ids: Tensor, mask: Tensor) -> Tensor:
    n = ids.shape[1]
    causal = torch.arange(n)[None, :] <= torch.arange(n)[:, None]
    whole = causal[None] & mask[:, None, :].bool()
    return torch.where(whole, 0.0, -1e9).softmax(-1) * ids[:, None].float()


_I = torch.arange(12).reshape(2, 6)
add(
    "attention_mask",
    _masks,
    (_I, torch.ones(2, 6, dtype=torch.long)),
    {0: {0: "b", 1: "t"}, 1: {0: "b", 1: "t"}},
    [(torch.arange(24).reshape(3, 8), torch.ones(3, 8, dtype=torch.long))],
)


def _canine(x: Tensor) -> Tensor:
    chunks = []
    for start in range(0, x.shape[1], 4):
        part = x[:, start : start + 4]
        chunks.append(part.softmax(1))
    return torch.cat(chunks, 1)


add("chunks_of_length", _canine, (rand(2, 8, 3),), {0: {1: "t"}}, [(rand(2, 12, 3),), (rand(2, 9, 3),)])


class Greedy(nn.Module):
    """Greedy decoding that stops early, with a cat that grows."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.fc = nn.Embedding(8, 6), nn.Linear(6, 8)

    def forward(self, ids: Tensor) -> Tensor:
        for _ in range(5):
            token = self.fc(self.embedding(ids).mean(1)).argmax(-1, keepdim=True)
            ids = torch.cat([ids, token], 1)
            if bool((token == 3).all()):
                break
        return ids


class StopEarly(nn.Module):
    """A bounded loop that appends until all rows are done."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.fc, self.embedding = nn.GRUCell(6, 6), nn.Linear(6, 8), nn.Embedding(8, 6)

    def forward(self, h: Tensor) -> Tensor:
        token = torch.zeros(h.shape[0], dtype=torch.long)
        done = torch.zeros(h.shape[0], dtype=torch.bool)
        outs: list[Tensor] = []
        i = 0
        while i < 6 and not bool(done.all()):
            h = self.cell(self.embedding(token), h)
            token = self.fc(h).argmax(-1)
            done = done | (token == 3)
            outs.append(token)
            i += 1
        return torch.stack(outs, 1)


_IDS = torch.tensor([[1, 2, 4], [5, 6, 7]])
add("greedy_cat", Greedy(), (_IDS,), B, [(_IDS[:1],), (_IDS.flip(0, 1),), (torch.tensor([[0, 5, 5]]),)])
add("stop_early", StopEarly(), (rand(2, 6),), B, [(rand(1, 6, seed=s),) for s in range(4)])


class ScaleByLargest(nn.Module):
    """A decision on values that every input here answers alike."""

    def forward(self, x: Tensor) -> Tensor:
        return x / 100 if x.abs().max() > 100 else x


add("scale_by_largest", ScaleByLargest(), (X,), B, [(Y,), (Y * 1000,)])


class ReturnsLess(nn.Module):
    """Returns less while it is exported."""

    def forward(self, x: Tensor) -> Any:
        return x * 2 if torch.jit.is_tracing() or torch.onnx.is_in_onnx_export() else (x * 2, x)


add("returns_less", ReturnsLess(), (X,), B, [])
add("list_of_rows", lambda x: torch.stack([row * i for i, row in enumerate(x)]), (X,), B, [(Y,)])
add("max_by_key", lambda a, b: max(a, b, key=lambda t: float(t.abs().sum())), (X, X * 2), None, [(X * 2, X)])
