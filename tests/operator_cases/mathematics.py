"""Arithmetic, rounding, comparison, bits, activations and special functions."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from operator_cases.case import Case

INF, NAN = float("inf"), float("nan")
AXES = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, -3.25, INF, -INF])
FLOATS = torch.tensor([5.3, -5.3, 7.0, -7.0, 0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-4, -1e10])
SPECIAL = torch.tensor([0.0, -0.0, INF, -INF, NAN, 1.0, -2.5])
APPROXIMATE = {"allow_approximate": True}


def rows(*size: int):
    return lambda n: (torch.randn(n, *size),)


def two(*size: int):
    return lambda n: (torch.randn(n, *size), torch.randn(n, *size))


def repeated(*values: Tensor):
    """The same values in every row, and random ones after them in the first tensor's dtype."""
    return lambda n: tuple(torch.stack([v.roll(k) for k in range(n)]) for v in values)


def quadrants(n: int) -> tuple[Tensor, ...]:
    return AXES.repeat_interleave(8).expand(n, 64).clone(), AXES.repeat(8).expand(n, 64).clone()


def whole(low: int, high: int, *size: int, dtype: torch.dtype = torch.int64):
    return lambda n: (
        torch.randint(low, high, (n, *size), dtype=dtype),
        torch.randint(low, high, (n, *size), dtype=dtype),
    )


def divisors(n: int) -> tuple[Tensor, ...]:
    i = torch.tensor([7, -7, 8, -8, 2**40 + 1, 0, 16777217]).roll(n).expand(n, 7).clone()
    j = torch.tensor([2, -2, 3, -3, 7, 5, -1]).expand(n, 7).clone()
    return i, j


def mixed(n: int) -> tuple[Tensor, ...]:
    f = torch.randn(n, 5)
    return f, torch.randn(n, 5).double(), torch.randint(-4, 5, (n, 5)), torch.randint(-4, 5, (n, 5)).int(), f > 0


def in_place(function):
    def call(x: Tensor, *others: Tensor) -> Tensor:
        x = x.clone()
        return function(x, *others)

    return call


ARITHMETIC = [
    Case("atan2", "quadrants, zeros, infinities", lambda y, x: (torch.atan2(y, x), y.arctan2(x)), quadrants),
    Case(
        "atan2",
        "integers, broadcast",
        lambda i, j: (torch.atan2(i, j), torch.atan2(i[:, :1].float(), j.float())),
        whole(-3, 4, 9),
    ),
    Case("hypot", "", lambda x, y: (torch.hypot(x, y), x.hypot(y[:, :1]), torch.hypot(x.double(), y)), two(7)),
    Case(
        "hypot",
        "large, small, infinite",
        lambda x, y: torch.hypot(x, y),
        repeated(torch.tensor([1e30, 3e-30, INF, 0, -4e25]), torch.tensor([1e30, 4e-30, NAN, 0, 3e25])),
    ),
    Case(
        "lerp",
        "",
        lambda x, y: (torch.lerp(x, y, 0.3), x.lerp(y, 0.7), torch.lerp(x, y, y.abs()), torch.lerp(x, y, x[:, :1])),
        two(7),
    ),
    Case(
        "nan_to_num",
        "",
        lambda x: (
            torch.nan_to_num(x),
            x.nan_to_num(nan=2.0),
            x.nan_to_num(1.0, 5.0, -6.0),
            x.double().nan_to_num(posinf=3.0),
            x.clone().nan_to_num_(neginf=-1.0),
        ),
        repeated(SPECIAL),
    ),
    Case(
        "nan_to_num",
        "integers, halves",
        lambda x: (torch.nan_to_num(x[:, 5:].long()), x.half().nan_to_num()),
        repeated(SPECIAL),
    ),
    Case("copysign", "", lambda x, y: (torch.copysign(x, y), x.copysign(-2.0), torch.copysign(x, 1)), quadrants),
    Case("copysign", "integers", lambda i, j: (torch.copysign(i, j), i.copysign(-3)), whole(-3, 4, 9)),
    Case("frac", "", lambda x: (torch.frac(x), x.double().frac()), repeated(FLOATS)),
    Case(
        "heaviside",
        "",
        lambda x, v: (torch.heaviside(x, v), torch.heaviside(x, torch.tensor(0.5)), x.heaviside(v[:, :1])),
        lambda n: (torch.randint(-1, 2, (n, 7)).float(), torch.randn(n, 7)),
    ),
    Case(
        "heaviside",
        "integers, NaN",
        lambda x: (
            torch.heaviside(x.nan_to_num(0, 1, -1).long(), torch.tensor(7)),
            torch.heaviside(x, torch.tensor(7.0)),
        ),
        repeated(SPECIAL),
    ),
    Case(
        "logaddexp",
        "",
        lambda x, y: (torch.logaddexp(x, y), torch.logaddexp2(x, y), x.logaddexp(y[:, :1])),
        lambda n: (torch.randn(n, 7) * 60, torch.randn(n, 7) * 60),
    ),
    Case("logaddexp", "infinities", lambda x, y: (torch.logaddexp(x, y), torch.logaddexp2(x, y)), quadrants),
    Case(
        "xlogy",
        "",
        lambda x, y: (torch.xlogy(x, y), x.xlogy(2.0), torch.special.xlogy(3, y)),
        lambda n: (torch.randint(0, 3, (n, 7)).float(), torch.randint(0, 3, (n, 7)).float()),
    ),
    Case(
        "xlog1py",
        "",
        lambda x, y: (torch.special.xlog1py(x, y), torch.special.xlog1py(2.0, y)),
        lambda n: (torch.randint(0, 3, (n, 7)).float(), torch.randint(0, 3, (n, 7)).float()),
    ),
    Case("entr", "", lambda x: torch.special.entr(x), repeated(torch.tensor([0.0, 1.0, 0.3, -1.0, 4.0, INF]))),
    Case("sinc", "", lambda x: (torch.sinc(x), torch.special.sinc(x.double())), repeated(FLOATS[:-1])),
    Case(
        "expm1",
        "near zero",
        lambda x: (torch.expm1(x), torch.special.expm1(-x)),
        repeated(torch.tensor([1e-7, 1e-5, -1e-6, 0.0, 1e-3, -0.3, 2.0, 30.0, -40.0])),
    ),
    Case(
        "log1p",
        "near zero",
        lambda x: (torch.log1p(x), torch.special.log1p(x * 0.5)),
        repeated(torch.tensor([1e-7, 1e-5, -1e-6, 0.0, 1e-3, -0.3, 2.0, 1e9, INF])),
    ),
    Case(
        "sum",
        "addmm, baddbmm, addcmul, addcdiv with factors",
        lambda x, y: (
            torch.addmm(x[:, :3], y, y[0, :, None] * y[0, None, :3], beta=0.5, alpha=2),
            torch.addcmul(x, y, y, value=0.3),
            torch.addcdiv(x, y, y.abs() + 1, value=-2),
            torch.baddbmm(x[:, :1, None], y[:, :, None], x[:, None], beta=0.1, alpha=3),
            torch.addmv(x[:, 0], y, x[0], beta=2, alpha=0.5),
            torch.addbmm(x[0, :, None], y[:, :, None], x[:, None], alpha=2),
            torch.add(x, y, alpha=2.5),
            torch.sub(x, y, alpha=3),
            torch.rsub(x, y, alpha=2),
            torch.addr(x[:, :1], x[:, 0], y[0, :6]),
        ),
        two(6),
    ),
    Case(
        "sum",
        "addr to at most five rows",
        lambda x, y: torch.addr(x[:5, :1], x[:, 0], y[0, :6]),
        two(6),
        declined="or say that it is no longer",
    ),
    Case(
        "sum",
        "integers with alpha",
        lambda i, j: (
            torch.add(i, j, alpha=3),
            torch.sub(i, 2, alpha=4),
            torch.addcmul(i, i, j, value=2),
            i - j,
            i * 2 + 1,
            5 - i,
            -i,
            i.sum(),
            i.int().sum(1),
            (i > 0).sum(0),
            i.int().prod(1),
            i.float().mean(0),
        ),
        whole(-9, 10, 5),
    ),
    Case(
        "promotion",
        "add, mul, sub, div",
        lambda f, d, i, s, b: (
            f + i,
            f * d,
            i * 2.5,
            s + i,
            b + i,
            b * f,
            i / s.clamp(1),
            s / 2,
            i - f,
            i * b,
            b * 2,
            b / 2,
            f * 3,
            d + f,
            2 - b.int(),
            i / 3.0,
            b + 0.5,
            s + 2**40,
        ),
        mixed,
    ),
    Case(
        "promotion",
        "maximum, comparisons",
        lambda f, d, i, s, b: (
            torch.maximum(f, d),
            torch.maximum(i, s),
            torch.minimum(f, i.float()),
            i < 0.5,
            f > i,
            s == 2.0,
            i >= d,
            b == 1,
            s != i,
            i > -2.5,
            torch.maximum(f, i),
            torch.eq(b, f),
            torch.fmax(f, d),
            torch.fmin(i, s),
        ),
        mixed,
    ),
    Case(
        "promotion",
        "where, cat, stack",
        lambda f, d, i, s, b: (
            torch.where(b, f, i),
            torch.where(b, 1.0, i),
            torch.where(b, i, 0),
            torch.where(i > 0, f, d),
            torch.where(b, s, i),
            torch.cat((f, d)),
            torch.cat((s, i), 1),
            torch.cat((i, f)),
            torch.stack((f, d), 1),
            torch.where(b, f, 2),
            torch.where(b, 1, 2.5),
            torch.cat((b, i)),
            torch.where(b, b, i),
        ),
        mixed,
    ),
    Case(
        "promotion",
        "pow",
        lambda f, d, i, s, b: (
            f**2,
            i**2,
            2 ** i.abs(),
            2.0**i,
            f.abs() ** 0.5,
            i**2.0,
            f.abs() ** i,
            d**3,
            f**-1,
            i.abs() ** s.abs(),
            2**f,
            f**0,
            f.abs() ** -0.5,
            i**0,
            (-f.abs()) ** 3,
            torch.pow(f.abs(), d),
            s**3,
        ),
        mixed,
    ),
    Case(
        "promotion",
        "clamp",
        lambda f, d, i, s, b: (
            f.clamp(0),
            i.clamp(-1, 2),
            i.clamp(-1.5, 2.5),
            f.clamp(min=d),
            i.clamp(max=s),
            f.clamp(-0.5, 0.5),
            f.clamp(i.float(), d.float()),
            torch.clip(f, max=0.25),
            s.clamp(0),
            i.clamp_min(1),
            f.clamp_max(i),
            d.clamp(-1, 1),
            f.clamp(1, -1),
            i.float().half().clamp(-1, 1),
            torch.clamp(i, torch.tensor(-1), torch.tensor(2)),
            i.to(torch.int8).clamp(-1, 2),
            i.to(torch.int16).clamp(max=1),
        ),
        mixed,
    ),
    Case(
        "clamp",
        "NaN, infinities",
        lambda x: (
            x.clamp(-1, 1),
            torch.clamp(x, max=x.flip(1)),
            torch.maximum(x, x.flip(1)),
            torch.fmax(x, x.flip(1)),
            torch.fmin(x, torch.tensor(0.5)),
            x.relu(),
            F.relu6(x),
            F.hardtanh(x, -0.5, 2),
        ),
        repeated(SPECIAL),
    ),
    Case(
        "clamp",
        "NaN, one bound",
        lambda x: x.clamp(min=0),
        repeated(SPECIAL),
        declined="NaN or infinities stand elsewhere",
    ),
    Case(
        "in place",
        "without a symbolic of their own",
        in_place(lambda x, y: (x.frac_().expm1_(), x.hypot_(y).trunc_(), x.copysign_(y).sgn_(), x.xlogy_(y.abs()))),
        two(5),
    ),
    Case(
        "in place",
        "",
        in_place(
            lambda x, y: (
                x.add_(1).mul_(y).clamp_(-1, 1),
                x.sub_(y).abs_().sqrt_(),
                x.div_(2).neg_().exp_(),
                x.pow_(2).floor_(),
            )
        ),
        two(5),
    ),
]

DIVISION = [
    Case(
        "div",
        "integers, every mode",
        lambda i, j: (
            i / j,
            i // j,
            i.div(j, rounding_mode="floor"),
            torch.div(i, j, rounding_mode="trunc"),
            torch.floor_divide(i, 3),
            i // -4,
            7 // j,
            i.true_divide(2),
            i.int() // 3,
            i.clone().floor_divide_(2),
            i // 2.5,
        ),
        divisors,
    ),
    Case(
        "div",
        "floats, every mode",
        lambda x, y: (
            x / y,
            x // y,
            x.div(y, rounding_mode="floor"),
            torch.div(x, y, rounding_mode="trunc"),
            x // 0.1,
            2 / x,
            x.reciprocal(),
            x.clone().div_(y, rounding_mode="trunc"),
        ),
        lambda n: (FLOATS.expand(n, 12).clone() + 0.0, torch.randn(n, 12)),
    ),
    Case(
        "fmod",
        "",
        lambda x, y: (torch.fmod(x, y), x.fmod(3), x.fmod(-2.5), torch.fmod(x.double(), 0.1), x.clone().fmod_(2)),
        lambda n: (FLOATS.expand(n, 12).clone(), torch.randn(n, 12)),
    ),
    Case("fmod", "integers", lambda i, j: (torch.fmod(i, j), i.fmod(3), i.int().fmod(j.int()), i.fmod(2.5)), divisors),
    Case(
        "remainder",
        "",
        lambda x, y: (torch.remainder(x, y), x % 3, x % -2.5, x.double() % 0.1, 7 % y, x.clone().remainder_(2)),
        lambda n: (FLOATS.expand(n, 12).clone(), torch.randn(n, 12)),
    ),
    Case(
        "remainder",
        "integers",
        lambda i, j: (i % j, i % 3, i % -3, i.int() % 5, i % 2.5, i.clone().remainder_(4)),
        divisors,
    ),
    Case(
        "round",
        "decimals",
        lambda x: (x.round(), torch.round(x, decimals=1), x.round(decimals=-1), torch.round(x.double(), decimals=2)),
        lambda n: (torch.randn(n, 9) * 33,),
    ),
    Case(
        "round",
        "halves",
        lambda x: (x.round(), torch.floor(x), x.ceil(), x.trunc(), x.fix(), x.clone().round_()),
        lambda n: (torch.arange(-5, 5).expand(n, 10) * 0.5,),
    ),
    Case(
        "round",
        "integers",
        lambda i, j: (i.trunc(), i.floor(), i.ceil(), i.round(), i.int().floor(), i.fix()),
        whole(-9, 9, 5),
    ),
    Case(
        "sign",
        "",
        lambda x: (
            x.sign(),
            x.sgn(),
            torch.signbit(x),
            x.nan_to_num(0, 1, -1).long().sign(),
            (x > 0).sign(),
            x.nan_to_num(0, 1, -1).int().sgn(),
        ),
        repeated(torch.tensor([0.0, -0.0, INF, -INF, 3.0, 1.0, -2.5])),
    ),
    Case(
        "signbit",
        "integers",
        lambda i, j: (i.signbit(), (i.int()).signbit(), torch.abs(i), i.neg(), torch.positive(i), i.square()),
        whole(-9, 9, 5),
    ),
    Case(
        "isfinite",
        "isnan, isinf, isposinf, isneginf",
        lambda x: (
            x.isnan(),
            x.isinf(),
            x.isposinf(),
            x.isneginf(),
            x.isfinite(),
            x.double().isfinite(),
            x.half().isinf(),
            x[:, 5:].long().isfinite(),
            x[:, 5:].long().isnan(),
            x.half().isnan(),
            x[:, 5:].long().isinf(),
        ),
        repeated(SPECIAL),
    ),
    Case(
        "isclose",
        "",
        lambda x, y: (
            torch.isclose(x, y),
            x.isclose(y, rtol=0.1),
            torch.isclose(x, y, atol=0.5, equal_nan=True),
            torch.isclose(x.nan_to_num(0, 1, -1).long(), y.nan_to_num(0, 1, -1).long()),
        ),
        repeated(SPECIAL, SPECIAL.roll(1) + torch.tensor([0, 0, 0, 0, 0, 1e-6, 0.3])),
    ),
    Case(
        "allclose",
        "equal",
        lambda x, y: (torch.isclose(x, x + 1e-9).all(), (x == y).all(), torch.eq(x, y).any(1)),
        two(3),
    ),
]

BITS = [
    *(
        Case(
            "bitwise",
            f"{str(dtype)[6:]}, functions",
            lambda i, j: (
                torch.bitwise_and(i, j),
                torch.bitwise_or(i, j),
                torch.bitwise_xor(i, j),
                torch.bitwise_not(i),
                i.bitwise_and(6),
                i.bitwise_or(3),
                i.bitwise_xor(5),
            ),
            whole(0 if dtype == torch.uint8 else -9, 10, 6, dtype=dtype),
        )
        for dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
    ),
    Case(
        "bitwise",
        "Python's operators",
        lambda i, j: (i & j, i | j, i ^ j, ~i, i & 7, i | -4, 5 ^ i, i & ~j, 6 & i),
        whole(-99, 99, 6),
    ),
    Case(
        "bitwise",
        "bool",
        lambda i, j: (
            (i > 0) & (j > 0),
            (i > 0) | (j > 0),
            (i > 0) ^ (j > 0),
            ~(i > 0),
            (i > 0).bitwise_and(j > 0),
            torch.bitwise_xor(i > 0, j > 0),
            (i > 0) & True,
            (i > 0) | False,
            (i > 0) ^ True,
        ),
        whole(-3, 4, 6),
    ),
    Case(
        "bitwise",
        "mixed",
        lambda i, j: (i & j.int(), (i > 0) & j, i.int() | 3, i.byte() & 15, (i > 0) | j, (i > 0) ^ j.int()),
        whole(0, 99, 6),
    ),
    Case(
        "bitwise",
        "in place",
        in_place(lambda i, j: (i.bitwise_and_(j).bitwise_or_(8), i.bitwise_xor_(j).bitwise_not_(), i.logical_not_())),
        whole(-99, 99, 6),
    ),
    Case(
        "shift",
        "",
        lambda i, j: (
            i << 2,
            i >> 1,
            i << j,
            i >> j,
            torch.bitwise_left_shift(i, j),
            torch.bitwise_right_shift(i, 2),
            1 << j,
            1024 >> j,
        ),
        lambda n: (torch.randint(0, 999, (n, 6)), torch.randint(0, 9, (n, 6))),
    ),
    Case(
        "shift",
        "negative",
        lambda i, j: (i << 2, i >> 1, i << j, i >> j, torch.bitwise_right_shift(i, 3), -1024 >> j),
        lambda n: (torch.randint(-999, 0, (n, 6)), torch.randint(0, 9, (n, 6))),
    ),
    *(
        Case(
            "shift",
            str(dtype)[6:],
            lambda i, j: (i << 2, i >> 1, torch.bitwise_right_shift(i, j), torch.bitwise_left_shift(i, j)),
            lambda n, dtype=dtype: (
                torch.randint(0 if dtype == torch.uint8 else -25, 25, (n, 6)).to(dtype),
                torch.randint(0, 3, (n, 6)).to(dtype),
            ),
        )
        for dtype in (torch.int8, torch.uint8, torch.int32)
    ),
    Case(
        "logical",
        "",
        lambda x, i: (
            torch.logical_and(x, i),
            torch.logical_or(x > 0, i),
            torch.logical_xor(x, x > 0),
            x.logical_not(),
            torch.logical_not(i),
            i.logical_and(i.int()),
        ),
        lambda n: (torch.randint(-1, 2, (n, 7)).float(), torch.randint(-1, 2, (n, 7))),
    ),
    Case(
        "any, all",
        "",
        lambda x, i: (
            x.any(),
            x.all(1),
            (x > 0).any(0),
            i.all(),
            i.any(1, keepdim=True),
            torch.all(x > -9),
            (i.byte() > 0).all(1),
            torch.any(x, -1),
            i.int().any(0),
            x.half().all(0),
        ),
        lambda n: (torch.randint(-1, 2, (n, 3)).float(), torch.randint(-1, 2, (n, 3))),
    ),
    Case(
        "any, all",
        "several axes",
        lambda x: ((x > 0).any((0, 1)), (x > -1).all(dim=(1, 2), keepdim=True), torch.any(x, (1, 2))),
        rows(2, 3),
    ),
    Case(
        "amax, amin",
        "",
        lambda x: (
            x.amax(),
            x.amax(1),
            x.amin((0, 2), keepdim=True),
            x.long().amax((1, 2)),
            x.amin(-1),
            x.int().amin(0),
            torch.amax(x.double(), (0, 1)),
        ),
        rows(2, 3),
    ),
    Case(
        "prod",
        "",
        lambda x: (
            x.prod(),
            x.prod(1),
            x.prod(0, keepdim=True),
            (x * 3).long().prod(1),
            (x > 0).prod(1),
            x.prod(1, dtype=torch.float64),
        ),
        rows(3),
    ),
]

GEOMETRY = [
    *(
        Case(
            "cdist",
            f"p={p}",
            lambda x, y, p=p: torch.cdist(x, y, p=p),
            lambda n: (torch.randint(-2, 3, (n, 4, 3)) * 0.5, torch.randint(-2, 3, (n, 5, 3)) * 0.5),
        )
        for p in (0.0, 1.0, 2.0, 3.5, INF)
    ),
    *(
        Case(
            "cdist",
            mode,
            lambda x, y, mode=mode: torch.cdist(x, y, compute_mode=mode),
            lambda n: (torch.randn(n, 4, 3), torch.randn(6, 3)),
        )
        for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    ),
    Case("cdist", "2-D, to itself", lambda x: (torch.cdist(x, x), torch.cdist(x, x[:1], p=1)), rows(3)),
    Case(
        "cdist", "30 points", lambda x, y: torch.cdist(x, y), lambda n: (torch.randn(n, 30, 8), torch.randn(n, 27, 8))
    ),
    Case("pdist", "", lambda x: (F.pdist(x[0]), torch.pdist(x[0], p=1)), rows(6, 3)),
    Case("pdist", "dynamic", lambda x: F.pdist(x), rows(3), declined="take the upper triangle of torch.cdist(x, x)"),
    Case(
        "pairwise_distance",
        "",
        lambda x, y: (
            F.pairwise_distance(x, y),
            F.pairwise_distance(x, y, p=1, keepdim=True),
            nn.PairwiseDistance(3)(x, y),
            F.pairwise_distance(x, y, INF),
        ),
        two(7),
    ),
    Case(
        "cosine_similarity",
        "",
        lambda x, y: (
            F.cosine_similarity(x, y),
            F.cosine_similarity(x, y, dim=0),
            nn.CosineSimilarity(-1, eps=0.5)(x, y),
            torch.cosine_similarity(x * 0, y),
        ),
        two(7),
    ),
    Case(
        "normalize",
        "",
        lambda x: (F.normalize(x), F.normalize(x, p=1, dim=0), F.normalize(x * 0), F.normalize(x, 3.0, -1)),
        rows(7),
    ),
    Case(
        "cross",
        "",
        lambda x, y: (
            torch.cross(x, y, dim=-1),
            torch.linalg.cross(x, y),
            torch.cross(x.transpose(1, 2), y.transpose(1, 2), dim=1),
            torch.linalg.cross(x, y[:, :1]),
        ),
        two(4, 3),
    ),
    Case(
        "kron",
        "",
        lambda x, y: (torch.kron(x, y[0]), torch.kron(x[0], y[0]), torch.kron(x, y[0, 0])),
        lambda n: (torch.randn(n, 3), torch.randn(n, 2, 2)),
    ),
    Case(
        "cov",
        "",
        lambda x: (torch.cov(x.transpose(0, 1)), x.transpose(0, 1).cov(correction=0), torch.cov(x[0])),
        rows(7),
    ),
    Case(
        "cov",
        "weights",
        lambda x, w: (
            torch.cov(x.transpose(0, 1), fweights=w[:, 0]),
            torch.cov(x.transpose(0, 1), aweights=w[:, 0] * 0.5),
        ),
        lambda n: (torch.randn(n, 7), torch.randint(1, 4, (n, 7))),
    ),
    Case("corrcoef", "", lambda x: (torch.corrcoef(x.transpose(0, 1)), x[:, :3].transpose(0, 1).corrcoef()), rows(7)),
    Case(
        "renorm",
        "",
        lambda x: (torch.renorm(x, 2, 0, 1.0), x.renorm(p=1, dim=1, maxnorm=2.5), torch.renorm(x, 3, -1, 0.7)),
        rows(4, 3),
    ),
    Case("dist", "", lambda x, y: (torch.dist(x, y), torch.dist(x, y, 1), x.dist(y, 3)), two(4)),
    Case(
        "dot",
        "inner, outer, mv, vdot",
        lambda x, y: (
            torch.dot(x[0], y[0]),
            torch.inner(x, y),
            torch.outer(x[:, 0], y[0]),
            x.mv(y[0]),
            torch.tensordot(x, y, ([1], [1])),
            torch.linalg.vecdot(x, y),
            torch.ger(x[0], y[0]),
        ),
        two(4),
    ),
]

ACTIVATIONS = [
    Case(
        "activations",
        "exponential",
        lambda x: (
            F.celu(x, 0.7),
            F.selu(x),
            F.elu(x, 1.3),
            F.mish(x),
            F.silu(x),
            F.gelu(x),
            F.gelu(x, approximate="tanh"),
            F.logsigmoid(x),
            F.tanhshrink(x),
            F.softsign(x),
        ),
        lambda n: (torch.randn(n, 9) * 8,),
    ),
    Case(
        "activations",
        "softplus, its threshold",
        lambda x: (F.softplus(x), F.softplus(x, 2.0, 5.0), F.softplus(x, 0.3, 1.0)),
        lambda n: (torch.randn(n, 19) * 8,),
    ),
    Case(
        "activations",
        "piecewise",
        lambda x: (
            F.hardswish(x),
            F.hardsigmoid(x),
            F.threshold(x, 0.5, -3),
            F.hardshrink(x),
            F.hardshrink(x, 0.2),
            F.softshrink(x),
            F.softshrink(x, 0.3),
            F.relu6(x),
            F.leaky_relu(x, 0.2),
            F.hardtanh(x, -2, 0.5),
            F.rrelu(x),
            F.glu(x, 1),
            F.prelu(x, torch.tensor([0.3])),
        ),
        lambda n: (torch.randn(n, 8) * 3,),
    ),
    Case(
        "activations",
        "piecewise, on the edges",
        lambda x: (
            F.hardshrink(x),
            F.softshrink(x),
            F.threshold(x, 0.5, 9),
            F.hardswish(x),
            F.hardtanh(x),
            F.celu(x),
            F.relu(x),
            F.leaky_relu(x),
        ),
        lambda n: (torch.arange(-6, 7).expand(n, 13) * 0.5,),
    ),
    Case(
        "activations",
        "infinities, NaN",
        lambda x: (
            F.hardshrink(x),
            F.softshrink(x),
            F.threshold(x, 0.5, 9),
            F.softplus(x),
            F.mish(x[:, :6]),
            F.logsigmoid(x),
            F.celu(x),
            F.selu(x),
        ),
        repeated(torch.tensor([0.0, 90.0, -90.0, 1.0, -2.5, 1e-5, INF, NAN])),
    ),
    Case(
        "activations",
        "in place, as modules",
        nn.Sequential(
            nn.CELU(0.7, inplace=True),
            nn.Hardswish(),
            nn.Softplus(2.0, 1.0),
            nn.Threshold(0.1, 20.0),
            nn.Softshrink(0.2),
            nn.Hardshrink(),
            nn.GLU(),
            nn.Tanhshrink(),
            nn.LogSigmoid(),
            nn.Softmin(dim=-1),
        ),
        lambda n: (torch.randn(n, 8) * 3,),
    ),
    Case(
        "softmax",
        "dtype, log, axes",
        lambda x: (
            x.softmax(-1),
            F.softmax(x, 0),
            F.softmax(x, 1, dtype=torch.float64),
            x.log_softmax(1),
            F.log_softmax(x, 0, dtype=torch.float64),
            F.softmin(x, 1),
            x.half().softmax(1, dtype=torch.float32),
            F.log_softmax(x.long(), 1, dtype=torch.float32),
        ),
        lambda n: (torch.randn(n, 6, 3) * 30,),
    ),
    Case("gumbel_softmax", "", lambda x: F.gumbel_softmax(x, tau=0.5), rows(7), declined="random"),
    Case("dropout", "training=True", lambda x: F.dropout(x, 0.5, training=True), rows(9), declined="random"),
    Case("rand_like", "", lambda x: x + torch.rand_like(x), rows(9), declined="random"),
    Case("bernoulli", "", lambda x: torch.bernoulli(x.sigmoid()), rows(9), declined="random"),
    Case(
        "dropout", "in eval mode", nn.Sequential(nn.Dropout(0.5), nn.AlphaDropout(0.3), nn.Dropout2d()), rows(4, 3, 3)
    ),
]

FUNCTIONS = [
    Case(
        "elementary",
        "trigonometric",
        lambda x: (
            x.sin(),
            x.cos(),
            x.tan(),
            x.tanh(),
            x.sinh(),
            x.cosh(),
            x.atan(),
            x.asinh(),
            x.clamp(-1, 1).asin(),
            x.clamp(-1, 1).acos(),
            (x.abs() + 1).acosh(),
            (x.tanh() * 0.9).atanh(),
        ),
        rows(9),
    ),
    Case(
        "elementary",
        "exponential",
        lambda x: (
            x.exp(),
            x.exp2(),
            torch.special.exp2(x),
            x.abs().log(),
            x.abs().log2(),
            x.abs().log10(),
            x.abs().sqrt(),
            x.abs().rsqrt(),
            x.sigmoid(),
            x.erf(),
            x.erfc(),
            x.square(),
            torch.float_power(x.abs(), 1.5),
            x.abs().float_power(2),
            torch.expm1(x),
            torch.special.expit(x),
        ),
        rows(9),
    ),
    Case(
        "elementary",
        "of integers",
        lambda i, j: (
            i.sin(),
            i.exp(),
            i.sqrt(),
            i.sigmoid(),
            i.tanh(),
            i.rsqrt(),
            i.log2(),
            i.int().log(),
            i.atan(),
            i.float_power(2),
            i.reciprocal(),
            i.erf(),
            i.exp2(),
            i.log1p(),
            i.expm1(),
            i.log10(),
            i.square(),
        ),
        whole(1, 9, 5),
    ),
    Case(
        "elementary",
        "of float64",
        lambda x: (
            x.double().sin(),
            x.double().exp(),
            x.double().tanh(),
            x.double().sigmoid(),
            x.double().log1p(),
            x.double().expm1(),
            x.double().relu(),
            F.celu(x.double()),
        ),
        lambda n: (torch.rand(n, 6),),
    ),
    *(
        Case(
            "elementary",
            f"{name} of float64",
            lambda x, function=function: function(x.double()),
            lambda n: (torch.rand(n, 6),),
            declined="cast to float32",
        )
        for name, function in (("erf", torch.erf), ("gelu", F.gelu))
    ),
    Case(
        "rad2deg",
        "",
        lambda x: (torch.rad2deg(x), x.long().rad2deg()),
        lambda n: (torch.randn(n, 5) * 360,),
    ),
    Case(
        "logit", "", lambda x: (torch.logit(x), x.logit(eps=0.1), torch.special.logit(x)), lambda n: (torch.rand(n, 9),)
    ),
    Case(
        "polynomial",
        "special",
        lambda x: (
            torch.special.log_ndtr(x),
            torch.special.ndtr(x),
            torch.special.log_softmax(x, 1),
            torch.special.softmax(x, 1),
            torch.special.logsumexp(x, 1),
            torch.special.erfcx(x.abs() * 0.5),
        ),
        lambda n: (torch.randn(n, 7),),
    ),
    Case("ndtr", "", lambda x: torch.special.ndtr(x), rows(9)),
    Case("log_ndtr", "", lambda x: torch.special.log_ndtr(x), rows(9)),
    Case("erfc", "large", lambda x: torch.erfc(x), lambda n: (torch.rand(n, 9) * 5,)),
    Case(
        "erfinv",
        "",
        lambda x: (torch.erfinv(x), torch.special.erfinv(x * 0.5)),
        lambda n: (
            torch.cat((torch.rand(n, 20) * 2 - 1, torch.tensor([[0.0, 1, -1, 2, 1e-6, 0.99999]]).repeat(n, 1)), 1),
        ),
        options=APPROXIMATE,
    ),
    Case(
        "ndtri",
        "",
        lambda x: torch.special.ndtri(x),
        lambda n: (torch.rand(n, 20),),
        declined="compute its result outside",
    ),
    Case(
        "lgamma",
        "",
        lambda x: (torch.lgamma(x), torch.special.gammaln(x + 1)),
        lambda n: (
            torch.cat(
                (torch.rand(n, 20) * 30, torch.tensor([[1.0, 2.0, 1e-4, 400.0, 0.5, -0.5, -1.5, -3.7]]).repeat(n, 1)), 1
            ),
        ),
        options=APPROXIMATE,
    ),
    Case(
        "digamma",
        "",
        lambda x: (torch.digamma(x), torch.special.psi(x + 1)),
        lambda n: (
            torch.cat(
                (torch.rand(n, 20) * 30, torch.tensor([[1.0, 2.0, 1e-4, 400.0, 0.5, -0.5, -1.5, -3.7]]).repeat(n, 1)), 1
            ),
        ),
        options=APPROXIMATE,
    ),
    Case(
        "i0",
        "",
        lambda x: (torch.i0(x), torch.special.i0e(x)),
        lambda n: (torch.randn(n, 20) * 6,),
        options=APPROXIMATE,
    ),
    Case(
        "i1",
        "",
        lambda x: (torch.special.i1(x), torch.special.i1e(x)),
        lambda n: (torch.randn(n, 20) * 6,),
        declined="compute its result outside",
    ),
    Case(
        "erfinv",
        "without leave",
        lambda x: torch.erfinv(x),
        lambda n: (torch.rand(n, 5),),
        declined="allow_approximate",
    ),
    Case(
        "polygamma",
        "trigamma",
        lambda x: torch.polygamma(1, x),
        lambda n: (torch.rand(n, 9) * 30,),
        declined="compute its result outside",
    ),
    Case(
        "mvlgamma",
        "",
        lambda x: torch.mvlgamma(x + 2, 3),
        lambda n: (torch.rand(n, 9) * 30,),
        declined="compute its result outside",
    ),
    Case(
        "polyval",
        "linspace, vander",
        lambda x: (
            torch.vander(x[0], 4),
            torch.linalg.vander(x, N=3),
            torch.linspace(0, 1, 5) * x[:, :1],
            torch.logspace(0, 1, 4) * x[:, :1],
        ),
        rows(4),
    ),
    Case("gcd", "", lambda i, j: torch.gcd(i, j), whole(-40, 40, 7), declined="compute its result outside"),
    Case("lcm", "", lambda i, j: torch.lcm(i, j), whole(-40, 40, 7), declined="compute its result outside"),
    Case("ldexp", "", lambda x: (torch.ldexp(x, torch.tensor(3)), torch.ldexp(x, x.long())), rows(7)),
    Case("frexp", "", lambda x: torch.frexp(x), rows(7), declined="compute its result outside"),
    Case("nextafter", "", lambda x, y: torch.nextafter(x, y), two(7), declined="compute its result outside"),
    Case(
        "nansum, nanmean",
        "",
        lambda x: (x.nansum(), torch.nansum(x, 1), x.nanmean(), torch.nanmean(x, 1, keepdim=True)),
        repeated(torch.tensor([1.0, NAN, 2.5, -1.0, NAN])),
    ),
]

CASES = [*ARITHMETIC, *DIVISION, *BITS, *GEOMETRY, *ACTIVATIONS, *FUNCTIONS]
