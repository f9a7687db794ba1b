"""Everything of the caller's is as before, after an export that is accepted, one that is refused, one that fails."""

import functools
import os
import random
import tempfile

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import CompatError, export_compat, rewrite

_CACHE = {}
_MASK = None
CALLS = 0
LOG = []


@pytest.fixture(autouse=True)
def own_globals():
    """Whatever a test leaves in this module's globals is not the next one's."""
    yield
    global _MASK, CALLS
    _MASK, CALLS = None, 0
    _CACHE.clear()
    LOG.clear()
    by_size.cache_clear()
    ClassCache.cache.clear()
    Counting.seen, Counting.table = 0, torch.zeros(3)


# Models, each of which writes to something of the caller's


class MaxNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4, max_norm=1.0)
        nn.init.constant_(self.embedding.weight, 10.0)
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(self.embedding(x.long().abs() % 10))


class MaxNormBag(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 4, max_norm=1.0, mode="sum")
        nn.init.constant_(self.bag.weight, 10.0)

    def forward(self, x):
        return self.bag(x.long().abs() % 10)


class Clamped(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((3,), 3.0))

    def forward(self, x):
        self.w.data.clamp_(-1, 1)
        return x * self.w


class Foreach(Clamped):
    def forward(self, x):
        torch._foreach_mul_([self.w.data, self.w.data[:1]], 0.5)
        return x * self.w


class Out(Clamped):
    def forward(self, x):
        torch.mul(self.w.detach(), 2, out=self.w.data)
        return x * self.w


class Views(Clamped):
    """Writes to a view, reads it through another, and returns the weight itself."""

    def forward(self, x):
        with torch.no_grad():
            first = self.w[:1]
            self.w.detach()[:2] += 1
        return x * self.w + first, self.w


class Average(nn.Module):
    """Keeps a moving average in a frozen parameter."""

    def __init__(self):
        super().__init__()
        self.mean = nn.Parameter(torch.full((3,), 5.0), requires_grad=False)

    def forward(self, x):
        self.mean.data.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - self.mean


class Statistics(nn.Module):
    """Batch statistics in frozen parameters, through an operator whose schema does not say that it writes."""

    def __init__(self):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(3), requires_grad=False)
        self.var = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x):
        F.batch_norm(x, self.mean, self.var, training=True)
        return x * 2


class WritesInput(nn.Module):
    def forward(self, v):
        v.mul_(2)
        return v + 1


class AddsToInput(nn.Module):
    def forward(self, v):
        v += 1
        return v * 2


class SetsInput(nn.Module):
    def forward(self, v):
        v[0] = 0
        return v * 2


class ClassCache(nn.Module):
    cache = {}  # noqa: RUF012

    def forward(self, x):
        width = int(x.shape[1])
        if width not in self.cache:
            self.cache[width] = torch.arange(width, dtype=torch.float32) * 2
        return x + self.cache[width]


class GlobalCache(nn.Module):
    def forward(self, x):
        key = ("ramp", 3)
        if key not in _CACHE:
            _CACHE[key] = torch.linspace(0, 1, 3)
        return x + _CACHE[key]


class GlobalName(nn.Module):
    def forward(self, x):
        global _MASK, CALLS
        CALLS += 1
        if _MASK is None:
            _MASK = torch.ones(3) * 2
        return x * _MASK


@functools.cache
def by_size(size):
    return torch.arange(size, dtype=torch.float32) + 1


class Cached(nn.Module):
    def forward(self, x):
        return x * by_size(3)


class DefaultCache(nn.Module):
    def forward(self, x):
        return x + self.table(3)

    def table(self, size, cache={}):  # noqa: B006
        if size not in cache:
            cache[size] = torch.ones(size) * 3
        return cache[size]


class FunctionAttribute(nn.Module):
    def forward(self, x):
        if not hasattr(with_attribute, "table"):
            with_attribute.table = torch.ones(3) * 4
        return with_attribute(x)


def with_attribute(x):
    return x + with_attribute.table


class Holder:
    def __init__(self):
        self.table = None


HOLDER = Holder()


class ObjectCache(nn.Module):
    def forward(self, x):
        if HOLDER.table is None:
            HOLDER.table = torch.ones(3) * 5
        return x + HOLDER.table


class Counting(nn.Module):
    seen = 0
    table = torch.zeros(3)

    def forward(self, x):
        type(self).seen += 1
        LOG.append(x.shape[0])
        self.table.add_(1)
        return x + self.table


class Random(nn.Module):
    def forward(self, x):
        torch.rand(3), np.random.rand(), random.random()
        return x * 2


class Norm(nn.Module):
    """Keeps statistics, a count and a list; in train mode all of them change."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("calls", torch.zeros(()))
        self.seen = []

    def forward(self, x):
        self.calls += 1
        self.seen.append(1)
        return self.norm(x)


def hooked():
    model = Norm()
    model.register_forward_hook(lambda module, args, result: model.norm(result))
    model.register_forward_pre_hook(lambda module, args: model.seen.append(2))
    return model


def replaced_forward():
    model = Norm()
    inner = type(model).forward
    model.forward = lambda v: inner(model, v) * 2
    return model


def replaced_by_bound_method():
    model = Norm()
    old = model.forward
    model.forward = lambda v, old=old: old(v) + 1
    return model


def replaced_by_partial():
    model = Norm()
    model.forward = functools.partial(lambda m, v: m.norm(v) * 2, model)
    return model


def function_around_a_module():
    model = Norm()
    return lambda v: model(v) * 2


class Itself(nn.Module):
    """Says that it is its own copy."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)

    def __deepcopy__(self, memo):
        return self

    def forward(self, x):
        return self.drop(self.norm(x))


def holds_itself():
    return nn.Sequential(Itself(), nn.Linear(3, 3))


MODELS = {
    "embedding": MaxNorm,
    "embedding bag": MaxNormBag,
    "data": Clamped,
    "foreach": Foreach,
    "out": Out,
    "views": Views,
    "average": Average,
    "statistics": Statistics,
    "input mul_": WritesInput,
    "input +=": AddsToInput,
    "input setitem": SetsInput,
    "class attribute cache": ClassCache,
    "global cache": GlobalCache,
    "global name": GlobalName,
    "lru_cache": Cached,
    "default": DefaultCache,
    "function attribute": FunctionAttribute,
    "object": ObjectCache,
    "class attributes": Counting,
    "random": Random,
    "hook": hooked,
    "forward": replaced_forward,
    "bound forward": replaced_by_bound_method,
    "partial forward": replaced_by_partial,
    "function": function_around_a_module,
    "deepcopy of itself": Itself,
    "deepcopy of a part": holds_itself,
}
REFUSED = {
    ("embedding bag", "torchscript"),
    ("data", "dynamo"),
    ("foreach", "torchscript"),
    ("foreach", "dynamo"),
    ("out", "torchscript"),
    ("out", "dynamo"),
    ("average", "torchscript"),
    ("average", "dynamo"),
    ("class attributes", "dynamo"),
    ("function", "dynamo"),
}
"""Those that an exporter refuses; the caller's state is as before all the same."""


def frozen(value, depth=0):
    """Something that is equal as long as nothing in a value changed."""
    if isinstance(value, torch.Tensor):
        assert type(value) in (torch.Tensor, nn.Parameter), f"a {type(value).__name__} was left behind"
        return (id(value), value.data_ptr(), value._version, tuple(value.shape), value.detach().numpy().tobytes())
    if isinstance(value, dict):
        return [(key, frozen(item, depth + 1)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [frozen(item, depth + 1) for item in value]
    if isinstance(value, nn.Module):
        return (id(value), frozen(vars(value), depth + 1)) if depth < 9 else id(value)
    return value if isinstance(value, (int, str, float, bool, type(None))) else id(value)


def everything(model, *inputs):
    """All of the caller's that an export could change."""
    return {
        "model": frozen(model)
        if isinstance(model, nn.Module)
        else frozen([c.cell_contents for c in model.__closure__]),
        "inputs": frozen(list(inputs)),
        "classes": {c.__name__: frozen(dict(vars(c))) for c in (ClassCache, Counting)},
        "globals": frozen([_CACHE, _MASK, CALLS, LOG, vars(HOLDER), vars(with_attribute)]),
        "default": frozen(DefaultCache.table.__defaults__),
        "lru_cache": by_size.cache_info().currsize,
        "torch": torch.get_rng_state().numpy().tobytes(),
        "numpy": np.random.get_state()[1].tobytes(),
        "python": random.getstate(),
        "folder": sorted(n for n in os.listdir(tempfile.gettempdir()) if n.startswith("torchinductor")),
        "flag": torch.onnx.is_in_onnx_export(),
    }


def check(before, after):
    assert before.keys() == after.keys()
    for name in before:
        assert before[name] == after[name], name


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


def made(name):
    torch.manual_seed(0)
    return MODELS[name](), torch.randn(4, 3)


def test_after_an_accepted_export(name, exporter):
    model, x = made(name)
    before = everything(model, x)
    try:
        export_compat(model, x, exporter=exporter)
    except CompatError:
        if (name, exporter) not in REFUSED:
            raise
    check(before, everything(model, x))


def test_after_a_refused_export(name, exporter):
    @rewrite(torch.Tensor.long, name="never", registry=None)
    def never(x):
        raise AssertionError

    def wrong(model):
        class Wrong(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = model

            def forward(self, x):
                return self.inner(x), torch.rand(4, 3)  # differs from run to run

        return Wrong()

    model, x = made(name)
    model = wrong(model) if isinstance(model, nn.Module) else (lambda inner: lambda v: (inner(v), torch.rand(3)))(model)
    before = everything(model, x)
    with pytest.raises(CompatError):
        export_compat(model, x, exporter=exporter)
    check(before, everything(model, x))


def test_after_a_failed_export(name, exporter, monkeypatch):
    model, x = made(name)
    before = everything(model, x)

    def fail(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("torch_onnx_compat.attempt.verify_file", fail)
    try:
        with pytest.raises(KeyboardInterrupt):
            export_compat(model, x, exporter=exporter)
    except CompatError:
        if (name, exporter) not in REFUSED:
            raise
    check(before, everything(model, x))
