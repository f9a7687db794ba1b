"""Running totals, searching, sorting, counting and order statistics."""

import torch
from torch import Tensor, nn

from operator_cases.case import Case

INF, NAN = float("inf"), float("nan")


def at(x: Tensor, found: tuple[Tensor, Tensor], dim: int = -1) -> tuple[Tensor, Tensor]:
    """Values, and what their indices point at: of equal cells torch may name any."""
    return found[0], x.gather(dim, found[1])


def rows(*size: int):
    return lambda n: (torch.randn(n, *size),)


def tied(*size: int):
    return lambda n: (torch.randint(-2, 3, (n, *size)).float(),)


def counts(*size: int):
    return lambda n: (torch.randint(-3, 4, (n, *size)),)


def distinct(*size: int):
    """No two values of a tensor are equal, so that every index is defined."""
    return lambda n: (torch.randperm(n * torch.Size(size).numel()).reshape(n, *size) * 0.5 - 3,)


def with_nan(*size: int):
    def draw(n: int) -> tuple[Tensor, ...]:
        x = torch.randn(n, *size)
        x[0, 1], x[-1, 2] = NAN, NAN
        return (x,)

    return draw


def extremes(n: int) -> tuple[Tensor, ...]:
    x = torch.randn(n, 6) * 40
    x[0, :2], x[-1, 3], x[-1, 0] = -INF, INF, 88.0
    return (x,)


class Edges(nn.Module):
    """Looks values up between edges that are a buffer."""

    def __init__(self, look, edges):
        super().__init__()
        self.look = look
        self.register_buffer("edges", torch.as_tensor(edges))

    def forward(self, *inputs):
        return self.look(self.edges, *inputs)


GRID = [-1.5, -1.0, 0.0, 0.0, 0.5, 2.0]


def on_edges(n: int) -> tuple[Tensor, ...]:
    return (torch.cat((torch.randn(n, 4), torch.tensor([[-1.5, 0.0, 0.5, 2.0, 9.0]]).repeat(n, 1)), 1),)


def table_and_values(n: int) -> tuple[Tensor, ...]:
    table = torch.randint(-4, 5, (n, 7)).float().sort(-1).values
    return table, torch.randint(-5, 6, (n, 5)).float()


def unsorted_and_values(n: int) -> tuple[Tensor, ...]:
    return torch.randperm(n * 7).reshape(n, 7).float(), torch.randint(-2, 7 * n, (n, 5)).float()


CUMULATIVE = [
    Case(
        "cumsum",
        "floats, integers, bool, dtype, from the end, along the batch",
        lambda x, i: (
            *(x.cumsum(-1), torch.cumsum(x, 0), i.cumsum(1), i.int().cumsum(0), (i > 0).cumsum(1)),
            *(x.cumsum(0, dtype=torch.float64), i.cumsum(-1, dtype=torch.float32), x[0, 0].cumsum(0)),
        ),
        lambda n: (torch.randn(n, 7), torch.randint(-9, 9, (n, 5))),
    ),
    Case("cumprod", "last axis", lambda x: x.cumprod(-1), rows(3, 7)),
    Case("cumprod", "along the batch", lambda x: torch.cumprod(x, 0), tied(7)),
    Case("cumprod", "integers, bool", lambda i: (i.cumprod(1), (i > 0).cumprod(1), i.int().cumprod(0)), counts(5)),
    Case("cumprod", "dtype, in place", lambda x: (x.cumprod(1, dtype=torch.float64), x.clone().cumprod_(0)), tied(5)),
    Case("cummax", "last axis, ties", lambda x: torch.cummax(x, -1), tied(9)),
    Case("cummax", "along the batch", lambda x: x.cummax(0), tied(4)),
    Case("cummax", "integers", lambda i: (*i.cummax(1), *i.int().cummax(0)), counts(6)),
    Case("cummax", "infinities", lambda x: x.cummax(1), extremes),
    Case("cummax", "NaN", lambda x: x.cummax(1), with_nan(5)),
    Case("cummin", "last axis, ties", lambda x: torch.cummin(x, -1), tied(9)),
    Case("cummin", "along the batch, values only", lambda x: x.cummin(dim=0).values, rows(4)),
    Case("cummin", "middle axis, integers", lambda i: i.cummin(-2), counts(6, 2)),
    Case("logcumsumexp", "last axis", lambda x: torch.logcumsumexp(x, -1), lambda n: (torch.randn(n, 9) * 60,)),
    Case("logcumsumexp", "along the batch", lambda x: x.logcumsumexp(dim=0), lambda n: (torch.randn(n, 3) * 60,)),
    Case("logcumsumexp", "infinities", lambda x: x.logcumsumexp(1), extremes),
    Case(
        "diff",
        "",
        lambda x, i: (
            *(torch.diff(x), x.diff(dim=0), x.diff(n=2, dim=1), torch.diff(i), torch.diff(i > 0)),
            *(torch.diff(x, dim=1, prepend=x[:, :1]), torch.diff(x, append=x[:, :2])),
        ),
        lambda n: (torch.randn(n, 7), torch.randint(-9, 9, (n, 5))),
    ),
    Case(
        "cumulative_trapezoid",
        "",
        lambda y, x: (
            *(torch.cumulative_trapezoid(y), torch.cumulative_trapezoid(y, dx=0.5)),
            *(torch.cumulative_trapezoid(y, x), torch.cumulative_trapezoid(y, dim=0)),
        ),
        lambda n: (torch.randn(n, 6), torch.randn(n, 6).cumsum(1)),
    ),
    Case(
        "trapezoid",
        "",
        lambda y, x: (
            *(torch.trapezoid(y), torch.trapz(y, dx=0.5), torch.trapezoid(y, x), torch.trapezoid(y, dim=0)),
            torch.trapezoid(y, x[0]),
        ),
        lambda n: (torch.randn(n, 6), torch.randn(n, 6).cumsum(1)),
    ),
]

SEARCHING = [
    Case("searchsorted", "1-D table", Edges(lambda e, x: torch.searchsorted(e, x), GRID), on_edges),
    Case("searchsorted", "right=True", Edges(lambda e, x: torch.searchsorted(e, x, right=True), GRID), on_edges),
    Case(
        "searchsorted",
        "side, int32",
        Edges(
            lambda e, x: (torch.searchsorted(e, x, side="right"), torch.searchsorted(e, x, out_int32=True)),
            GRID,
        ),
        on_edges,
    ),
    Case("searchsorted", "a table for each row", lambda t, v: torch.searchsorted(t.sort().values, v), table_and_values),
    Case(
        "searchsorted",
        "a table for each row, right, integers",
        lambda t, v: (
            torch.searchsorted(t.sort().values, v, right=True),
            torch.searchsorted(t.long().sort().values, v.long()),
        ),
        table_and_values,
    ),
    Case(
        "searchsorted",
        "sorter",
        lambda t, v: torch.searchsorted(t, v, sorter=t.argsort(-1)),
        unsorted_and_values,
    ),
    Case(
        "searchsorted",
        "a number",
        lambda t: (torch.searchsorted(t[0], 0.5), torch.searchsorted(t[0], 1, right=True)),
        lambda n: table_and_values(n)[:1],
    ),
    Case("searchsorted", "dynamic table", lambda t, v: torch.searchsorted(t[:, 0].sort().values, v), table_and_values),
    Case("bucketize", "", Edges(lambda e, x: torch.bucketize(x, e), GRID), on_edges),
    Case(
        "bucketize",
        "right, int32",
        Edges(lambda e, x: (torch.bucketize(x, e, right=True), torch.bucketize(x, e, out_int32=True)), GRID),
        on_edges,
    ),
    Case("bucketize", "integers", Edges(lambda e, i: torch.bucketize(i, e), [-2, 0, 0, 1]), counts(6)),
    Case(
        "bucketize",
        "1000 edges",
        Edges(lambda e, x: torch.bucketize(x, e), [k * 0.01 - 5 for k in range(1000)]),
        rows(9),
    ),
]

COUNTING = [
    Case("histc", "bounds", lambda x: torch.histc(x, 5, -2, 2), rows(40)),
    Case("histc", "on the edges", lambda x: torch.histc(x, bins=4, min=-2, max=2), tied(40)),
    Case("histc", "bounds of the data", lambda x: torch.histc(x, 7), rows(40)),
    Case(
        "bincount",
        "minlength",
        lambda i: torch.bincount(i.flatten(), minlength=6),
        lambda n: (torch.randint(0, 6, (n, 9)),),
    ),
    Case("bincount", "length of the data", lambda i: torch.bincount(i.abs().flatten()), counts(9)),
    Case(
        "bincount",
        "weights",
        lambda i, w: torch.bincount(i.flatten(), w.flatten(), minlength=5),
        lambda n: (torch.randint(0, 5, (n, 9)), torch.randn(n, 9)),
    ),
    Case("unique", "", lambda i: torch.unique(i), counts(9)),
    Case("unique", "inverse, counts", lambda i: torch.unique(i, return_inverse=True, return_counts=True), counts(9)),
    Case("unique", "inverse", lambda x: torch.unique(x, return_inverse=True), tied(9)),
    Case(
        "unique",
        "dim",
        lambda i: torch.unique(i.clamp(0, 1), dim=0, return_inverse=True, return_counts=True),
        counts(2),
    ),
    Case("unique_consecutive", "", lambda i: torch.unique_consecutive(i), counts(9)),
    Case(
        "unique_consecutive",
        "inverse, counts",
        lambda i: torch.unique_consecutive(i, return_inverse=True, return_counts=True),
        counts(9),
    ),
    Case("unique_consecutive", "dim", lambda i: torch.unique_consecutive(i.clamp(0, 1), dim=0), counts(1)),
    Case("count_nonzero", "", lambda x: (x.count_nonzero(), x.count_nonzero(1), x.count_nonzero((0, 2))), tied(3, 4)),
]

ORDER = [
    Case("kthvalue", "last axis", lambda x: at(x, torch.kthvalue(x, 3, keepdim=True)), distinct(7)),
    Case("kthvalue", "keepdim, other axis", lambda x: at(x, x.kthvalue(2, dim=1, keepdim=True), 1), distinct(4, 3)),
    Case("kthvalue", "ties, integers, values", lambda i: (i.kthvalue(2).values, i.kthvalue(1, 0).values), counts(6)),
    Case("median", "of everything", lambda x: (torch.median(x), x.long().median()), distinct(7)),
    Case("median", "odd axis", lambda x: at(x, x.median(-1, True)), distinct(7)),
    Case("median", "even axis, keepdim", lambda x: at(x, torch.median(x, 1, keepdim=True), 1), distinct(6, 2)),
    Case("median", "along the batch", lambda x: torch.median(x, 0).values, tied(3)),
    Case("median", "NaN", lambda x: (torch.median(x), x.median(1).values), with_nan(5)),
    Case("nanmedian", "of everything", lambda x: torch.nanmedian(x), with_nan(5)),
    Case("nanmedian", "axis", lambda x: x.nanmedian(dim=1).values, with_nan(6)),
    Case("mode", "", lambda i: torch.mode(i).values, counts(9)),
    Case("mode", "values and indices, keepdim", lambda x: torch.mode(x, 1, keepdim=True), tied(7, 2)),
    Case(
        "quantile",
        "a number",
        lambda x: (torch.quantile(x, 0.3, dim=-1), x.quantile(0.9, dim=1, keepdim=True)),
        rows(7),
    ),
    Case("quantile", "of everything, along the batch", lambda x: (x.quantile(0.3), x.quantile(0.25, dim=0)), rows(7)),
    Case("quantile", "several", Edges(lambda q, x: torch.quantile(x, q, dim=1), [0.0, 0.3, 0.5, 1.0]), rows(8)),
    *(
        Case("quantile", method, lambda x, method=method: x.quantile(0.3, dim=1, interpolation=method), rows(8))
        for method in ("lower", "higher", "nearest", "midpoint")
    ),
    Case(
        "quantile",
        "lower and higher",
        lambda x: (
            x.quantile(0.1, dim=1, interpolation="lower"),
            x.quantile(0.9, dim=1, interpolation="higher"),
            x.quantile(0.5, dim=1),
        ),
        rows(8),
    ),
    Case("quantile", "NaN", lambda x: x.quantile(0.3, dim=1), with_nan(5)),
    Case("nanquantile", "", lambda x: (x.nanquantile(0.3, dim=1), torch.nanquantile(x, 0.5)), with_nan(6)),
    Case("sort", "", lambda x: (*at(x, torch.sort(x)), *at(x, x.sort(0, descending=True), 0)), distinct(7)),
    Case("sort", "stable, ties", lambda x: torch.sort(x, stable=True, dim=-1), tied(20)),
    Case("sort", "stable, descending", lambda x: x.sort(stable=True, descending=True, dim=1), tied(20)),
    Case(
        "sort", "integers, bool", lambda i: (i.sort(1).values, i.int().sort().values, (i > 0).sort(1).values), counts(9)
    ),
    Case("sort", "bytes", lambda i: (i.abs().byte().sort().values, i.to(torch.int8).sort().values), counts(9)),
    Case("argsort", "stable", lambda x: torch.argsort(x, dim=1, stable=True), tied(20)),
    Case("argsort", "stable, descending", lambda x: x.argsort(dim=0, descending=True, stable=True), tied(3)),
    Case(
        "argsort",
        "distinct",
        lambda x: (x.gather(1, x.argsort()), x.gather(0, x.argsort(0, descending=True))),
        distinct(9),
    ),
    Case("msort", "", lambda x: torch.msort(x), rows(7)),
    Case(
        "topk",
        "",
        lambda x: (*at(x, x.topk(3)), *at(x, x.topk(2, dim=0, largest=False), 0), *at(x, x.topk(9, -1))),
        distinct(9),
    ),
    Case(
        "topk",
        "k of a size",
        lambda x: at(x, x.topk(x.shape[0] // 2, 0), 0),
        distinct(9),
    ),
    Case("topk", "unsorted", lambda x: x.topk(4, sorted=False)[0].sum(-1), rows(9)),
    Case(
        "topk",
        "integers, halves",
        lambda i: (i.topk(3).values, i.int().topk(2).values, i.half().topk(2).values),
        counts(9),
    ),
    Case("aminmax", "", lambda x: (*torch.aminmax(x), *x.aminmax(dim=1, keepdim=True), *x.aminmax(dim=0)), rows(7)),
    Case(
        "argmax",
        "ties",
        lambda x: (x.argmax(), x.argmax(1), x.argmin(0, keepdim=True), torch.argmin(x), *x.max(1), *x.min(0)),
        tied(9),
    ),
    Case("argmax", "integers", lambda i: (i.argmax(1), i.int().argmin(), i.byte().argmax(1), *i.max(1)), counts(9)),
    Case("logsumexp", "", lambda x: (torch.logsumexp(x, 1), x.logsumexp((0, 1)), x.logsumexp(0, True)), extremes),
    Case(
        "var",
        "correction",
        lambda x: (
            *(x.var(), x.var(1), x.var(1, correction=0), torch.var(x, (0, 2), correction=2, keepdim=True)),
            *(x.var(dim=-1, unbiased=False), x.var(unbiased=False), *torch.var_mean(x, 1), *torch.var_mean(x)),
        ),
        rows(4, 5),
    ),
    Case(
        "std",
        "correction",
        lambda x: (
            *(x.std(), x.std(1), x.std(1, correction=0), torch.std(x, (0, 2), correction=2, keepdim=True)),
            *(x.std(dim=-1, unbiased=False), *torch.std_mean(x, 1, correction=0), *torch.std_mean(x)),
        ),
        rows(4, 5),
    ),
    Case(
        "norm",
        "",
        lambda x: (
            *(x.norm(), x.norm(1), x.norm(p=3, dim=1), x.norm(INF, dim=0), x.norm(dim=(1, 2)), x.norm(2, 1, True)),
            *(torch.norm(x, p="fro"), torch.norm(x, p=0, dim=1), torch.norm(x, -INF, 1), torch.norm(x, 0.5, 1)),
            *(torch.linalg.vector_norm(x, 3.5, dim=(0, 1)), torch.linalg.norm(x, dim=1), torch.linalg.vector_norm(x)),
            torch.linalg.matrix_norm(x),
        ),
        rows(4, 5),
    ),
    Case("multinomial", "", lambda x: torch.multinomial(x.exp(), 3), rows(7), declined="random"),
]

CASES = [*CUMULATIVE, *SEARCHING, *COUNTING, *ORDER]
