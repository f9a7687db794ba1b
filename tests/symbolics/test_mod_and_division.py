"""Remainders, floor division and rounding, in rows; against eager torch on any pair; without Mod; few nodes."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from torch_onnx_compat import Ops, Value, export_compat
from torch_onnx_compat.catalogue.entry import EXPORTERS
from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.targets import Target
from torch_onnx_compat.targets.target import Row
from torch_onnx_compat.testing import Example, assert_entry, assert_same_outputs

INF, NAN = float("inf"), float("nan")
FLOATS = [5.3, -5.3, 7.0, -7.0, 0.0, 6.0, 1e10, -3.5e9, INF, NAN, 3.0, 0.9, 1.0, -1e-30, 4.0, -9.0, -1e-30]
DIVISORS = [3.0, 3.0, 0.1, -2.0, 5.0, -3.0, 3.0, 7.0, 2.0, 3.0, 1e9, 0.1, -0.1, 5.0, 0.0, -0.3, 1e-20]
INTS = [5, -5, 7, -7, 0, 1, 6, 2**40 + 1, -(2**40) - 1, 16777217, -16777217, 33, 3, -3, 1, -(2**63), 9]
INT_DIVISORS = [3, 3, -2, 2, 5, -5, -3, 3, 7, 2, 3, 1, -7, 2, 1000, 100, -4]
NASTY = tuple(torch.tensor(values) for values in (FLOATS, DIVISORS, INTS, INT_DIVISORS))

# Their quotients are far enough from integers that rounding does not take them there.
MILD = (
    torch.tensor([5.3, -5.3, 7.0, -7.0, 0.4, 6.0, 1e3, -3.5e3, 3.2, -0.9]),
    torch.tensor([3.0, 3.0, 2.3, -2.0, 5.0, -4.0, 3.0, 11.0, 2.0, 0.7]),
    torch.tensor([5, -5, 7, -7, 0, 1, 6, 2**40 + 1, -(2**40) - 1, -16777217]),
    torch.tensor([3, 3, -2, 2, 5, -5, -3, 3, 7, 3]),
)
EXTREMES = (torch.tensor([-(2**63), 2**63 - 1, -(2**62) - 1, 9]), torch.tensor([10, -10, 3, -(2**63)]))
ROUNDED = (torch.tensor([[1.5, -2.0, 0.0, 0.25], [-0.5, 7.0, -1.0, 3.0]]), torch.tensor([[2, -3, 4], [0, 5, 1]]))
WITHOUT_MOD = Target("without_mod", rows=(Row("Mod", "refused"),))


def halves(x):
    """As float16, exactly: onnxruntime may leave out the rounding between two Casts. NaN stays."""
    return ((x.clamp(-31, 31) * 64).round() / 64).half()


def pairs(f, g, i, j):
    """Two tensors of many types, some broadcast; tensors and a number."""
    double, short, byte = f.double(), i.clamp(-99, 99).int(), i.clamp(0, 99).to(torch.uint8)
    j32, j8 = j.int(), j.clamp(1, 9).to(torch.uint8)
    half, half_divisor = halves(f), halves(torch.where(g.abs() < 0.1, 0.5, g))
    found = [(f, g), (g, f), (double, g), (half, half_divisor), (i, j), (short, j), (short, j32), (byte, j8), (byte, j)]
    found += [(i.to(torch.int8), j8.to(torch.int8)), (i, g), (f, j), (j > 0, j), (i, j8 > 0), (f[:4, None], g[:3])]
    found += [(i[3], j[3]), (f, g[0]), (i, g[3]), (f, 3), (f, -2.5), (g, 4), (double, 0.1), (double, -3)]
    return [*found, (half, 2.5), (i, 3), (i, -3), (i, 2.5), (short, -3), (byte, 3)]


def remainders(f, g, i, j):
    results = [a % b for a, b in pairs(f, g, i, j)] + [f.half() % 2.5]
    results += [7 % f, 7.5 % f, -7 % j, 7 % j.int(), -7.5 % j]
    written = f.clone()
    written %= 3
    return *results, written, i.clone().remainder_(-7), torch.remainder(i, j)


def floors(f, g, i, j):
    results = [a // b for a, b in pairs(f, g, i, j)] + [i // 4, 7 // f, 7 // j, 7 // j.int()]
    written = f.clone()
    written //= 3
    return *results, written, i.clone().floor_divide_(-7), torch.floor_divide(i, j)


def quotients(mode):
    def model(f, g, i, j):
        short, byte = i.clamp(-99, 99).int(), i.clamp(0, 99).to(torch.uint8)
        found = [(f, g), (f.double(), g), (f, 3), (f, -2.5), (f.double(), 0.1), (f[:4, None], g[:3]), (f, j)]
        found += [(i, g), (i, j), (short, j.int()), (short, j), (byte, 3), (byte, j), (i, 7), (i, -5), (i[3], j[3])]
        found += [(7, j), (7, j.int()), (7, f), (i, 2.5), (f[:8] * 1e20, 0.5), (i, 3)]
        results = [torch.div(a, b, rounding_mode=mode) for a, b in found]
        return *results, i.div(j, rounding_mode=mode), torch.divide(f, g, rounding_mode=mode)

    return model


def mild_remainders(f, g, i, j):
    found = [(f, g), (f.double(), g), (f, 3), (f, -2.5), (f[:4, None], g[:3]), (f, j)]
    found += [(i, j), (i.int().clamp(-99, 99), j), (i.clamp(0, 9).to(torch.uint8), 4), (i, 7), (i, -5)]
    return *(a % b for a, b in found), torch.remainder(7, f), torch.remainder(7, j)


def mild_fmods(f, g, i, j):
    found = [(f, g), (f.double(), g), (f, 3), (f, -2.5), (f[:4, None], g[:3]), (f, j), (i.clamp(-9, 9), 2.3)]
    found += [(i, j), (i.int().clamp(-99, 99), j), (i.clamp(-9, 9).int(), 4), (i, 7), (i, -5)]
    return tuple(torch.fmod(a, b) for a, b in found)


def mild_floors(f, g, i, j):
    small = torch.arange(1, 11)
    found = [(f, g), (f.double(), g), (f, 3), (f, -2.5), (f[:4, None], g[:3]), (f, small), (small, 2.3)]
    return *(a // b for a, b in found), torch.floor_divide(7, f), f.floor_divide(2.5)


def rows_to_multiple(x):
    """Rows filled up to a multiple of four."""
    missing = -(-x.shape[0] // 4) * 4 - x.shape[0]
    return F.pad(x, (0, 0, 0, missing)), x.new_zeros((1 - x.shape[0]) // -3 + 2)


def remainder_of_dividend(op: Ops, self: Value, other: Value) -> Value:
    return op.Mod(*op.promoted(self, other)[1], fmod=1)


def quotient_without_rounding(op: Ops, self: Value, other: Value) -> Value:
    return op.Div(*op.promoted(self, other)[1])


def truncated(op: Ops, a: Value, b: Value) -> Value:
    return op.Div(a, op.cast(b, torch.int64))


def without_mod(entry, model, broken):
    # A remainder that is what is left of a rounded quotient has no digits left near a multiple.
    options = {"include": (entry,), "verify": Verify(random=False)}
    return Example(entry, model, MILD, dynamic=None, broken=broken, options=options)


EXAMPLES = [
    Example(
        "remainder",
        remainders,
        NASTY,
        dynamic=None,
        broken=remainder_of_dividend,
        leaves=lambda f, g, i, j: (
            torch.fmod(f, g),
            torch.fmod(i, j),
            torch.fmod(f.double(), 0.1),
            torch.fmod(i, 2.5),
        ),
    ),
    without_mod("remainder_to_floor", mild_remainders, lambda input, other: torch.fmod(torch.as_tensor(input), other)),
    without_mod("fmod_to_trunc", mild_fmods, torch.remainder),
    Example(
        "frac_to_fmod",
        lambda x, i: (torch.frac(x * 1.7), x.double().frac()),
        ROUNDED,
        broken=lambda input: input - torch.floor(input),
    ),
    Example(
        "floor_divide", floors, NASTY, dynamic=None, broken=quotient_without_rounding, leaves=lambda f, g, i, j: f / g
    ),
    Example("floordiv", rows_to_multiple, (torch.randn(6, 3),), broken=truncated),
    without_mod("floor_divide_to_floor", mild_floors, lambda input, other: torch.ceil(torch.div(input, other))),
    *(
        Example(
            "div_rounding_mode",
            quotients(mode),
            NASTY,
            dynamic=None,
            broken=lambda input, other, *, rounding_mode=None, wrong=wrong: wrong(torch.div(input, other)),
            leaves=lambda f, g, i, j: f / g,
        )
        for mode, wrong in (("floor", torch.ceil), ("trunc", torch.floor))
    ),
    Example(
        "rounding_of_integers",
        lambda x, i: (i.floor(), torch.ceil(i), i.int().floor(), i.round(), x.floor(), x.round(decimals=1)),
        ROUNDED,
        broken=lambda input, *, decimals=0: input + 1,
        options={"verify": Verify(values=0, sizes={"batch": (4, 9)})},
    ),
    Example(
        "trunc_to_floor",
        lambda x, i: (torch.trunc(x * 1.7), x.double().fix(), i.trunc(), torch.trunc(x * 1e12)),
        ROUNDED,
        broken=torch.floor,
    ),
]


@pytest.mark.parametrize(
    "row", [row for row in EXAMPLES if row.dynamic is None and not row.options], ids=lambda row: row.entry
)
def test_matches_at_low_opset(row):
    assert_same_outputs(row.model, row.inputs, "torchscript", opset=13, uses=(row.entry,))


def test_zero_and_infinity_as_divisors(exporter):
    def model(f):
        rounded = (torch.div(f, 0, rounding_mode=mode) for mode in ("floor", "trunc"))
        return f % 0, f // 0, f % torch.full_like(f, INF), *rounded

    assert_same_outputs(model, NASTY[0], exporter, uses=("remainder", "floor_divide", "div_rounding_mode"))


def any_pair(a, b, i, j):
    results = [(x % y, x // y) for x, y in ((a, b), (a, 0.1), (a, -3), (i, j), (i, 7), (i, -5))]
    return tuple(value for both in results for value in both)


@pytest.fixture(scope="module", params=EXPORTERS)
def session(request):
    example = (torch.ones(1), torch.ones(1), torch.ones(1, dtype=torch.int64), torch.ones(1, dtype=torch.int64))
    return export_compat(any_pair, example, exporter=request.param).session()


@given(
    st.floats(width=32, allow_subnormal=False),
    st.floats(width=32, allow_subnormal=False),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
)
@settings(max_examples=400, deadline=None)
def test_equals_eager_on_any_pair(session, a, b, i, j):
    assume(j not in (0, -1))
    tensors = (torch.tensor([a]), torch.tensor([b]), torch.tensor([i]), torch.tensor([j]))
    found = session.run(None, {n.name: t.numpy() for n, t in zip(session.get_inputs(), tensors, strict=True)})
    for one, other in zip(found, any_pair(*tensors), strict=True):
        np.testing.assert_array_equal(one, other.numpy())


def test_remainder_of_integers_takes_one_node(exporter):
    result = assert_same_outputs(lambda i, j: i % j, NASTY[2:], exporter, uses=("remainder",))
    assert set(result.nodes) == {"Mod"}


def test_sizes_keep_a_single_division():
    model = lambda x: (x[:, : x.shape[1] // 2], x[:, : 3 * x.shape[1] // 4])  # noqa: E731
    options = {"dynamic": {"x": {1: "n"}}, "uses": ("floor_divide",)}
    result = assert_same_outputs(model, torch.rand(2, 8), "torchscript", **options)
    assert result.nodes["Div"] == 2
    assert not result.nodes.keys() & {"Mod", "Where", "Cast", "Greater"}
    model = lambda x: x[: (x.shape[0] + 3) // 2]  # noqa: E731
    result = assert_same_outputs(model, torch.randn(6, 3), "dynamo", dynamic="batch")
    assert "floordiv" not in {note.entry for note in result.applied}
    assert not result.nodes.keys() & {"Less", "Sign"}


def test_torchscript_divides_sizes_by_floor_divide():
    assert_same_outputs(rows_to_multiple, torch.randn(6, 3), "torchscript", dynamic="batch", uses=("floor_divide",))


def test_division_by_a_power_of_two_takes_two_nodes():
    result = assert_same_outputs(lambda x: x // 2.0, torch.tensor([5.0, -5.0]), "torchscript", uses=("floor_divide",))
    assert set(result.nodes) - {"Constant"} == {"Div", "Floor"}


def test_plain_division_is_one_node(exporter):
    result = assert_same_outputs(lambda f, g, i, j: f / g, NASTY, exporter)
    assert not result.applied
    assert not result.declined
    assert set(result.nodes) == {"Div"}


# Targets without Mod


@pytest.mark.parametrize("row", [row for row in EXAMPLES if "include" in row.options], ids=lambda row: row.entry)
def test_writes_no_mod_where_the_target_has_none(row, exporter):
    verify = row.options["verify"]
    result = assert_entry(row.entry, row.model, row.inputs, exporter, target=WITHOUT_MOD, verify=verify)
    assert "Mod" not in result.nodes


@pytest.mark.parametrize(
    ("entry", "function"), [("remainder_to_floor", torch.remainder), ("fmod_to_trunc", torch.fmod)]
)
def test_remainders_of_integers_are_exact(entry, function, exporter):
    model = lambda i, j: (function(i, j), function(i, 7))  # noqa: E731
    assert_same_outputs(model, EXTREMES, exporter, target=WITHOUT_MOD, uses=(entry,))


@pytest.mark.parametrize(
    ("entry", "model", "values", "uses"),
    [
        ("remainder_to_floor", lambda x: x % 3, MILD[2], ("remainder",)),
        ("fmod_to_trunc", lambda x: x.fmod(3), MILD[0], ()),
        ("floor_divide_to_floor", lambda x: x // 3, MILD[0], ("floor_divide",)),
    ],
)
def test_mod_stays_where_the_target_has_it(entry, model, values, uses, exporter):
    result = assert_same_outputs(model, values, exporter, uses=uses)
    assert entry not in {note.entry for note in result.applied}
    assert result.nodes["Mod"] == 1
    if entry != "floor_divide_to_floor":
        assert set(result.nodes) - {"Constant"} == {"Mod"}


def test_floor_divide_to_floor_declines_integers(exporter):
    integers = torch.tensor([-7, -(2**63), 7])
    result = assert_same_outputs(lambda i: i // 3, integers, exporter, target=WITHOUT_MOD, uses=("floor_divide",))
    assert [note.reason for note in result.declined] == ["integers are divided without Mod anyway"]
    assert "Mod" not in result.nodes


@pytest.mark.parametrize(
    ("model", "values", "exclude"),
    [
        (lambda i: 7 % i, MILD[3], ()),
        (lambda f: 7 // f, MILD[1], ()),
        (lambda f: f // 3, MILD[0], ("floor_divide_to_floor",)),
    ],
    ids=["number % tensor", "number // tensor", "excluded"],
)
def test_graph_rules_do_without_mod_what_is_left(model, values, exclude, exporter):
    result = assert_same_outputs(model, values, exporter, target=WITHOUT_MOD, exclude=exclude)
    assert "Mod" not in result.nodes
