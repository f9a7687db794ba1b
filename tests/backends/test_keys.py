"""Sizes as keys: nothing that a size may be found as is left unasked, and what cannot be asked is refused."""

import collections
import dataclasses
import sys
from fractions import Fraction

import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.backends.checks import Place
from torch_onnx_compat.backends.keys import containers_named
from torch_onnx_compat.questions.log import Log

PAIRS = {(8, 11): 2.0, (16, 19): 3.0}
PAIRS_OF_ROWS = {8: 2.0, 16: 3.0}
AXES = {0: "n", 1: "m"}


class OfFunction(nn.Module):
    def __init__(self, function, **tables):
        super().__init__()
        self.function = function
        vars(self).update(tables)

    def forward(self, x):
        return self.function(self, x)


@pytest.fixture(params=[True, False], ids=["expressions", "lines"])
def _places(request, monkeypatch):
    """Which expression of a line runs: before 3.11, Python tells the line alone."""
    if not request.param:
        monkeypatch.setattr(Place, "of", lambda frame: Place(frame.f_code.co_filename, frame.f_lineno))


@pytest.fixture(params=["torchscript", "dynamo"])
def exporter(request):
    return request.param


def export(function, path, dynamic, exporter, **tables):
    """The file's session, or None where the export is refused."""
    model, options = OfFunction(function, **tables).eval(), {"dynamic": {"x": dynamic}, "exporter": exporter}
    try:
        export_compat(model, (torch.randn(6, 4),), path, input_names=["x"], **options)
    except CompatError:
        return None
    return onnxruntime.InferenceSession(path)


def pair_in_table(self, x):
    return x * 2 if (x.shape[0], x.shape[1]) in PAIRS else x


def shape_in_table(self, x):
    return x * PAIRS.get(x.shape, 1.0)


def half_in_table(self, x):
    return x * PAIRS.get((x.shape[0] // 2 * 2, x.shape[1]), 1.0)


def fraction_in_table(self, x):
    return x * {32.25: 5.0}.get(x.shape[0] / 4, 1.0)


def different_sizes(self, x):
    return x * len(set(x.shape))


def different_sizes_as_keys(self, x):
    return x * len(dict.fromkeys(x.shape))


def counted_sizes(self, x):
    return x * len(collections.Counter(x.shape))


def key_that_comes_later(self, x):
    table = {x.shape[0]: 10.0}
    table[9] = 2.0
    return x * sum(table.values())


def key_added_to_a_table(self, x):
    table = {}
    table[x.shape[0]] = 10.0
    table[9] = 2.0
    return x * sum(table.values())


def literal_looked_up(self, x):
    table = {}
    table[x.shape[0]] = 10.0
    return x * table.get(23, 1.0)


def fixed_size_looked_up(self, x):
    self.table[x.shape[0]] = 2.0
    return x * self.table.get(x.shape[1], 1.0)


def function_of_a_table(self, x):
    return x * sum(map({9: 2.0}.get, [x.shape[0]], [1.0]))


def method_of_a_table(self, x):
    return x * (1 + len(list(filter({9, 31}.__contains__, x.shape))))


def two_sizes_in_a_table(self, x):
    table = {}
    for size in x.shape:
        table[size] = 10.0
    return x * sum(table.values())


def key_that_is_dropped(self, x):
    table = {9: 2.0, 31: 3.0}
    y = x * table.get(x.shape[0], 1.0)
    table.clear()
    return y


@dataclasses.dataclass(frozen=True)
class Grid:
    height: int
    width: int


def object_in_table(self, x):
    return x * {Grid(8, 11): 2.0}.get(Grid(x.shape[0], x.shape[1]), 1.0)


def long_table(self, x):
    return x * self.table.get(x.shape[0], -1.0)


def wrong_cache(self, x):
    n = x.shape[0]
    if n not in self.table:
        self.table[n] = torch.arange(n) / n
    return x * self.table[n][:, None]


OF_BOTH = (pair_in_table, shape_in_table, half_in_table, object_in_table)
"""No key of theirs has the example's columns, so none is found where only the rows vary."""
OF_ROWS = (
    *(
        fraction_in_table,
        different_sizes,
        different_sizes_as_keys,
        counted_sizes,
        key_that_comes_later,
        key_added_to_a_table,
    ),
    *(two_sizes_in_a_table, key_that_is_dropped, literal_looked_up, function_of_a_table, method_of_a_table),
)
TABLES = {
    fixed_size_looked_up: {},
    long_table: {i * i + 400: float(i) for i in range(40)},
    wrong_cache: {6: torch.arange(6.0) / 6, 65: torch.arange(65.0) * 2},
}


@pytest.mark.usefixtures("_places")
@pytest.mark.parametrize(
    ("function", "dynamic"),
    [
        *((function, AXES) for function in (*OF_BOTH, *OF_ROWS, *TABLES)),
        *((function, {0: "n"}) for function in (*OF_ROWS, *TABLES)),
    ],
)
def test_is_refused(function, dynamic, exporter, tmp_path):
    tables = {"table": dict(TABLES[function])} if function in TABLES else {}
    assert export(function, tmp_path / "model.onnx", dynamic, exporter, **tables) is None


def table_of_others(self, x):
    """No key is ever found: the axis of 4 is fixed."""
    return x * {(8, 11): 2.0}.get((x.shape[0], x.shape[1]), 1.0)


def cache(self, x):
    n, m = x.shape
    key = (n, "ramp", m)
    if key not in self.table:
        self.table[key] = torch.arange(n)[:, None] + torch.arange(m)
    return x * self.table[key]


def view_of_keys(self, x):
    """Once it is rewritten, a size is compared with each of them."""
    return x * 2 if x.shape[0] in PAIRS_OF_ROWS.keys() else x  # noqa: SIM118


def cache_asked_twice(self, x):
    ramp = self.table.get(x.shape[0])
    if ramp is None:
        ramp = self.table[x.shape[0]] = torch.arange(x.shape[0]) / x.shape[0]
    return x * ramp[:, None]


def cache_that_is_cut(self, x):
    """The longest length of four is stored; to cut it is a question of its own, in the same line."""
    n = x.shape[0]
    most = n + -n % 4
    if most not in self.table:
        self.table[most] = torch.arange(most) + 1.0
    return x * self.table[most][:n, None]


def cache_of_tuples(self, x):
    """Kept by size, dtype and device, and made where a KeyError says that it is not there."""
    key = (x.shape[0], x.dtype, x.device)
    try:
        ramp = self.table[key]
    except KeyError:
        ramp = self.table[key] = torch.arange(key[0], dtype=key[1], device=key[2])
    return x + ramp[:, None]


def square_table(self, x):
    """No size is 8 and 11."""
    return x * {(8, 11): 2.0}.get((x.shape[0], x.shape[0]), 1.0)


def checks(self, x):
    assert len({x.shape[0], (x + 1).shape[0]}) == 1
    rows = {t.shape[0] for t in (x, x * 2)}
    if len(rows) != 1:
        raise ValueError(f"rows differ: {rows}")
    return x * 2


def checks_of_a_literal(self, x):
    assert len({x.shape[0], (x + 1).shape[0]}) == 1
    return x * 2


@pytest.mark.usefixtures("_places")
@pytest.mark.parametrize(
    ("function", "tables", "dynamic"),
    [
        (table_of_others, {}, {0: "n"}),
        (cache, {"table": {}}, AXES),
        (cache, {"table": {(6, "ramp", 4): torch.arange(6)[:, None] + torch.arange(4)}}, AXES),
        (cache_asked_twice, {"table": {}}, {0: "n"}),
        (cache_asked_twice, {"table": {6: torch.arange(6) / 6, 9: torch.arange(9) / 9}}, {0: "n"}),
        (cache_that_is_cut, {"table": {8: torch.arange(8) + 1.0, 12: torch.arange(12) + 1.0}}, {0: "n"}),
        (cache_of_tuples, {"table": {}}, {0: "n"}),
        (checks_of_a_literal, {}, AXES),
        (square_table, {}, {0: "n"}),
        (view_of_keys, {}, {0: "n"}),
    ],
)
def test_is_right(function, tables, dynamic, exporter, tmp_path):
    session = export(function, tmp_path / "model.onnx", dynamic, exporter, **tables)
    assert session is not None
    for rows in (1, 6, 8, 9, 16):
        x = torch.randn(rows, 4 if 1 not in dynamic else rows + 3)
        wanted = OfFunction(function, **{name: {} for name in tables})(x)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), wanted)


def test_a_set_of_sizes_of_a_check(tmp_path):
    """It is no statement of the check's: torch.export has no hash for it."""
    assert export(checks, tmp_path / "model.onnx", AXES, "torchscript") is not None
    assert export(checks, tmp_path / "model.onnx", AXES, "dynamo") is None


def sizes_read_anew(self, x):
    if x.shape[0] not in self.table:
        self.table[x.shape[0]] = torch.arange(x.shape[0]) / x.shape[0]
    return x * self.table[x.shape[0]][:, None]


def test_a_size_is_found_where_another_reading_of_it_was_stored(tmp_path):
    session = export(sizes_read_anew, tmp_path / "model.onnx", {0: "n"}, "dynamo", table={})
    assert session is not None
    for rows in (1, 6, 9):
        x = torch.randn(rows, 4)
        wanted = OfFunction(sizes_read_anew, table={})(x)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), wanted)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python does not tell which expression of a line runs")
@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("n in self.table", ("self.table",)),
        ("{6: a, (7, 8): b}.get(n)", (frozenset({6, (7, 8)}),)),
        ("table[n]", ("table",)),
        ("self.a.b.setdefault(n, f(n))", ("self.a.b",)),
        ("n not in {1, 2}", (frozenset({1, 2}),)),
        ("tables[0][n]", None),
        ("tables().get(n)", None),
        ("set(sizes)", None),
        ("{n: 1, 5: 2}", None),
        ("{n, 5}", None),
        ("{m: 1 for m in sizes}", None),
        ("seen.update(sizes)", None),
        ("{**table}", None),
        ("f(n)", None),
    ],
)
def test_what_an_expression_looks_keys_up_in(expression, named, tmp_path):
    file = tmp_path / "code.py"
    file.write_text(f"def forward(self, x, n):\n    y = ({expression}) * 2\n    return y\n")
    place = Place(str(file), 2, 9, (2, 9 + len(expression)))
    assert containers_named(place) == named


def rows_in_table(self, x):
    return x * self.table.get(x.shape[0], 1.0)


@pytest.mark.parametrize(("table", "is_exported"), [({}, True), ({"large": 2.0}, True), ({100_000: 2.0}, False)])
def test_a_table_is_refused_where_nobody_can_tell_what_is_in_it(table, is_exported, exporter, monkeypatch, tmp_path):
    """The run without values ends early, as it does where torch has no such form of an operator."""

    def ends(log):
        raise NotImplementedError("no such operator")

    monkeypatch.setattr(Log, "note_keys", ends)
    assert (export(rows_in_table, tmp_path / "model.onnx", {0: "n"}, exporter, table=table) is not None) == is_exported


def test_a_key_that_is_too_large_to_try_is_refused(exporter, tmp_path):
    table = {10_000_000_000: 2.0}
    assert export(rows_in_table, tmp_path / "model.onnx", {0: "n"}, exporter, table=table) is None


def many_tables(self, x):
    n = x.shape[0]
    a, b, c, d, e = self.tables
    return x * a.get(n, 1.0) * b.get(n, 1.0) * c.get(n, 1.0) * d.get(n, 1.0) * e.get(n, 1.0)


def test_more_keys_than_there_are_cases_are_refused(exporter, tmp_path):
    tables = [{100 + 20 * i + key: 1.0 for key in range(16)} for i in range(4)]
    tables.append({**{300 + key: 1.0 for key in range(15)}, 257: 5.0})
    assert export(many_tables, tmp_path / "model.onnx", {0: "n"}, exporter, tables=tables) is None


def products_in_table(self, x):
    return x * {(1500, 250): 2.0}.get((x.shape[0] * 3, x.shape[0] // 2), 1.0)


def test_a_key_of_two_numbers_made_of_one_size(exporter, tmp_path):
    assert export(products_in_table, tmp_path / "model.onnx", {0: "n"}, exporter) is None


@pytest.mark.parametrize("key", [10**400, float("inf"), float("nan"), True, Fraction(1, 3)])
def test_numbers_that_no_size_is_are_keys(key, exporter, tmp_path):
    session = export(rows_in_table, tmp_path / "model.onnx", {0: "n"}, exporter, table={key: 1.0})
    assert session is not None
