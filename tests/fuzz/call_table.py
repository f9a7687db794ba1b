"""The functions that are called at random, each with a generator of its arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fuzz.calls import VARYING, WITNESS, Call, Draw, Input, beside, compute_a_number

Maker = Callable[[Draw], Call]
TABLE: dict[str, Maker] = {}
FLOATS, NUMBERS, WHOLE, ALL = ("float",), ("float", "int"), ("int",), ("float", "int", "bool")


def make_call(seed: int) -> Call:
    """The call of a seed."""
    draw = Draw(seed)
    return compute_a_number(TABLE[draw.pick(*TABLE)](draw), draw)


def make_pair(seed: int) -> Call:
    """Two calls in one model, the second of which is WITNESS for even seeds."""
    return beside(make_call(seed), make_call(seed + 1_000_003) if seed % 2 else WITNESS)


def names() -> list[str]:
    """All functions of the table."""
    return list(TABLE)


def _row(*names: str) -> Callable[[Callable[..., tuple[Any, ...]]], Callable[..., tuple[Any, ...]]]:
    """Puts functions into the table whose arguments one generator makes: it returns a tuple, keywords last."""

    def register(make: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
        for name in names:
            TABLE[name] = _maker(name, make)
        return make

    return register


def _maker(name: str, make: Callable[..., tuple[Any, ...]]) -> Maker:
    def made(draw: Draw) -> Call:
        *args, last = make(draw)
        args, kwargs = (args, last) if isinstance(last, dict) else ([*args, last], {})
        return Call(name, _resolve(name), tuple(args), kwargs)

    return made


def _resolve(name: str) -> Any:
    """The function of a name such as F.relu, Tensor.sum or linalg.norm."""
    spaces = {"F": F, "Tensor": Tensor, "linalg": torch.linalg, "special": torch.special, "operator": operator}
    space, _, last = name.rpartition(".")
    if space == "local":
        return globals()[f"_{last}"]
    return getattr(spaces.get(space, torch), last)


# Element by element


@_row("abs", "neg", "positive", "sign", "sgn", "square", "logical_not", "real", "isnan", "isinf", "isfinite", "signbit")
@_row("ceil", "floor", "round", "trunc", "isposinf", "isneginf", "Tensor.clone", "Tensor.contiguous")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(),)


@_row("exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "atan", "sigmoid", "erf", "erfc")
@_row("sinc", "frac", "special.ndtr")
@_row("nan_to_num", "deg2rad", "rad2deg", "special.log_ndtr", "special.erfcx", "special.i0e", "angle")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(),)


@_row("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "special.entr", "lgamma", "digamma")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(kind="positive"),)


@_row("reciprocal")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(kind="nonzero"),)


@_row("asin", "acos", "atanh", "erfinv")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(kind="unit"),)


@_row("acosh")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(kind="above_one"),)


@_row("logit")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(kind="probability", kinds=FLOATS), {"eps": d.pick(None, 0.1, 1e-6)}


@_row("bitwise_not")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(kinds=("int", "bool")),)


ACTIVATIONS: dict[str, Callable[[Draw], dict[str, Any]]] = {
    "F.relu": lambda d: {},
    "F.relu6": lambda d: {},
    "F.elu": lambda d: {"alpha": d.pick(1.0, 0.5, 2)},
    "F.selu": lambda d: {},
    "F.celu": lambda d: {"alpha": d.pick(1.0, 0.5, 3.0)},
    "F.gelu": lambda d: {"approximate": d.pick("none", "tanh")},
    "F.silu": lambda d: {},
    "F.mish": lambda d: {},
    "F.hardswish": lambda d: {},
    "F.hardsigmoid": lambda d: {},
    "F.hardtanh": lambda d: {"min_val": d.pick(-1.0, 0, -3.5), "max_val": d.pick(1.0, 2)},
    "F.leaky_relu": lambda d: {"negative_slope": d.pick(0.01, 0.3, -0.5)},
    "F.rrelu": lambda d: {},
    "F.softplus": lambda d: {"beta": d.pick(1, 0.5, 3), "threshold": d.pick(20, 2, 0.5)},
    "F.softshrink": lambda d: {"lambd": d.pick(0.5, 0, 1.5)},
    "F.hardshrink": lambda d: {"lambd": d.pick(0.5, 0, 1.5)},
    "F.tanhshrink": lambda d: {},
    "F.threshold": lambda d: {"threshold": d.pick(0, 0.1, -1), "value": d.pick(0, 20, -0.5)},
    "F.softsign": lambda d: {},
    "F.logsigmoid": lambda d: {},
}


@_row("F.prelu")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(2, 4, kinds=FLOATS)
    channels = 1 if x.shape[1] == VARYING else d.pick(1, x.shape[1])
    return x, d.weight([channels], x.dtype)


def _activation(name: str, options: Callable[[Draw], dict[str, Any]]) -> None:
    @_row(name)
    def _(d: Draw) -> tuple[Any, ...]:
        return d.any(kinds=FLOATS if d.chance(0.85) else NUMBERS), options(d)


for _name, _options in ACTIVATIONS.items():
    _activation(_name, _options)


@_row("F.softmax", "F.log_softmax", "F.softmin", "softmax", "logsumexp", "logcumsumexp")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=FLOATS)
    return x, d.dim(x)


@_row("F.glu")
def _(d: Draw) -> tuple[Any, ...]:
    shape = d.shape(1, 3)
    even = next((i for i, s in enumerate(shape) if s in (2, 4)), None)
    if even is None:
        shape, even = [4, *shape], 0
    return d.tensor(shape, d.dtype("float")), even


@_row("F.normalize")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 4, kinds=FLOATS)
    return x, {"p": d.pick(2.0, 1.0, 3.0, float("inf")), "dim": d.dim(x), "eps": d.pick(1e-12, 0.1)}


def _pair(d: Draw, kinds: Sequence[str] = ALL, kind: str = "normal", least: int = 0) -> tuple[Any, Any]:
    """Two operands that broadcast, or one and a number, of one dtype or two."""
    x = d.any(least, 4, kind, kinds)
    if d.chance(0.25):
        if "float" in kinds and d.chance():
            return x, d.number(-3, 3) or 1.5
        return x, d.pick(2, 3, 1, 7) if kind != "normal" else d.pick(2, -3, 0, 1, 7)
    dtype = x.dtype if d.chance(0.7) else d.dtype(*kinds)
    return x, d.tensor(d.broadcast(x.shape) if d.chance() else x.shape, dtype, kind)


@_row("eq", "ne", "lt", "le", "gt", "ge", "add", "mul", "Tensor.add", "Tensor.mul", "operator.eq", "operator.lt")
@_row("operator.ge")
def _(d: Draw) -> tuple[Any, ...]:
    x, y = _pair(d)
    return (y, x) if d.chance(0.3) and isinstance(y, Input) else (x, y)


@_row("sub", "rsub", "Tensor.sub", "operator.sub")
def _(d: Draw) -> tuple[Any, ...]:
    return _pair(d, NUMBERS)


@_row("maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any()
    return x, d.tensor(d.broadcast(x.shape), x.dtype if d.chance(0.7) else d.dtype())


@_row("hypot", "copysign", "atan2", "logaddexp", "logaddexp2")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=FLOATS)
    return x, d.tensor(d.broadcast(x.shape), x.dtype if d.chance(0.8) else d.dtype("float"))


@_row("xlogy", "special.xlog1py")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kind="positive", kinds=NUMBERS)
    return x, d.tensor(d.broadcast(x.shape), x.dtype, "positive")


@_row("true_divide", "floor_divide", "remainder", "fmod", "operator.floordiv", "operator.mod", "operator.truediv")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=NUMBERS)
    if d.chance(0.4):
        return x, d.pick(2, 3, -3, 0.7, 2.5, 7) if x.dtype.is_floating_point or d.chance(0.3) else d.pick(2, 3, 7, -4)
    dtype = x.dtype if d.chance(0.75) else d.dtype("float", "int")
    return x, d.tensor(d.broadcast(x.shape) if d.chance() else x.shape, dtype, "nonzero")


@_row("div")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=NUMBERS)
    other = d.pick(2, -3, 0.7) if d.chance(0.4) else d.tensor(d.broadcast(x.shape), x.dtype, "nonzero")
    return x, other, {"rounding_mode": d.pick(None, "floor", "trunc")}


@_row("pow", "operator.pow", "float_power")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kind="positive", kinds=ALL)
    if d.chance():
        return x, d.pick(0, 1, 2, 3, 0.5, 1.5) if not x.dtype.is_floating_point else d.pick(
            0, 2, -1, -2, 0.5, -0.5, 2.5
        )
    if d.chance(0.4):
        return d.pick(2, 3, 0.5, 1), x
    return x, d.tensor(d.broadcast(x.shape), x.dtype if d.chance(0.7) else torch.float32, "count")


@_row("isclose")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=NUMBERS)
    return x, d.like(x), {"rtol": d.pick(1e-5, 0.5), "atol": d.pick(1e-8, 1.0), "equal_nan": d.chance()}


@_row("bitwise_and", "bitwise_or", "bitwise_xor")
def _(d: Draw) -> tuple[Any, ...]:
    return _pair(d, ("int", "bool"))


@_row("bitwise_left_shift", "bitwise_right_shift", "operator.lshift", "operator.rshift")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=WHOLE)
    return x, d.pick(0, 1, 3, 6) if d.chance() else d.tensor(d.broadcast(x.shape), x.dtype, "count")


@_row("ldexp")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=FLOATS)
    return x, d.tensor(d.broadcast(x.shape), d.pick(torch.int64, torch.int32, torch.float32), "count")


@_row("heaviside")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=NUMBERS)
    return x, d.tensor(d.broadcast(x.shape), x.dtype)


@_row("gcd", "lcm")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=WHOLE)
    return x, d.like(x)


@_row("lerp")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=FLOATS)
    return x, d.like(x), d.number(-1, 2) if d.chance() else d.like(x, "probability")


@_row("addcmul", "addcdiv")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=FLOATS if d.chance(0.8) else NUMBERS)
    return x, d.like(x), d.like(x, "nonzero"), {"value": d.pick(1, 2, -3)}


@_row("clamp", "Tensor.clip")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=NUMBERS)
    low, high = d.pick(None, -1, 0, 1.5), d.pick(None, 2, 3.5) if d.chance(0.8) else -2
    if d.chance(0.25):
        return x, {"min": d.tensor(d.broadcast(x.shape), x.dtype), "max": d.tensor(d.broadcast(x.shape), x.dtype)}
    return x, {"min": 0 if low is None and high is None else low, "max": high}


@_row("where")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any()
    condition = d.tensor(d.broadcast(x.shape), torch.bool)
    if d.chance(0.3):
        return condition, x, d.pick(0, -1.5, 3)
    return condition, x, d.tensor(d.broadcast(x.shape), x.dtype if d.chance(0.7) else d.dtype())


@_row("masked_fill", "Tensor.masked_fill")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any()
    return x, d.tensor(d.broadcast(x.shape), torch.bool), 0 if x.dtype == torch.bool else d.pick(-1, 5, 0)


# Conversion


@_row("Tensor.to", "Tensor.type")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any()
    return x, torch.float32 if x.dtype == torch.bool else d.dtype("float", "int", "bool", "float")


@_row("Tensor.float", "Tensor.long", "Tensor.int", "Tensor.bool", "Tensor.double", "Tensor.half")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(),)


@_row("Tensor.type_as")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(), d.any(0, 1)


# Reductions


def _reduced(d: Draw, x: Input, *, least: float = 0.7) -> dict[str, Any]:
    return {"dim": d.dims(x), "keepdim": d.chance()} if d.chance(least) else {}


@_row("sum", "Tensor.sum", "nansum")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any()
    options = _reduced(d, x)
    if d.chance(0.2):
        options["dtype"] = d.pick(torch.float32, torch.int64, torch.float64, torch.int32)
    return x, options


@_row("mean", "nanmean", "Tensor.mean")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=FLOATS)
    return x, _reduced(d, x)


@_row("prod")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=ALL)
    return x, {"dim": d.dim(x), "keepdim": d.chance()} if d.chance(0.7) else {}


@_row("amax", "amin", "std", "var", "std_mean", "var_mean")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=FLOATS)
    return x, _reduced(d, x)


@_row("Tensor.std", "Tensor.var")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=FLOATS)
    return x, {"dim": d.dims(x), "keepdim": d.chance(), "correction": d.pick(0, 1, 2)}


@_row("any", "all", "Tensor.any", "Tensor.all")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any()
    return x, {"dim": d.dim(x), "keepdim": d.chance()} if d.chance(0.7) else {}


@_row("max", "min", "median", "nanmedian", "mode", "cummax", "cummin")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kind="distinct", kinds=NUMBERS)
    return x, d.dim(x)


@_row("Tensor.max", "Tensor.min")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(),)


@_row("argmax", "argmin")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kind="distinct", kinds=NUMBERS)
    return x, {"dim": d.dim(x), "keepdim": d.chance()} if d.chance(0.7) else {}


@_row("aminmax")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=NUMBERS)
    return x, {"dim": d.dim(x), "keepdim": d.chance()}


@_row("count_nonzero")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kind="count")
    return x, {"dim": d.dims(x)} if d.chance() else {}


@_row("linalg.vector_norm", "norm")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=FLOATS)
    return x, d.pick(2, 1, 3.5, 0, float("inf"), -float("inf")), {"dim": d.dims(x), "keepdim": d.chance()}


@_row("cumsum", "cumprod")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kind="nonzero" if d.chance() else "normal")
    return x, d.dim(x)


@_row("diff")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    return x, {"n": d.pick(0, 1, 1, 2), "dim": d.dim(x)}


@_row("trapezoid", "cumulative_trapezoid")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, kinds=FLOATS)
    return x, {"dim": d.dim(x), "dx": d.pick(1, 0.5)}


@_row("quantile", "nanquantile")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 3, kind="distinct", kinds=("float",))
    x = d.tensor(x.shape, torch.float32, "distinct")
    return x, d.pick(0.0, 0.3, 0.5, 1.0), {"dim": d.dim(x), "interpolation": d.pick("linear", "lower", "higher")}


@_row("kthvalue")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, kind="distinct", kinds=NUMBERS)
    dim = d.dim(x)
    size = d.size(x, dim)
    return x, 1 if size == VARYING else d.whole(1, size), dim


@_row("topk")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, kind="distinct", kinds=NUMBERS)
    dim = d.dim(x)
    size = d.size(x, dim)
    return x, 1 if size == VARYING else d.whole(1, size), {"dim": dim, "largest": d.chance()}


@_row("sort", "argsort")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, kind="distinct", kinds=NUMBERS)
    return x, {"dim": d.dim(x), "descending": d.chance(), "stable": d.chance()}


@_row("local.unique", "local.unique_consecutive")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=NUMBERS)
    return x, {"return_inverse": d.chance(), "return_counts": d.chance()}


def _unique(x: Tensor, **options: bool) -> Any:
    return torch.unique(x, **options)


def _unique_consecutive(x: Tensor, **options: bool) -> Any:
    return torch.unique_consecutive(x, **options)


@_row("cov", "corrcoef")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(2, 2, kinds=FLOATS),)


@_row("histc")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(kinds=FLOATS), {"bins": d.whole(1, 8), "min": -3, "max": 3}


@_row("bincount")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor(d.shape(1, 1), d.pick(torch.int64, torch.int32), "index", 9), {"minlength": d.pick(0, 4, 12)}


# Indexing


@_row("select", "Tensor.select")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x)
    return x, dim, d.pick(0, -1) if d.size(x, dim) == VARYING else d.whole(-d.size(x, dim), d.size(x, dim) - 1)


@_row("narrow")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x)
    size = 1 if d.size(x, dim) == VARYING else d.size(x, dim)
    start = d.whole(0, size - 1)
    return x, dim, start, d.whole(0, size - start)


@_row("operator.getitem")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    index: list[Any] = []
    for size in x.shape[: d.whole(1, len(x.shape))]:
        way, safe = d.whole(0, 5), 1 if size == VARYING else size
        if way == 0:
            index.append(d.whole(-safe, safe - 1))
        elif way == 1:
            index.append(slice(d.pick(None, 0, 1, -2), d.pick(None, -1, 3, 9), d.pick(None, 1, 2)))
        elif way == 2:
            index.append(d.tensor([3] if d.chance() else [2, 1], torch.int64, "index", size))
        elif way == 3:
            index += [None, slice(None)]
        else:
            index.append(slice(None))
    if d.chance(0.2) and not any(isinstance(i, Input) for i in index):
        index.append(Ellipsis)
    return x, tuple(index)


@_row("local.mask")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    return x, d.tensor(x.shape[: d.whole(1, len(x.shape))], torch.bool)


def _mask(x: Tensor, mask: Tensor) -> Tensor:
    return x[mask]


@_row("masked_select")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    return x, d.tensor(d.broadcast(x.shape), torch.bool)


@_row("nonzero", "argwhere")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(kind="count"),)


@_row("index_select")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x)
    return x, dim, d.tensor([d.pick(1, 3)], d.pick(torch.int64, torch.int32), "index", d.size(x, dim))


@_row("gather")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x)
    shape = list(x.shape)
    shape[dim] = d.pick(1, 2, 4)
    return x, dim, d.tensor(shape, torch.int64, "index", d.size(x, dim))


@_row("take_along_dim")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x)
    shape = list(x.shape)
    shape[dim] = d.pick(1, 2, 4)
    return x, d.tensor(shape, torch.int64, "index", d.size(x, dim)), dim


@_row("take")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.tensor([d.pick(2, 3), d.pick(2, 3)], d.dtype())
    return x, d.tensor(d.shape(0, 3), torch.int64, "index", 4)


def _scattered(d: Draw, kinds: Sequence[str] = NUMBERS) -> tuple[Input, int, Input, Input]:
    x = d.any(1, 3, kinds=kinds)
    dim = d.dim(x)
    shape = list(x.shape)
    shape[dim] = d.pick(1, 2, 3)
    return x, dim, d.tensor(shape, torch.int64, "index", d.size(x, dim)), d.tensor(shape, x.dtype)


@_row("scatter_add")
def _(d: Draw) -> tuple[Any, ...]:
    return _scattered(d)


@_row("scatter")
def _(d: Draw) -> tuple[Any, ...]:
    x, dim, index, _ = _scattered(d, ALL)
    if d.chance() and x.dtype != torch.bool:
        return x, dim, index, d.pick(0, 2)
    shape = list(index.shape)  # one index only: of several to one place, any may win
    shape[dim] = 1
    return x, dim, d.tensor(shape, torch.int64, "index", index.limit), d.tensor(shape, x.dtype)


@_row("scatter_reduce")
def _(d: Draw) -> tuple[Any, ...]:
    reduce = d.pick("sum", "prod", "mean", "amax", "amin")
    return *_scattered(d, FLOATS), {"reduce": reduce, "include_self": d.chance()}


@_row("index_add")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 3, kinds=NUMBERS)
    dim = d.dim(x)
    shape = list(x.shape)
    shape[dim] = 3
    return (
        x,
        dim,
        d.tensor([3], torch.int64, "index", d.size(x, dim)),
        d.tensor(shape, x.dtype),
        {"alpha": d.pick(1, 2)},
    )


@_row("index_copy")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 3, kinds=ALL)
    dim = d.dim(x)
    shape = list(x.shape)
    shape[dim] = 1
    return x, dim, d.tensor([1], torch.int64, "index", d.size(x, dim)), d.tensor(shape, x.dtype)


@_row("index_fill")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 3, kinds=NUMBERS)
    dim = d.dim(x)
    return x, dim, d.tensor([2], torch.int64, "index", d.size(x, dim)), d.pick(0, 3)


@_row("index_put")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 3, kinds=NUMBERS)
    accumulate = d.chance()
    count = 3 if accumulate else 1
    return (
        x,
        (d.tensor([count], torch.int64, "index", x.shape[0]),),
        d.tensor([count, *x.shape[1:]], x.dtype),
        accumulate,
    )


@_row("masked_scatter")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 3, kinds=NUMBERS)
    return x, d.tensor(x.shape, torch.bool), d.like(x)


@_row("diagonal")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(2)
    first, second = (0, 1) if d.chance() else (-2, -1)
    return x, {"offset": d.pick(0, 0, 1, -1), "dim1": first, "dim2": second}


@_row("diag")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(1, 2), d.pick(0, 1, -1)


@_row("diag_embed")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(1, 3), {"offset": d.pick(0, 1, -2)}


@_row("tril", "triu")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(2), d.pick(0, 1, -1, 5, -5)


@_row("trace")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(2, 2, kinds=NUMBERS),)


@_row("diagonal_scatter")
def _(d: Draw) -> tuple[Any, ...]:
    rows, offset = d.pick(1, 2, 3), d.pick(0, 1, -1)
    dtype = d.dtype("float", "int")
    return d.tensor([rows, rows], dtype), d.tensor([max(rows - abs(offset), 0)], dtype), {"offset": offset}


@_row("select_scatter")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x) % len(x.shape)
    return x, d.tensor([s for i, s in enumerate(x.shape) if i != dim], x.dtype), dim, d.pick(0, -1)


@_row("slice_scatter")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x)
    shape = list(x.shape)
    shape[dim] = 1
    return x, d.tensor(shape, x.dtype), {"dim": dim, "start": 0, "end": 1}


@_row("roll")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    return (x, d.pick(1, -1, 4, 0)) if d.chance(0.3) else (x, d.pick(1, -2, 3), d.dim(x))


@_row("flip")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dims = d.dims(x)
    return x, [dims] if isinstance(dims, int) else dims


@_row("rot90")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(2), d.pick(-1, 0, 1, 2, 3), d.pick([0, 1], [1, 0], [-1, -2])


@_row("Tensor.unfold")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 3)
    dim = d.dim(x)
    size = 1 if d.size(x, dim) == VARYING else d.size(x, dim)
    return x, dim, d.whole(1, size), d.whole(1, 3)


@_row("F.one_hot")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor(d.shape(0, 3), torch.int64, "index", 5), d.pick(5, 9)


@_row("F.embedding")
def _(d: Draw) -> tuple[Any, ...]:
    index = d.tensor(d.shape(0, 3), d.pick(torch.int64, torch.int32), "index", 7)
    return index, d.weight([7, 3], d.dtype("float")), {"padding_idx": d.pick(None, 0, -1)}


@_row("F.embedding_bag")
def _(d: Draw) -> tuple[Any, ...]:
    mode, options = d.pick("sum", "mean", "max"), {"padding_idx": d.pick(None, None, 2)}
    table = d.weight([7, 3])
    if d.chance(0.3):
        index = d.tensor([d.batch(), d.pick(1, 4)], torch.int64, "index", 7)
        if mode == "sum" and d.chance():
            options["per_sample_weights"] = d.tensor(index.shape)
        return index, table, {"mode": mode, **options}
    index = d.tensor([d.pick(4, 5, 7)], torch.int64, "index", 7)
    offsets = d.tensor([d.batch() if d.chance() else d.pick(1, 3, 4)], torch.int64, "offset", 4)
    if mode == "sum" and d.chance():
        options["per_sample_weights"] = d.tensor(index.shape)
    return index, table, offsets, {"mode": mode, "include_last_offset": d.chance(), **options}


@_row("bucketize")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kinds=FLOATS)
    edges = torch.tensor([-2.0, -0.5, 0.0, 1.0, 2.5], dtype=x.dtype)
    return x, edges, {"right": d.chance(), "out_int32": d.chance(0.2)}


@_row("searchsorted")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(0, 2, kinds=FLOATS)
    return torch.tensor([-2.0, -0.5, 0.0, 1.0, 2.5], dtype=x.dtype), x, {"right": d.chance()}


@_row("isin")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kind="count", kinds=NUMBERS)
    return x, d.tensor([3], x.dtype, "count"), {"invert": d.chance()}


# Shapes


@_row("Tensor.reshape", "Tensor.view")
def _(d: Draw) -> tuple[Any, ...]:
    shape = d.shape(1, 3)
    at = next((i for i, s in enumerate(shape) if s == VARYING), None)
    if at is not None:
        shape = [VARYING, *[s for i, s in enumerate(shape) if i != at]]
        rest = 1
        for s in shape[1:]:
            rest *= s
        return d.tensor(shape, d.dtype()), -1, rest
    total = 1
    for s in shape:
        total *= s
    first = d.pick(*[f for f in range(1, total + 1) if total % f == 0])
    return d.tensor(shape, d.dtype()), first, d.pick(-1, total // first)


@_row("flatten")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any()
    rank = max(len(x.shape), 1)
    first = d.whole(0, rank - 1)
    return x, first, d.pick(-1, d.whole(first, rank - 1))


@_row("unflatten")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 3)
    return x, d.dim(x), (-1, 1) if d.chance() else (1, -1)


@_row("permute")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    axes = list(range(len(x.shape)))
    return x, d.shuffled(axes)


@_row("transpose", "swapaxes", "movedim")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    return x, d.dim(x), d.dim(x)


@_row("squeeze", "Tensor.squeeze")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any()
    if VARYING not in x.shape and d.chance(0.3):
        return (x,)
    fixed = [i for i, s in enumerate(x.shape) if s != VARYING]
    return x, d.pick(*fixed) if fixed else -1


@_row("unsqueeze")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(0, 3)
    return x, d.whole(-len(x.shape) - 1, len(x.shape))


@_row("Tensor.expand", "broadcast_to")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 3)
    sizes = [4 if s == 1 else d.pick(-1, s) if s != VARYING else -1 for s in x.shape]
    return x, (*([2] if d.chance(0.4) else []), *sizes)


@_row("Tensor.repeat", "tile")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(0, 3)
    return x, tuple(d.whole(1, 3) for _ in range(len(x.shape) + d.chance(0.3)))


@_row("repeat_interleave")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 3)
    return x, d.whole(1, 3), {"dim": d.pick(None, d.dim(x))}


@_row("cat", "concat")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1)
    dim = d.dim(x)
    parts = [x]
    for _ in range(d.whole(1, 3)):
        shape = list(x.shape)
        shape[dim] = d.pick(1, 2, shape[dim])
        parts.append(d.tensor(shape, x.dtype if d.chance(0.8) else d.dtype()))
    return parts, dim


@_row("stack")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(0, 3)
    return [x, *[d.like(x) for _ in range(d.whole(0, 2))]], d.whole(-len(x.shape) - 1, len(x.shape))


@_row("hstack", "vstack", "dstack", "column_stack")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(0, 3)
    return ([x, d.like(x)],)


@_row("split", "chunk", "tensor_split", "Tensor.split")
def _(d: Draw) -> tuple[Any, ...]:
    shape = d.shape(1, 3)
    fixed = [i for i, s in enumerate(shape) if s != VARYING]
    if not fixed:
        shape, fixed = [*shape, 5], [1]
    return d.tensor(shape, d.dtype()), d.whole(1, 3), d.pick(*fixed)


@_row("unbind")
def _(d: Draw) -> tuple[Any, ...]:
    shape = [d.pick(1, 2, 3), *d.shape(0, 3)]
    return d.tensor(shape, d.dtype()), 0


@_row("meshgrid")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(1, 1), d.tensor([3]), {"indexing": d.pick("ij", "xy")}


@_row("cartesian_prod")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(1, 1, kinds=FLOATS), d.tensor([3]), d.tensor([2])


@_row("ravel", "atleast_1d", "atleast_2d", "atleast_3d")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(),)


@_row("kron")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(1, 2, kinds=FLOATS), d.tensor([2, 2])


@_row("outer")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(1, 1, kinds=NUMBERS), d.any(1, 1, kinds=NUMBERS)


@_row("block_diag")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(2, 2, kinds=FLOATS), d.tensor([2, 3])


# Windows and pictures


def _picture(d: Draw, axes: int, channels: int = 0, least: int = 5, *, dtypes: Sequence[str] = FLOATS) -> Input:
    """(N, C, ...) of an odd or even size, one axis of which may vary."""
    shape = [d.pick(1, 2), channels or d.pick(1, 2, 3), *[d.pick(least, 7, 8, 11) for _ in range(axes)]]
    at = d.pick(0, 0, *range(2, axes + 2))
    shape[at] = d.batch(shape[at])
    dtype = torch.float32 if d.chance(0.8) else d.dtype(*dtypes)
    return d.tensor(shape, dtype)


def _repeated(d: Draw, axes: int, *values: int) -> Any:
    return d.pick(*values) if d.chance(0.6) else tuple(d.pick(*values) for _ in range(axes))


def _pool_rows() -> None:
    for axes in (1, 2, 3):

        @_row(f"F.max_pool{axes}d")
        def _(d: Draw, axes: int = axes) -> tuple[Any, ...]:
            x = _picture(d, axes)
            kernel = _repeated(d, axes, 2, 3)
            options = {"stride": d.pick(None, 1, 2, 3), "padding": d.pick(0, 1), "dilation": d.pick(1, 1, 2)}
            return x, kernel, {**options, "ceil_mode": d.chance()}

        @_row(f"F.avg_pool{axes}d")
        def _(d: Draw, axes: int = axes) -> tuple[Any, ...]:
            options: dict[str, Any] = {"stride": d.pick(None, 1, 2, 3), "padding": d.pick(0, 1)}
            if axes > 1 and d.chance(0.2):
                options["divisor_override"] = d.pick(1, 5)
            return (
                _picture(d, axes),
                _repeated(d, axes, 2, 3),
                {**options, "ceil_mode": d.chance(), "count_include_pad": d.chance()},
            )

        @_row(f"F.adaptive_avg_pool{axes}d", f"F.adaptive_max_pool{axes}d")
        def _(d: Draw, axes: int = axes) -> tuple[Any, ...]:
            return _picture(d, axes), _repeated(d, axes, 1, 2, 3, 5)

        @_row(f"F.conv{axes}d")
        def _(d: Draw, axes: int = axes) -> tuple[Any, ...]:
            groups = d.pick(1, 1, 2)
            x = _picture(d, axes, 2 * groups)
            weight = d.weight([2 * groups, 2, *[d.pick(1, 2, 3) for _ in range(axes)]], x.dtype)
            padding = d.pick(0, 1, 2, "valid", "same")
            stride = 1 if padding == "same" else _repeated(d, axes, 1, 2)
            bias = d.weight([2 * groups], x.dtype) if d.chance() else None
            return x, weight, bias, {"stride": stride, "padding": padding, "dilation": d.pick(1, 2), "groups": groups}

        @_row(f"F.conv_transpose{axes}d")
        def _(d: Draw, axes: int = axes) -> tuple[Any, ...]:
            groups, stride = d.pick(1, 1, 2), d.pick(1, 2, 3)
            x = _picture(d, axes, 2 * groups)
            weight = d.weight([2 * groups, 2, *[d.pick(2, 3) for _ in range(axes)]], x.dtype)
            options = {"padding": d.pick(0, 1), "output_padding": d.whole(0, stride - 1), "dilation": d.pick(1, 2)}
            return x, weight, None, {"stride": stride, "groups": groups, **options}


_pool_rows()


@_row("F.lp_pool2d")
def _(d: Draw) -> tuple[Any, ...]:
    x = _picture(d, 2)
    return d.tensor(x.shape, torch.float32, "positive"), d.pick(1, 2, 3), d.pick(2, 3), {"ceil_mode": d.chance()}


@_row("local.max_pool_indices")
def _(d: Draw) -> tuple[Any, ...]:
    x = _picture(d, 2)
    return d.tensor(x.shape, torch.float32, "distinct"), d.pick(2, 3), {"stride": d.pick(1, 2), "padding": d.pick(0, 1)}


def _max_pool_indices(x: Tensor, size: int, **options: int) -> tuple[Tensor, Tensor]:
    return F.max_pool2d_with_indices(x, size, **options)


@_row("F.unfold")
def _(d: Draw) -> tuple[Any, ...]:
    return _picture(d, 2), d.pick(2, 3), {"dilation": d.pick(1, 2), "padding": d.pick(0, 1), "stride": d.pick(1, 2)}


@_row("F.fold")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor([d.batch(), 8, 9]), (4, 4), (2, 2)


@_row("F.pad")
def _(d: Draw) -> tuple[Any, ...]:
    if d.chance():
        x = d.any(1)
        pads = [d.pick(0, 1, 2, -1 if s > 2 and s != VARYING else 0) for s in reversed(x.shape) for _ in (0, 1)]
        return x, pads[: 2 * d.whole(1, len(x.shape))], {"mode": "constant", "value": d.pick(0, 1, 0)}
    axes = d.pick(1, 2)
    x = _picture(d, axes)
    return x, [d.pick(0, 1, 2, 3) for _ in range(2 * axes)], {"mode": d.pick("reflect", "replicate", "circular")}


@_row("F.interpolate")
def _(d: Draw) -> tuple[Any, ...]:
    axes = d.pick(1, 2, 2, 3)
    modes = {1: ["linear"], 2: ["bilinear", "bicubic"], 3: ["trilinear"]}[axes]
    mode = d.pick("nearest", "nearest-exact", "area", *modes, *modes)
    options: dict[str, Any] = {"mode": mode}
    if d.chance():
        options["size"] = [d.pick(1, 3, 8, 10) for _ in range(axes)]
    else:
        # Some keep the size of an axis: 1.05 that of each shorter than 20.
        scales = [d.pick(2, 0.5, 1.5, 2.3, 1 / 3, 1.05) for _ in range(axes)]
        options["scale_factor"] = scales if d.chance(0.4) else scales[0]
        if d.chance(0.3) and mode != "area":
            options["recompute_scale_factor"] = True
    if mode in modes:
        options["align_corners"] = d.chance()
        options["antialias"] = axes == 2 and d.chance(0.2)
    return _picture(d, axes), options


@_row("F.pixel_shuffle")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor([d.batch(), 4 * d.pick(1, 2), 2, 3], d.dtype("float", "int")), 2


@_row("F.pixel_unshuffle")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor([d.batch(), d.pick(1, 2), 4, 2], d.dtype("float", "int")), 2


@_row("F.channel_shuffle")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor([d.batch(), 4, 2, 3]), 2


@_row("F.grid_sample")
def _(d: Draw) -> tuple[Any, ...]:
    batch = d.batch()
    options = {"padding_mode": d.pick("zeros", "border", "reflection"), "align_corners": d.chance()}
    grid = d.tensor([batch, 3, 5, 2], kind="small" if d.chance() else "unit")
    return d.tensor([batch, 2, 4, 7]), grid, {"mode": d.pick("bilinear", "nearest", "bicubic"), **options}


@_row("F.affine_grid")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor([2, 2, 3]), (2, 1, 3, 5), {"align_corners": d.chance()}


# Norms and losses


@_row("F.batch_norm")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.tensor([d.batch(), 3, *[d.pick(2, 5)] * d.whole(0, 2)], d.dtype("float"))
    mean, variance = d.constant([3], x.dtype), d.constant([3], x.dtype, "positive")
    weights = (d.weight([3], x.dtype), d.weight([3], x.dtype)) if d.chance() else (None, None)
    return x, mean, variance, *weights, {"eps": d.pick(1e-5, 0.1)}


@_row("F.layer_norm", "F.rms_norm")
def _(d: Draw) -> tuple[Any, ...]:
    shape = [d.batch(), d.pick(2, 3), d.pick(4, 5)]
    dtype = d.dtype("float")
    normal = shape[-d.whole(1, 2) :]
    return d.tensor(shape, dtype), normal, {"weight": d.weight(normal, dtype) if d.chance() else None}


@_row("F.group_norm")
def _(d: Draw) -> tuple[Any, ...]:
    dtype = d.dtype("float")
    x = d.tensor([d.batch(), 4, *[d.pick(2, 5) for _ in range(d.whole(1, 2))]], dtype)
    return x, d.pick(1, 2, 4), {"weight": d.weight([4], dtype) if d.chance() else None}


@_row("F.instance_norm")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.tensor([d.batch(), 3, d.pick(3, 5), d.pick(2, 5)], d.dtype("float")),)


@_row("F.local_response_norm")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor([d.batch(), 5, 3, 2]), d.pick(1, 2, 3), {"alpha": d.pick(1e-4, 0.5), "k": d.pick(1.0, 2.0)}


@_row("F.cosine_similarity")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 3, kinds=FLOATS)
    return x, d.like(x), {"dim": d.dim(x)}


@_row("F.pairwise_distance")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.tensor([d.batch(), d.pick(3, 5)], d.dtype("float"))
    return x, d.like(x), {"p": d.pick(2.0, 1.0, 3.0), "keepdim": d.chance()}


@_row("cdist")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor([d.batch(), 3]), d.tensor([4, 3]), {"p": d.pick(2.0, 1.0, 0.0, 3.0, float("inf"))}


@_row("pdist")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor([d.pick(1, 2, 4), 3]), d.pick(2.0, 1.0, 3.0)


@_row("F.mse_loss", "F.l1_loss", "F.smooth_l1_loss", "F.huber_loss", "F.soft_margin_loss", "F.poisson_nll_loss")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(kind="unit", kinds=FLOATS)  # of larger ones the exponential overflows in float16
    return x, d.like(x), {"reduction": d.pick("mean", "sum", "none")}


@_row("F.binary_cross_entropy", "F.binary_cross_entropy_with_logits", "F.kl_div")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, kind="probability", kinds=FLOATS)
    return x, d.like(x), {"reduction": d.pick("mean", "sum", "none")}


@_row("F.cross_entropy", "F.nll_loss")
def _(d: Draw) -> tuple[Any, ...]:
    batch, more = d.batch(), [d.pick(2, 3)] * d.whole(0, 1)
    index = d.tensor([batch, *more], torch.int64, "index", 4)
    return (
        d.tensor([batch, 4, *more]),
        index,
        {"reduction": d.pick("mean", "sum", "none"), "ignore_index": d.pick(-100, 1)},
    )


# Linear algebra


@_row("matmul", "operator.matmul")
def _(d: Draw) -> tuple[Any, ...]:
    inner, dtype = d.pick(1, 3, 5), d.dtype("float", "float", "int")
    left = [*[d.batch()] * d.whole(0, 1), *[d.pick(2, 4)] * d.whole(0, 1), inner]
    right = [inner, d.pick(1, 2, 5)] if d.chance(0.7) else [inner]
    return d.tensor(left, dtype), d.weight(right, dtype, "normal")


def _product_rows() -> None:
    shapes: dict[str, list[Any]] = {
        "mm": ["nk", "km"],
        "addmm": ["nm", "nk", "km"],
        "bmm": ["bnk", "bkm"],
        "mv": ["nk", "k"],
        "addmv": ["n", "nk", "k"],
        "addr": ["nm", "n", "m"],
        "baddbmm": ["bnm", "bnk", "bkm"],
        "addbmm": ["nm", "bnk", "bkm"],
        "dot": ["k", "k"],
        "inner": ["nk", "mk"],
    }
    for name, letters in shapes.items():

        @_row(name)
        def _(d: Draw, name: str = name, letters: list[str] = letters) -> tuple[Any, ...]:
            sizes = {"b": d.pick(1, 2), "n": d.batch(), "k": d.pick(1, 3, 4), "m": d.pick(1, 2, 5)}
            dtype = d.dtype("float", "float", "int")
            tensors = [d.tensor([sizes[s] for s in shape], dtype) for shape in letters]
            options = {"beta": d.pick(0, 1, 2), "alpha": d.pick(1, 3, -1)} if name.startswith(("add", "badd")) else {}
            return (*tensors, options) if options else tuple(tensors)


_product_rows()


@_row("einsum")
def _(d: Draw) -> tuple[Any, ...]:
    equation = d.pick("ij,jk->ik", "bij,bjk->bik", "ij->ji", "ii->i", "i,j->ij", "bij,bij->b", "ij,kj", "...i,ij->...j")
    sizes = {c: d.pick(2, 3, 4) for c in "bijk"}
    terms = equation.split("->")[0].replace("...", "b").split(",")
    return equation, *[d.tensor([sizes[c] for c in term]) for term in terms]


@_row("tensordot")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor([d.batch(), 3, 4]), d.tensor([3, 4, 2]), 2


@_row("F.linear")
def _(d: Draw) -> tuple[Any, ...]:
    dtype = d.dtype("float")
    x = d.tensor([d.batch(), *[3] * d.whole(0, 2), 4], dtype)
    return x, d.weight([5, 4], dtype), d.weight([5], dtype) if d.chance() else None


@_row("F.bilinear")
def _(d: Draw) -> tuple[Any, ...]:
    batch = d.batch()
    return d.tensor([batch, 3]), d.tensor([batch, 4]), d.weight([2, 3, 4]), d.weight([2])


@_row("linalg.norm", "linalg.matrix_norm")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor([d.batch(), 4]), d.pick("fro", 1, float("inf"))


@_row("local.det", "local.inv")
def _(d: Draw) -> tuple[Any, ...]:
    size = d.whole(1, 4)
    return (d.tensor([d.batch(), size, size], kind="small"),)


def _det(x: Tensor) -> Tensor:
    return torch.linalg.det(x + 2 * torch.eye(x.shape[-1]))


def _inv(x: Tensor) -> Tensor:
    return torch.linalg.inv(x + 2 * torch.eye(x.shape[-1]))


@_row("linalg.cross", "cross")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.tensor([d.batch(), 3], d.dtype("float", "int"))
    return x, d.like(x), {"dim": -1}


@_row("linalg.vecdot")
def _(d: Draw) -> tuple[Any, ...]:
    x = d.any(1, 3, kinds=FLOATS)
    return x, d.like(x)


@_row("linalg.matrix_power")
def _(d: Draw) -> tuple[Any, ...]:
    return d.tensor([d.batch(), 3, 3]), d.whole(0, 4)


@_row("F.scaled_dot_product_attention")
def _(d: Draw) -> tuple[Any, ...]:
    batch, dtype = d.batch(), d.dtype("float")
    q, k = d.tensor([batch, 2, d.pick(1, 4), 3], dtype), d.tensor([batch, 2, 5, 3], dtype)
    if d.chance(0.3):
        return q, k, d.like(k), {"attn_mask": d.tensor([q.shape[2], 5], dtype)}
    return q, k, d.like(k), {"is_causal": d.chance(), "scale": d.pick(None, 0.3)}


def _recurrent_rows() -> None:
    for name, kind in (("lstm", nn.LSTM), ("gru", nn.GRU), ("rnn", nn.RNN)):

        def make(d: Draw, name: str = name, kind: Any = kind) -> Call:
            layers, both, first = d.pick(1, 2), d.chance(), d.chance()
            with torch.random.fork_rng():
                torch.manual_seed(d.whole(0, 999))
                module = kind(3, 4, layers, bias=d.chance(0.7), batch_first=first, bidirectional=both).eval()
            shape = [d.batch(), d.pick(1, 5), 3]
            return Call(name, module, (d.tensor(shape),), {})

        TABLE[f"local.{name}"] = make


_recurrent_rows()


# Creation


@_row("zeros_like", "ones_like")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(), {"dtype": d.pick(None, torch.int64, torch.float32)}


@_row("full_like")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(kinds=NUMBERS), d.pick(0, 3, 7)


@_row("Tensor.new_full")
def _(d: Draw) -> tuple[Any, ...]:
    return d.any(kinds=NUMBERS), (2, 3), d.pick(1, 4)


@_row("local.arange_of_size", "local.eye_of_size", "local.linspace_of_size", "local.zeros_of_size")
def _(d: Draw) -> tuple[Any, ...]:
    return (d.any(1, 2, kinds=FLOATS), d.dtype("float", "int"))


def _arange_of_size(x: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.arange(x.shape[0], dtype=dtype) + torch.arange(1, x.shape[0] * 2, 2)


def _eye_of_size(x: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.eye(x.shape[0], dtype=dtype) * 2


def _linspace_of_size(x: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.linspace(-1, 2, x.shape[0]).to(x.dtype) + x.sum()


def _zeros_of_size(x: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros(x.shape[0], 3, dtype=dtype) + x.shape[-1]
