"""Small models on which a plain conversion to float16 goes wrong, or nearly does, for one reason each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Trap:
    """A model, its example, and which of its axes vary.

    Attributes:
        name: What is hard about it.
        forward: The model.
        args: Makes the example from a seed.
        dynamic: Dynamic axes, as export_compat takes them.
    """

    name: str
    forward: Callable[..., Any]
    args: Callable[[int], tuple[Tensor, ...]]
    dynamic: Any = "batch"
    options: dict[str, Any] = field(default_factory=dict)

    def model(self) -> nn.Module:
        """The model, its weights always the same."""
        torch.manual_seed(0)
        made = self.forward() if isinstance(self.forward, type) else _Of(self.forward)
        return made.eval()


class _Of(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: Tensor) -> Any:
        return self._function(*args)


def normal(*shape: int, scale: float = 1.0, offset: float = 0.0) -> Callable[[int], tuple[Tensor, ...]]:
    """One input of a normal distribution."""

    def make(seed: int) -> tuple[Tensor, ...]:
        return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale + offset,)

    return make


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Callable[[int], tuple[Tensor, ...]]:
    """One input of a uniform distribution."""

    def make(seed: int) -> tuple[Tensor, ...]:
        return (torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * (high - low) + low,)

    return make


def whole(*shape: int, high: int) -> Callable[[int], tuple[Tensor, ...]]:
    """One input of whole numbers."""

    def make(seed: int) -> tuple[Tensor, ...]:
        return (torch.randint(high, shape, generator=torch.Generator().manual_seed(seed)),)

    return make


def both(*makers: Callable[[int], tuple[Tensor, ...]]) -> Callable[[int], tuple[Tensor, ...]]:
    """Several inputs."""
    return lambda seed: tuple(make(seed * 7 + i)[0] for i, make in enumerate(makers))


class T5FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wi, self.wo = nn.Linear(32, 64, bias=False), nn.Linear(64, 32, bias=False)
        self.wi.weight.data *= 30
        self.wo.weight.data *= 30

    def forward(self, x: Tensor) -> Tensor:
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x + self.wo(F.relu(self.wi(y)))


class Attention(nn.Module):
    """Attention whose logits are large."""

    scale = 60.0

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        logits = self.q(x * self.scale) @ self.k(x * self.scale).transpose(-1, -2)
        return torch.softmax(logits / 4, -1) @ self.v(x)


class MaskedAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        bias = (1.0 - mask[:, None, :].float()) * torch.finfo(torch.float32).min
        logits = self.q(x) @ self.k(x).transpose(-1, -2) / 4 + bias
        return torch.softmax(logits, -1) @ self.v(x)


class TimeEmbedding(nn.Module):
    """The sinusoids of a diffusion model's time step, and the network after them."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 16))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        frequencies = torch.exp(-math.log(10000) * torch.arange(16, dtype=torch.float32) / 16)
        angles = t[:, None].float() * frequencies
        return x + self.net(torch.cat([angles.sin(), angles.cos()], -1))


class Rotary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(16, 16)
        self.register_buffer("frequencies", 1.0 / 10000 ** (torch.arange(0, 16, 2).float() / 16))

    def forward(self, x: Tensor) -> Tensor:
        q = self.q(x)
        angles = torch.arange(x.shape[1], device=x.device).float()[:, None] * self.frequencies
        a, b = q[..., ::2], q[..., 1::2]
        return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)


class Residual(nn.Module):
    """A residual stream that grows."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(6))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x * 4 + layer(x)
        return F.layer_norm(x, (16,))


class Steps(nn.Module):
    """A loop in the file that adds up many small steps."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for _ in range(int(x.shape[0])):
            y = y + 0.001 * torch.tanh(self.step(y))
        return y


class Branch(nn.Module):
    """A branch that overflows on one side only."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x)
        if x.mean() > 0:  # noqa: SIM108
            y = (y * 1000).pow(2).sum(-1, keepdim=True).sqrt() / 1000
        else:
            y = y.abs().sum(-1, keepdim=True)
        return y


class Quiet(nn.Module):
    """A network whose activations become tiny, and are brought back by a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(16, 16), nn.Linear(16, 16), nn.LayerNorm(16, eps=1e-20)
        self.a.weight.data *= 1e-4
        self.a.bias.data *= 1e-4
        self.b.weight.data *= 1e-3
        self.b.bias.data.zero_()

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.b(self.a(x)))


class BatchNormTiny(nn.Module):
    """A batch normalisation with variances that float16 does not hold."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, eps=1e-12)
        self.norm.running_var.fill_(1e-9)
        self.norm.running_mean.normal_(0, 1e-5)
        self.conv.weight.data *= 1e-4
        self.conv.bias.data *= 1e-4

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class Shared(nn.Module):
    """One weight that is read where it may be narrow and where it may not."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 16))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight) + torch.sin(x @ (self.weight * 3000))


class Embedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5000, 16)

    def forward(self, ids: Tensor) -> Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device)
        return self.table(ids) + torch.sin(positions.float()[:, None] * 1.7)


class Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 16, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.gru(x)[0]


class Boxes(nn.Module):
    """A detector's head: cells and sizes to boxes in a picture of 4,000 pixels, scores beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Conv2d(3, 5, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x)
        h, w = x.shape[-2:]
        rows, columns = torch.meshgrid(torch.arange(h).float(), torch.arange(w).float(), indexing="ij")
        center = torch.stack([columns, rows]) * 125 + y[:, :2].sigmoid() * 125
        boxes = torch.cat([center, y[:, 2:4].exp() * 60], 1)
        return torch.cat([boxes, y[:, 4:].sigmoid()], 1).flatten(2)


def _masked_fill(x: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(x.masked_fill(mask[:, None] == 0, torch.finfo(torch.float32).min), -1)


def _kalman(x: Tensor) -> Tensor:
    p = x.pow(2) + 1e-7
    return p / (p + 1e-8)


def _indices(x: Tensor) -> Tensor:
    table = torch.arange(8192, dtype=torch.float32).sin()
    return table[(x * 8191).floor().long()]


def _phase(x: Tensor) -> Tensor:
    return torch.sin(2 * math.pi * torch.cumsum(x, 1))


FROM_RESEARCH = (
    Trap("sine of positions to 4096", lambda x: x * torch.sin(torch.cumsum(torch.ones_like(x), 1)), normal(2, 4096)),
    Trap("sum over 512 x 512, then a division", lambda x: (x * x).sum((1, 2)) / 262144, normal(2, 512, 512, scale=3)),
    Trap("phase by a cumulative sum", _phase, uniform(2, 2000, low=0.01, high=0.1)),
    Trap("small denominators", lambda x: x / (x * x * 1e-6 + 1e-10), normal(4, 64)),
    Trap(
        "RMS norm of +-400", lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6), normal(3, 64, scale=400)
    ),
    Trap("layer norm with eps 1e-12", lambda x: F.layer_norm(x, (64,), eps=1e-12), normal(3, 64, scale=1e-4)),
    Trap("a mask of finfo.min", MaskedAttention, both(normal(2, 9, 16), whole(2, 9, high=2))),
    Trap("L2 norm of +-100", lambda x: F.normalize(x, dim=-1), normal(3, 512, scale=100)),
    Trap("pixels squared", lambda x: x.pow(2).mean((2, 3)).sqrt(), uniform(2, 3, 32, 32, high=255)),
    Trap("boxes to 4000", Boxes, normal(2, 3, 32, 32)),
    Trap("T5's feed-forward", T5FeedForward, normal(2, 7, 32, scale=20)),
    Trap("indices through float", _indices, uniform(4, 100)),
)
"""The twelve of the research before this."""

OWN = (
    Trap("logits of 1e4", lambda x: torch.softmax(x, -1), normal(3, 50, scale=1e4)),
    Trap("attention with large logits", Attention, normal(2, 6, 16)),
    Trap("softmax over 10,000", lambda x: torch.softmax(x, -1), normal(2, 10000)),
    Trap("log of a softmax's own values", lambda x: torch.log(torch.softmax(x, -1)), normal(3, 40, scale=6)),
    Trap(
        "variance of a constant",
        lambda x: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt(),
        normal(3, 32, scale=1e-3, offset=5),
    ),
    Trap("standardising far from zero", lambda x: F.layer_norm(x, (64,)), normal(3, 64, scale=0.02, offset=300)),
    Trap("masked fill of finfo.min", _masked_fill, both(normal(2, 5, 7), whole(2, 7, high=2))),
    Trap("log-sum-exp by hand", lambda x: torch.log(torch.exp(x).sum(-1)), normal(3, 100, scale=5)),
    Trap("softplus by hand", lambda x: torch.log1p(torch.exp(x)), normal(3, 100, scale=6)),
    Trap("a time step's sinusoids", TimeEmbedding, both(normal(3, 16), whole(3, high=1000))),
    Trap("rotary positions", Rotary, normal(2, 600, 16), {"x": {0: "batch", 1: "length"}}),
    Trap("a residual stream that grows", Residual, normal(4, 16)),
    Trap("a loop of small steps", Steps, normal(40, 4)),
    Trap("a branch that overflows", Branch, normal(5, 8, offset=0.5)),
    Trap("activations that vanish", Quiet, normal(4, 16)),
    Trap("tiny variances of a batch norm", BatchNormTiny, normal(2, 3, 8, 8)),
    Trap("a shared weight", Shared, normal(4, 16)),
    Trap("an embedding with positions", Embedding, whole(2, 700, high=5000), {"ids": {0: "batch", 1: "length"}}),
    Trap("a GRU", Gru, normal(2, 50, 8)),
    Trap("difference of near equals", lambda x: (x + 1000) - 1000 + x.mean(), normal(3, 50)),
    Trap("expm1 by hand", lambda x: torch.exp(x) - 1, normal(3, 50, scale=1e-4)),
    Trap("cosine similarity of near equals", lambda x: 1 - F.cosine_similarity(x, x + 0.01, dim=-1), normal(4, 64)),
    Trap(
        "pairwise distances by the binomial",
        lambda x: (x.pow(2).sum(-1)[:, None] + x.pow(2).sum(-1) - 2 * x @ x.T).clamp(min=0),
        normal(6, 16, offset=30),
    ),
    Trap("torch.cdist", lambda x: torch.cdist(x, x + 0.5), normal(2, 9, 8, offset=20)),
    Trap("a high power", lambda x: x.pow(8), uniform(3, 40, low=0.5, high=6)),
    Trap("a reciprocal of tiny numbers", lambda x: 1 / (x + 1e-7), uniform(3, 40, low=0, high=1e-4)),
    Trap("a polynomial at 30", lambda x: ((x - 3) * x + 2) * x * x - 5 * x, uniform(3, 40, low=20, high=40)),
    Trap("a product over an axis", lambda x: torch.prod(x, -1), uniform(3, 20, low=1, high=3)),
    Trap("a cumulative product", lambda x: torch.cumprod(x, -1), uniform(3, 200, low=0.97, high=1.03)),
    Trap("a cumulative sum of ones", lambda x: torch.cumsum(torch.ones_like(x), -1) / x.shape[-1], normal(2, 5000)),
    Trap("a mean over 90,000", lambda x: x.mean((1, 2)), uniform(2, 300, 300, high=50)),
    Trap("a variance over 90,000", lambda x: x.var((1, 2)), uniform(2, 300, 300, high=50)),
    Trap("a global average of large values", lambda x: F.adaptive_avg_pool2d(x, 1), uniform(2, 4, 64, 64, high=200)),
    Trap("instance norm of pixels", lambda x: F.instance_norm(x), uniform(2, 3, 32, 32, high=255)),
    Trap("group norm of large values", lambda x: F.group_norm(x, 2), normal(2, 8, 16, 16, scale=900)),
    Trap(
        "pixels normalised by their own range",
        lambda x: (x - x.amin((2, 3), True)) / (x.amax((2, 3), True) - x.amin((2, 3), True)),
        uniform(2, 3, 16, 16, low=2000, high=2010),
    ),
    Trap(
        "degrees to radians of large angles",
        lambda x: torch.cos(x * math.pi / 180),
        uniform(3, 50, low=-7200, high=7200),
    ),
    Trap("atan2 of tiny numbers", lambda x: torch.atan2(x * 1e-6, x.flip(-1) * 1e-6), normal(3, 50)),
    Trap("a hypotenuse", lambda x: (x.pow(2) + x.flip(-1).pow(2)).sqrt(), normal(3, 50, scale=500)),
    Trap(
        "milliseconds since an epoch",
        lambda t, x: x * ((t.float() / 1000) % 60),
        both(whole(4, 8, high=10**7), normal(4, 8)),
    ),
    Trap("buckets of a histogram", lambda x: (x * 100).long().clamp(0, 4999).float() / 5000, uniform(3, 60, high=50)),
    Trap(
        "grid sampling by pixel coordinates",
        lambda x: F.grid_sample(
            x,
            F.affine_grid(torch.eye(2, 3).expand(x.shape[0], 2, 3), [x.shape[0], 3, 24, 24], align_corners=False),
            align_corners=False,
        ),
        normal(2, 3, 200, 200),
        {},
    ),
    Trap(
        "resizing by a size in the graph",
        lambda x: F.interpolate(x, size=(x.shape[2] * 2 + 1, 33), mode="bilinear"),
        normal(2, 3, 21, 17),
        {"args_0": {0: "batch", 2: "height"}},
    ),
    Trap(
        "an inverse of a covariance",
        lambda x: torch.linalg.solve(x.mT @ x + 1e-3 * torch.eye(4), x.mT @ x[..., :1]),
        normal(2, 20, 4),
    ),
    Trap(
        "entropy of sure predictions",
        lambda x: -(torch.softmax(x, -1) * torch.log_softmax(x, -1)).sum(-1),
        normal(4, 30, scale=8),
    ),
    Trap("focal loss weights", lambda x: (1 - torch.sigmoid(x)).pow(2) * F.logsigmoid(x), normal(4, 30, scale=6)),
    Trap(
        "a Gaussian far from its centre",
        lambda x: torch.exp(-0.5 * (x / 0.1).pow(2)) / (0.1 * math.sqrt(2 * math.pi)),
        normal(4, 30, scale=0.3),
    ),
    Trap("a gain ratio of small variances", _kalman, normal(4, 30, scale=1e-4)),
    Trap("huge values behind a clamp", lambda x: torch.exp(x).clamp(max=1e5) / 1e5, normal(4, 30, scale=8)),
    Trap("huge values behind a where", lambda x: torch.where(x > 0, torch.log1p(x * 1e6), x), normal(4, 30)),
    Trap("a threshold", lambda x: torch.where(x * 3 > 1, x * 2, -x), normal(4, 30)),
    Trap("the largest of near equals", lambda x: (x * 1e-3 + 7).max(-1).values - 7, normal(4, 30)),
    Trap("an exponential moving average", lambda x: x[:, 0] * 0.999 + x[:, 1] * 0.001 - x[:, 0], normal(4, 2, 30)),
)
"""Those that this project adds."""

TRAPS = (*FROM_RESEARCH, *OWN)
