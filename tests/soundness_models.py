"""Models that decide on sizes and values in ways that are easily frozen; stock torch exports most of them wrong."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# On sizes: the example is (2, 3, 32, 32), every axis but the channels may vary


class Grid(nn.Module):
    """Resizes its position embedding where the grid differs, as many vision transformers do."""

    def __init__(self):
        super().__init__()
        self.patch, self.pos = nn.Conv2d(3, 8, 16, 16), nn.Parameter(torch.randn(1, 8, 2, 2))

    def forward(self, x):
        y, p = self.patch(x), self.pos
        if y.shape[-2:] != p.shape[-2:]:
            p = F.interpolate(p, size=y.shape[-2:], mode="bilinear")
        return y + p


class AfterStride(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 4, 16, 16)

    def forward(self, x):
        y = self.c(x)
        if y.shape[2] != 2:
            y = F.interpolate(y, size=(2, 2), mode="bilinear")
        return y


class Among(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[2] in (513, 31) else x + 1


class TupleOfSizes(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[2:] == (224, 224) else x + 1


class TextOfSize(nn.Module):
    def forward(self, x):
        return x * 2 if str(x.shape[2]) == "513" else x + 1


class SizeAsKey(nn.Module):
    def forward(self, x):
        return x * {512: 2.0}.get(x.shape[-1], 1.0)


class NumberOfParts(nn.Module):
    def forward(self, x):
        return x * 2 if len(x.split(8, 2)) > 9 else x + 1


class NumberOfRowsThatShowsSeldom(nn.Module):
    """For most values the result is the same whichever way the decision goes."""

    def forward(self, x):
        factor = -1.0
        if len(x.unbind(2)) > 50:
            factor = 0.5
        y = x * factor
        return y.masked_fill(y < 4, 0.25)


class TypeOfSize(nn.Module):
    def forward(self, x):
        return x * 2 if isinstance(x.shape[2], int) and x.shape[2] > 512 else x + 1


class TypeOfSizeThatShowsSeldom(nn.Module):
    """A size is no int while the model is traced, so the decision is not met; few values tell."""

    def forward(self, x):
        factor = -1.0
        if isinstance(x.shape[2], int) and x.shape[2] > 50:
            factor = 0.5
        y = x * factor
        return y.masked_fill(y < 4, 0.25)


class KindOfSize(nn.Module):
    def forward(self, x):
        size = x.shape[2]
        return x * 2 if type(size) is int and size > 512 else x + 1


def limit():
    """A number that does not stand in the code around a question."""
    return 150


class LengthOfSteps(nn.Module):
    """C++ takes the number of steps, and no symbol, so the result's length is a number."""

    def forward(self, x):
        steps = torch.linspace(0, 1, x.shape[2])
        return x * 2 if isinstance(steps.shape[0], int) and steps.shape[0] > limit() else x * steps[:, None]


class LengthOfWindows(nn.Module):
    def forward(self, x):
        windows = x.unfold(2, x.shape[2] // 2, 1)
        total = windows.amax((2, 4))
        return total * 2 if isinstance(windows.shape[4], int) and windows.shape[4] > limit() // 2 else total


class TextOfQuotient(nn.Module):
    def forward(self, x):
        return x * 2 if str(x.shape[2] / 2) == "256.5" else x + 1


class PiecesOf64(nn.Module):
    def forward(self, x):
        return torch.cat([x[:, :, i : i + 64].softmax(2) for i in range(0, x.shape[2], 64)], 2)


class ProductByNumpy(nn.Module):
    def forward(self, x):
        return x * 2 if np.prod(x.shape) > 400000 else x + 1


class Stride(nn.Module):
    def forward(self, x):
        return x * 2 if x.stride(1) > 100000 else x + 1


class AfterPool(nn.Module):
    def forward(self, x):
        return x[:, :, :2, :2] if F.avg_pool2d(x, 16).shape[2] > 4 else x[:, :, :2, :2] * 2


class Bytes(nn.Module):
    def forward(self, x):
        return x * 2 if x.nbytes > 300000 else x + 1


class StorageSize(nn.Module):
    def forward(self, x):
        return x * 2 if x.untyped_storage().size() > 300000 else x + 1


class TwoThresholds(nn.Module):
    def forward(self, x):
        if x.shape[2] > 40:
            x = x * 2
        if x.shape[2] > 100:
            x = x + 1
        return x


class ListOfSizes(nn.Module):
    def forward(self, x):
        return x * 2 if list(x.shape[2:]) == [130, 129] else x


class CountInSizes(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape.count(520) else x


class InSizes(nn.Module):
    def forward(self, x):
        return x * 2 if 130 in x.shape else x


class SizeOfData(nn.Module):
    def forward(self, x):
        return x * 2 if x.data.shape[2] > 200 else x


class CacheBySize(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        n = x.shape[2]
        if n not in self.cache:
            self.cache[n] = torch.arange(n).float()
        return x + self.cache[n][:, None]


class HalfAsInt(nn.Module):
    def forward(self, x):
        n = int(x.shape[2] * 0.5)
        if n > 100:
            return x * 2
        return x + n


class SliceBeyondExample(nn.Module):
    def forward(self, x):
        return x * 2 if x[:, :, 40:].shape[2] == 0 else x


class HalfOfHeight(nn.Module):
    def forward(self, x):
        half = x[:, :, : x.shape[2] // 2]
        return x + (half.clamp(min=half.mean()) if half.shape[2] % 5 else half).sum()


class TableOfDistances(nn.Module):
    """Attention whose table of relative positions is cut where it is long, and resized where it is short.

    Where the two meet the mask of one branch fits the other by broadcasting, and at no larger size.
    """

    def __init__(self):
        super().__init__()
        self.qkv, self.table = nn.Linear(3, 9), nn.Parameter(torch.randn(2, 79))

    def forward(self, x):
        y = x.mean(2).transpose(1, 2)
        n, table = y.shape[1], self.table
        q, k, v = self.qkv(y).chunk(3, -1)
        if 2 * n - 1 > table.shape[1]:
            table = F.interpolate(table[None], size=2 * n - 1, mode="linear", align_corners=True)[0]
        else:
            table = table[:, (table.shape[1] - 2 * n + 1) // 2 :][:, : 2 * n - 1]
        place = torch.arange(n)
        scores = (q @ k.transpose(1, 2))[:, None] + table[:, place[:, None] - place + n - 1]
        return (scores.softmax(-1) @ v[:, None]).sum(1)


class SmallerSide(nn.Module):
    """min() asks which side is smaller, and then of that one only."""

    def forward(self, x):
        y = F.avg_pool2d(x, 2)
        return y * 3 if min(y.shape[2:]) < 18 else y


class LargerSide(nn.Module):
    def forward(self, x):
        return x * 3 if max(x.shape[2], x.shape[3]) > 60 and x.shape[2] + x.shape[3] < 150 else x


class IndexOrLast(nn.Module):
    """Catches the error of a call of torch; at 49 columns the last one is the one that is asked for."""

    def forward(self, x):
        try:
            return x[..., 48]
        except IndexError:
            return x[..., -1]


class OperatorOrMean(nn.Module):
    def forward(self, x):
        try:
            return x.narrow(-1, 0, 48).mean(-1)
        except (RuntimeError, IndexError):
            return x.mean(-1)


ON_SIZES = (
    IndexOrLast,
    OperatorOrMean,
    SmallerSide,
    LargerSide,
    TableOfDistances,
    Grid,
    AfterStride,
    Among,
    TupleOfSizes,
    TextOfSize,
    SizeAsKey,
    NumberOfParts,
    NumberOfRowsThatShowsSeldom,
    TypeOfSize,
    TypeOfSizeThatShowsSeldom,
    LengthOfSteps,
    LengthOfWindows,
    KindOfSize,
    TextOfQuotient,
    PiecesOf64,
    ProductByNumpy,
    Stride,
    AfterPool,
    Bytes,
    StorageSize,
    TwoThresholds,
    ListOfSizes,
    CountInSizes,
    InSizes,
    SizeOfData,
    CacheBySize,
    HalfAsInt,
    SliceBeyondExample,
    HalfOfHeight,
)

# On values: boxes (6, 4) and scores (6,), of which none is above 0.9 in the example


class SelectionBeforeElif(nn.Module):
    """The first decision is on how many were selected; the second one, in the same statement, is rewritten."""

    def forward(self, boxes, scores):
        factor = -1.0
        if F.max_pool1d(F.pad(boxes[boxes > 100], (0, 4))[None, None], 2).shape[-1] > 3:
            factor = 0.0
        elif scores.sum() > 0:
            return boxes + 1
        return boxes * factor


class SelectionIsEmpty(nn.Module):
    def forward(self, boxes, scores):
        keep = boxes[scores > 0.9]
        if keep.shape[0] == 0:
            return boxes.mean(0)
        return keep.mean(0)


class LengthOfSelection(nn.Module):
    def forward(self, boxes, scores):
        keep = boxes[scores > 0.9]
        if len(keep) == 0:
            return boxes.mean(0)
        return keep.mean(0)


class NothingFound(nn.Module):
    def forward(self, boxes, scores):
        idx = (scores > 0.9).nonzero()
        if idx.numel() == 0:
            return boxes.mean(0)
        return boxes[idx[:, 0]].mean(0)


class LoopOverFound(nn.Module):
    def forward(self, boxes, scores):
        y = boxes.sum(0)
        for i in (scores > 0.9).nonzero():
            y = y + boxes[i[0]]
        return y


class Equal(nn.Module):
    def forward(self, x, s):
        return x if torch.equal(x, x.round()) else x * 2


class AllClose(nn.Module):
    def forward(self, x, s):
        return x + 1 if torch.allclose(x, x.round()) else x * 2


class IsNonzero(nn.Module):
    def forward(self, x, s):
        return x + 1 if torch.is_nonzero((x > 100).sum()) else x * 2


class ItemByOperator(nn.Module):
    def forward(self, x, s):
        return x + 1 if torch.ops.aten.item(x.max()) > 100 else x * 2


class MaximumOfData(nn.Module):
    def forward(self, x, s):
        return x * 2 if x.data.abs().max() > 100 else x


class WhereOfData(nn.Module):
    def forward(self, x, s):
        return torch.where(x.data > 100, x * 2, x + 1)


class ByDlpack(nn.Module):
    def forward(self, x, s):
        return torch.where(torch.from_dlpack(x) > 100, x * 2, x + 1)


class NumpyByDlpack(nn.Module):
    def forward(self, x, s):
        return x * 2 if np.from_dlpack(x).max() > 100 else x


class TextOfValue(nn.Module):
    def forward(self, x, s):
        return x * 2 if len(f"{x.max()}") > 20 else x


class Repr(nn.Module):
    def forward(self, x, s):
        return x * 2 if "e+" in repr(x) else x


class StorageItem(nn.Module):
    def forward(self, x, s):
        return x * 2 if x.untyped_storage()[3] > 66 else x


class DeepCopy(nn.Module):
    def forward(self, x, s):
        return x * 2 if copy.deepcopy(x).max() > 100 else x


class CaughtRaise(nn.Module):
    def forward(self, x, s):
        try:
            if not torch.isfinite(x).all():
                raise ValueError
            return x / x.norm()
        except ValueError:
            return torch.zeros_like(x)


class CaughtInCaller(nn.Module):
    def check(self, x):
        if x.max() > 100:
            raise ValueError
        return x * 2

    def forward(self, x, s):
        try:
            return self.check(x)
        except ValueError:
            return torch.zeros_like(x)


class AssertOnTheLine(nn.Module):
    def forward(self, x, s):
        # fmt: off
        assert x.dim() == 2; y = x * 2 if x.max() > 100 else x  # noqa: E702
        # fmt: on
        return y


class Check(nn.Module):
    def forward(self, x, s):
        assert x.max() < 1e6, "too large"
        return x * 2


class WriteBeforeReturn(nn.Module):
    def forward(self, x, s):
        if x.sum() > 50:
            x = x + 1
        elif x.max() < -5:
            return x * 3
        return x * 2


class WhereOfDataOfResult(nn.Module):
    def forward(self, x, s):
        y = x * 2
        return torch.where(y.data > 100, y, x)


class SliceByCount(nn.Module):
    def forward(self, x, s):
        n = int((s > 0.9).sum())
        return x[: n + 1].sum(0)


class LengthOfPlaces(nn.Module):
    def forward(self, boxes, scores):
        return boxes * 2 if len(torch.where(boxes > 5)[0]) > 4 else boxes


class PooledSelection(nn.Module):
    """Decides on the size of what is computed from a selection, which is no selection's size."""

    def forward(self, boxes, scores):
        kept = F.max_pool1d(F.pad(scores[scores > 0.9], (0, 4))[None, None], 2, 2)
        return boxes * 2 if kept.shape[-1] > 2 else boxes


class JoinedSelection(nn.Module):
    def forward(self, boxes, scores):
        joined = torch.cat([boxes[scores > 0.9], boxes])
        return boxes * 2 if joined.size(0) > 7 else boxes


class FlagAsKey(nn.Module):
    """A dictionary looks for a key by its hash; that of a tensor is its identity."""

    def forward(self, x, s):
        return x * {1: 2.0}.get(int(x.max() > 100), 1.0)


class BoolAsKey(nn.Module):
    def forward(self, x, s):
        return x * {True: 2.0}.get(bool(x.max() > 100), 1.0)


class TextOfFlag(nn.Module):
    def forward(self, x, s):
        return x * 2 if str(int(x.max() > 100)) in ("1", "true") else x


class CountAsKey(nn.Module):
    def forward(self, boxes, scores):
        return boxes * {2: 3.0, 6: 4.0}.get(boxes[scores > 0.9].shape[0], 1.0)


class FlagIsTrue(nn.Module):
    """A decision is an object of Python's, and a tensor in its place is another one."""

    def forward(self, x, s):
        return x * 2 if bool(x.max() > 100) is True else x


class FlagIsNotFalse(nn.Module):
    def forward(self, x, s):
        flag = (x.abs().max() > 100).item()
        if flag is not False:
            return x * 2
        return x + 1


class TypeOfNumber(nn.Module):
    def forward(self, x, s):
        n = int(x.max().clamp(-1000, 1000))
        return x * 2 if isinstance(n, int) and not isinstance(n, torch.Tensor) and n > 100 else x


class MeanIsFloat(nn.Module):
    """A mean is no float while the model is captured, so the decision is not met."""

    def forward(self, x, s):
        mean = x.abs().mean().item()
        return x * 2 if isinstance(mean, float) and mean > 50 else x


class KindOfMean(nn.Module):
    def forward(self, x, s):
        mean = x.abs().mean().item()
        return x * 2 if type(mean) is float and mean > 50 else x


class TypeIsNumber(nn.Module):
    def forward(self, x, s):
        n = float(x.max()) + 1
        return x * 2 if type(n) is float and n > 100 else x


class RankAfterSqueeze(nn.Module):
    """Of one place that is found a squeeze makes a number."""

    def forward(self, boxes, scores):
        found = (boxes[:, 0] > boxes[:, 0].max() - 1e-6).nonzero().squeeze()
        more = (scores > 0.95).nonzero().squeeze()
        return boxes * 2 if more.dim() == 0 else boxes[found].sum() + boxes


class ShapeAfterSqueeze(nn.Module):
    def forward(self, boxes, scores):
        found = (scores > 0.96).nonzero().squeeze()
        return boxes * (1 + len(found.shape))


class SumAfterSqueeze(nn.Module):
    """Asks for no number of dimensions, so its file is right."""

    def forward(self, boxes, scores):
        return boxes + boxes[(scores > 0.96).nonzero().squeeze()].sum()


class PlaceOutside(nn.Module):
    """Catches an error of which values decide, and which the file does not know."""

    def forward(self, x, s):
        try:
            return x[:, x.abs().max().long() // 4]
        except IndexError:
            return x[:, 0] * 5


class SelectionsThatFit(nn.Module):
    def forward(self, boxes, scores):
        try:
            return boxes[scores > 0.9].sum(0) + boxes[scores > 2].max(0).values
        except (RuntimeError, IndexError):
            return boxes.sum(0)


class Experts(nn.Module):
    """Skips an expert that nothing is sent to, as it may be in the example."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, boxes, scores):
        weights, chosen = self.gate(boxes.clamp(-5, 5)).softmax(-1).max(-1)
        result = torch.zeros_like(boxes)
        for number, expert in enumerate(self.experts):
            sent = torch.where(chosen == number)[0]
            if sent.shape[0] == 0:
                continue
            result = result.index_add(0, sent, expert(boxes[sent].clamp(-5, 5)) * weights[sent][:, None])
        return result


class FixedSizesOfSelection(nn.Module):
    """Asks for the sizes of a selection that no value decides: these are numbers, and the file is made."""

    def forward(self, boxes, scores):
        kept = boxes[scores > 0.9]
        pairs = torch.stack(kept.unbind(1), 1).reshape(-1, 2, 2).flatten(1).view(-1, 2, 2)
        first, second = pairs.unbind(1)
        return first.sum(0) + second.sum(0) if pairs.shape[1] == 2 else pairs.sum()


class MergedSelection(nn.Module):
    def forward(self, boxes, scores):
        return boxes * 2 if boxes[scores > 0.9].reshape(-1, 2).shape[0] > 3 else boxes


class UniqueRows(nn.Module):
    def forward(self, boxes, scores):
        return boxes * 2 if boxes.round().unique(dim=0).shape[0] < 6 else boxes


ON_VALUES = (
    FlagAsKey,
    BoolAsKey,
    TextOfFlag,
    CountAsKey,
    FlagIsTrue,
    FlagIsNotFalse,
    TypeOfNumber,
    MeanIsFloat,
    KindOfMean,
    TypeIsNumber,
    RankAfterSqueeze,
    ShapeAfterSqueeze,
    SumAfterSqueeze,
    PlaceOutside,
    SelectionsThatFit,
    LengthOfPlaces,
    PooledSelection,
    JoinedSelection,
    Experts,
    FixedSizesOfSelection,
    MergedSelection,
    UniqueRows,
    SelectionBeforeElif,
    SelectionIsEmpty,
    LengthOfSelection,
    NothingFound,
    LoopOverFound,
    Equal,
    AllClose,
    IsNonzero,
    ItemByOperator,
    MaximumOfData,
    WhereOfData,
    ByDlpack,
    NumpyByDlpack,
    TextOfValue,
    Repr,
    StorageItem,
    DeepCopy,
    CaughtRaise,
    CaughtInCaller,
    AssertOnTheLine,
    Check,
    WriteBeforeReturn,
    WhereOfDataOfResult,
    SliceByCount,
)
