"""What the code of packages does: decisions on shapes, optional values, writes into slices, loops over experts."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from never_worse_models.table import HW, PICTURE, B, X, Y, add, rand


def _optional_size(x: Tensor) -> Tensor:
    size = None
    if x.shape[2] % 4 != 0 or x.shape[3] % 4 != 0:
        size = x.shape[2:]
    y = F.avg_pool2d(x, 2)
    return F.interpolate(y, size=size, mode="nearest") if size is not None else F.interpolate(y, scale_factor=2.0)


def _optional_mask(q: Tensor, k: Tensor) -> Tensor:
    mask = None
    if k.shape[1] > q.shape[1]:
        mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1])
    scores = q @ k.transpose(1, 2)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(-1)


def _padding_mask(x: Tensor) -> Tensor:
    mask = torch.isnan(x)
    padding = mask.any(2) if mask.any() else None
    y = x * 2
    return y if padding is None else y.masked_fill(padding.unsqueeze(2), 0.0)


def _optional_item(q: Tensor, k: Tensor) -> Tensor:
    outs = []
    if q.shape[1] > 0:
        outs.append(q @ q.transpose(1, 2) @ q)
    if k.shape[1] > 0:
        outs.append((k * 2).sum(1, keepdim=True).expand_as(q))
    return torch.stack(outs).sum(0)


add("optional_size", _optional_size, (PICTURE,), HW, [(rand(2, 3, 18, 22),), (rand(1, 3, 20, 24),)])
add(
    "optional_mask",
    _optional_mask,
    (rand(2, 4, 8), rand(2, 6, 8)),
    {0: {1: "q"}, 1: {1: "k"}},
    [(rand(2, 5, 8), rand(2, 5, 8)), (rand(2, 3, 8), rand(2, 7, 8))],
)
add("padding_mask", _padding_mask, (rand(2, 4, 3),), B, [(rand(3, 4, 3),)])
add(
    "optional_item",
    _optional_item,
    (rand(2, 4, 8), rand(2, 6, 8)),
    {0: {1: "q"}, 1: {1: "k"}},
    [(rand(2, 5, 8), rand(2, 5, 8))],
)


class _CumSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        top, _ = torch.sort(x, descending=True, dim=-1)
        return top.cumsum(-1) - 1

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


add("cumsum_in_function", lambda x: _CumSum.apply(x), (X,), B, [(Y,)])


def _pack(x: Tensor) -> Tensor:
    shape = x.shape[1:-1]
    if -1 in shape:
        raise ValueError
    flat = x.reshape(x.shape[0], -1, x.shape[-1])
    return (flat * 2).reshape(x.shape[0], *shape, x.shape[-1])


add("minus_one_in_shape", _pack, (rand(2, 3, 4, 5),), {0: {0: "b", 1: "t"}}, [(rand(3, 5, 4, 5),)])
add(
    "tuple_of_sizes",
    lambda x: x * 2 if x.shape[2:] == (16, 16) else x + 1,
    (PICTURE,),
    HW,
    [(rand(2, 3, 18, 16),), (rand(2, 3, 16, 16),)],
)
add(
    "size_in_tuple",
    lambda x: x * 2 if x.shape[2] in (16, 32) else x + 1,
    (PICTURE,),
    HW,
    [(rand(2, 3, 18, 16),), (rand(2, 3, 32, 16),)],
)


class Table(nn.Module):
    """A position table that is sliced by a size."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(rand(32, 4))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


add("table", Table(), (rand(2, 6, 4),), {0: {0: "b", 1: "t"}}, [(rand(3, 9, 4),), (rand(1, 31, 4),)])
add("linspace", lambda x: torch.linspace(-1, 1, steps=x.shape[1]) + x, (X,), {0: {1: "w"}}, [(rand(3, 7),)])


class Antialias(nn.Module):
    """A kernel that is expanded to the channels."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Parameter(rand(1, 1, 3))

    def forward(self, x: Tensor) -> Tensor:
        return F.conv1d(x, self.kernel.expand(x.shape[1], -1, -1), groups=x.shape[1])


add("expanded_kernel", Antialias(), (rand(2, 3, 9),), {0: {0: "b", 2: "t"}}, [(rand(4, 3, 12),)])


class KeptSize(nn.Module):
    """Keeps its batch size in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.batch_size = 0

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] != self.batch_size:
            self.batch_size = x.shape[0]
        return x * 2


add("kept_size", KeptSize(), (X,), B, [(Y,)])
add(
    "lp_pool_of_map",
    lambda x: F.lp_pool2d(x, 2.0, (x.size(2), x.size(3)), stride=(x.size(2), x.size(3))),
    (rand(2, 3, 5, 5),),
    B,
    [(rand(4, 3, 5, 5),)],
)


def _kalman(x: Tensor) -> Tensor:
    p = torch.eye(2)
    out = []
    for i in range(x.shape[0]):
        p = torch.linalg.inv(p + torch.diag(x[i].abs() + 1))
        out.append(p)
    return torch.stack(out)


add("inverse_in_loop", _kalman, (rand(4, 2),), B, [(rand(6, 2),)])


class MixtureOfExperts(nn.Module):
    """As Mixtral computes its experts."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        flat = x.reshape(-1, d)
        weights, chosen = self.gate(flat).softmax(-1).topk(2)
        out = torch.zeros_like(flat)
        mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        for index, expert in enumerate(self.experts):
            idx, top = torch.where(mask[index])
            if top.shape[0] == 0:
                continue
            current = flat[None, top].reshape(-1, d)
            current = expert(current) * weights[top, idx, None]
            out.index_add_(0, top, current)
        return out.reshape(b, t, d)


add("mixture_of_experts", MixtureOfExperts(), (rand(2, 5, 8),), {0: {0: "b", 1: "t"}}, [(rand(3, 7, 8),)])


def _check_shape(x: Tensor) -> None:
    if x.shape[-1] < 2 or len(x.shape) != 4:
        n = len(x.shape)
        raise TypeError(f"shape must be {'one' if n == 1 else f'of {n} axes'}. Got {x.shape}")


def _checked(x: Tensor) -> Tensor:
    _check_shape(x)
    return F.avg_pool2d(x, 2)


add("message_of_raise", _checked, (PICTURE,), HW, [(rand(2, 3, 18, 22),)])
