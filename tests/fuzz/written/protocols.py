"""Programs by Python's and torch's protocols: containers as outputs, modes, wrapped calls, generators, vmap."""

import collections
import contextlib
import copy
import dataclasses
import functools
import operator
import types
import typing

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, jacrev, stack_module_state, vmap
from torch.nn.utils import parametrize, stateless
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fuzz.written.program import collector

PROGRAMS, program = collector()


@dataclasses.dataclass
class _Result:
    scores: torch.Tensor
    count: int
    parts: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.scores = self.scores.softmax(-1)


@program(x="float batch=3 4")
class DataclassThatComputes(nn.Module):
    def forward(self, x):
        found = _Result(x, x.shape[0])
        found.parts.append(found.scores.sum(0) * found.count)
        return dataclasses.replace(found).scores, found.parts


@dataclasses.dataclass(frozen=True)
class _Boxes:
    xyxy: torch.Tensor

    @property
    def area(self):
        return (self.xyxy[:, 2] - self.xyxy[:, 0]) * (self.xyxy[:, 3] - self.xyxy[:, 1])

    def __getitem__(self, keep):
        return _Boxes(self.xyxy[keep])

    def __len__(self):
        return len(self.xyxy)

    def __iter__(self):
        return iter(self.xyxy.unbind(1))

    def __bool__(self):
        return len(self) > 0


@program(x="float batch=6 4")
class BoxesObject(nn.Module):
    def forward(self, x):
        boxes = _Boxes(x)
        large = boxes[boxes.area > 0.5]
        if not large:
            return x.sum(0), torch.zeros(())
        left, top, right, bottom = large
        return torch.stack([left.amin(), top.amin(), right.amax(), bottom.amax()]), torch.tensor(float(len(large)))


class _Point(typing.NamedTuple):
    x: torch.Tensor
    y: torch.Tensor

    def swapped(self):
        return self._replace(x=self.y, y=self.x)


@program(x="float batch=3 4")
class NamedTupleOutput(nn.Module):
    def forward(self, x):
        point = _Point(x, x * 2).swapped()
        return _Point(*reversed(point))._asdict()


@program(x="float batch=3 4")
class OrderedOutput(nn.Module):
    def forward(self, x):
        out = collections.OrderedDict(b=x, a=x + 1)
        out.move_to_end("b")
        out["c"] = out.pop("a") * len(out)
        return out


@program(x="float batch=3 4")
class DefaultDictOutput(nn.Module):
    def forward(self, x):
        out = collections.defaultdict(list)
        for i, column in enumerate(x.unbind(1)):
            out["odd" if i % 2 else "even"].append(column * i)
        return {k: torch.stack(v, 1) for k, v in sorted(out.items())}


@program(x="float batch=3 4")
class NamespaceOutput(nn.Module):
    def forward(self, x):
        out = types.SimpleNamespace(a=x, b=None)
        out.b = out.a if out.b is None else out.b
        return vars(out)["b"] * 2


@program(x="float batch=3 4")
class MappingProxy(nn.Module):
    def forward(self, x):
        table = types.MappingProxyType({2: x * 2, 3: x * 3, 4: x * 4})
        return table.get(x.shape[0], x)


class _Doubling(TorchFunctionMode):
    def __torch_function__(self, func, kinds, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.relu else result


@program(x="float batch=3 4")
class FunctionMode(nn.Module):
    def forward(self, x):
        with _Doubling():
            y = torch.relu(x)
        return y + torch.relu(x)


class _Counting(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def __torch_function__(self, func, kinds, args=(), kwargs=None):
        self.calls += func in (torch.Tensor.add, torch.Tensor.mul, operator.add)
        return func(*args, **(kwargs or {}))


@program(x="float batch=3 4")
class CountingMode(nn.Module):
    def forward(self, x):
        with _Counting() as mode:
            y = x.add(1).mul(2)
            if y.shape[0] > 4:
                y = y.add(3)
        return y * mode.calls


class _Clamping(TorchDispatchMode):
    def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result.clamp(-1, 1) if func is torch.ops.aten.mul.Tensor else result


@program(x="float batch=3 4")
class DispatchMode(nn.Module):
    def forward(self, x):
        with _Clamping():
            return x * 3 + 1


@program(x="float batch=3 4")
class DefaultDtypeContext(nn.Module):
    def forward(self, x):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return x * torch.tensor(0.1) + torch.zeros(4), torch.arange(x.shape[0]) / 3
        finally:
            torch.set_default_dtype(before)


@program(x="float batch=3 4")
class DeviceContext(nn.Module):
    def forward(self, x):
        with torch.device("cpu"):
            return x + torch.ones(x.shape[0], 1)


class _Twice(nn.Linear):
    def __call__(self, x):
        return super().__call__(super().__call__(x).tanh())


@program(x="float batch=3 4")
class CallsTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = _Twice(4, 4)

    def forward(self, x):
        return self.layer(x) + self.layer.forward(x)


class _Measured(nn.Module):
    """A module whose call does more than its forward."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def __call__(self, x, *, scale=1):
        if x.shape[0] > 5:
            scale = scale + 1
        return super().__call__(x) * scale

    def forward(self, x):
        return self.layer(x)


@program(x="float batch=3 4")
class CallDecides(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = _Measured()

    def forward(self, x):
        return self.part(x, scale=3)


@program(x="float batch=3 4")
class ForwardReplaced(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        original = self.layer.forward
        self.layer.forward = lambda x: original(x) * (2 if len(x) % 2 else 1)

    def forward(self, x):
        return self.layer(x)


@program(x="float batch=3 4")
class MethodBound(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

        def forward(module, x):
            return F.linear(x, module.weight.abs()) if x.shape[0] < 8 else F.linear(x, module.weight)

        self.layer.forward = types.MethodType(forward, self.layer)

    def forward(self, x):
        return self.layer(x)


@program(x="float batch=3 4")
class ClassMethodState(nn.Module):
    tables: typing.ClassVar[dict] = {}

    @classmethod
    def table(cls, n):
        if n not in cls.tables:
            cls.tables[n] = torch.arange(float(n)).cumsum(0)
        return cls.tables[n]

    def forward(self, x):
        return x * self.table(x.shape[0])[:, None]


@functools.cache
def _window(n):
    return torch.hann_window(n, periodic=False)


@program(x="float batch=3 4")
class CachedFunction(nn.Module):
    def forward(self, x):
        return x * _window(x.shape[0])[:, None]


@functools.lru_cache(maxsize=1)
def _last(n):
    return {"scale": n * 2, "ramp": torch.linspace(0, 1, n)}


@program(x="float batch=3 4", y="float other=5 4")
class CacheOfOne(nn.Module):
    def forward(self, x, y):
        return x * _last(len(x))["ramp"][:, None] + _last(len(y))["scale"], y * _last(len(y))["ramp"][:, None]


@program(x="float batch=3 4")
class CachePerInstance(nn.Module):
    def __init__(self):
        super().__init__()
        self._cache = None

    def positions(self, n, dtype):
        if self._cache is None or len(self._cache) != n:
            self._cache = torch.arange(n, dtype=dtype)
        return self._cache

    def forward(self, x):
        y = x + self.positions(x.shape[0], x.dtype)[:, None]
        half = x[::2]
        return y, half + self.positions(half.shape[0], x.dtype)[:, None]


@contextlib.contextmanager
def _scaled(module, factor):
    before = module.factor
    module.factor = before * factor
    try:
        yield module
    finally:
        module.factor = before


@program(x="float batch=3 4")
class ContextSetsAttribute(nn.Module):
    factor = 1.0

    def forward(self, x):
        with _scaled(self, x.shape[0]):
            y = x * self.factor
        return y + self.factor


@program(x="float batch=3 4")
class ExitStackOfScales(nn.Module):
    factor = 1.0

    def forward(self, x):
        with contextlib.ExitStack() as stack:
            for n in range(x.shape[1]):
                stack.enter_context(_scaled(self, n + 1))
            if x.shape[0] > 6:
                stack.enter_context(_scaled(self, 2))
            return x * self.factor


def _pieces(x):
    """Halves until one row is left."""
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        yield x[:half].sum(0)
        x = x[half:]
    yield x.sum(0)


@program(x="float batch=5 4")
class GeneratorOfHalves(nn.Module):
    def forward(self, x):
        total = 0
        for i, piece in enumerate(_pieces(x), 1):
            total = total + piece * i
        return total


def _running():
    total = None
    while True:
        value = yield total
        total = value if total is None else total * 0.5 + value


@program(x="float batch=5 4")
class GeneratorThatReceives(nn.Module):
    def forward(self, x):
        average = _running()
        next(average)
        out = [average.send(column) for column in x.unbind(1)]
        return torch.stack(out, 1)


def _tree(x, depth):
    if depth == 0 or x.shape[0] < 4:
        return x.mean(0)
    middle = x.shape[0] // 2
    return _tree(x[:middle], depth - 1) - _tree(x[middle:], depth - 1)


@program(x="float batch=9 4")
class RecursiveTree(nn.Module):
    def forward(self, x):
        return _tree(x, 2)


@program(x="float batch=3 4")
class MutualRecursion(nn.Module):
    def even(self, x, n):
        return x if n == 0 else self.odd(x + 1, n - 1)

    def odd(self, x, n):
        return x if n == 0 else self.even(x * 2, n - 1)

    def forward(self, x):
        return self.even(x, min(x.shape[0], 6))


class _TooLong(ValueError):
    pass


@program(x="float batch=3 4")
class RaisesAndCuts(nn.Module):
    def _check(self, x):
        if x.shape[0] > 10:
            raise _TooLong(x.shape[0])
        return x

    def forward(self, x):
        try:
            return self._check(x) * 2
        except _TooLong as error:
            return x[:10] * error.args[0]
        finally:
            self.last = x.shape[0]


@program(x="float batch=3 4")
class NestedErrors(nn.Module):
    def forward(self, x):
        try:
            try:
                return x.view(-1, 8)
            except RuntimeError as error:
                raise ValueError("no pairs") from error
        except ValueError:
            return F.pad(x, (0, 0, 0, 1)).view(-1, 8)


@program(x="float batch=3 4")
class VmapOverRows(nn.Module):
    def forward(self, x):
        def one(row):
            return torch.where(row > row.mean(), row, -row).sort().values

        return vmap(one)(x), vmap(vmap(lambda a: a.sin() * a))(x), vmap(torch.dot, in_dims=(0, 0))(x, x.flip(0))


@program(x="float batch=3 length=5 4")
class VmapNested(nn.Module):
    def forward(self, x):
        gram = vmap(lambda a: vmap(lambda r: vmap(lambda s: (r * s).sum())(a))(a))(x)
        return gram, vmap(lambda a: a.cumsum(0) / a.shape[0], in_dims=2, out_dims=0)(x)


@program(x="float batch=3 length=5 4")
class VmapInChunks(nn.Module):
    def forward(self, x):
        return vmap(lambda a: a.softmax(0).amax(-1), chunk_size=2)(x)


@program(x="float batch=3 4")
class VmapOfModels(nn.Module):
    def __init__(self):
        super().__init__()
        self.members = nn.ModuleList(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)) for _ in range(3))

    def forward(self, x):
        weights, buffers = stack_module_state(list(self.members))

        def call(w, b):
            return functional_call(self.members[0], (w, b), (x,))

        return vmap(call)(weights, buffers).var(0)


@program(x="float batch=3 4")
class JacobianOfLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return vmap(jacrev(lambda row: self.layer(row).tanh()))(x)


@program(x="float batch=3 4")
class FunctionalWithScaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.BatchNorm1d(4)

    def forward(self, x):
        weights = {k: v + x.shape[0] for k, v in self.layer.named_parameters()}
        with stateless._reparametrize_module(self.layer, weights):
            return self.layer(x)


class _Masked(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, weight):
        return weight * self.mask


@program(x="float batch=3 4")
class ParametrizedTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        parametrize.register_parametrization(self.layer, "weight", _Masked(torch.ones(4, 4).tril()))
        parametrize.register_parametrization(self.layer, "weight", _Masked(torch.eye(4) + 1))

    def forward(self, x):
        y = self.layer(x)
        return y @ self.layer.weight if x.shape[0] % 2 else y


@program(x="float batch=3 4")
class HooksWithDecisions(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.layer.register_forward_pre_hook(lambda m, a: (a[0] / len(a[0]),) if len(a[0]) > 4 else None)
        self.layer.register_forward_hook(lambda m, a, r: r + 1 if r.max() > 2 else None)

    def forward(self, x):
        return self.layer(x)


@program(x="float batch=3 4")
class HookAlways(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.seen = []
        self.layer.register_forward_hook(self.note, always_call=True, prepend=True)

    def note(self, module, args, result):
        self.seen = [result.abs().amax()]

    def forward(self, x):
        y = self.layer(x)
        return y / self.seen[-1] * len(self.seen)


@program(x="float batch=3 4")
class BufferReadAfterWrite(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ema", torch.zeros(4))
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        self.steps += 1
        self.ema.mul_(0.9).add_(x.mean(0), alpha=0.1)
        corrected = self.ema / (1 - 0.9**self.steps)
        self.ema[0] = 0
        return x - corrected, x + self.ema, self.steps * 2


@program(x="float batch=3 4")
class BufferReplaced(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(4.0))

    def forward(self, x):
        old = self.table
        self.table = self.table + x.sum(0)
        return x * old + self.table


@program(x="float batch=3 4")
class BufferGrows(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("history", torch.zeros(0, 4))

    def forward(self, x):
        self.history = torch.cat([self.history, x])[-8:]
        return self.history.mean(0), x - self.history[-1]


@program(x="float batch=3 4")
class CopyOfItself(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        teacher = copy.copy(self.layer)
        teacher.bias = nn.Parameter(self.layer.bias + x.shape[0], requires_grad=False)
        return self.layer(x) - teacher(x)


@program(x="float batch=3 4")
class ReduceOverRows(nn.Module):
    def forward(self, x):
        rows = iter(x.unbind(1))
        first = next(rows)
        return functools.reduce(lambda a, b: torch.maximum(a, b) * 0.5, rows, first)


@program(x="float batch=3 4")
class SortedByLength(nn.Module):
    def forward(self, x):
        parts = [x, x[:2], x.repeat(2, 1)[1:]]
        return torch.cat(sorted(parts, key=len, reverse=True)), max(parts, key=lambda p: p.shape[0]) * 2


@program(x="float batch=3 4")
class GetattrByShape(nn.Module):
    def forward(self, x):
        return getattr(x, "sum" if x.shape[0] > 7 else "mean")(0)


@program(x="float batch=3 4")
class SubscriptedByEllipsis(nn.Module):
    def forward(self, x):
        key = (..., None, slice(None, x.shape[0] // 2 + 1))
        return x[key], x[(slice(-x.shape[0] // 2, None), 1)], x[[0, -1]][:, [True, False, True, True]]
