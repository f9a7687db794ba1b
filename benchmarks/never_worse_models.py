"""Small models that stock torch exported right, at least through one exporter, when export_compat did not.

Each is a reproduction of what users, PyTorch's own tests or packages do. A case is its example, its dynamic axes, and
further inputs on which its file is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

CASES: dict[str, Callable[[], Case]] = {}
"""What makes each case, by name."""


@dataclass(frozen=True)
class Case:
    """A model with its inputs."""

    model: Any
    args: tuple[Any, ...]
    axes: Mapping[int, Mapping[int, str]]
    """Names of dynamic axes, by argument and axis."""
    others: Sequence[tuple[Any, ...]] = ()
    """Further arguments to judge a file on."""
    options: Mapping[str, Any] | None = None
    """Further keywords of torch.onnx.export."""


torch.manual_seed(0)  # for the layers' weights


class _Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def _case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def _add(
    name: str,
    model: Callable[..., Any],
    args: tuple[Any, ...],
    axes: Mapping[int, Mapping[int, str]] | None = None,
    others: Sequence[tuple[Any, ...]] = (),
    **options: Any,
) -> None:
    """Adds the case of a module or a plain function."""
    whole = model if isinstance(model, nn.Module) else _Function(model)
    CASES[name] = lambda: Case(whole.eval(), args, axes or {}, others, options)


def rand(*sizes: int, seed: int = 0) -> Tensor:
    """Normal numbers that depend on sizes and seed only."""
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed + sum(sizes)))


B = {0: {0: "b"}}
X, Y = rand(3, 4), rand(5, 4, seed=1)

# PyTorch's own tests: higher-order operators, axes, names


class Cond(nn.Module):
    """torch.cond on values."""

    def forward(self, x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x + 1.0, lambda x: x - 42.0, [x])


_add("cond", Cond(), (rand(3),), None, [(rand(3).abs(),), (-rand(3).abs(),)])


class CondOfLayers(nn.Module):
    """torch.cond between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: self.one(x), lambda x: self.two(x), [x])


_add("cond_of_layers", CondOfLayers(), (X,), None, [(X.abs(),), (-X.abs(),)])
_add(
    "cat_of_lists", lambda x, y: torch.cat([x, y], 1), (X, rand(3, 5)), {0: {0: "bx"}, 1: {0: "by"}}, [(Y, rand(5, 5))]
)
_add("linear_all_axes", nn.Linear(4, 2), (X,), {0: {0: "b", 1: "c"}}, [(Y,)])
_add("lstm", nn.LSTM(4, 5), (rand(6, 3, 4), (rand(1, 3, 5), rand(1, 3, 5))), {0: {1: "b"}}, [])
_add("view_of_fixed", lambda x: x.view(12, -1), (X,), {0: {0: "b", 1: "c"}}, [])


class Flag(nn.Module):
    """Asks whether it is exported."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sin() * 0 + x if torch.onnx.is_in_onnx_export() else x


_add("export_flag", Flag(), (X,), B, [(Y,)])


# Draws, numbers

_add("topk", lambda x: torch.topk(x, 3), (rand(3, 8),), B, [(rand(5, 8),)])
_add("topk_indices", lambda x: x.flatten(1).topk(2).indices, (rand(3, 8),), B, [(rand(5, 8),)])
_add("sort", lambda x: torch.sort(x, 1), (rand(3, 8),), B, [(rand(5, 8),)])
_add("bucketize", torch.bucketize, (X, torch.arange(-2.0, 2.0)), B, [(Y, torch.arange(-2.0, 2.0))])
_add("number_argument", lambda x, k: x * k + 1, (X, 3), B, [(Y, 3)])
_add("float_argument", lambda x, k: x * k + 1, (X, 2.5), B, [(Y, 2.5)])
_add("bool_argument", lambda x, k: x * 2 if k else x, (X, True), B, [(Y, True)])
_add("number_result", lambda x: (x + 1, x.size(1)), (X,), B, [(Y,)])
_add("size_result", lambda x: (x + 1, x.size(0)), (X,), B, [(Y,)])
_add("none_result", lambda x: (x + 1, None), (X,), B, [(Y,)])

# Scripted modules


class Statistics(nn.Module):
    """A scripted module that keeps statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.InstanceNorm1d(5, track_running_stats=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


class AttributeSet(nn.Module):
    """A scripted module that sets an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 10, 2)
        self.b = False

    def forward(self, box: Tensor, weight: Tensor) -> Tensor:
        self.b = self.training
        self.conv.weight = nn.Parameter(weight)
        return box + self.conv.weight.sum()


class OptionalInside(nn.Module):
    """Returns an Optional."""

    def forward(self, x: Tensor) -> Optional[Tensor]:  # noqa: UP045 - the script compiler of older torch reads this form
        y: Optional[Tensor] = None  # noqa: UP045
        if x.size(0) > 1:
            y = x
        return y


class OptionalArgument(nn.Module):
    """Takes an Optional."""

    def forward(self, x: Tensor, y: Optional[Tensor] = None) -> Tensor:  # noqa: UP045
        if y is None:
            return x * 2
        return x + y


class TwoResults(nn.Module):
    """Returns a tensor and a number."""

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        return x + 1, x.size(0)


class NoneResult(nn.Module):
    """Returns a tensor and None."""

    def forward(self, x: Tensor) -> tuple[Tensor, Optional[Tensor]]:  # noqa: UP045
        return x + 1, None


class NumberArgument(nn.Module):
    """Takes a number."""

    def forward(self, x: Tensor, k: int) -> Tensor:
        return x * k


class ListResult(nn.Module):
    """Returns a list."""

    def forward(self, x: Tensor) -> list[Tensor]:
        return [x + 1, x * 2]


class DictResult(nn.Module):
    """Returns a dict."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"a": x + 1, "b": x * 2}


class ScriptedLoop(nn.Module):
    """A loop over the rows of a tensor."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros(4)
        for i in range(x.size(0)):
            y = y + x[i] * i
        return y


class ScriptedBranch(nn.Module):
    """A branch on values."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return self.fc(x)
        return x - 1


class PaddedSequences(nn.Module):
    """Rows of other lengths as one tensor."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return nn.utils.rnn.pad_sequence([x, y], batch_first=True)


class Resized(nn.Module):
    """F.interpolate with attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.size, self.align = 6, False

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, size=self.size, mode="bilinear", align_corners=self.align)


class Holder(nn.Module):
    """Calls a scripted module inside a plain one."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any) -> Any:
        result = self.inner(*args)
        return result[0] * 2 if isinstance(result, (tuple, list)) else result * 2


_S: Any = torch.jit.script
_POSITIVE = [(X.abs(),), (-X.abs(),)]
_FLOATS = rand(2, 5, 7)
_MODELS: dict[str, tuple[nn.Module, tuple[Any, ...], Any, Any]] = {
    "statistics": (Statistics(), (_FLOATS,), B, [(rand(4, 5, 7),)]),
    "optional": (OptionalInside(), (X,), B, [(Y,)]),
    "optional_argument": (OptionalArgument(), (X,), B, [(Y,)]),
    "optional_argument_given": (OptionalArgument(), (X, X), {}, [(X * 2, X)]),
    "number_result": (TwoResults(), (X,), B, [(Y,)]),
    "none_result": (NoneResult(), (X,), B, [(Y,)]),
    "number_argument": (NumberArgument(), (X, 3), B, [(Y, 3)]),
    "list_result": (ListResult(), (X,), B, [(Y,)]),
    "dict_result": (DictResult(), (X,), B, [(Y,)]),
    "loop": (ScriptedLoop(), (X,), B, [(Y,)]),
    "branch": (ScriptedBranch(), (X,), B, _POSITIVE),
    "resized": (Resized(), (rand(1, 2, 4, 4),), B, [(rand(3, 2, 4, 4),)]),
    "linear": (nn.Linear(4, 3), (X,), B, [(Y,)]),
    "conv": (nn.Conv2d(3, 4, 3), (rand(2, 3, 8, 8),), B, [(rand(4, 3, 8, 8),)]),
}


def _scripted(name: str) -> Case:
    model, args, axes, others = _MODELS[name]
    return Case(_S(model.eval()), args, axes, others)


def _scripted_inside(name: str) -> Case:
    model, args, axes, others = _MODELS[name]
    return Case(Holder(_S(model.eval())).eval(), args, axes, others)


for _name in _MODELS:
    CASES[f"scripted_{_name}"] = lambda name=_name: _scripted(name)  # type: ignore[misc]
for _name in ("loop", "branch", "number_result", "none_result", "list_result", "number_argument", "linear"):
    CASES[f"scripted_inside_{_name}"] = lambda name=_name: _scripted_inside(name)  # type: ignore[misc]


@_case
def traced_module() -> Case:
    """torch.jit.trace of a plain model."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    return Case(torch.jit.trace(model, X), (X,), B, [(Y,)])


@_case
def scripted_batch_norm_training() -> Case:
    """A scripted BatchNorm in training mode."""
    model = _S(nn.BatchNorm2d(3).train())
    return Case(model, (rand(4, 3, 5, 5),), {}, [], {"training": torch.onnx.TrainingMode.TRAINING})


def _quantized() -> nn.Module:
    torch.backends.quantized.engine = "fbgemm"
    torch.manual_seed(0)
    model = nn.Sequential(torch.ao.quantization.QuantStub(), nn.Linear(4, 3), torch.ao.quantization.DeQuantStub())
    model.eval()
    model.qconfig = torch.ao.quantization.get_default_qconfig("fbgemm")  # type: ignore[assignment]
    prepared = torch.ao.quantization.prepare(model)  # type: ignore[no-untyped-call]
    prepared(X)
    return torch.ao.quantization.convert(prepared)  # type: ignore[no-untyped-call, no-any-return]


@_case
def quantized() -> Case:
    """A quantized linear layer."""
    return Case(_quantized(), (X,), {}, [(X * 0.5,)])


@_case
def quantized_scripted() -> Case:
    """The same, scripted."""
    return Case(_S(_quantized()), (X,), {}, [(X * 0.5,)])


@_case
def quantized_traced() -> Case:
    """The same, traced."""
    return Case(torch.jit.trace(_quantized(), X), (X,), {}, [(X * 0.5,)])


# Operators


_add("normal_log_prob", lambda m, s, v: torch.distributions.Normal(m, s).log_prob(v), (X, X.abs() + 1, X), None, [])
_add("uniform_log_prob", lambda a, b, v: torch.distributions.Uniform(a, b).log_prob(v), (X, X + 2, X + 1), None, [])
_add("one_hot_of_largest", lambda x, n: F.one_hot(x, int(n.to(torch.int32)[0])), (torch.arange(4), torch.tensor([5])))
_add("repeat_interleave", lambda x, r: x.repeat_interleave(r, dim=1), (rand(2, 3), torch.tensor([2])))
_add("outer_of_two_types", torch.outer, (rand(3), rand(4).double()), {0: {0: "n"}}, [(rand(5), rand(4).double())])
_add("celu_double", lambda x: F.celu(x), (X.double(),), B, [(Y.double(),)])


def _view_write(x: Tensor) -> Tensor:
    x = x.view(-1, 2)
    x[0] = 0
    return x


def _slice_add(x: Tensor) -> Tensor:
    y = x[2:4]
    y += 1
    return y


_add("write_to_view", _view_write, (X,), B, [(Y,)])
_add("zero_of_slice", lambda x: x[2:4].zero_(), (rand(5, 4),), B, [(rand(6, 4),)])
_add("add_to_slice", _slice_add, (rand(5, 4),), B, [(rand(6, 4),)])


def _assign(x: Tensor) -> Tensor:
    o = x.permute(0, 2, 1)
    o[:, :, 0] = 5.0
    return o


_add("assign_to_view", _assign, (rand(2, 3, 4),), B, [(rand(5, 3, 4),)])
_TWO = [(Y,), (rand(5, 5),)]
_add("is_square", lambda x: (x + 1, torch.sym_not(x.shape[0] == x.shape[1])), (X,), {0: {0: "h", 1: "w"}}, _TWO)
_add("zeros_of_slice", lambda x: x.new_zeros(x.shape[1 : x.size(2)]) + x[0], (rand(2, 3, 3),), B, [(rand(4, 3, 3),)])
_add("logdet_of_empty", torch.logdet, (torch.zeros(0, 1, 1),))
_add("chunk", lambda x: torch.chunk(x, 3, 1), (rand(2, 6),), B, [(rand(4, 6),)])
_add("chunk_of_dynamic", lambda x: torch.chunk(x, 3, 1)[0], (rand(2, 6),), {0: {1: "n"}}, [(rand(2, 9),)])
_add("addcmul_of_numbers", torch.addcmul, (torch.tensor(1.0), torch.tensor(2.0), torch.tensor(3.0)))
_add("sum_of_nothing", lambda x: x[0:0].sum() + x.sum(), (X,), B, [(Y,)])
_add("only_sum_of_nothing", lambda x: x[0:0].sum(), (X,), B, [(Y,)])
_add("mean_of_number", lambda x: x.sum(0), (torch.tensor(2.0),))
_add("max_of_bytes", lambda x: x.max(0), (torch.arange(12, dtype=torch.uint8).reshape(3, 4),))
_add("pad_sequence", lambda x, y: nn.utils.rnn.pad_sequence([x, y]), (X, Y), {0: {0: "n"}, 1: {0: "m"}}, [(Y, X)])
_add("isreal", torch.isreal, (X,), B, [(Y,)])
_add("isfinite", torch.isfinite, (X,), B, [(Y,)])
_add("isposinf", torch.isposinf, (X,), B, [(Y,)])
_add("isneginf", torch.isneginf, (X,), B, [(Y,)])
_add("bool_power", lambda x: (x > 0) ** 2, (X,), B, [(Y,)])
_add("bool_power_number", lambda x: -(0.5 ** (x > 0)), (X,), B, [(Y,)])
_add("power_of_bool", lambda x: -(0.5 ** (x > 0)), (X,), B, [(Y,)])
_add("bool_power_bool", lambda x: (x > 0) ** (x > 0.5), (X,), B, [(Y,)])
_add("real", lambda x: torch.real(x) * 2, (X,), B, [(Y,)])
_add("squeeze_of_two", lambda x: x.squeeze((0, 2)), (rand(1, 3, 1, 4),))
_add("ravel", torch.ravel, (X,), B, [(Y,)])
_add("sum_to_size", lambda x: x.sum_to_size(1, 4), (X,), B, [(Y,)])
_add("narrow_copy", lambda x: torch.narrow_copy(x, 1, 0, 2), (X,), B, [(Y,)])
_add("index_fill_bfloat", lambda x: x.index_fill(0, torch.tensor([0]), 1.0), (X.half(),), B, [(Y.half(),)])
_add(
    "embedding_bag",
    nn.EmbeddingBag(10, 5, mode="sum", include_last_offset=True),
    (torch.arange(1, 8), torch.tensor([0, 2, 5, 6])),
)
_add("dequantize_input", lambda x: torch.dequantize(torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)), (X,), B, [(Y,)])
_add("dropout", lambda x: F.dropout(x, 0.5, training=False) + 1, (X,), B, [(Y,)])
_add("packed", lambda x: torch.diff(x, dim=1), (X,), B, [(Y,)])
_add("arange_of_floats", lambda x: torch.arange(0.0, x.size(0), 0.5), (X,), B, [(Y,)])

_DEEP = nn.Sequential(nn.Linear(4, 4))
for _ in range(150):
    _DEEP = nn.Sequential(_DEEP)
_add("deep", _DEEP, (X,), B, [(Y,)])


# Unseen packages: R1 to R16


def _optional_size(x: Tensor) -> Tensor:
    size = None
    if x.shape[2] % 4 != 0 or x.shape[3] % 4 != 0:
        size = x.shape[2:]
    y = F.avg_pool2d(x, 2)
    return F.interpolate(y, size=size, mode="nearest") if size is not None else F.interpolate(y, scale_factor=2.0)


def _optional_mask(q: Tensor, k: Tensor) -> Tensor:
    mask = None
    if k.shape[1] > q.shape[1]:
        mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1])
    scores = q @ k.transpose(1, 2)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(-1)


def _padding_mask(x: Tensor) -> Tensor:
    mask = torch.isnan(x)
    padding = mask.any(2) if mask.any() else None
    y = x * 2
    return y if padding is None else y.masked_fill(padding.unsqueeze(2), 0.0)


def _optional_item(q: Tensor, k: Tensor) -> Tensor:
    outs = []
    if q.shape[1] > 0:
        outs.append(q @ q.transpose(1, 2) @ q)
    if k.shape[1] > 0:
        outs.append((k * 2).sum(1, keepdim=True).expand_as(q))
    return torch.stack(outs).sum(0)


_HW = {0: {0: "b", 2: "h", 3: "w"}}
_PICTURE = rand(1, 3, 16, 16)
_add("optional_size", _optional_size, (_PICTURE,), _HW, [(rand(2, 3, 18, 22),), (rand(1, 3, 20, 24),)])
_add(
    "optional_mask",
    _optional_mask,
    (rand(2, 4, 8), rand(2, 6, 8)),
    {0: {1: "q"}, 1: {1: "k"}},
    [(rand(2, 5, 8), rand(2, 5, 8)), (rand(2, 3, 8), rand(2, 7, 8))],
)
_add("padding_mask", _padding_mask, (rand(2, 4, 3),), B, [(rand(3, 4, 3),)])
_add(
    "optional_item",
    _optional_item,
    (rand(2, 4, 8), rand(2, 6, 8)),
    {0: {1: "q"}, 1: {1: "k"}},
    [(rand(2, 5, 8), rand(2, 5, 8))],
)


class _CumSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        top, _ = torch.sort(x, descending=True, dim=-1)
        return top.cumsum(-1) - 1

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


_add("cumsum_in_function", lambda x: _CumSum.apply(x), (X,), B, [(Y,)])


def _pack(x: Tensor) -> Tensor:
    shape = x.shape[1:-1]
    if -1 in shape:
        raise ValueError
    flat = x.reshape(x.shape[0], -1, x.shape[-1])
    return (flat * 2).reshape(x.shape[0], *shape, x.shape[-1])


_add("minus_one_in_shape", _pack, (rand(2, 3, 4, 5),), {0: {0: "b", 1: "t"}}, [(rand(3, 5, 4, 5),)])
_add(
    "tuple_of_sizes",
    lambda x: x * 2 if x.shape[2:] == (16, 16) else x + 1,
    (_PICTURE,),
    _HW,
    [(rand(2, 3, 18, 16),), (rand(2, 3, 16, 16),)],
)
_add(
    "size_in_tuple",
    lambda x: x * 2 if x.shape[2] in (16, 32) else x + 1,
    (_PICTURE,),
    _HW,
    [(rand(2, 3, 18, 16),), (rand(2, 3, 32, 16),)],
)


class Table(nn.Module):
    """A position table that is sliced by a size."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(rand(32, 4))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


_add("table", Table(), (rand(2, 6, 4),), {0: {0: "b", 1: "t"}}, [(rand(3, 9, 4),), (rand(1, 31, 4),)])
_add("linspace", lambda x: torch.linspace(-1, 1, steps=x.shape[1]) + x, (X,), {0: {1: "w"}}, [(rand(3, 7),)])


class Antialias(nn.Module):
    """A kernel that is expanded to the channels."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Parameter(rand(1, 1, 3))

    def forward(self, x: Tensor) -> Tensor:
        return F.conv1d(x, self.kernel.expand(x.shape[1], -1, -1), groups=x.shape[1])


_add("expanded_kernel", Antialias(), (rand(2, 3, 9),), {0: {0: "b", 2: "t"}}, [(rand(4, 3, 12),)])


class KeptSize(nn.Module):
    """Keeps its batch size in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.batch_size = 0

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] != self.batch_size:
            self.batch_size = x.shape[0]
        return x * 2


_add("kept_size", KeptSize(), (X,), B, [(Y,)])
_add(
    "lp_pool_of_map",
    lambda x: F.lp_pool2d(x, 2.0, (x.size(2), x.size(3)), stride=(x.size(2), x.size(3))),
    (rand(2, 3, 5, 5),),
    B,
    [(rand(4, 3, 5, 5),)],
)


def _kalman(x: Tensor) -> Tensor:
    p = torch.eye(2)
    out = []
    for i in range(x.shape[0]):
        p = torch.linalg.inv(p + torch.diag(x[i].abs() + 1))
        out.append(p)
    return torch.stack(out)


_add("inverse_in_loop", _kalman, (rand(4, 2),), B, [(rand(6, 2),)])


class MixtureOfExperts(nn.Module):
    """As Mixtral computes its experts."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        flat = x.reshape(-1, d)
        weights, chosen = self.gate(flat).softmax(-1).topk(2)
        out = torch.zeros_like(flat)
        mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        for index, expert in enumerate(self.experts):
            idx, top = torch.where(mask[index])
            if top.shape[0] == 0:
                continue
            current = flat[None, top].reshape(-1, d)
            current = expert(current) * weights[top, idx, None]
            out.index_add_(0, top, current)
        return out.reshape(b, t, d)


_add("mixture_of_experts", MixtureOfExperts(), (rand(2, 5, 8),), {0: {0: "b", 1: "t"}}, [(rand(3, 7, 8),)])


def _check_shape(x: Tensor) -> None:
    if x.shape[-1] < 2 or len(x.shape) != 4:
        n = len(x.shape)
        raise TypeError(f"shape must be {'one' if n == 1 else f'of {n} axes'}. Got {x.shape}")


def _checked(x: Tensor) -> Tensor:
    _check_shape(x)
    return F.avg_pool2d(x, 2)


_add("message_of_raise", _checked, (_PICTURE,), _HW, [(rand(2, 3, 18, 22),)])

# First use and complaints


class DynamicViT(nn.Module):
    """Resamples its position embedding if the grid is another one."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.pos = nn.Conv2d(3, 8, 4, 4), nn.Parameter(rand(1, 16, 8))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[2] % 4 != 0:
            raise ValueError(f"height {x.shape[2]} must be a multiple of 4")
        y = self.patch(x)
        h, w = y.shape[2:]
        pos = self.pos
        if h * w != 16 or h != w:
            grid = pos.reshape(1, 4, 4, 8).permute(0, 3, 1, 2)
            grid = F.interpolate(grid, size=(h, w), mode="bicubic", antialias=False)
            pos = grid.permute(0, 2, 3, 1).reshape(1, -1, 8)
        return y.flatten(2).transpose(1, 2) + pos


_add("dynamic_vit", DynamicViT(), (_PICTURE,), _HW, [(rand(2, 3, 24, 20),)])
_add("amax", lambda x: (x.amax(1), x.prod(1), x.logsumexp(1), x.max(1)[0]), (X,), B, [(Y,)])


def _masks(ids: Tensor, mask: Tensor) -> Tensor:
    n = ids.shape[1]
    causal = torch.arange(n)[None, :] <= torch.arange(n)[:, None]
    whole = causal[None] & mask[:, None, :].bool()
    return torch.where(whole, 0.0, -1e9).softmax(-1) * ids[:, None].float()


_I = torch.arange(12).reshape(2, 6)
_add(
    "attention_mask",
    _masks,
    (_I, torch.ones(2, 6, dtype=torch.long)),
    {0: {0: "b", 1: "t"}, 1: {0: "b", 1: "t"}},
    [(torch.arange(24).reshape(3, 8), torch.ones(3, 8, dtype=torch.long))],
)


def _canine(x: Tensor) -> Tensor:
    chunks = []
    for start in range(0, x.shape[1], 4):
        part = x[:, start : start + 4]
        chunks.append(part.softmax(1))
    return torch.cat(chunks, 1)


_add("chunks_of_length", _canine, (rand(2, 8, 3),), {0: {1: "t"}}, [(rand(2, 12, 3),), (rand(2, 9, 3),)])


class Greedy(nn.Module):
    """Greedy decoding that stops early, with a cat that grows."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.fc = nn.Embedding(8, 6), nn.Linear(6, 8)

    def forward(self, ids: Tensor) -> Tensor:
        for _ in range(5):
            token = self.fc(self.embedding(ids).mean(1)).argmax(-1, keepdim=True)
            ids = torch.cat([ids, token], 1)
            if bool((token == 3).all()):
                break
        return ids


class StopEarly(nn.Module):
    """A bounded loop that appends until all rows are done."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.fc, self.embedding = nn.GRUCell(6, 6), nn.Linear(6, 8), nn.Embedding(8, 6)

    def forward(self, h: Tensor) -> Tensor:
        token = torch.zeros(h.shape[0], dtype=torch.long)
        done = torch.zeros(h.shape[0], dtype=torch.bool)
        outs: list[Tensor] = []
        i = 0
        while i < 6 and not bool(done.all()):
            h = self.cell(self.embedding(token), h)
            token = self.fc(h).argmax(-1)
            done = done | (token == 3)
            outs.append(token)
            i += 1
        return torch.stack(outs, 1)


_IDS = torch.tensor([[1, 2, 4], [5, 6, 7]])
_add("greedy_cat", Greedy(), (_IDS,), B, [(_IDS[:1],), (_IDS.flip(0, 1),), (torch.tensor([[0, 5, 5]]),)])
_add("stop_early", StopEarly(), (rand(2, 6),), B, [(rand(1, 6, seed=s),) for s in range(4)])


class ScaleByLargest(nn.Module):
    """A decision on values that every input here answers alike."""

    def forward(self, x: Tensor) -> Tensor:
        return x / 100 if x.abs().max() > 100 else x


_add("scale_by_largest", ScaleByLargest(), (X,), B, [(Y,), (Y * 1000,)])


class ReturnsLess(nn.Module):
    """Returns less while it is exported."""

    def forward(self, x: Tensor) -> Any:
        return x * 2 if torch.jit.is_tracing() or torch.onnx.is_in_onnx_export() else (x * 2, x)


_add("returns_less", ReturnsLess(), (X,), B, [])
_add("list_of_rows", lambda x: torch.stack([row * i for i, row in enumerate(x)]), (X,), B, [(Y,)])
_add("max_by_key", lambda a, b: max(a, b, key=lambda t: float(t.abs().sum())), (X, X * 2), None, [(X * 2, X)])
