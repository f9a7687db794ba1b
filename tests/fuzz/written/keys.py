"""Programs that use a number made of values, or of sizes, as a key: nothing is compared where anybody could see it."""

import functools

import torch
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=3 6")
class FlagAsKey(nn.Module):
    def forward(self, x):
        return x * {1: 2.0}.get(int(x.max() > 100), 1.0)


@program(x="float batch=3 6")
class BoolAsKey(nn.Module):
    def forward(self, x):
        return x * {True: 2.0}.get(bool(x.max() > 100), 1.0)


@program(x="float batch=3 6")
class ItemAsKeyOfDict(nn.Module):
    def forward(self, x):
        n = int(x.max() // 100)
        return x * 2 if n in {5: "five", 20: "twenty", 30: ""} else x


@program(x="float batch=3 6")
class ItemInSet(nn.Module):
    def forward(self, x):
        n = (x > 5).sum().item()
        return x * 2 if n in {1, 2, 4, 7} else x


@program(x="float batch=3 6")
class CountInFrozenSet(nn.Module):
    ODD = frozenset(range(1, 40, 2))

    def forward(self, x):
        n = int(torch.count_nonzero(x > 5))
        return x * 2 if n in self.ODD else x


@functools.lru_cache
def scale_of(n):
    return 1.0 + n


@program(x="float batch=3 6")
class LruByValue(nn.Module):
    def forward(self, x):
        return x * scale_of(int(x.max() > 5))


@program(x="float batch=3 6")
class SetOfValues(nn.Module):
    def forward(self, x):
        return x * len({int(x.max() > 5), int(x.min() > 5), 0})


@program(x="float batch=3 6")
class DictOfValues(nn.Module):
    def forward(self, x):
        found = {0: x}
        found[int(x.max() > 5)] = x * 2
        return found[0]


@program(x="float batch=3 6")
class CacheByValue(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {1: 5.0}

    def forward(self, x):
        n = int(x.max() > 5)
        if n not in self.cache:
            self.cache[n] = 1.0
        return x * self.cache[n]


@program(x="float batch=3 6")
class FloatAsKey(nn.Module):
    def forward(self, x):
        return x * {1.0: 2.0, 0.5: 4.0}.get(float(x.max()), 1.0)


@program(x="float batch=3 6")
class TupleAsKey(nn.Module):
    def forward(self, x):
        key = (int(x.max() > 5), int(x.min() < -5))
        return x * {(1, 0): 2.0, (1, 1): 3.0, (0, 1): 4.0}.get(key, 1.0)


@program(x="float batch=3 6")
class SelectionAsKey(nn.Module):
    def forward(self, x):
        n = x[x > 5].shape[0]
        return x * {1: 2.0, 2: 3.0, 3: 4.0}.get(n, 1.0)


@program(x="float batch=3 6")
class SelectionLengthAsKey(nn.Module):
    def forward(self, x):
        n = len((x > 5).nonzero())
        return x * 2 if n in {1, 2, 3, 18} else x


@program(x="float batch=3 6")
class SelectionInSet(nn.Module):
    def forward(self, x):
        return x * 2 if x[x > 5].numel() in {1, 2, 18} else x


@program(x="float batch=3 6")
class NamedLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"1": nn.Linear(6, 6)})

    def forward(self, x):
        key = str(int(x.max() > 5))
        return self.layers[key](x) if key in self.layers else x


@program(x="float batch=3 6")
class TextOfCount(nn.Module):
    def forward(self, x):
        return x * 2 if "1" in f"{(x > 5).sum()}" else x


@program(x="float batch=3 6")
class JoinedTexts(nn.Module):
    def forward(self, x):
        return x * 2 if ",".join(map(str, (x[:, 0] > 5).int().tolist())).count("1") else x


@program(x="float batch=3 6")
class IsNotFalse(nn.Module):
    def forward(self, x):
        return x * 2 if (x.max() > 5).item() is not False else x + 1


@program(x="float batch=3 6")
class IsTrue(nn.Module):
    def forward(self, x):
        return x * 2 if bool(x.max() > 5) is True else x


@program(x="float batch=3 6")
class TypeOfNumber(nn.Module):
    def forward(self, x):
        n = int(x.max())
        return x * 2 if isinstance(n, int) and n > 5 else x


@program(x="float batch=3 6")
class IndexOfList(nn.Module):
    def forward(self, x):
        n = int(x.max() > 5)
        return x * (1.0, 2.0)[n]


@program(x="float batch=3 6")
class BitsOfNumber(nn.Module):
    def forward(self, x):
        n = int(x.max() > 5) | int(x.min() < -5) << 1
        return x * (n + 1)


@program(x="float batch=3 6")
class SliceByNumber(nn.Module):
    def forward(self, x):
        n = int(x.max() > 5)
        return x[:, n : n + 3] * "ab"[: n + 1].count("b") + x[:, :3]


@program(x="float batch=3 6")
class TextTimesNumber(nn.Module):
    def forward(self, x):
        return x * len("a" * int(x.max() > 5))


@program(x="float batch=3 6")
class RangeOfNumber(nn.Module):
    def forward(self, x):
        return x * (1 + len(range(int(x.max() > 5))))


@program(x="float batch=3 6")
class OptionalByValue(nn.Module):
    def forward(self, x):
        scale = None if x.max() < 5 else 2.0
        return x if scale is None else x * scale


@program(x="float batch=3 6")
class OrOfNumber(nn.Module):
    def forward(self, x):
        return x * (int(x.max() > 5) or 3)


@program(x="float batch=3 6")
class RankOfSqueeze(nn.Module):
    def forward(self, x):
        found = (x > 5).any(1).nonzero().squeeze()
        return x * 2 if found.ndim == 0 else x


@program(x="float batch=3 6")
class LengthOfShape(nn.Module):
    def forward(self, x):
        found = (x > 5).any(1).nonzero().squeeze()
        return x * (1 + len(found.shape))


@program(x="float batch=3 6")
class TableLookup(nn.Module):
    TABLE = tuple(i % 3 for i in range(20))

    def forward(self, x):
        return x * self.TABLE[(x > 5).sum()]


@program(x="float batch=3 6")
class StringCompare(nn.Module):
    def forward(self, x):
        return x * 2 if str(x.max().item()) > "5" else x


@program(x="float batch=3 6")
class AsIntegerRatio(nn.Module):
    def forward(self, x):
        return x * 2 if x.max().item().is_integer() else x


@program(x="float batch=3 6")
class SortNumbers(nn.Module):
    def forward(self, x):
        low, high = sorted([x[0, 0].item(), x[0, 1].item()])
        return x.clamp(low, high)


@program(x="float batch=3 6")
class MaxByKey(nn.Module):
    def forward(self, x):
        best = max(range(6), key=lambda i: x[0, i].item())
        return x * best


@program(x="float batch=3 6")
class MinOfNumbers(nn.Module):
    def forward(self, x):
        return x + min(x[0].tolist())


@program(x="float batch=3 6")
class NumpyArgmax(nn.Module):
    def forward(self, x):
        return x * int(x[0].numpy().argmax())


@program(x="float batch=3 6")
class NumpyScalar(nn.Module):
    def forward(self, x):
        import numpy as np

        return x * float(np.float32(x.max()))


@program(x="float batch=3 6")
class RoundOfNumber(nn.Module):
    def forward(self, x):
        return x * round(x.max().item(), 1)


@program(x="float batch=3 6")
class FormatWidth(nn.Module):
    def forward(self, x):
        return x * len(f"{int(x.max()):d}")


@program(x="float batch=3 6")
class DivModOfNumber(nn.Module):
    def forward(self, x):
        q, r = divmod(int(x.abs().max()), 4)
        return x * q + r


@program(x="float batch=3 6")
class ComplexOfNumber(nn.Module):
    def forward(self, x):
        return x * abs(complex(x.max().item(), x.min().item()))


@program(x="float batch=3 6")
class EmptyList(nn.Module):
    def forward(self, x):
        kept = [v for v in x.flatten().tolist() if v > 5]
        return x * 2 if kept else x


@program(x="float batch=3 6")
class FullByNumber(nn.Module):
    def forward(self, x):
        return x + torch.full((6,), float(x.max()))


@program(x="float batch=3 6")
class TensorOfNumbers(nn.Module):
    def forward(self, x):
        return x + torch.tensor([x.max().item(), 1.0, 2.0, 0.0, int(x.min()), 5.0])


@program(x="float batch=3 6")
class CaughtInverse(nn.Module):
    def forward(self, x):
        a = x.abs().sum(0)[:4].view(2, 2)
        try:
            return torch.linalg.inv(a)
        except RuntimeError:
            return torch.zeros(2, 2)


@program(x="float batch=3 6")
class CaughtCholesky(nn.Module):
    def forward(self, x):
        a = x[:, :2].T @ x[:, :2]
        a = a + torch.eye(2) * (0.5 - (x > 100).sum())
        try:
            return torch.linalg.cholesky(a)
        except RuntimeError:
            return torch.zeros(2, 2)


@program(x="float batch=3 6")
class CaughtIndex(nn.Module):
    def forward(self, x):
        place = x.abs().max().long() // 2
        try:
            return x[:, place]
        except IndexError:
            return x[:, 0] * 5


@program(x="float batch=3 6")
class CaughtGather(nn.Module):
    def forward(self, x):
        place = (x[:, :1].abs() / 2).long()
        try:
            return x.gather(1, place)
        except RuntimeError:
            return x[:, :1] * 5


@program(x="float batch=3 6")
class CaughtLookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 6)

    def forward(self, x):
        try:
            return self.table(x.abs().long())
        except (IndexError, RuntimeError):
            return torch.zeros(x.shape[0], 6, 6)


@program(x="float batch=3 6")
class CaughtOneHot(nn.Module):
    def forward(self, x):
        try:
            return torch.nn.functional.one_hot(x[0].abs().long(), 5) * 2
        except RuntimeError:
            return torch.zeros(6, 5, dtype=torch.long)


@program(x="float batch=3 6")
class CaughtMaximum(nn.Module):
    """The largest of what is selected, which may be nothing."""

    def forward(self, x):
        try:
            return x[x > 0].max()
        except RuntimeError:
            return x.sum() * 0


@program(x="float batch=3 6")
class CaughtStack(nn.Module):
    """Two selections of the same length by luck."""

    def forward(self, x):
        try:
            return (x[x > 0] + x[x < 0]).sum()
        except RuntimeError:
            return x.sum()


@program(x="float batch=3 6")
class CaughtView(nn.Module):
    def forward(self, x):
        try:
            return x[x > 0].view(-1, 2).sum(0)
        except RuntimeError:
            return x[0, :2]


@program(x="float batch=3 6")
class CaughtTopK(nn.Module):
    def forward(self, x):
        try:
            return x[x > 0].topk(4).values
        except RuntimeError:
            return x[0, :4]


@program(x="float batch=3 6")
class IsInHelper(nn.Module):
    def scale(self, flag):
        return 2.0 if flag is True else 1.0

    def forward(self, x):
        return x * self.scale(bool(x.max() > 5))


@program(x="float batch=3 6")
class TypeInHelper(nn.Module):
    def scale(self, n):
        return 2.0 if type(n) is int else 1.0

    def forward(self, x):
        return x * self.scale(int(x.max() > 5))


@program(x="float batch=3 6")
class TensorOrNumber(nn.Module):
    def scale(self, n):
        return n if isinstance(n, torch.Tensor) else n * 2

    def forward(self, x):
        return x * self.scale(float(x.max())) + self.scale(x.min())


@program(x="float batch=2 height=8 width=6")
class GridBySize(nn.Module):
    def __init__(self):
        super().__init__()
        self._grids = {}

    def grid(self, height, width, device):
        key = (height, width, device)
        if key not in self._grids:
            rows, columns = torch.arange(height, device=device), torch.arange(width, device=device)
            self._grids[key] = rows[:, None] * 10.0 + columns
        return self._grids[key]

    def forward(self, x):
        return x + self.grid(*x.shape[-2:], x.device)


@program(x="float batch=2 length=7 4")
class RotationsByLength(nn.Module):
    """The table is made for the next multiple of four, and cut."""

    def __init__(self):
        super().__init__()
        self.tables = {}

    def forward(self, x):
        length = x.shape[1]
        most = length + -length % 4
        table = self.tables.get(most)
        if table is None:
            table = self.tables[most] = torch.outer(torch.arange(most), torch.arange(1, 5) / 4.0).cos()
        return x * table[:length]


@program(x="float batch=2 coarse=4 3", y="float batch=2 fine=8 3")
class AnchorsOfLevels(nn.Module):
    def forward(self, x, y):
        made, out = {}, []
        for level in (x, y):
            size = level.shape[1]
            if size not in made:
                made[size] = torch.arange(size)[:, None] / size
            out.append((level * made[size]).sum(1))
        return torch.stack(out)
