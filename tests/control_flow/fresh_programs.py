# ruff: noqa: SIM108, RUF046 - the statements are what is tested
"""Twenty models written as users write them, after the code stood; see docs/decisions for how many passed at once."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from control_flow.programs import SIZES, VALUES, Program

FRESH: dict[str, Program] = {}


def fresh(samples=VALUES, dynamic=None):
    def register(cls):
        torch.manual_seed(0)
        FRESH[cls.__name__] = Program(cls().eval(), samples, dynamic)
        return cls

    return register


@fresh()
class OverflowClamp(nn.Module):
    """The half-precision guard of many encoders, in float32."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, hidden):
        hidden = self.fc(hidden)
        if torch.isinf(hidden).any() or torch.isnan(hidden).any() or hidden.abs().max() > 20:
            clamp_value = 15.0
            hidden = torch.clamp(hidden, min=-clamp_value, max=clamp_value)
        return hidden


@fresh(SIZES, "batch")
class SqueezeSingle(nn.Module):
    """Normalises over the batch unless there is a single sample."""

    def forward(self, x):
        if x.size(0) == 1:
            return x - x.mean()
        mean, std = x.mean(0), x.std(0)
        return (x - mean) / (std + 1e-5)


@fresh()
class AdaptiveThreshold(nn.Module):
    def forward(self, x):
        threshold = x.mean()
        while (x > threshold).sum() > 4 and threshold < 60:
            threshold = threshold + 10
        return (x > threshold).float()


@fresh()
class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 1)
        self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        score = torch.sigmoid(self.gate(x)).mean()
        if score < 0.3:
            out = self.experts[0](x)
        elif score < 0.6:
            out = self.experts[1](x)
        else:
            out = self.experts[2](x)
        return out, score


@fresh()
class EarlyExit(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
            logits = self.head(x)
            if logits.softmax(-1).max() > 0.5:
                return logits
        return self.head(x)


@fresh()
class SignDispatch(nn.Module):
    HANDLERS = ("up", "down")

    def up(self, x):
        return x + 1

    def down(self, x):
        return x - 1

    def forward(self, x):
        return self.up(x) if x.sum().item() >= 0 else self.down(x)


@fresh()
class Accumulator(nn.Module):
    def forward(self, x):
        outputs = []
        state = torch.zeros(4)
        for step in range(3):
            candidate = state * 0.5 + x[step]
            if candidate.abs().max() > 10:
                candidate = candidate / candidate.abs().max()
            state = candidate
            outputs.append(state)
        return torch.stack(outputs), state


@fresh(SIZES, "batch")
class PadToMultiple(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        missing = (4 - n % 4) % 4
        if missing > 0:
            x = F.pad(x, (0, 0, 0, missing))
        return x.view(-1, 4, 4).mean(1)


@fresh()
class NewtonRoot(nn.Module):
    def forward(self, x):
        a = x.abs().mean()
        guess = a
        for _ in range(12):
            new = 0.5 * (guess + a / guess)
            if abs(new - guess) < 1e-4:
                break
            guess = new
        return guess


@fresh()
class Temperature(nn.Module):
    def forward(self, x):
        temperature = max(float(x.std()), 0.5)
        return torch.softmax(x / temperature, dim=-1)


@fresh()
class Recursive(nn.Module):
    def shrink(self, x, depth):
        if depth == 0:
            return x
        if x.abs().max() > 1:
            return self.shrink(x / 2, depth - 1)
        return x

    def forward(self, x):
        return self.shrink(x, 6)


@fresh()
class BoxesOrNone(nn.Module):
    def forward(self, x):
        keep = x[:, 0] > 0.5
        if keep.any():
            weights = keep.float()
        else:
            weights = torch.ones(3)
        return (x * weights[:, None]).sum(0) / weights.sum()


@fresh(SIZES, "batch")
class PositionScale(nn.Module):
    def forward(self, x):
        length = x.shape[0]
        scale = math.log(length + 1) if length > 3 else 1.0
        return x * scale


@fresh()
class Metrics(nn.Module):
    def forward(self, x):
        result = {"mean": x.mean(), "spread": x.std()}
        if result["spread"] > 1:
            result["mean"] = result["mean"] / result["spread"]
        return result


@fresh()
class Switches(nn.Module):
    """Flags from the configuration beside decisions on data."""

    def __init__(self, normalize=True, scale=None):
        super().__init__()
        self.normalize, self.scale = normalize, scale

    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.ones_like(x)
        if self.normalize and not self.training and x.abs().max() > 1:
            x = x / x.abs().max()
        if self.scale is not None:
            x = x * self.scale
        return x * mask


@fresh()
class Swap(nn.Module):
    def forward(self, x):
        low, high = x.min(), x[0, 0]
        if low < high and high > 0:
            low, high = high, low
        return torch.stack([low, high])


@fresh()
class Quadrants(nn.Module):
    def forward(self, x):
        a, b = x[:, 0].mean(), x[:, 1].mean()
        if a > 0.5:
            if b > 0.5:
                label = 0
            else:
                label = 1
        else:
            label = 2 if b > 0 else 3
        return x + label


@fresh(SIZES, "batch")
class Windows(nn.Module):
    def forward(self, x):
        rows = int(math.floor(x.shape[0] / 1.0))
        columns = x.shape[1]
        return x.reshape(rows * columns // 2, 2).sum(-1)


@fresh()
class Clipped(nn.Module):
    def clip(self, x, limit=10.0):
        norm = x.norm()
        if norm <= limit:
            return x
        return x * (limit / norm)

    def forward(self, x):
        return self.clip(self.clip(x) * 3, limit=4.0)


@fresh()
class Retry(nn.Module):
    def forward(self, x):
        for attempt in range(4):
            y = x * 0.5**attempt
            if not torch.isfinite(y.exp()).all():
                continue
            if y.max() > 3:
                continue
            break
        return y
