"""Programs that keep state: counters, caches, statistics, hooks, parametrizations, closures, random numbers."""

import copy
import dataclasses
import functools
import itertools
import weakref
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize, weight_norm

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=3 4")
class CallCounter(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


@program(x="float batch=3 4")
class CounterBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.calls.add_(1)
        return x * self.calls, x + self.calls % 2


@program(x="float batch=3 4")
class IteratorState(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = itertools.count(1)

    def forward(self, x):
        return x * next(self.counter) + next(self.counter)


@program(x="float batch=3 4")
class GlobalCounter(nn.Module):
    made = itertools.count()

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        self.seen.append(x.shape[0])
        return x * len(self.seen) + self.seen[-1]


@program(x="float batch=3 4")
class EvalStatistics(nn.Module):
    """Batch statistics used in eval too, running ones written."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4, track_running_stats=False)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean.lerp_(x.mean(0), 0.1)
        return self.norm(torch.cat([x, x + 1])) - self.mean


@program(x="float batch=3 4")
class MomentumNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        if self.norm.num_batches_tracked == 0:
            x = x * 2
        return self.norm(x)


@program(x="float batch=2 length=4 6")
class GrowingCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = None

    def forward(self, x):
        self.cache = x if self.cache is None else torch.cat([self.cache, x], 1)
        return self.cache.mean(1), self.cache


@program(x="float batch=2 length=4 6")
class FilledCache(nn.Module):
    """A cache of fixed length that forward fills from the front."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 16, 6))
        self.place = 0

    def forward(self, x):
        n = x.shape[1]
        self.keys[:, self.place : self.place + n] = x[:1]
        seen = self.keys[:, : self.place + n]
        self.place += n
        return x @ seen.mT, self.keys


@program(x="float batch=2 length=4 6")
class DequeMemory(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = deque([torch.zeros(6), torch.ones(6)], maxlen=3)

    def forward(self, x):
        for row in (x.mean((0, 1)), x.amax((0, 1))):
            self.memory.append(row)
        return torch.stack(list(self.memory)) + len(self.memory)


@program(x="float batch=3 4")
class ForwardHookChanges(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.layer.register_forward_hook(lambda module, args, result: result * 2 + args[0])
        self.layer.register_forward_pre_hook(lambda module, args: (args[0].clamp(-1, 1),))

    def forward(self, x):
        return self.layer(x)


@program(x="float batch=3 4")
class HookCollects(nn.Module):
    """Features by hooks, as feature extractors do."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
        self.features = {}
        for name, part in self.body.named_children():
            part.register_forward_hook(functools.partial(self._keep, name))

    def _keep(self, name, module, args, result):
        self.features[name] = result

    def forward(self, x):
        self.features.clear()
        self.body(x)
        return dict(sorted(self.features.items(), reverse=True))


@program(x="float batch=3 4")
class HookRemovesItself(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.handle = self.layer.register_forward_hook(self._first)

    def _first(self, module, args, result):
        self.handle.remove()
        return result * 10

    def forward(self, x):
        return self.layer(x) + self.layer(x)


@program(x="float batch=3 4")
class WithKwargsHook(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = _Scaled()

        def double(module, args, kwargs):
            return args, {**kwargs, "scale": kwargs.get("scale", 1.0) * 2}

        self.part.register_forward_pre_hook(double, with_kwargs=True)

    def forward(self, x):
        return self.part(x, scale=3.0), self.part(x)


class _Scaled(nn.Module):
    def forward(self, x, scale=1.0):
        return x * scale


@program(x="float batch=3 4")
class WeightNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = parametrizations.weight_norm(nn.Linear(4, 4))
        self.b = weight_norm(nn.Linear(4, 3))
        self.c = parametrizations.spectral_norm(nn.Linear(3, 3))

    def forward(self, x):
        return self.c(self.b(self.a(x)))


class _Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).mT


@program(x="float batch=3 4")
class Parametrized(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        parametrize.register_parametrization(self.layer, "weight", _Symmetric())

    def forward(self, x):
        with parametrize.cached():
            return self.layer(x) + self.layer.weight.sum()


@program(x="float batch=3 4")
class LazyLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.LazyLinear(5), nn.LazyBatchNorm1d(), nn.LazyLinear(2)).eval()
        self.layers(torch.zeros(2, 4))

    def forward(self, x):
        return self.layers(x)


@program(x="float batch=3 4")
class BuiltInForward(nn.Module):
    """A layer that is made at the first call."""

    def __init__(self):
        super().__init__()
        self.layer = None

    def forward(self, x):
        if self.layer is None:
            self.layer = nn.Linear(x.shape[-1], 2)
            nn.init.ones_(self.layer.weight)
            nn.init.zeros_(self.layer.bias)
        return self.layer(x)


@program(x="float batch=3 4")
class TableInForward(nn.Module):
    """A table that is made at the first call, as long as the first input."""

    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        if self.table is None or self.table.shape[0] < x.shape[0]:
            self.table = torch.arange(float(x.shape[0]))[:, None]
        return x + self.table[: x.shape[0]] / self.table.shape[0]


@program(x="float batch=3 4")
class ClosureState(nn.Module):
    def __init__(self):
        super().__init__()
        total = torch.zeros(4)

        def add(value):
            nonlocal total
            total = total + value.mean(0)
            return total

        self.add = add

    def forward(self, x):
        return x + self.add(x), self.add(x * 2)


@program(x="float batch=3 4")
class DefaultArgumentState(nn.Module):
    def forward(self, x, seen=[]):  # noqa: B006
        seen.append(1)
        return x * len(seen) if len(seen) < 2 else x * 2


@program(x="float batch=3 4")
class SetattrInForward(nn.Module):
    def forward(self, x):
        self.last = x.mean(0)
        self.count = x.shape[0]
        return self.finish(x)

    def finish(self, x):
        return x - self.last + self.count


@program(x="float batch=3 4")
class CopiedLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        other = copy.deepcopy(self.layer)
        other.weight.data.mul_(2)
        return self.layer(x), other(x)


@program(x="float batch=3 4")
class FunctionalCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        changed = {name: value * x.mean() for name, value in self.layer.named_parameters()}
        return torch.func.functional_call(self.layer, changed, (x,))


@program(x="float batch=3 4")
class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))

    def forward(self, x):
        weights, biases = (torch.stack([getattr(m, n) for m in self.layers]) for n in ("weight", "bias"))
        return torch.vmap(lambda w, b: F.linear(x, w, b))(weights, biases).mean(0)


@program(x="float batch=3 4")
class WeakReference(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.layer.__dict__["owner"] = weakref.proxy(self)
        self.scale = 3.0

    def forward(self, x):
        return self.layer(x) * self.layer.owner.scale


@program(x="float batch=3 4")
class SharedWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 6, bias=False)
        self.out = nn.Linear(6, 4, bias=False)
        self.out.weight = nn.Parameter(self.embed.weight.detach().T.clone())
        self.tied = self.embed

    def forward(self, x):
        return self.out(self.embed(x).relu()) + F.linear(self.tied(x), self.embed.weight.T)


@program(x="float batch=3 4")
class WeightRenorm(nn.Module):
    """A weight that forward constrains in place."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4) * 3)

    def forward(self, x):
        self.weight.data.copy_(F.normalize(self.weight.data, dim=0))
        return x @ self.weight


@program(x="float batch=3 4")
class SeededNoise(nn.Module):
    def forward(self, x):
        g = torch.Generator().manual_seed(7)
        return x + torch.randn(4, generator=g), x[:, torch.randperm(4, generator=torch.Generator().manual_seed(1))]


@program(x="float batch=3 4")
class SeededNoiseOfSize(nn.Module):
    def forward(self, x):
        g = torch.Generator().manual_seed(7)
        return x + torch.randn(x.shape, generator=g)


@program(x="float batch=3 4")
class GlobalSeed(nn.Module):
    def forward(self, x):
        torch.manual_seed(0)
        return x + torch.rand(4), x * torch.rand(x.shape[0], 1)


@program(x="float batch=3 4")
class PythonRandom(nn.Module):
    def forward(self, x):
        import random

        dice = random.Random(x.shape[0])
        return x * dice.randint(1, 9) + dice.random()


@dataclasses.dataclass
class _State:
    hidden: torch.Tensor
    steps: int = 0

    def step(self, x):
        return dataclasses.replace(self, hidden=torch.tanh(self.hidden + x), steps=self.steps + 1)


@program(x="float batch=3 4 5")
class DataclassState(nn.Module):
    def forward(self, x):
        state = _State(torch.zeros_like(x[:, 0]))
        for part in x.unbind(1):
            state = state.step(part)
        return {"hidden": state.hidden, "steps": state.steps, "none": None}


@program(x="float batch=3 length=4 5")
class DataclassOverLength(nn.Module):
    def forward(self, x):
        state = _State(torch.zeros_like(x[:, 0]))
        for part in x.unbind(1):
            state = state.step(part)
        return state.hidden * state.steps


@program(x="float batch=3 4")
class InputWritten(nn.Module):
    def forward(self, x):
        y = x.view(-1)
        y[0] = 5.0
        x += 1
        return x, y, x.sum()


@program(x="float batch=3 4", y="float batch=3 4")
class SwapInPlace(nn.Module):
    def forward(self, x, y):
        t = x.clone()
        x.copy_(y)
        y.copy_(t)
        return x - y, x, y


@program(x="float batch=3 4")
class SameOutputTwice(nn.Module):
    def forward(self, x):
        y = x.relu()
        return y, x, y, [y, (x,)], {"y": y}


@program(x="float batch=3 4")
class ViewThenWrite(nn.Module):
    def forward(self, x):
        y = x.clone()
        left, right = y[:, :2], y[:, 2:]
        left.mul_(right)
        right += left
        y[0] = y[-1]
        return y, left, right


@program(x="float batch=3 4")
class WriteThroughTranspose(nn.Module):
    def forward(self, x):
        y = torch.zeros(4, x.shape[0])
        t = y.T
        t[:, 1] = x[:, 0]
        t[0].add_(1)
        t.diagonal().fill_(7)
        return y, t


@program(x="float batch=3 4")
class WriteThroughExpand(nn.Module):
    def forward(self, x):
        y = x.new_zeros(x.shape[0], 1)
        wide = y.expand(-1, 4)
        y += x.sum(1, keepdim=True)
        return wide * 2, y


@program(x="float batch=3 4")
class WriteThroughReshape(nn.Module):
    def forward(self, x):
        y = x * 1
        flat = y.reshape(-1)
        copy_ = y.T.reshape(-1)
        flat[::2] = 0
        copy_[::3] = 9
        return y, flat, copy_


@program(x="float batch=3 4")
class WriteInLoopOverViews(nn.Module):
    def forward(self, x):
        y = x.clone()
        for i, part in enumerate(y.split(1, dim=1)):
            part *= i + 1
        for row in y.unbind(1):
            row.sub_(1)
        for part in y.chunk(2, 1):
            part.clamp_(min=-1)
        return y


@program(x="float batch=3 4")
class WriteAfterBranch(nn.Module):
    def forward(self, x):
        y = x.clone()
        z = y[:, 1]
        if x.sum() > 0:
            y = y * 2
        y[:, 1] = 0
        return y, z


@program(x="float batch=3 4")
class OutArguments(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        torch.add(x, 1, out=y)
        z = y[:, :2]
        torch.mul(x[:, 2:], 2, out=z)
        return y, z


@program(x="float batch=3 4")
class BufferReset(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("work", torch.zeros(8, 4), persistent=False)

    def forward(self, x):
        self.work.zero_()
        self.work[: x.shape[0]] = x[:8]
        return self.work.sum(0), self.work.roll(1, 0)


@program(x="float batch=3 6")
class RingOfRows(nn.Module):
    """A part of the model holds a row of the memory of the whole, and writes to it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("memory", torch.zeros(3, 6))
        self.writer = nn.Module()
        self.writer.row = self.memory[1]

    def forward(self, x):
        self.writer.row.copy_(x.mean(0))
        return x - self.memory.sum(0)


@program(x="float batch=3 6")
class ScratchAttribute(nn.Module):
    """Memory that is no buffer, kept to save an allocation."""

    def __init__(self):
        super().__init__()
        self.scratch = torch.empty(2, 6)

    def forward(self, x):
        torch.sum(x, 0, out=self.scratch[0])
        self.scratch[1].zero_().sub_(x.amax(0))
        return x * self.scratch.sum(0)
