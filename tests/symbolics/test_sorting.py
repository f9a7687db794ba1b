"""Sorting, ranks and searches, in rows; against eager torch on drawn values; what is declined."""

import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version
from torch import nn
from torch.torch_version import TorchVersion
from torch_onnx_compat.symbolics.sorting import COUNT_LIMIT

from torch_onnx_compat import export_compat
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import EXPORTERS, Declined
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

INF, NAN = float("inf"), float("nan")
FLOATS = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]])
INTEGERS = torch.tensor([[2, -3, 4], [0, 5, 1]])
TIES = (torch.randint(0, 3, (3, 20)).float(), torch.randint(0, 3, (3, 20)))
EDGES = torch.tensor([-1.5, 0.0, 0.0, 2.0])
LONG = torch.arange(100) * 0.1 - 5
METHODS = ("lower", "higher", "nearest", "midpoint")
Q = torch.tensor([0.0, 0.25, 0.7, 1.0])
SORTS_NAN_WRONG = EXPORTERS if Version(onnxruntime.__version__) < Version("1.32") else ("torchscript",)
"""Dynamo's file of a quantile rests on onnxruntime's order of NaN, which 1.32 has mended."""


def body(name):
    return catalogue()[name].body


def from_the_other_end(name):
    """A broken body that takes the greatest for the least."""

    def broken(input, *args, **options):
        found = body(name)(-input, *args, **options)
        return -found if isinstance(found, torch.Tensor) else type(found)((-found[0], found[1]))

    return broken


def of_median(name, median):
    def model(x, i):
        overall = median(x), median(i), median(i, 0).values
        return *overall, median(x, 1)[0], median(x[:1], dim=0)[0], median(x, 1, keepdim=True)[0]

    x = torch.tensor([[1.5, -2.0, 3.0, 0.5], [0.0, NAN, -1.0, 2.0]])
    return Example(name, model, (x, INTEGERS), broken=from_the_other_end(name))


def of_quantile(name, quantile):
    def model(x):
        linear = quantile(x, 0.3), quantile(x, 0.9, dim=1), quantile(x, Q, 1), quantile(x, 0.4, 0, keepdim=True)
        return *linear, *(quantile(x, 0.6, dim=1, interpolation=method) for method in METHODS)

    def broken(input, q, dim=None, keepdim=False, *, interpolation="linear"):
        return body(name)(input, q, dim, keepdim, interpolation="lower" if interpolation == "linear" else interpolation)

    x = torch.tensor([[1.5, -2.0, 3.0, 0.5, 8.0], [0.0, 7.5, -1.0, 2.0, NAN]])
    return Example(name, model, (x,), broken=broken, claims=SORTS_NAN_WRONG)


EXAMPLES = [
    Example(
        "sort_of_bool",
        lambda x, i: (*torch.sort(i > 0), *(i > 0).sort(0, True), *torch.sort(i > 0, stable=True, dim=1)),
        (FLOATS, INTEGERS),
        broken=lambda input, *args, dim=-1, stable=None: body("sort_of_bool")(input, *(args[:1] or (dim,))),
        leaves=lambda x, i: x.sort().values + i.sort().values,
        claims=SORTS_NAN_WRONG,
    ),
    Example(
        "sort_stable",
        lambda x, i: (
            *torch.sort(x, stable=True),
            *x.sort(stable=True, dim=0, descending=True),
            *i.sort(descending=True, stable=True),
        ),
        TIES,
        broken=lambda input, *, stable, dim=-1, descending=False: torch.sort(input.flip(dim), dim, descending),
        leaves=lambda x, i: (x.sort(1).values, i.sort(1).values),
    ),
    Example(
        "argsort_stable",
        lambda x, i: (
            torch.argsort(x, stable=True),
            x.argsort(stable=True, dim=0, descending=True),
            i.argsort(descending=True, stable=True),
        ),
        TIES,
        broken=lambda input, *, stable, dim=-1, descending=False: torch.argsort(input.flip(dim), dim, descending),
        leaves=lambda x, i: (x + torch.arange(20) * 0.01).argsort(1),
    ),
    Example(
        "msort_to_sort",
        lambda x, i: (torch.msort(x), i.msort()),
        (torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]), INTEGERS),
        broken=lambda input: torch.sort(input, -1).values,
    ),
    Example(
        "kthvalue_to_topk",
        lambda x, i: (
            x.kthvalue(2).values,
            torch.kthvalue(x, 1, 0).values,
            x.gather(1, x.kthvalue(3, dim=1, keepdim=True).indices),
            i.kthvalue(3).values,
            i.kthvalue(2)[0],
        ),
        (torch.tensor([[1.5, -2.0, 3.0, 0.5], [0.0, 7.0, -1.0, 2.0]]), INTEGERS),
        broken=from_the_other_end("kthvalue_to_topk"),
    ),
    of_median("median_to_topk", torch.median),
    of_median("nanmedian_to_topk", torch.nanmedian),
    of_quantile("quantile_to_topk", torch.quantile),
    of_quantile("nanquantile_to_topk", torch.nanquantile),
    Example(
        "mode_to_counts",
        lambda x, i: (*x.mode(), *torch.mode(x, 0), *i.mode(1, keepdim=True), *i.int().mode()),
        (torch.tensor([[1.0, 1.0, 2.0, 2.0, 0.0], [0.0, 7.0, 7.5, 7.0, 0.5]]), torch.tensor([[2, -3, 2], [5, 5, -9]])),
        broken=from_the_other_end("mode_to_counts"),
    ),
    Example(
        "unique_consecutive_to_mask",
        lambda i: (
            *torch.unique_consecutive(i, return_inverse=True, return_counts=True),
            torch.unique_consecutive(i, dim=0),
            i.unique_consecutive(),
        ),
        (torch.tensor([[2, 2, 4, 4], [4, 1, 1, 2], [4, 1, 1, 2]]),),
        broken=lambda input, dim=None, **options: torch.unique(input, dim=dim, **options),
    ),
    Example(
        "unique_inverse",
        lambda x, i: (*torch.unique(i, return_inverse=True), *x.unique(return_inverse=True, return_counts=True)),
        (FLOATS, INTEGERS),
        broken=lambda input, **options: torch.unique(input.reshape(-1), **options),
        leaves=lambda x, i: torch.unique(i) * 2,
    ),
    Example(
        "searchsorted_to_sum",
        lambda t, v: (
            torch.searchsorted(t.sort().values, v),
            torch.searchsorted(t.sort().values, v, right=True),
            torch.searchsorted(EDGES, v, side="right"),
            torch.searchsorted(EDGES, v, out_int32=True),
            torch.searchsorted(LONG, v),
            torch.searchsorted(EDGES, 0.0),
            torch.searchsorted(-t.sort().values, v, sorter=(-t.sort().values).argsort().contiguous()),
        ),
        (
            torch.tensor([[1.0, 1.0, 2.0], [0.0, 7.0, 7.5]]),
            torch.tensor([[1.0, 0.0, 7.0, 9.0], [7.0, 1.5, -2.0, NAN]]),
        ),
        broken=lambda table, input, **options: body("searchsorted_to_sum")(table, input, **{**options, "right": True}),
    ),
    Example(
        "bucketize_to_sum",
        lambda v: (
            torch.bucketize(v, EDGES),
            torch.bucketize(v, EDGES, right=True),
            torch.bucketize(v, EDGES, out_int32=True),
            torch.bucketize(v.clamp(-9, 9).long(), torch.tensor([-2, 0, 0, 7])),
        ),
        (torch.tensor([[1.0, 0.0, 7.0, 9.0], [7.0, 1.5, -2.0, INF]]),),
        broken=lambda input, table, **options: body("bucketize_to_sum")(input, table, **{**options, "right": True}),
    ),
]


def equal(found, wanted):
    return all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_kthvalue_equals_eager():
    x = torch.randn(4, 7, 3)
    for args in ((1, 0, True), (4, -3, False), (5, 1, False), (3, 2, True)):
        assert equal(body("kthvalue_to_topk")(x, *args), x.kthvalue(*args))


@pytest.mark.parametrize("median", [torch.median, torch.nanmedian])
@given(st.lists(st.sampled_from([-2.0, 0.0, 1.0, 2.5, INF, -INF, NAN]), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_median_equals_eager(median, values):
    x, ours = torch.tensor(values), body(f"{median.__name__}_to_topk")
    exactly = {"equal_nan": True, "rtol": 0, "atol": 0}
    torch.testing.assert_close(ours(x), median(x), **exactly)
    for keepdim in (False, True):
        torch.testing.assert_close(ours(x, 0, keepdim).values, median(x, 0, keepdim).values, **exactly)


NANQUANTILE = pytest.param(
    torch.nanquantile,
    marks=pytest.mark.skipif(
        TorchVersion(torch.__version__) < "2.10", reason="torch rounds 0.1 * 10 up to the next place"
    ),
)


@pytest.mark.parametrize("quantile", [torch.quantile, NANQUANTILE])
@given(
    st.lists(st.sampled_from([-2.0, 0.0, 1.0, 2.5, 7.0, INF, NAN]), min_size=1, max_size=12),
    st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.77, 1.0]),
    st.sampled_from(["linear", *METHODS]),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_quantile_equals_eager(quantile, values, q, method, keepdim):
    x = torch.tensor(values).reshape(-1, 1).repeat(1, 2)
    for probability in (q, torch.tensor([q, 0.5])):
        for dim in (None, 0, 1):
            found = body(f"{quantile.__name__}_to_topk")(x, probability, dim, keepdim, interpolation=method)
            wanted = quantile(x, probability, dim, keepdim, interpolation=method)
            torch.testing.assert_close(found, wanted, equal_nan=True)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=15))
@settings(max_examples=200, deadline=None)
def test_mode_equals_eager(values):
    x = torch.tensor(values)
    assert equal(body("mode_to_counts")(x), x.mode())


@given(st.lists(st.floats(-3, 3, width=16), min_size=1, max_size=130), st.booleans())
@settings(max_examples=200, deadline=None)
def test_searches_equal_eager(cells, right):
    table = torch.tensor(sorted(cells))
    values = torch.tensor([-4.0, -1.0, 0.0, 0.5, 3.0, INF, -INF, NAN, *cells])
    for shape in ((-1,), (2, -1)):
        rows = table.expand(shape).contiguous(), values.expand(shape).contiguous()
        assert torch.equal(body("searchsorted_to_sum")(*rows, right=right), torch.searchsorted(*rows, right=right))
    if len(cells) <= COUNT_LIMIT:
        found = body("bucketize_to_sum")(values, table, right=right)
        assert torch.equal(found, torch.bucketize(values, table, right=right))


@pytest.mark.parametrize("name", ["sort_of_bool", "unique_inverse"])
def test_no_loops(name):
    row = next(row for row in EXAMPLES if row.entry == name)
    assert "Loop" not in assert_entry(name, row.model, row.inputs, "torchscript").nodes


def test_few_cells_take_few_nodes(exporter):
    values = torch.randn(2, 4)
    result = assert_entry("searchsorted_to_sum", lambda v: torch.searchsorted(EDGES, v), values, exporter)
    assert sum(n for op, n in result.nodes.items() if op != "Constant") <= 6


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("median_to_topk", (0,), "must have an axis"),
        ("nanmedian_to_topk", (0,), "must have an axis"),
        ("mode_to_counts", (), "must be numbers along an axis"),
    ],
)
def test_declines_single_numbers(name, args, reason):
    with pytest.raises(Declined, match=reason):
        body(name)(torch.tensor(1.0), *args)


def test_declines_many_boundaries(exporter):
    result = assert_same_outputs(lambda v: torch.bucketize(v, LONG), torch.randn(2, 4), exporter)
    assert "at most 64 boundaries are compared one by one, got 100" in str(result)


class Packed(nn.Module):
    """Rows of several lists, one after the other, and where each list ends."""

    def forward(self, rows, ends):
        of_list = torch.bucketize(torch.arange(rows.shape[0]), ends, right=True)
        return of_list, torch.bucketize(rows, ends, right=False)


def test_a_varying_number_of_boundaries(exporter):
    """Stock dynamo's binary search is right; a capture that sees sizes of values refused it."""
    dynamic = {"rows": {0: "rows"}, "ends": {0: "lists"}}
    result = export_compat(Packed(), (torch.randn(6), torch.tensor([2, 3, 6])), dynamic=dynamic, exporter=exporter)
    for rows, ends in ((9, [1, 2, 2, 9]), (1, [1]), (4, [0, 4])):
        inputs = torch.randn(rows) * 3, torch.tensor(ends)
        found = result.session().run(None, {n: t.numpy() for n, t in zip(("rows", "ends"), inputs, strict=True)})
        assert equal([torch.from_numpy(one) for one in found], Packed()(*inputs))
