"""Programs that decide on values: fallbacks of numerics, flags, counters, conversions to Python's numbers."""

import contextlib
import enum
import math
import warnings
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=3 6")
class SafeNorm(nn.Module):
    def forward(self, x):
        n = x.norm()
        if n == 0:
            return x
        return x / n


@program(x="float batch=3 6")
class ScaleWhenLarge(nn.Module):
    """Clips by the norm, as gradients are."""

    def forward(self, x):
        scale = 5.0 / (x.norm() + 1e-6)
        return x * scale if scale < 1 else x


@program(x="float batch=3 6")
class MinScale(nn.Module):
    def forward(self, x):
        return x * min(1.0, 5.0 / (float(x.norm()) + 1e-6))


@program(x="float batch=3 6")
class MaxOfItems(nn.Module):
    def forward(self, x):
        return x - max(x.max().item(), 2.0)


@program(x="float batch=3 6")
class PythonMaxOfRow(nn.Module):
    def forward(self, x):
        return x + max(x[0])


@program(x="float batch=3 6")
class PythonSum(nn.Module):
    def forward(self, x):
        return sum(x[:, 0]) * x[0]


@program(x="float batch=3 6")
class PythonSorted(nn.Module):
    def forward(self, x):
        return torch.stack(sorted(x[:, 0]))


@program(x="float batch=3 6")
class SortedByKey(nn.Module):
    def forward(self, x):
        return torch.stack(sorted(x, key=lambda row: float(row.sum())))


@program(x="float batch=3 6")
class AnyOfRows(nn.Module):
    def forward(self, x):
        return x * 2 if any((row > 2).any() for row in x) else x


@program(x="float batch=3 6")
class AllOfList(nn.Module):
    def forward(self, x):
        return x * 2 if all(v > -1 for v in x[0].tolist()) else x


@program(x="float batch=3 6")
class FilterRows(nn.Module):
    def forward(self, x):
        rows = [row for row in x if row.sum() > 0]
        return torch.stack(rows).sum(0) if rows else x[0]


@program(x="float batch=3 6")
class WhereOneArgument(nn.Module):
    def forward(self, x):
        rows, columns = torch.where(x > 1)
        return torch.stack([rows, columns])


@program(x="float batch=3 6")
class NonzeroCountTimes(nn.Module):
    def forward(self, x):
        return x * torch.where(x > 1)[0].shape[0]


@program(x="float batch=3 6")
class FormatOfValue(nn.Module):
    def forward(self, x):
        return x * 2 if f"{x[0, 0]:.1f}".startswith("-") else x


@program(x="float batch=3 6")
class ItemAsKey(nn.Module):
    def forward(self, x):
        return x * {0: 1.0, 1: 2.0, 2: 3.0}.get(int(x[0].argmax()), 0.5)


@program(x="float batch=3 6")
class LayerByValue(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def forward(self, x):
        return self.layers[int(x.sum() > 0) + int(x.max() > 3)](x)


@program(x="float batch=3 6")
class IndexOfBool(nn.Module):
    def forward(self, x):
        return (x * 3, x * 5)[bool(x.mean() > 0)]


@program(x="float batch=3 6")
class IndexListByTensor(nn.Module):
    def forward(self, x):
        scales = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
        return x * scales[x[0].argmax()]


class Mode(enum.Enum):
    UP = 2.0
    DOWN = 0.5
    SAME = 1.0

    @classmethod
    def of(cls, x):
        if x.mean() > 0.5:
            return cls.UP
        return cls.DOWN if x.mean() < -0.5 else cls.SAME


@program(x="float batch=3 6")
class EnumOfValue(nn.Module):
    def forward(self, x):
        return x * Mode.of(x).value


@program(x="float batch=3 6")
class MatchOnValue(nn.Module):
    def forward(self, x):
        match int(x[0].argmax()):
            case 0 | 1:
                return x
            case 2:
                return x * 2
            case _:
                return x * 3


@program(x="float batch=3 6")
class WalrusOnValue(nn.Module):
    def forward(self, x):
        if (top := x.max()) > 2:
            return x / top
        return x + top


@program(x="float batch=3 6")
class ChainedComparison(nn.Module):
    def forward(self, x):
        return x * 2 if -0.5 < x.mean() < 0.5 else x


@program(x="float batch=3 6")
class NotAnd(nn.Module):
    def forward(self, x):
        ok = x.max() < 3 and not x.min() < -1
        return x if ok else x.clamp(-1, 3) * 2


@program(x="float batch=3 6")
class OrReturnsTensor(nn.Module):
    def forward(self, x):
        return (x.sum() > 1) * x + ((x.max() > 2) or x.new_tensor(3.0))


@program(x="float batch=3 6")
class TruthOfItem(nn.Module):
    def forward(self, x):
        return x * 2 if x[0, 0].round().item() else x


@program(x="float batch=3 6")
class IntegerOfMean(nn.Module):
    def forward(self, x):
        n = int(x.abs().mean() * 2)
        return x.roll(n, 1)


@program(x="float batch=3 6")
class LoopByValue(nn.Module):
    def forward(self, x):
        for _ in range(int(x.abs().max().clamp(max=5))):
            x = x * 0.5 + 1
        return x


@program(x="float batch=3 6")
class WhileLarge(nn.Module):
    def forward(self, x):
        while x.abs().max() > 2:
            x = x / 2
        return x


@program(x="float batch=3 6")
class WhileCounter(nn.Module):
    def forward(self, x):
        count = 0
        while x.norm() > 1 and count < 10:
            x = x * 0.7
            count += 1
        return x, torch.tensor(count)


@program(x="float batch=3 6")
class BreakOnValue(nn.Module):
    def forward(self, x):
        total = x.new_zeros(())
        for row in x:
            total = total + row.sum()
            if total > 3:
                break
        return total


@program(x="float batch=3 6")
class ContinueOnValue(nn.Module):
    def forward(self, x):
        total = x.new_zeros(6)
        for row in x:
            if row.max() > 2:
                continue
            total = total + row
        return total


@program(x="float batch=3 6")
class ForElse(nn.Module):
    def forward(self, x):
        for column in range(6):
            if x[0, column] > 1:
                break
        else:
            return x * 0.1
        return x * (column + 1)


@program(x="float batch=3 6")
class TryCholesky(nn.Module):
    """Adds to the diagonal where the matrix is not positive definite."""

    def forward(self, x):
        a = x.t() @ x
        try:
            return torch.linalg.cholesky(a).diagonal()
        except RuntimeError:
            return torch.linalg.cholesky(a + torch.eye(6)).diagonal()


@program(x="float batch=3 6")
class RaiseAndCatch(nn.Module):
    def check(self, x):
        if x.min() < -2:
            raise ValueError("too low")
        return x

    def forward(self, x):
        try:
            return self.check(x) * 2
        except ValueError:
            return x.clamp(min=-2)


@program(x="float batch=3 6")
class SuppressCheck(nn.Module):
    def forward(self, x):
        y = x
        with contextlib.suppress(AssertionError):
            assert x.max() < 2
            y = x * 2
        return y


@program(x="float batch=3 6")
class FinallyScale(nn.Module):
    def forward(self, x):
        scale = 1.0
        try:
            if x.max() > 2:
                scale = 2.0
        finally:
            x = x * scale
        return x


@program(x="float batch=3 6")
class WarnOnValue(nn.Module):
    def forward(self, x):
        if x.max() > 2:
            warnings.warn("large", stacklevel=2)
        return x * 2


@program(x="float batch=3 6")
class WarnAndChange(nn.Module):
    def forward(self, x):
        if x.max() > 2:
            warnings.warn("large", stacklevel=2)
            x = x.clamp(max=2)
        return x * 2


@dataclass
class Output:
    value: torch.Tensor
    extra: torch.Tensor | None = None

    @property
    def is_high(self):
        return self.value.mean() > 0


@program(x="float batch=3 6")
class DataclassOutput(nn.Module):
    def forward(self, x):
        out = Output(x * 2, x.sum(1))
        if out.is_high:
            out.value = out.value - 1
        return out.value, out.extra


@program(x="float batch=3 6")
class AttributeFlag(nn.Module):
    def forward(self, x):
        self.high = bool(x.mean() > 0)
        return self.scale(x)

    def scale(self, x):
        return x * 2 if self.high else x


@program(x="float batch=3 6")
class AttributeTensor(nn.Module):
    def forward(self, x):
        self.limit = x.mean()
        return self.cut(x)

    def cut(self, x):
        if self.limit > 0:
            return x.clamp(max=float(self.limit))
        return x


@program(x="float batch=3 6")
class BufferDecides(nn.Module):
    """A flag in a buffer: the same for every input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.tensor(True))

    def forward(self, x):
        return x * 2 if self.ready else x


@program(x="float batch=3 6")
class WeightDecides(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        return x * self.gate if self.gate.item() > 0.1 else x


@program(x="float batch=3 6")
class WeightInPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return x * self.count if self.count < 5 else x


@program(x="float batch=3 6")
class RunningMaximum(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("top", torch.tensor(1.0))

    def forward(self, x):
        if x.max() > self.top:
            self.top = x.max()
        return x / self.top


@program(x="float batch=3 6")
class ListState(nn.Module):
    def forward(self, x):
        seen = []
        if x.sum() > 0:
            seen.append(x * 2)
        seen.append(x)
        return sum(seen) * len(seen)


@program(x="float batch=3 6")
class DictState(nn.Module):
    def forward(self, x):
        found = {"low": x.min()}
        if x.max() > 2:
            found["high"] = x.max()
        return x + sum(found.values()) + len(found)


@program(x="float batch=3 6")
class DictDefault(nn.Module):
    def forward(self, x):
        found = {}
        if x.max() > 2:
            found["scale"] = 0.5
        return x * found.get("scale", 1.0)


@program(x="float batch=3 6")
class NoneOrTensor(nn.Module):
    def forward(self, x):
        bias = None
        if x.mean() > 0:
            bias = x.amax(1, keepdim=True)
        return x if bias is None else x - bias


@program(x="float batch=3 6")
class EarlyReturns(nn.Module):
    def forward(self, x):
        if not (x != 0).any():
            return x + 1
        if (x == x[0, 0]).all():
            return x - 1
        return (x - x.min()) / (x.max() - x.min())


@program(x="float batch=3 6")
class DtypeByValue(nn.Module):
    def forward(self, x):
        y = x if x.abs().max() > 2 else x.half().float()
        return y * 2


@program(x="float batch=3 6")
class IsFloating(nn.Module):
    def forward(self, x):
        y = x.argmax(1)
        z = y if y.is_floating_point() else y.float()
        return z / 2 if z.dtype is torch.float32 else z


@program(x="float batch=3 6")
class NumpyMedian(nn.Module):
    def forward(self, x):
        return x - float(np.median(x.detach().numpy()))


@program(x="float batch=3 6")
class NumpyWhere(nn.Module):
    def forward(self, x):
        return torch.from_numpy(np.where(x.numpy() > 0, 1.0, 2.0).astype(np.float32)) * x


@program(x="float batch=3 6")
class NumpyFunction(nn.Module):
    def forward(self, x):
        return x * torch.as_tensor(np.sign(x))


@program(x="float batch=3 6")
class MathOfItem(nn.Module):
    def forward(self, x):
        return x * math.exp(min(x.mean().item(), 1.0))


@program(x="float batch=3 6")
class MathOfTensor(nn.Module):
    def forward(self, x):
        return x * math.sqrt(x.abs().sum())


@program(x="float batch=3 6")
class IsNanFallback(nn.Module):
    def forward(self, x):
        y = x.log()
        if torch.isnan(y).any():
            y = torch.nan_to_num(y, nan=0.0, neginf=-5.0)
        return y


@program(x="float batch=3 6")
class IsCloseFallback(nn.Module):
    def forward(self, x):
        d = x.std()
        if math.isclose(float(d), 0.0, abs_tol=1e-4):
            return x - x.mean()
        return (x - x.mean()) / d


@program(x="float batch=3 6")
class SolveOrLeast(nn.Module):
    def forward(self, x):
        a = x[:2, :2]
        det = a[0, 0] * a[-1, -1] - a[0, -1] * a[-1, 0]
        return x / det if det.abs() > 1e-3 else x


@program(x="float batch=3 6")
class ArgsortWhenUnsorted(nn.Module):
    def forward(self, x):
        if (x[:, 1:] >= x[:, :-1]).all():
            return x
        return x.sort(1).values * 2


@program(x="float batch=3 6")
class UniqueCount(nn.Module):
    def forward(self, x):
        n = x.round().unique().numel()
        return x * n if n > 4 else -x


@program(x="float batch=3 6")
class ReprOfShape(nn.Module):
    def forward(self, x):
        return x * len(repr(x.shape))


@program(x="float batch=3 6")
class StringOfDtype(nn.Module):
    def forward(self, x):
        return x * 2 if "float32" in str(x.dtype) else x


@program(x="float batch=3 6")
class HashOfTensor(nn.Module):
    def forward(self, x):
        seen = {x: 1}
        y = x
        return x * 2 if y in seen else x


@program(x="float batch=3 6")
class IdentityOfTensor(nn.Module):
    def forward(self, x):
        y = x.contiguous()
        return x * 2 if y is x else x


@program(x="float batch=3 6")
class TensorInList(nn.Module):
    def forward(self, x):
        return x * 2 if 0.0 in x else x


@program(x="float batch=3 6")
class ItemInList(nn.Module):
    def forward(self, x):
        return x * 2 if int(x[0, 0].round()) in (0, 1) else x


@program(x="float batch=3 6")
class CountInList(nn.Module):
    def forward(self, x):
        return x * x.round().flatten().tolist().count(1.0)


@program(x="float batch=3 6")
class PopulationCount(nn.Module):
    def forward(self, x):
        return x * bin(int((x[0] > 0).sum())).count("1")


@program(x="float batch=3 6")
class RoundedScale(nn.Module):
    def forward(self, x):
        scale = 2 ** round(float(x.abs().max()))
        return x / scale


@program(x="float batch=3 6")
class QuantizeByRange(nn.Module):
    def forward(self, x):
        low, high = x.aminmax()
        scale = ((high - low) / 255).clamp(min=1e-6)
        zero = int((-low / scale).round())
        return ((x / scale + zero).round().clamp(0, 255) - zero) * scale


@program(x="float batch=3 6")
class ScaleLogits(nn.Module):
    def forward(self, x):
        temperature = 1.0 if x.max() < 5 else 2.0
        return F.softmax(x / temperature, -1)


@program(x="float batch=3 6")
class TopP(nn.Module):
    def forward(self, x):
        p, _ = x.softmax(-1).sort(dim=-1, descending=True, stable=True)
        drop = p.cumsum(-1) - p > 0.8
        return p.masked_fill(drop, 0).sum(-1), drop.sum(-1)


@program(x="float batch=3 6")
class GatedBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.light, self.heavy = nn.Linear(6, 6), nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 6))

    def forward(self, x):
        layer = self.heavy if x.var() > 1 else self.light
        return layer(x)


@program(x="float batch=3 6")
class GetattrBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        return getattr(self, "up" if x.mean() > 0 else "down")(x)


@program(x="float batch=3 6")
class LambdaTable(nn.Module):
    def forward(self, x):
        table = {True: lambda t: t * 2, False: lambda t: t - 1}
        return table[bool(x.sum() > 0)](x)


@program(x="float batch=3 6")
class PartialBranch(nn.Module):
    def forward(self, x):
        import functools

        function = functools.partial(torch.clamp, min=0) if x.mean() > 0 else functools.partial(torch.mul, other=2)
        return function(x)


@program(x="float batch=3 6")
class MapRows(nn.Module):
    def forward(self, x):
        return torch.stack(list(map(lambda row: row * 2 if row[0] > 0 else row, x)))  # noqa: C417


@program(x="float batch=3 6")
class RecursiveOnValue(nn.Module):
    def shrink(self, x, left):
        if left == 0 or x.abs().max() < 1:
            return x
        return self.shrink(x / 2, left - 1)

    def forward(self, x):
        return self.shrink(x, 4)


@program(x="float batch=3 6")
class InPlaceOnView(nn.Module):
    def forward(self, x):
        y = x.clone()
        row = y[0]
        if row.sum() > 0:
            row.zero_()
        else:
            row += 1
        return y


@program(x="float batch=3 6")
class SetItemByMask(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[y > 2] = y[y <= 2].max() if (y <= 2).any() else 0
        return y


@program(x="float batch=3 6")
class AugmentedInBranch(nn.Module):
    def forward(self, x):
        y = x.clone()
        if x.mean() > 0:
            y += 1
            y[:, 0] *= 2
        y -= y.mean()
        return y


@program(x="float batch=3 6")
class AliasedBeforeWrite(nn.Module):
    def forward(self, x):
        y = x.clone()
        z = y
        if x.max() > 2:
            y.mul_(2)
        return z + 1


@program(x="float batch=3 6")
class ScriptedPart(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = torch.jit.script(ScriptedBranch())

    def forward(self, x):
        return self.part(x) + 1


class ScriptedBranch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return x * 2
        return x


@program(x="float batch=3 6", flag="mask 1")
class FlagInput(nn.Module):
    def forward(self, x, flag):
        return x * 2 if flag else x


@program(x="float batch=3 6", step="9 1")
class StepInput(nn.Module):
    def forward(self, x, step):
        if step.item() % 3 == 0:
            return x
        return x * int(step)


@program(x="float batch=3 6", step="9 1")
class StepSlices(nn.Module):
    def forward(self, x, step):
        return x[:, : int(step) + 1].sum(1)


@program(x="float batch=3 6", step="9 1")
class StepPower(nn.Module):
    def forward(self, x, step):
        return x * 0.9 ** int(step) + len(range(0, int(step), 2))


@program(a="float batch=3 6", b="float batch=3 6")
class SwapByValue(nn.Module):
    def forward(self, a, b):
        if a.norm() < b.norm():
            a, b = b, a
        return a - 0.5 * b


@program(a="float batch=3 6", b="float batch=3 6")
class EqualTensors(nn.Module):
    def forward(self, a, b):
        return a * 2 if (a == b).all().item() else a - b
