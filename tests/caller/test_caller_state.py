"""Everything of the caller's is as before, after an export that is accepted, one that is refused, one that fails."""

import copy
import functools
import os
import random
import subprocess
import sys
import tempfile
import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.caller.reach import find_reach
from torch_onnx_compat.caller.undo import undo_writes
from torch_onnx_compat.twin import twin_of

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


@pytest.mark.one_exporter
def test_after_an_accepted_export(name, exporter):
    model, x = made(name)
    before = everything(model, x)
    try:
        export_compat(model, x, exporter=exporter)
    except CompatError:
        if (name, exporter) not in REFUSED:
            raise
    check(before, everything(model, x))


class Wrong(nn.Module):
    """Returns random numbers too, which no file does."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x), torch.rand(4, 3)


@pytest.mark.one_exporter
def test_after_a_refused_export(name, exporter):
    model, x = made(name)
    model = Wrong(model)
    before = everything(model, x)
    with pytest.raises(CompatError):
        export_compat(model, x, exporter=exporter)
    check(before, everything(model, x))


@pytest.mark.one_exporter
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


# Inputs


class Fills(nn.Module):
    """Writes to all that it is given."""

    def forward(self, x, more, names, table, count=None):
        x.mul_(2)
        more["y"].add_(1)
        more["new"] = x
        names.append("seen")
        table[0] = 7
        count.add(len(names))
        return x + more["y"] * float(table.sum()) + len(count)


def test_all_arguments_are_as_before(exporter):
    def arguments(seed):
        y = torch.randn(2, 3, generator=torch.Generator().manual_seed(seed))
        return (y * 2, {"y": y}, ["a"], np.ones(2, dtype=np.float32)), {"count": {5}}

    args, kwargs = arguments(0)
    sample = arguments(1)[0]
    sample = {**dict(zip(("x", "more", "names", "table"), sample, strict=True)), "count": {5}}
    now = (args, kwargs, sample)
    then = copy.deepcopy(now)
    export_compat(Fills(), args, kwargs=kwargs, samples=[sample], exporter=exporter)
    tensors = [(now[0][0], then[0][0]), (now[0][1]["y"], then[0][1]["y"])]
    tensors += [(now[2]["x"], then[2]["x"]), (now[2]["more"]["y"], then[2]["more"]["y"])]
    assert all(torch.equal(one, other) for one, other in tensors)
    assert (args[2], sample["names"]) == (["a"], ["a"])
    assert args[3].tolist() == sample["table"].tolist() == [1, 1]
    assert args[1].keys() == sample["more"].keys() == {"y"}
    assert kwargs["count"] == sample["count"] == {5}


def test_a_gradient_can_be_computed_after_the_export(exporter):
    """Writes to a twin's parameters do not count as writes to the caller's, whose values autograd has kept."""
    model, x = Clamped(), torch.randn(4, 3, requires_grad=True)
    loss = (x * model.w).sum()
    export_compat(MaxNorm(), torch.ones(2), exporter=exporter)
    try:
        export_compat(model, x, exporter=exporter)
    except CompatError:
        assert ("data", exporter) in REFUSED
    loss.backward()
    assert model.w.grad is not None


def test_no_thread_sees_weights_that_are_written(exporter):
    model, seen = MaxNorm(), []
    stop = threading.Event()

    def look():
        while not stop.is_set():
            seen.append(float(model.embedding.weight.detach().min()))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        export_compat(model, torch.arange(6.0), exporter=exporter)
    finally:
        stop.set()
        thread.join()
    assert seen
    assert set(seen) == {10.0}


def test_max_norm_holds_for_rows_that_the_example_lacks(exporter):
    model = nn.Embedding(10, 4, max_norm=1.0)
    nn.init.normal_(model.weight, std=5)
    result = export_compat(model, torch.tensor([1, 2, 3]), exporter=exporter)
    (found,) = result.session().run(None, {"input": np.array([7, 8, 1])})
    torch.testing.assert_close(torch.from_numpy(found), copy.deepcopy(model)(torch.tensor([7, 8, 1])).detach())


# Twins


def test_writes_to_a_copied_parameter_are_undone_too():
    model = Clamped()
    reach = find_reach(model)
    with undo_writes(twin_of(model, reach=reach)):
        pass
    assert not reach.written
    first = twin_of(model, reach=reach)
    with undo_writes(first):
        first(torch.ones(3))
        assert first.w.tolist() == [1, 1, 1]
    assert first.w.tolist() == [3, 3, 3]
    assert reach.written == {model.w.data_ptr()}
    second = twin_of(model, reach=reach)
    assert second.w.data_ptr() != model.w.data_ptr()
    with undo_writes(second):
        second(torch.ones(3))
    assert second.w.tolist() == [3, 3, 3]


def test_other_weights_are_shared():
    model = nn.Linear(3, 3)
    assert twin_of(model).weight.data_ptr() == model.weight.data_ptr()


def test_results_that_are_weights_keep_what_the_run_wrote():
    twin = twin_of(Views())
    with undo_writes(twin) as undo:
        _, weight = undo.separate(twin(torch.ones(2, 3)))
    assert weight.tolist() == [4, 4, 3]
    assert twin.w.tolist() == [3, 3, 3]


def test_a_rewritten_decision_in_a_function_around_a_module(exporter):
    """The copy of a function runs the code that the original has while it is rewritten."""
    net = nn.Linear(3, 3)

    def decide(x):
        if x.sum() > 0:
            return net(x)
        return net(x) * 2

    model, inputs = decide, torch.ones(2, 3)
    result = export_compat(model, inputs, exporter=exporter)
    for x in (inputs, -inputs):
        (found,) = result.session().run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), decide(x).detach())


def test_a_module_that_is_its_own_copy_is_copied():
    model = holds_itself().train()
    twin = twin_of(model)
    assert twin[0] is not model[0]
    assert twin[0].norm is not model[0].norm
    assert all(m.training for m in model.modules())
    assert not any(m.training for m in twin.modules())


def test_a_model_s_own_path_for_onnx_is_taken(exporter):
    """As in torch's own exporters; one that computes something else than the model in eager torch is not taken."""

    class Model(nn.Module):
        def forward(self, x):
            return x * x if torch.onnx.is_in_onnx_export() else x.square()

    class Other(nn.Module):
        def forward(self, x):
            return x.sin() if torch.onnx.is_in_onnx_export() else x.cos()

    x = torch.randn(3)
    assert export_compat(Model(), x, exporter=exporter).nodes == {"Mul": 1}
    assert export_compat(Other(), x, exporter=exporter).nodes == {"Cos": 1}
    assert not torch.onnx.is_in_onnx_export()


def test_torch_s_cache_folder_goes(tmp_path):
    code = (
        "import os, torch; from torch_onnx_compat import export_compat;"
        "export_compat(torch.nn.Linear(3, 3), torch.rand(2, 3), exporter='dynamo');"
        "assert 'TORCHINDUCTOR_CACHE_DIR' not in os.environ"
    )
    environment = {k: v for k, v in os.environ.items() if k != "TORCHINDUCTOR_CACHE_DIR"}
    subprocess.run([sys.executable, "-c", code], check=True, env={**environment, "TMPDIR": str(tmp_path)})
    assert [name for name in os.listdir(tmp_path) if name.startswith("torchinductor")] == []


# Reach


class Lazy(dict):
    """A table that makes its items when they are asked for, as transformers' tables of models do."""

    def values(self):
        raise AssertionError("its items were asked for")

    items = __iter__ = __len__ = values


TABLE = Lazy(a=1)


class UsesTable(nn.Module):
    def forward(self, x):
        TABLE["b"] = x
        return x


def test_tables_of_lazy_items_are_left_alone():
    twin = twin_of(UsesTable())
    with undo_writes(twin):
        twin(torch.ones(2))
    assert list(dict.keys(TABLE)) == ["a"]


def test_what_others_write_meanwhile_stays():
    """Only what the model's code names is put back, and no function or import."""
    twin = twin_of(GlobalName())
    with undo_writes(twin):
        twin(torch.ones(3))
        globals()["helper"] = lambda: None
        TABLE["z"] = 1
    assert callable(globals().pop("helper"))
    assert dict.pop(TABLE, "z") == 1
    assert CALLS == 0


def test_what_others_write_between_two_runs_stays():
    """Each run begins with what lies there then, also in containers that came in between."""
    twin = twin_of(Counting())
    with undo_writes(twin):
        twin(torch.ones(3))
    assert LOG == []
    LOG.append([1])
    Counting.seen = 5
    with undo_writes(twin):
        twin(torch.ones(3))
        LOG[0].append(2)
    assert LOG == [[1]]
    assert Counting.seen == 5
