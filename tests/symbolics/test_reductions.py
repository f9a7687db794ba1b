"""Reductions, in rows; running ones against eager torch; nodes; what is declined."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Declined
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_same_outputs

INF, NAN = float("inf"), float("nan")
NUMBERS = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.0, -0.3]]), torch.tensor([[2, -3, 4], [0, 5, 1]])
WITH_ZEROS = torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]), NUMBERS[1]
WITH_NAN = (torch.tensor([[1.5, NAN, 0.0, 0.25], [-0.5, 7.0, NAN, 3.0]]),)
LARGE = torch.tensor([[2**62 + 3, 2**60 - 1, -5, 2**53 + 1], [2**53 + 1, 1, 0, -(2**55) - 1]])
PHASE = 0.05 + 0.001 * torch.rand(2, 24000)
TIME = {"x": {0: "batch", 1: "time"}}
FACTORS = torch.tensor([[1.5, -2.0, 3.0, 0.5], [0.0, 7.0, -1.0, 2.0]]), NUMBERS[1]
TIES = (
    torch.tensor([[1.0, 1.0, -2.0, 3.0, 3.0], [0.0, 7.0, 7.0, -1.0, 8.0]]),
    torch.tensor([[2, -3, 2], [5, 5, -9]]),
)
HEIGHTS = WITH_ZEROS[0], torch.tensor([[2.5, 1.0, -0.5, 4.0], [1.0, -3.0, 0.75, 2.0]])


def extremes(name, running_name):
    """Rows of torch's amax or amin, and of its cummax or cummin."""
    extreme, running = getattr(torch, name), getattr(torch, running_name.partition("_")[0])

    def point_to_first_cell(input, dim):
        values, indices = catalogue()[running_name].body(input, dim)
        return getattr(torch.return_types, running.__name__)((values, indices * 0))

    return (
        Example(
            name,
            lambda x, i: (getattr(x, name)(), extreme(i, (), True), *torch.aminmax(x), extreme(x, 1)),
            NUMBERS,
            leaves=lambda x, i: extreme(x, 1),
            exporters=("dynamo", "torchscript"),  # left alone on the first, which is the one that needs the entry
        ),
        Example(
            running_name,
            lambda x, i: (
                *(*running(x, 1), *running(x, 0), *running(i, -1), *running(i.int(), 0)),
                running(x, 1).values,
            ),
            TIES,
            broken=point_to_first_cell,
        ),
    )


def trapezoids(name, rule, *others):
    return Example(
        name,
        lambda y, x: (
            rule(y),
            rule(y, dx=0.5),
            rule(y, x),
            rule(y, x[0]),
            rule(y.double(), dim=1),
            *(other(y) for other in others),
        ),
        HEIGHTS,
        claims=("torchscript",),
    )


EXAMPLES = [
    Example(
        "sum_of_int64",
        lambda i: (i.sum(), i.sum(1), torch.sum(i, (0, 1), keepdim=True), i.sum(axis=1, keepdims=True)),
        (LARGE,),
        broken=lambda input, dim=None, keepdim=False: input.double().sum() if dim is None else input.sum(dim, keepdim),
        leaves=lambda i: (i.int().sum(1), (i > 0).sum()),
    ),
    Example(
        "sum_of_narrow_integers",
        lambda i: (
            i.sum(1, dtype=torch.int32),
            i.sum(dtype=torch.int32),
            i.sum(0, keepdim=True, dtype=torch.int16),
            (i > 0).sum(0, dtype=torch.uint8),
        ),
        (torch.tensor([[2**31 - 1, 2**31 - 7], [-(2**31), -5], [40000, 2**20]]),),
        broken=lambda input, dim=None, keepdim=False, dtype=None: input.sum(dim, keepdim).clamp(-99, 99).to(dtype),
        leaves=lambda i: i.int().sum(1),
        exporters=("dynamo", "torchscript"),
    ),
    Example(
        "prod_of_integers",
        lambda i: (
            i.prod(1),
            i[0].prod(),
            torch.prod(i.int(), -1, keepdim=True),
            i[0].reshape(3, 1).prod(),
            i[:1].prod(1, True),
            *(i.prod(1, dtype=torch.int32), i.prod(dtype=torch.uint8), torch.prod(i, 0, True, dtype=torch.int16)),
        ),
        (torch.tensor([[3**20, 3**14, 3], [2**53 + 1, 3, -1]]),),
        leaves=lambda i: i.float().prod(1),
    ),
    Example(
        "sum_of_half",
        lambda x: (x.half().sum(), x.half().sum(1), torch.sum(x.half(), 0, keepdim=True)),
        (NUMBERS[0],),
        leaves=lambda x: x.sum(1),
        exporters=("dynamo",),
    ),
    *extremes("amax", "cummax_to_amax"),
    *extremes("amin", "cummin_to_amin"),
    Example(
        "count_nonzero_to_sum",
        lambda x, i: (
            x.count_nonzero(),
            x.count_nonzero(1),
            torch.count_nonzero(i, (0, 1)),
            (x > 0).count_nonzero(0),
        ),
        WITH_ZEROS,
    ),
    *(
        Example(
            f"{reduce.__name__}_to_sum",
            lambda x, reduce=reduce: (
                reduce(x),
                reduce(x, 1),
                reduce(x, (0, 1), True),
                reduce(x.double(), 0),
            ),
            WITH_NAN,
            claims=("torchscript",),
        )
        for reduce in (torch.nansum, torch.nanmean)
    ),
    Example(
        "cumsum_in_double",
        lambda x: (torch.cumsum(x, -1), x.cumsum(1, dtype=torch.float32).sin(), torch.cumsum(x.half(), 1)[:, :100]),
        (PHASE,),
        dynamic=TIME,
        broken=lambda input, dim, *, dtype=None: torch.cumsum(input.double(), dim).to(dtype or input.dtype) * 1.01,
    ),
    Example(
        "cumsum_of_integers",
        lambda x, i: (
            (i > 0).cumsum(1),
            i.int().cumsum(0),
            (i > 0).cumsum(1, dtype=torch.float32),
            x.cumsum(-1, dtype=torch.float64),
            x.cumsum(0, dtype=torch.int32),
        ),
        NUMBERS,
        leaves=lambda x, i: x.cumsum(1) + i.cumsum(0),
    ),
    Example(
        "cumprod_to_prod",
        lambda x, i: (
            *(x.cumprod(1), torch.cumprod(x, 0), x.cumprod(dim=-1)),
            *(i.cumprod(1), i.int().cumprod(0), (i > 0).cumprod(1), (i + 3**20).cumprod(-1)),
        ),
        FACTORS,
        leaves=lambda x, i: x.prod(1) * i.prod(),
    ),
    Example(
        "logcumsumexp_to_logsumexp",
        lambda x: (x.logcumsumexp(1), torch.logcumsumexp(x, 0), x.logcumsumexp(dim=-1)),
        (torch.tensor([[1.5, -90.0, 93.0, 90.5], [0.0, 120.0, -INF, 2.0]]),),
        leaves=lambda x: x.logsumexp(1),
    ),
    Example(
        "diff_to_slices",
        lambda x, i: (
            *(torch.diff(x), x.diff(n=2), torch.diff(i), (i > 1).diff()),
            *(x.diff(prepend=x[:, :1]), x.diff(append=x), x.diff(0)),
        ),
        WITH_ZEROS,
    ),
    trapezoids("trapezoid_to_sum", torch.trapezoid, torch.trapz),
    Example("trapezoid_to_sum", lambda y, x: torch.trapezoid(y[2:], dim=0), HEIGHTS, claims=("dynamo",)),
    trapezoids("cumulative_trapezoid_to_cumsum", torch.cumulative_trapezoid),
]


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_extremes_of_all_axes(name):
    model = lambda x: (getattr(x, name)(), getattr(torch, name)(x.long(), (), True))  # noqa: E731
    assert "Loop" not in assert_same_outputs(model, NUMBERS[0], "dynamo", uses=(name,)).nodes


# Running reductions


RUNNING = {
    "cumprod_to_prod": torch.cumprod,
    "cummax_to_amax": torch.cummax,
    "cummin_to_amin": torch.cummin,
    "logcumsumexp_to_logsumexp": torch.logcumsumexp,
}
VALUES = st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, INF, -INF, NAN]), min_size=1, max_size=70)


@pytest.mark.parametrize("name", RUNNING)
@given(values=VALUES, rows=st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_running_equals_eager(name, values, rows):
    x = torch.tensor(values).expand(rows, -1).contiguous()
    exact = {"rtol": 0, "atol": 0} if name.startswith("cumm") else {}
    for dim in (0, 1, -1):
        found, wanted = catalogue()[name].body(x, dim), RUNNING[name](x, dim)
        pairs = zip(found, wanted, strict=True) if exact else [(found, wanted)]
        for one, other in pairs:
            torch.testing.assert_close(one, other, equal_nan=True, **exact)


def test_products_decline_doubles_of_varying_size(exporter):
    options = {"dynamic": "batch", "samples": [(torch.randn(5, 4),)]}
    with pytest.raises(CompatError, match="cumprod"):
        assert_same_outputs(lambda x: x.double().cumprod(0), FACTORS[0], exporter, **options)


@pytest.mark.dynamo_from("2.9", "torch's exporter has no scan")
@pytest.mark.parametrize("dynamic", [{0: "time", 1: "feature"}, {1: "feature"}], ids=str)
def test_products_of_integers_along_axes_of_varying_size(exporter, dynamic):
    def products(i):
        whole = i.prod(), i.prod(0), i.prod(1, True), i.int().prod(1)
        return *whole, i.cumprod(0), i.cumprod(-1), i.to(torch.int8).cumprod(0)

    large = torch.tensor([[3**20, 3**14, 3], [2**53 + 1, 3, -1]])
    longer = large.repeat(9, 1)
    samples = [(longer[:1],), (longer,)] if 0 in dynamic else []
    if 1 in dynamic:
        samples += [(large[:, :1],), (large.repeat(1, 9),)]
    result = assert_same_outputs(products, large, exporter, dynamic={"i": dynamic}, samples=samples)
    assert {"prod_of_integers", "cumprod_to_prod"} <= {note.entry for note in result.applied}


# Running sums


def test_sums_in_double_leave_few_cells_doubles_and_integers_alone(exporter):
    few = lambda x: (x[:, :8].cumsum(0), x.double().cumsum(1), (x * 9).long().cumsum(1))  # noqa: E731
    result = assert_same_outputs(few, PHASE[:, :50], exporter)
    assert "cumsum_in_double" not in {note.entry for note in result.applied}


def test_sums_stay_float32_for_targets_without_float64():
    options = {"dynamic": TIME, "target": "openvino"}
    result = assert_same_outputs(lambda x: torch.cumsum(x, -1), PHASE[:, :50], "torchscript", **options)
    assert "cumsum_in_double" not in {note.entry for note in result.applied}


def test_sums_of_booleans_take_no_loop():
    model = lambda x: (x > 0).cumsum(1)  # noqa: E731
    assert "Loop" not in assert_same_outputs(model, NUMBERS[0], "torchscript", uses=("cumsum_of_integers",)).nodes


# Neighbours


@pytest.mark.parametrize("name", ["trapezoid_to_sum", "cumulative_trapezoid_to_cumsum"])
def test_declines_abscissae_of_other_rank(name):
    with pytest.raises(Declined, match="x must have 1 or 3 axes, got 2"):
        catalogue()[name].body(torch.ones(2, 3, 4), torch.ones(3, 4))


def test_nanmean_of_halves_overflows_as_torch_does(exporter):
    x = torch.tensor([[60000.0, 60000, NAN, -INF], [-60000, -60000, -60000, 1], [1, 2, 3, NAN]]).half()
    result = assert_same_outputs(lambda x: torch.nanmean(x, 1), x, exporter, uses=("nanmean_to_sum",))
    assert torch.equal(result(x)[0], torch.tensor([-INF, -INF, 2.0]).half())
