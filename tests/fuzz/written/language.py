"""Programs that decide by Python's less usual means."""

import collections
import functools
import itertools
import operator
import types

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()
SCALE = {"value": 1.0}


@program(x="float batch=2 width=12")
class NamedTupleState(nn.Module):
    State = collections.namedtuple("State", "x n")

    def forward(self, x):
        s = self.State(x, x.shape[1])
        if s.n > 20:
            s = s._replace(x=s.x * 2)
        return s.x


@program(x="float batch=2 width=12")
class Namespace(nn.Module):
    def forward(self, x):
        s = types.SimpleNamespace(limit=x.shape[1] - 4)
        s.long = s.limit > 10
        return x[:, : s.limit].sum(1) if s.long else x.sum(1)


@program(x="float batch=2 width=12")
class OrderedQueue(nn.Module):
    def forward(self, x):
        queue = collections.deque(maxlen=3)
        for i in range(x.shape[1]):
            queue.append(x[:, i])
        return torch.stack(list(queue), 1).sum(1)


@program(x="float batch=2 width=12")
class CounterOfSizes(nn.Module):
    def forward(self, x):
        c = collections.Counter(x.shape)
        return x * max(c.values())


@program(x="float batch=2 width=12")
class DefaultDict(nn.Module):
    def forward(self, x):
        groups = collections.defaultdict(list)
        for i in range(x.shape[1]):
            groups[i % 3].append(x[:, i])
        return torch.stack([sum(g) for g in groups.values()], 1)


@program(x="float batch=2 width=12")
class Reduce(nn.Module):
    def forward(self, x):
        return functools.reduce(lambda a, b: a * 0.5 + b, x.unbind(1))


@program(x="float batch=2 width=12")
class Accumulate(nn.Module):
    def forward(self, x):
        return torch.stack(list(itertools.accumulate(x.unbind(1), torch.maximum)), 1)


@program(x="float batch=2 width=12")
class Pairwise(nn.Module):
    def forward(self, x):
        return sum(a * b for a, b in itertools.pairwise(x.unbind(1)))


@program(x="float batch=2 width=12")
class Product(nn.Module):
    def forward(self, x):
        n = min(x.shape[1], 4)
        return sum(x[:, i] * x[:, j] for i, j in itertools.combinations(range(n), 2))


@program(x="float batch=2 width=12")
class Takewhile(nn.Module):
    def forward(self, x):
        ks = list(itertools.takewhile(lambda k: k < x.shape[1], (1, 4, 13, 50)))
        return x[:, ks].sum(1) if ks else x.sum(1)


@program(x="float batch=2 width=12")
class OperatorCompare(nn.Module):
    def forward(self, x):
        return x * 2 if operator.gt(x.shape[1], 20) else x


@program(x="float batch=2 width=12")
class GlobalState(nn.Module):
    def forward(self, x):
        SCALE["value"] = 2.0 if x.shape[1] > 20 else 1.0
        return self.apply_scale(x)

    def apply_scale(self, x):
        return x * SCALE["value"]


@program(x="float batch=2 width=12")
class PropertyOnSize(nn.Module):
    width = 0

    @property
    def is_wide(self):
        return self.width > 20

    def forward(self, x):
        self.width = x.shape[1]
        return x * 2 if self.is_wide else x


@program(x="float batch=2 width=12")
class CachedProperty(nn.Module):
    @functools.cached_property
    def table(self):
        return torch.arange(2000).float()

    def forward(self, x):
        return x + self.table[: x.shape[1]]


@functools.lru_cache
def scale_of(n):
    return 2.0 if n > 20 else 1.0


@program(x="float batch=2 width=12")
class LruScale(nn.Module):
    def forward(self, x):
        return x * scale_of(x.shape[1])


@functools.singledispatch
def grow(value):
    return value


@grow.register
def _(value: int):
    return value + 1


@program(x="float batch=2 width=12")
class SingleDispatch(nn.Module):
    def forward(self, x):
        return x * grow(x.shape[1])


@program(x="float batch=2 width=12")
class TypeOfSize(nn.Module):
    def forward(self, x):
        return x * 2 if type(x.shape[1]) is int else x


@program(x="float batch=2 width=12")
class StarArguments(nn.Module):
    def pool(self, x, *, kernel, **rest):
        return F.avg_pool1d(x[:, None], kernel, **rest)[:, 0]

    def forward(self, x):
        options = {"kernel": 2} | ({"stride": 1} if x.shape[1] > 20 else {})
        return self.pool(x, **options)


@program(x="float batch=2 width=12")
class Decorated(nn.Module):
    @staticmethod
    def padded(function):
        @functools.wraps(function)
        def inner(self, x):
            extra = -x.shape[1] % 5
            return function(self, F.pad(x, (0, extra)))[:, : x.shape[1]]

        return inner

    @padded
    def body(self, x):
        return x.view(x.shape[0], -1, 5).softmax(-1).flatten(1)

    def forward(self, x):
        return self.body(x)


@program(x="float batch=2 width=12")
class ContextScale(nn.Module):
    class Scaled:
        def __init__(self, n):
            self.factor = 2.0 if n > 20 else 1.0

        def __enter__(self):
            return self.factor

        def __exit__(self, *error):
            return False

    def forward(self, x):
        with self.Scaled(x.shape[1]) as factor:
            return x * factor


@program(x="float batch=2 width=12")
class OwnCollection(nn.Module):
    class Tokens:
        def __init__(self, x):
            self.x = x

        def __len__(self):
            return int(self.x.shape[1])

        def __bool__(self):
            return len(self) > 20

        def __iter__(self):
            return iter(self.x.unbind(1))

    def forward(self, x):
        tokens = self.Tokens(x)
        return sum(tokens) * 2 if tokens else sum(tokens)


@program(x="float batch=2 width=12")
class SliceObject(nn.Module):
    def forward(self, x):
        s = slice(None, None, 2) if x.shape[1] > 20 else slice(1, None)
        return x[:, s].sum(1)


@program(x="float batch=2 width=12")
class SliceIndices(nn.Module):
    def forward(self, x):
        start, stop, step = slice(2, 30, 3).indices(x.shape[1])
        return x[:, start:stop:step].sum(1)


@program(x="float batch=2 width=12")
class RangeMembership(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[1] in range(0, 100, 7) else x


@program(x="float batch=2 width=12")
class RangeLength(nn.Module):
    def forward(self, x):
        return x * len(range(0, x.shape[1], 5))


@program(x="float batch=2 width=12")
class TupleOrder(nn.Module):
    def forward(self, x):
        return x * 2 if tuple(x.shape) > (2, 20) else x


@program(x="float batch=2 width=12")
class ExceptionAsFlow(nn.Module):
    def forward(self, x):
        try:
            index = [4, 8, 12, 24].index(x.shape[1])
        except ValueError:
            index = 9
        return x * index


@program(x="float batch=2 width=12")
class AssertionAsFlow(nn.Module):
    def forward(self, x):
        try:
            assert x.shape[1] % 3 == 0
            return x.view(x.shape[0], -1, 3).sum(1)
        except AssertionError:
            return x[:, :3] * 1.0


@program(x="float batch=2 width=12")
class StopIteration_(nn.Module):
    def forward(self, x):
        it = iter(x.unbind(1))
        total = next(it)
        while (item := next(it, None)) is not None:
            total = total * 0.5 + item
        return total


@program(x="float batch=2 width=12")
class NegativeStep(nn.Module):
    def forward(self, x):
        return torch.stack([x[:, i] for i in range(x.shape[1] - 1, -1, -4)], 1)


@program(x="float batch=2 width=12")
class FloorOfNegative(nn.Module):
    def forward(self, x):
        return x * (-x.shape[1] // 5) + (-x.shape[1]) % 5


@program(x="float batch=2 width=12")
class PowMod(nn.Module):
    def forward(self, x):
        return x * pow(3, x.shape[1], 7)


@program(x="float batch=2 width=12")
class BitTricks(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return x * ((n & -n) + (n >> 2) + (n ^ 5))


@program(x="float batch=2 width=12")
class FloatOfSize(nn.Module):
    def forward(self, x):
        return x * float(x.shape[1]).hex().count("8")


@program(x="float batch=2 width=12")
class IsIntegerOfRatio(nn.Module):
    def forward(self, x):
        return x * 2 if (x.shape[1] / 5).is_integer() else x


@program(x="float batch=2 width=12")
class RoundHalfEven(nn.Module):
    def forward(self, x):
        return x[:, : round(x.shape[1] / 4)].sum(1)


@program(x="float batch=2 width=12")
class ListMultiply(nn.Module):
    def forward(self, x):
        weights = ([1.0, 2.0, 3.0] * x.shape[1])[: x.shape[1]]
        return x * torch.tensor(weights)


@program(x="float batch=2 width=12")
class NestedLists(nn.Module):
    def forward(self, x):
        mask = torch.tensor([[j <= i for j in range(x.shape[1])] for i in range(x.shape[1])])
        return (x[:, None] * mask).sum(-1)


@program(x="float batch=2 width=12")
class EvalText(nn.Module):
    def forward(self, x):
        return x * eval(f"{x.shape[1]} // 5")


@program(x="float batch=2 width=12")
class ConditionalImport(nn.Module):
    def forward(self, x):
        if x.shape[1] > 20:
            from torch.nn.functional import relu as function
        else:
            from torch.nn.functional import silu as function
        return function(x)


@program(x="float batch=2 width=12")
class DeleteName(nn.Module):
    def forward(self, x):
        y = x * 2
        if x.shape[1] > 20:
            z = y
            del y
            return z + 1
        return y


@program(x="float batch=2 width=12")
class LateClosure(nn.Module):
    def forward(self, x):
        functions = []
        for i in range(3):
            functions.append(lambda t: t + i * t.shape[1])  # noqa: B023
        return sum(f(x) for f in functions)


@program(x="float batch=2 width=12")
class SequentialSlice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.ReLU(), nn.Softmax(-1), nn.Tanh())

    def forward(self, x):
        return self.layers[: min(3, x.shape[1] // 8)](x)


@program(x="float batch=2 width=12")
class OverriddenCall(nn.Module):
    def __call__(self, x):
        if x.shape[1] > 20:
            x = x[:, :20]
        return super().__call__(x)

    def forward(self, x):
        return x.softmax(-1)


@program(x="float batch=2 width=12")
class ModuleReplaced(nn.Module):
    """Makes a layer at the first call."""

    def __init__(self):
        super().__init__()
        self.norm = None

    def forward(self, x):
        if self.norm is None or self.norm.normalized_shape != (x.shape[1],):
            self.norm = nn.LayerNorm(x.shape[1])
        return self.norm(x)


@program(x="float batch=2 width=12")
class MetaShapes(nn.Module):
    def forward(self, x):
        shape = torch.empty(x.shape, device="meta").unfold(1, 4, 4).shape if x.shape[1] >= 4 else x.shape
        return x * shape[1]


@program(x="float batch=2 width=12")
class BroadcastShapes(nn.Module):
    def forward(self, x):
        shape = torch.broadcast_shapes(x.shape, (1, x.shape[1]), (x.shape[0], 1))
        return x.new_ones(shape).cumsum(1) * x


@program(x="float batch=2 width=12")
class ShapeAsTensor(nn.Module):
    def forward(self, x):
        size = torch.tensor(x.shape)
        return x * 2 if (size > 20).any() else x * size[1]


@program(x="float batch=2 width=12")
class SizeScalarTensor(nn.Module):
    def forward(self, x):
        n = torch.tensor(x.shape[1])
        side = n.float().sqrt().floor().long()
        return x[:, : int(side)].sum(1)


@program(x="float batch=2 width=12")
class PositiveOfSizes(nn.Module):
    def forward(self, x):
        n = torch.as_tensor(x.shape[1]).clamp(max=16)
        return x[:, :n].sum(1)


@program(x="float batch=2 width=12")
class EmptyCat(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], 0)
        for i in range(0, x.shape[1], 5):
            out = torch.cat([out, x[:, i : i + 5].mean(1, keepdim=True)], 1)
        return out


@program(x="float batch=2 width=12")
class DictOfParts(nn.Module):
    def forward(self, x):
        parts = {f"p{i}": part for i, part in enumerate(x.split(6, 1))}
        return parts["p0"].sum(1) + (parts["p2"].sum(1) if "p2" in parts else 0)


@program(x="float batch=2 width=12")
class SharedHook(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.taps = nn.Tanh(), {}
        self.a.register_forward_hook(lambda m, i, o: self.taps.update(a=o))

    def forward(self, x):
        y = self.a(x)
        return y + self.taps["a"].mean(1, keepdim=True) * (2 if x.shape[1] > 20 else 1)


@program(x="float batch=2 width=12")
class NoGradBlock(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            n = x.shape[1] * 3 // 4
        return x[:, :n].amax(1)


@program(x="float batch=2 width=12")
class AutocastOff(nn.Module):
    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            return x.float().softmax(1) * (x.shape[1] > 20)


@program(x="float batch=2 width=12")
class TensorTimesBool(nn.Module):
    def forward(self, x):
        return x + (x.shape[1] % 3 == 0) * 2 + (not x.shape[1] % 2)


@program(x="float batch=2 width=12")
class FillByItem(nn.Module):
    def forward(self, x):
        out = torch.zeros(x.shape[1])
        for i in range(x.shape[1]):
            out[i] = i % 4
        return x * out


@program(x="float batch=2 width=12")
class MaxPoolCeil(nn.Module):
    def forward(self, x):
        y = F.max_pool1d(x, 5, ceil_mode=True)
        return y if y.shape[1] * 5 == x.shape[1] else y[:, :-1].sum(1)


@program(x="float batch=2 width=12")
class UnfoldCount(nn.Module):
    def forward(self, x):
        w = x.unfold(1, 4, 3)
        return w.sum(-1) if w.shape[1] > 4 else w.amax(-1)


@program(x="float batch=2 width=12")
class RepeatToLength(nn.Module):
    def forward(self, x):
        times = -(-30 // x.shape[1])
        return x.repeat(1, times)[:, :30] if times > 1 else x[:, :30]


@program(x="float batch=2 width=12")
class TileToMatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5))

    def forward(self, x):
        times, rest = divmod(x.shape[1], 5)
        return x * torch.cat([self.weight.repeat(times), self.weight[:rest]])


@program(x="float batch=2 width=12")
class ScatterGrid(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        grid = torch.zeros(x.shape[0], n, n)
        grid[:, torch.arange(n), torch.arange(n)] = x
        return grid.cumsum(1)[:, -1]


@program(x="float batch=2 width=12")
class Diagonals(nn.Module):
    def forward(self, x):
        m = x[:, :, None] * x[:, None]
        return torch.stack([m.diagonal(k, 1, 2).sum(-1) for k in range(-2, 3) if abs(k) < x.shape[1]], 1)
