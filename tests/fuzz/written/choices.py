"""Programs with arguments of export_compat: bounds, ties, nested inputs, samples, opsets, cuts, accepted decisions."""

import collections
import inspect
import typing

import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


def line_of(kind, text):
    """The place of a line of a class, as ``allow_baked`` names it."""
    lines, first = inspect.getsourcelines(kind)
    number = next(i for i, line in enumerate(lines) if text in line)
    return f"{inspect.getsourcefile(kind)}:{first + number}"


@program({}, {"length": (4, 40)}, x="float batch=3 length=6")
class WithinBounds(nn.Module):
    def forward(self, x):
        return x[:, :4] * (2 if x.shape[1] >= 4 else 3) + (5 if x.shape[1] == 40 else 0) + (x.shape[1] > 33)


@program({}, {"length": (2, 8), "batch": (2, 3)}, x="float batch=3 length=6")
class NarrowBounds(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return x.sum(1) * (1 if n < 9 else 2), x * (n == 2) + (n == 8), x if x.shape[0] == 2 else -x


@program({"dynamic": {"x": {0: "batch", 1: "2 * half"}}}, x="float batch=3 length=6")
class EvenLength(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, 1)
        return a * b + (x.shape[1] // 2 == 5)


@program(
    {"dynamic": {"x": {1: "past + new"}, "y": {1: "new"}, "mask": {1: "past"}}},
    x="float 2 total=7",
    y="float 2 new=3",
    mask="mask 2 past=4",
)
class PastAndNew(nn.Module):
    def forward(self, x, y, mask):
        full = torch.cat([mask, torch.ones_like(y, dtype=torch.bool)], 1)
        return (x * full).sum(1) + y.mean(1) * (2 if x.shape[1] > 10 else 1)


@program(x="float size=5 size=5")
class TiedAxes(nn.Module):
    def forward(self, x):
        return x @ x.T + torch.eye(x.shape[0]) * (3 if x.shape[0] == x.shape[1] else 4), x.diagonal()


@program(x="float batch=3 length=5", y="float batch=3 length=5")
class TiedInputs(nn.Module):
    def forward(self, x, y):
        return x * y if x.shape == y.shape else x.sum() * y


@program(x="float batch=3 a=5", y="float batch=3 b=6")
class FreeInputs(nn.Module):
    def forward(self, x, y):
        n = min(x.shape[1], y.shape[1])
        z = x[:, :n] - y[:, :n]
        return z * (2 if x.shape[1] == y.shape[1] else 1), torch.cat([x, y], 1) if x.shape[1] > y.shape[
            1
        ] else torch.cat([y, x], 1)


def _auto():
    return {
        "dynamic": None,
        "dynamic_shapes": {"x": {0: torch.export.Dim.AUTO, 1: torch.export.Dim("length", min=2, max=64)}},
    }


@program(_auto, {"length": (2, 64)}, x="float batch=3 length=6")
class AutoAxis(nn.Module):
    def forward(self, x):
        return x * (2 if x.shape[1] > 31 else 1) + x.mean(0)


@program(
    {"dynamic": {"x_first": {0: "batch"}, "x_rest_0": {0: "batch"}, "x_rest_1": {0: "other"}}},
    a="float batch=3 4",
    b="float batch=3 4",
    c="float other=2 4",
)
class NestedInputs(nn.Module):
    @staticmethod
    def arrange(a, b, c):
        return {"x": {"first": a, "rest": [b, c], "n": 3, "none": None, "flag": True}}

    def forward(self, x):
        y = x["first"] * x["n"] + x["rest"][0]
        if x["none"] is None and x["flag"]:
            y = y + x["rest"][1].sum(0)
        return {"y": y, "z": [x["rest"][1], None, ()], "w": (y.sum(),)}


class _Pair(typing.NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


@program({"dynamic": {"pair": {"left": {0: "batch"}, "right": {0: "batch"}}}}, a="float batch=3 4", b="float batch=3 4")
class NamedTupleInput(nn.Module):
    @staticmethod
    def arrange(a, b):
        return (_Pair(a, b),)

    def forward(self, pair):
        return _Pair(pair.right - pair.left, pair._replace(left=pair.right).left * 2), collections.OrderedDict(
            b=pair[0], a=pair[1]
        )


@program(
    {"dynamic": {"items": [{0: "batch"}, {0: "batch"}, {0: "batch"}]}},
    a="float batch=3 4",
    b="float batch=3 4",
    c="float batch=3 4",
)
class ListInput(nn.Module):
    @staticmethod
    def arrange(a, b, c):
        return ([a, b, c],)

    def forward(self, items):
        items.append(items[0] * 2)
        items[1] = items[1] + len(items)
        first, *rest, last = items
        return [first + last, *rest]


@program({"dynamic": {"x": {0: "batch"}, "mask": {0: "batch"}}}, x="float batch=3 4", mask="mask batch=3 4")
class OptionalKeyword(nn.Module):
    @staticmethod
    def arrange(x, mask):
        return {"mask": mask, "x": x, "scale": 0.5}

    def forward(self, x, bias=None, *, mask=None, scale=1.0):
        if mask is not None:
            x = x.masked_fill(mask, 0)
        return x * scale if bias is None else x + bias


@program({"dynamic": {"args_0": {0: "batch"}, "args_1": {0: "batch"}}}, x="float batch=3 4", y="float batch=3 4")
class VariadicInputs(nn.Module):
    def forward(self, *args):
        return sum(args) * len(args), torch.stack(args).amax(0)


@program(lambda: {"opset_version": 11}, x="float batch=3 length=6")
class OldestOpset(nn.Module):
    def forward(self, x):
        y = x.clamp(-1, x.shape[1]).split(2, 1)[0]
        return (
            y.cumsum(0),
            x.softmax(0),
            F.pad(x, (1, 1)),
            x.unsqueeze(-1).squeeze(-1),
            x.std(1),
            x.sort(1).values,
            torch.where(x > 0, x, 2.0),
        )


# Of larger pictures the places between cells are rounded by more than eager torch shows at a single value.
@program(lambda: {"opset_version": 11}, {"height": (2, 48), "width": (2, 48)}, x="float batch=2 3 height=7 width=9")
class OldestOpsetImages(nn.Module):
    def forward(self, x):
        h, w = x.shape[2:]
        return (
            F.interpolate(x, (h + 1, w // 2 + 1), mode="bilinear"),
            F.interpolate(x, scale_factor=2),
            F.grid_sample(
                x,
                F.affine_grid(torch.eye(2, 3).expand(x.shape[0], 2, 3), x.shape, align_corners=True),
                align_corners=True,
            ),
            x.amax((2, 3)),
        )


@program(lambda: {"opset_version": 12}, x="int64 batch=3 length=6")
class OldOpsetIntegers(nn.Module):
    def forward(self, x):
        return (
            x % 5,
            x // -3,
            x.clamp(0, 9),
            x.max(-1).values,
            x.argmax(-1),
            F.one_hot(x % 4, 4),
            x.sum(-1),
            x.abs(),
            torch.where(x > 0, x, -x),
        )


@program(lambda: {"opset_version": 13}, x="float batch=3 length=6")
class OldOpsetDecisions(nn.Module):
    def forward(self, x):
        if x.sum() > 3:
            x = x - x.mean()
        for row in x.unbind(0):
            x = x + row * 0.1
        return x


@program(lambda: {"opset_version": 22}, x="float batch=3 length=6")
class LateOpset(nn.Module):
    def forward(self, x):
        return (
            x.cumsum(1),
            F.gelu(x),
            F.layer_norm(x, x.shape[1:]),
            x.round(),
            F.hardswish(x),
            x.amax(1),
            x.topk(1).values,
        )


@program(lambda: {"target": "openvino"}, x="float batch=3 length=6")
class ForOpenvino(nn.Module):
    def forward(self, x):
        return x.cumsum(1), x.sort(1).values, x % 0.7, torch.where(x > 0, x, x.abs()), x.roll(1, 1)


@program(lambda: {"target": "opencv"}, x="float batch=2 3 8 8")
class ForOpencv(nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x, 2).flatten(1), F.silu(x), F.hardswish(x)


@program(lambda: {"target": "tensorrt"}, x="float batch=2 3 height=7 width=9")
class ForTensorrt(nn.Module):
    def forward(self, x):
        h, w = x.shape[2:]
        return (
            F.interpolate(x, (h * 2, w * 2), mode="nearest"),
            x.argmax(1),
            x.std(1),
            F.pad(x, (1, 1, 1, 1), "reflect"),
        )


class _Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(6, 5)
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        y = self.stem(x)
        y = y * 2 if x.shape[0] > 4 else y
        return self.head(y.relu())


@program(lambda: {"outputs": [""]}, x="float batch=3 6")
class CutOutputs(_Backbone):
    pass


class _Baked(nn.Module):
    def forward(self, x):
        if x.sum() > 1e9:  # accepted
            x = x * 0
        if x.shape[1] > 9:
            x = x[:, :9]
        if x.max() > 2:
            x = x / x.max()
        return x


@program(lambda: {"allow_baked": [line_of(_Baked, "# accepted")]}, x="float batch=3 length=6")
class AcceptedDecision(_Baked):
    pass


@program(lambda: {"samples": [(torch.full((3, 6), 50.0),), (-torch.ones(2, 9),)]}, x="float batch=3 length=6")
class WithSamples(nn.Module):
    def forward(self, x):
        if x.mean() > 20:
            return x.sqrt()
        if x.mean() < -0.5:
            return x * x.shape[1]
        return x


@program(lambda: {"keep_as_function": ["inner"]}, x="float batch=3 6")
class KeptFunction(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = _Backbone()

    def forward(self, x):
        return self.inner(x) + self.inner(x * 2)


@program(
    lambda: {"keep_initializers_as_inputs": False, "do_constant_folding": False, "optimize": False},
    x="float batch=3 length=6",
)
class Unoptimized(_Baked):
    pass


@program(lambda: {"external_data": False, "training": torch.onnx.TrainingMode.PRESERVE}, x="float batch=3 6")
class PreservedMode(_Backbone):
    pass


@program(lambda: {"control_flow": False}, x="float batch=3 length=6")
class WithoutRewriting(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return x * (n % 3) + min(n, 8) + (n > 5)


@program(lambda: {"exclude": ["sum_of_int64"]}, x="9 batch=3 length=6")
class ExcludedEntry(nn.Module):
    def forward(self, x):
        return x.sum(1), (x * 2).sum() > 4


@program(lambda: {"verify": False}, x="float batch=3 length=6")
class Unverified(nn.Module):
    def forward(self, x):
        return x.softmax(1) + x.shape[1]


@program({"output_names": ["b", "a"]}, x="float batch=3 length=6")
class NamesOfOutputs(nn.Module):
    def forward(self, x):
        return {"a": x + 1, "b": x.sum(1)}


@program(x="float batch=3 length=6")
class NoneOutputs(nn.Module):
    def forward(self, x):
        return None, x, {"a": None, "b": x * 2}, [None, x.sum()], x.shape[1]


@program(x="float batch=3 length=6")
class NumbersAsOutputs(nn.Module):
    def forward(self, x):
        return x.shape[0] * x.shape[1], x.shape[1] / 4, x.shape[1] > 5, x


@program(x="float batch=3 length=6")
class ConstantOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))
        self.register_buffer("table", torch.arange(4))

    def forward(self, x):
        return self.weight, self.table, torch.ones(2), x, torch.zeros(x.shape[1])
