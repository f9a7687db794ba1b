"""Programs in Python's less usual means: partials, enumerations, sets, bisection, iteration, texts, classes."""

import bisect
import collections
import contextlib
import enum
import functools
import heapq
import itertools
import operator
import string
import types
import typing
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=3 length=6")
class PartialForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.forward = functools.partial(self._run, scale=2.0)

    def _run(self, x, scale, shift=1):
        return x * scale + (shift if x.shape[1] > 8 else -shift)


@program(x="float batch=3 length=6")
class MagicAttributes(nn.Module):
    def __getattr__(self, name):
        if name.startswith("times_"):
            return lambda x: x * int(name.removeprefix("times_"))
        return super().__getattr__(name)

    def forward(self, x):
        return self.times_3(x) + getattr(self, f"times_{x.dim()}")(x) + getattr(self, f"times_{x.shape[1]}")(x)


class _Length(enum.IntEnum):
    SHORT = 4
    LONG = 16


class _Level(enum.Flag):
    LOW = 1
    MIDDLE = 2
    HIGH = 4


@program(x="float batch=3 length=6")
class EnumOfSize(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        kind = _Length.SHORT if n <= _Length.SHORT else _Length.LONG
        return x * kind.value, x + (n < _Length.LONG), x * (kind is _Length.LONG)


@program(x="float batch=3 length=6")
class EnumByValue(nn.Module):
    def forward(self, x):
        try:
            kind = _Length(x.shape[1])
        except ValueError:
            kind = None
        return x * (kind.value if kind else 1)


@program(x="float batch=3 length=6")
class FlagsOfSize(nn.Module):
    def forward(self, x):
        level = _Level(0)
        for one, bound in zip(_Level, (2, 7, 20), strict=True):
            if x.shape[1] > bound:
                level |= one
        return x * level.value + (_Level.MIDDLE in level)


@program(x="float batch=3 length=6")
class BisectBuckets(nn.Module):
    def forward(self, x):
        place = bisect.bisect_left([4, 9, 30], x.shape[1])
        return x * (1.0, 2.0, 3.0, 4.0)[place] + bisect.bisect([2, 6], x.shape[1])


@program(x="float batch=3 length=6")
class SortedSizes(nn.Module):
    def forward(self, x):
        small, large = sorted(x.shape)
        return x * small + large, x - sorted({*x.shape, 5})[1] if len({*x.shape, 5}) > 1 else x


@program(x="float batch=3 length=6")
class SetOfRemainders(nn.Module):
    def forward(self, x):
        seen = {n % 3 for n in x.shape}
        return x * len(seen) + sum(seen)


@program(x="float batch=3 length=6")
class CounterOfDivisors(nn.Module):
    def forward(self, x):
        divisors = [d for d in range(1, 10) if x.shape[1] % d == 0]
        return x * len(divisors) + max(divisors)


@program(x="float batch=3 length=6")
class FormatSize(nn.Module):
    def forward(self, x):
        text = f"{x.shape[1]:04d}"
        return x * len(text.lstrip("0")) + text.count("1") + int(text[-1])


@program(x="float batch=3 length=6")
class TemplateKey(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = {"n6": 1.0, "n12": 2.0, "n24": 3.0}

    def forward(self, x):
        key = string.Template("n$size").substitute(size=x.shape[1])
        return x * self.scales.get(key, 0.5), x + self.scales.get("n" + str(x.shape[0] * 2), -1)


@program(x="float batch=3 length=6")
class PercentFormat(nn.Module):
    def forward(self, x):
        return x * (2 if "%d" % x.shape[1] == "13" else 1) + float("%.1f" % (x.shape[1] / 3))  # noqa: UP031


@program(x="float batch=3 length=6")
class AccumulatedOffsets(nn.Module):
    def forward(self, x):
        offsets = list(itertools.accumulate([x.shape[1], x.shape[0], 2], operator.add))
        return x + offsets[-1] - offsets[0], x * functools.reduce(operator.mul, x.shape, 1)


@program(x="float batch=3 length=6")
class WindowsOfTools(nn.Module):
    def forward(self, x):
        parts = [x[:, a:b].sum(1) for a, b in itertools.pairwise(range(0, x.shape[1] + 1, 2))]
        return sum(parts, x[:, 0] * 0)


@program(x="float batch=3 length=6")
class TakeWhileSmall(nn.Module):
    def forward(self, x):
        widths = list(itertools.takewhile(lambda w: w < x.shape[1], (1, 2, 4, 8, 16, 32)))
        return torch.stack([x[:, :w].sum(1) for w in (1, *widths)]).amax(0) + len(widths)


@program(x="float batch=3 length=6")
class CycleOfScales(nn.Module):
    def forward(self, x):
        scales = itertools.islice(itertools.cycle((1.0, -1.0, 2.0)), x.shape[1])
        return x * torch.tensor(list(scales))


@program(x="float batch=3 length=6")
class GroupByParity(nn.Module):
    def forward(self, x):
        groups = {k: list(g) for k, g in itertools.groupby(range(4), key=lambda i: i * x.shape[1] % 2)}
        return x * len(groups) + sum(map(len, groups.values()))


@program(x="float batch=3 length=6")
class HeapSmallest(nn.Module):
    def forward(self, x):
        return x * heapq.nsmallest(1, [x.shape[1], 7, 9])[0] + heapq.nlargest(2, [x.shape[0], 4, 1])[1]


@program(x="float batch=3 length=6")
class CounterMost(nn.Module):
    def forward(self, x):
        n, times = collections.Counter([x.shape[0], x.shape[1], 6]).most_common(1)[0]
        return x * times + n


@program(x="float batch=3 length=6")
class ChainMaps(nn.Module):
    def forward(self, x):
        table = collections.ChainMap({x.shape[1]: 3.0}, {6: 2.0, 7: 5.0})
        return x * table.get(7, 1.0) + table.get(6, 0.0) + len(table)


class _Scale(typing.NamedTuple):
    factor: float
    length: int

    def of(self, n):
        return self.factor if n >= self.length else 1.0


@program(x="float batch=3 length=6")
class NamedTupleTable(nn.Module):
    scales = (_Scale(2.0, 4), _Scale(3.0, 10), _Scale(4.0, 100))

    def forward(self, x):
        best = max(self.scales, key=lambda s: (s.length <= x.shape[1], s.length))
        return x * best.factor + self.scales[1].of(x.shape[1])


class _Policy(ABC):
    @abstractmethod
    def pick(self, n): ...


class _ByThree(_Policy):
    def pick(self, n):
        return n // 3 if n % 3 == 0 else None


@program(x="float batch=3 length=6")
class StrategyObject(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = _ByThree()

    def forward(self, x):
        k = self.policy.pick(x.shape[1])
        return x.unflatten(1, (k, 3)).sum(1) if k is not None else x[:, :1].expand(-1, 3) * 0


class _Descriptor:
    def __get__(self, instance, owner):
        return instance.size * 2 if instance.size > 8 else -1


@program(x="float batch=3 length=6")
class DescriptorOfSize(nn.Module):
    doubled = _Descriptor()

    def forward(self, x):
        self.size = x.shape[1]
        return x * self.doubled


@program(x="float batch=3 length=6")
class CallableObject(nn.Module):
    class Once:
        def __init__(self):
            self.value = None

        def __call__(self, make):
            if self.value is None:
                self.value = make()
            return self.value

    def __init__(self):
        super().__init__()
        self.once = self.Once()

    def forward(self, x):
        first = self.once(lambda: x.shape[1])
        return x * first + self.once(lambda: 0)


@program(x="float batch=3 length=6")
class LruOfMethod(nn.Module):
    @functools.lru_cache(maxsize=None)  # noqa: B019, UP033
    def table(self, n):
        return torch.arange(n).float().cos()

    def forward(self, x):
        return x * self.table(x.shape[1]) + self.table(4).sum()


@functools.cache
def _mask(n):
    return torch.full((n, n), float("-inf")).triu(1)


@program(x="float batch=3 length=6")
class CachedMask(nn.Module):
    def forward(self, x):
        return ((x[:, :, None] * x[:, None]) + _mask(x.shape[1])).softmax(-1)


@program(x="float batch=3 length=6")
class ContextManagers(nn.Module):
    @contextlib.contextmanager
    def scaled(self, n):
        self.scale = 3.0 if n > 7 else 1.0
        try:
            yield self
        finally:
            self.scale = 0.0

    def forward(self, x):
        with self.scaled(x.shape[1]) as me, contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            y = x * me.scale
        return y + self.scale


@program(x="float batch=3 length=6")
class SuppressedError(nn.Module):
    def forward(self, x):
        y = x
        with contextlib.suppress(RuntimeError):
            y = x.view(x.shape[0], 2, -1).sum(1)
        return y.sum(1)


@program(x="float batch=3 length=6")
class ElseOfTry(nn.Module):
    def forward(self, x):
        try:
            y = x + torch.arange(6.0)
        except RuntimeError:
            return x * 2
        else:
            y = y * 3
        finally:
            x = x + 1
        return y


@program(x="float batch=3 length=6")
class ElseOfLoop(nn.Module):
    def forward(self, x):
        for d in (2, 3, 5, 7):
            if x.shape[1] % d == 0:
                x = x * d
                break
        else:
            x = -x
        return x


@program(x="float batch=3 length=6")
class WhileOnSize(nn.Module):
    def forward(self, x):
        rounds = 0
        while x.shape[1] > 3:
            x = x[:, ::2] + F.pad(x[:, 1::2], (0, x.shape[1] % 2))
            rounds += 1
        return x.sum(1) * rounds


@program(x="float batch=3 length=6")
class NestedLoops(nn.Module):
    def forward(self, x):
        total = x.new_zeros(x.shape[0])
        for i in range(x.shape[1]):
            for j in range(i):
                total = total + x[:, i] * x[:, j] / (i + j)
        return total


@program(x="float batch=3 length=6")
class LoopWithStart(nn.Module):
    def forward(self, x):
        out = []
        for i in range(x.shape[1] - 1, -1, -2):
            out.append(x[:, i] - (out[-1] if out else 0))
        return torch.stack(out, 1)


@program(x="float batch=3 length=6")
class LoopOverChunks(nn.Module):
    def forward(self, x):
        carry, out = x.new_zeros(x.shape[0], 1), []
        for part in x.split(4, 1):
            carry = carry + part.sum(1, keepdim=True)
            out.append(part + carry)
        return torch.cat(out, 1), carry


@program(x="float batch=3 length=6")
class LoopSkips(nn.Module):
    def forward(self, x):
        total = torch.zeros(())
        for i, row in enumerate(x):
            if i % 2:
                continue
            if i > 20:
                break
            total = total + row.sum() * i
        return total


@program(x="float batch=3 length=6")
class GeneratorOfWindows(nn.Module):
    def windows(self, x):
        start = 0
        while start < x.shape[1]:
            yield start, x[:, start : start + 3]
            start += 3

    def forward(self, x):
        return torch.stack([part.amax(1) + start for start, part in self.windows(x)], 1)


@program(x="float batch=3 length=6")
class RecursionOnSize(nn.Module):
    def fold(self, x):
        n = x.shape[1]
        if n == 1:
            return x[:, 0]
        return self.fold(x[:, : n // 2]) - self.fold(x[:, n // 2 :])

    def forward(self, x):
        return self.fold(x)


@program(x="float batch=3 length=6")
class KeywordOnly(nn.Module):
    def layer(self, /, x, *more, scale=1, **options):
        return x * scale + len(more) + len(options) * (options.get("n", 0) > 6)

    def forward(self, x):
        options = {"scale": 2, "n": x.shape[1]}
        return self.layer(x, *x.shape, **options)


@program(x="float batch=3 length=6")
class MatchShape(nn.Module):
    def forward(self, x):
        match x.shape:
            case (1, n):
                return x * n
            case (b, n) if b == n:
                return x.T
            case (_, n) if n > 10:
                return x[:, :10]
            case _:
                return -x


@program(x="float batch=3 length=6")
class TypesOfSizes(nn.Module):
    def forward(self, x):
        space = types.SimpleNamespace(n=x.shape[1], even=not x.shape[1] & 1)
        return x * (2 if space.even else 3) + space.n


@program(x="float batch=3 length=6")
class ComparesShapes(nn.Module):
    def forward(self, x):
        y = x.T @ x
        if y.shape > x.shape:
            return y.sum(0)
        return x.sum(0) if y.shape == x.shape else x.mean(0)


@program(x="float batch=3 length=6")
class ChainedSizes(nn.Module):
    def forward(self, x):
        b, n = x.shape
        return x * (2 if 2 <= b < n else 3) + (1 if not b == n != 5 else 4) + (b or n) + (b and n)


@program(x="float batch=3 length=6")
class SlicesFromNames(nn.Module):
    def forward(self, x):
        window = slice(x.shape[1] // 2, None, 2)
        start, stop, step = window.indices(x.shape[1])
        return (
            x[:, window].sum(1) + (stop - start) // step,
            x[(slice(None), slice(-2, None))],
            x[operator.itemgetter(0, -1)(range(x.shape[0])), :],
        )


@program(x="float batch=3 length=6")
class MinMaxOfMany(nn.Module):
    def forward(self, x):
        b, n = x.shape
        return x * min(b, n, 4) + max(x.shape) - max(b - n, 0) + abs(b - n) + min([n, 9], key=lambda v: -v)


@program(x="float batch=3 length=6")
class AnyAllOfSizes(nn.Module):
    def forward(self, x):
        return (
            x * (2 if any(n > 8 for n in x.shape) else 1)
            + all(n % 2 == 0 for n in x.shape)
            + sum(n > 4 for n in x.shape)
        )


@program(x="float batch=3 length=6")
class StringsOfShape(nn.Module):
    def forward(self, x):
        key = "x".join(map(str, x.shape))
        return x * {"3x7": 2.0, "4x6": 3.0}.get(key, 1.0) + len(key) + repr(tuple(x.shape)).count("1")


@program(x="float batch=3 length=6")
class NumberMethods(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return (
            x * (n / 4).is_integer() + n.bit_count() if isinstance(n, int) else x * (n / 4) + float(n).hex().count("1")
        )


@program(x="float batch=3 length=6")
class DictOfRanges(nn.Module):
    table = {range(0, 5): 1.0, range(5, 12): 2.0, range(12, 1000): 3.0}  # noqa: RUF012

    def forward(self, x):
        return x * next((v for r, v in self.table.items() if x.shape[1] in r), 9.0)


@program(x="float batch=3 length=6")
class GlobalsBySize(nn.Module):
    def forward(self, x):
        return globals()["_small" if x.shape[1] < 9 else "_large"](x)


def _small(x):
    return x.sum(1)


def _large(x):
    return x.mean(1) * 100
