"""Tensors with two names, one of which is written in place: what the file does not have is refused.

None of the inputs that are tried takes the rare sides, so that no comparison of values would find these files wrong.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional

from torch_onnx_compat import CompatError, export_compat

REFUSED, RIGHT = {}, {}


def refused(function):
    """A model that gives a tensor two names where x or w is far from what the cases have."""
    REFUSED[function.__name__] = function
    return function


def right(function):
    """A model that writes in place, and whose file is right."""
    RIGHT[function.__name__] = function
    return function


class Model(nn.Module):
    """Calls a function of two tensors of one shape."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, w):
        return self.function(x, w)


def is_rare(w):
    """Few inputs have such values: they are of another sign than the example's, and large."""
    return w.sum() * w.std() < -1e9


@refused
def one_of_two(x, w):
    a, b = x + 0, w + 0
    y = a if is_rare(w) else b
    y.mul_(2)
    return a, y


@refused
def written_under_the_first_name(x, w):
    a = x + 0
    y = a if is_rare(w) else a * 1
    a.add_(1)
    return a, y


@refused
def view_on_one_side(x, w):
    a = x + 0
    y = a[0] if is_rare(w) else a[0] * 1
    a.mul_(2)
    return a, y


@refused
def write_into_a_view_of_the_joined(x, w):
    a = x + 0
    y = a if is_rare(w) else a.clone()
    y[:, 0].mul_(3)
    return a, y


@refused
def through_layers_in_place(x, w):
    a = x + 0
    y = a if is_rare(w) else a * 1
    y = functional.relu(y, inplace=True)
    return a, y


@refused
def through_data(x, w):
    a = x + 0
    y = a if is_rare(w) else a * 1
    y.data.add_(1)
    return a, y


@refused
def through_out(x, w):
    a = x + 0
    y = a if is_rare(w) else a * 1
    torch.add(x, w, out=y)
    return a, y


@refused
def two_names_of_one_side(x, w):
    a, b = x + 0, w + 0
    p, q = (a, a) if is_rare(w) else (a, b)
    p.add_(1)
    return p, q


@refused
def joined_twice(x, w):
    a = x + 0
    y = a if is_rare(w) else a * 1
    z = w * 1 if is_rare(x) else y
    z.add_(1)
    return a, z


@refused
def item_of_a_dict(x, w):
    a = x + 0
    d = {"k": a * 1}
    if is_rare(w):
        d["k"] = a
    d["k"] += 1
    return a, d["k"]


@refused
def result_of_a_function(x, w):
    a = x + 0

    def choose(t):
        if is_rare(w):
            return a
        return t * 2

    y = choose(w)
    y.mul_(2)
    return a + y


@refused
def branch_that_writes(x, w):
    a = x + 0
    y = a if is_rare(w) else a * 1
    if x.sum() > 0:
        a.add_(1)
    return a, y


@refused
def exit_of_a_loop(x, w):
    a = x + 0
    y = a * 1
    for i in range(3):
        if is_rare(w * i):
            y = a
            break
        y = y + 1
    y.mul_(2)
    return a, y


@refused
def loop_without_a_round(x, w):
    a = x + 0
    y = a
    for _ in range(int((x[:, 0] > -1e9).sum())):
        y = y * 1.01
    y.add_(1)
    return a, y


@refused
def bound_in_a_round(x, w):
    a = x + 0
    y = a * 1
    for i in range(x.shape[0]):
        if is_rare(w[i]):
            y = a
    y.add_(1)
    return a, y


@refused
def appended_in_a_round(x, w):
    state, seen = x[0] + 0, []
    for i in range(x.shape[0]):
        if is_rare(w[i]):
            seen.append(state)
        else:
            seen.append(state * 1)
        state += w[i]
    return torch.stack(seen)


@refused
def appended_and_written_to(x, w):
    state, seen = x[0] + 0, []
    for row in w:
        state += row
        seen.append(state)
    return torch.stack(seen)


@refused
def kept_from_a_round(x, w):
    state = x[0] + 0
    kept = state * 1
    for i in range(x.shape[0]):
        state += w[i]
        if is_rare(w[i]):
            kept = state
        kept = kept * 1 if is_rare(x[i]) else kept
    return state, kept


@refused
def rows_that_change_places(x, w):
    y = x + 0
    for i in range(y.shape[0] - 1):
        if is_rare(w[i]):
            y[i], y[i + 1] = y[i + 1], y[i]
    return y


@refused
def row_that_a_branch_overwrites(x, w):
    y, total = x + 0, x[0] * 0
    for i in range(y.shape[0]):
        row = y[i]
        if is_rare(w[i]):
            y[i] = 0
        total = total + row
    return y, total


@right
def row_before_the_last(x, w):
    y, total = x + 0, x[0] * 0
    for i in range(1, y.shape[0]):
        previous = y[i - 1]
        y[i] = torch.maximum(previous, w[i])
        total = total + previous
    return y, total


@right
def rows_by_a_decision(x, w):
    y = x + 0
    for i in range(1, y.shape[0]):
        if w[i].sum() > 0:
            y[i] = y[i - 1] * 2
        else:
            y[i] = y[i] + w[i]
    return y


@right
def rows_that_change_places_by_a_copy(x, w):
    y = x + 0
    for i in range(y.shape[0] - 1):
        if w[i].sum() > 0:
            row = y[i].clone()
            y[i] = y[i + 1]
            y[i + 1] = row
    return y


@right
def residual(x, w):
    rest = x
    if w.sum() > 0:
        x = x * 2
    x = x + 0
    x += rest
    return x


@right
def layers_in_place(x, w):
    h = x * 2
    if w.mean() > 0:
        h = h + w
    h = functional.relu(h, inplace=True)
    h.mul_(3).add_(1)
    return h, w


@right
def read_before_the_write(x, w):
    a = x + 0
    y = a if w.sum() > 0 else w * 2
    total = a.sum()
    y += 1
    return y * total


@right
def sums_of_a_loop(x, w):
    total = torch.zeros_like(x[0])
    for i in range(x.shape[0]):
        t = x[i] * w[i]
        if t.sum() > 0:
            t = t * 2
        total += t
    return total


@right
def rows_of_a_loop(x, w):
    out = torch.zeros_like(x)
    h = x[0] * 0
    for i in range(x.shape[0]):
        h = torch.tanh(h * 0.5 + x[i])
        if h.sum() > 0:
            h = h - w[i]
        out[i] = h
    return out, h


@right
def second_name_after_each_write(x, w):
    total = x[0] * 0
    last = total * 1
    for row in w:
        total += row
        last = total
    return total, last


@right
def written_until_a_loop_is_left(x, w):
    total = torch.zeros_like(x[0])
    for i in range(3):
        if w[0, i] > 1:
            break
        total += x[0]
        total.add_(w[0, i])
    return total + x


@right
def item_of_a_list(x, w):
    held = [x * 1, w]
    if x.sum() > 0:
        held[0] = x * 2
    held[0] += 1
    return held[0]


@right
def name_that_no_loop_binds(x, w):
    a = x + 0
    b = a
    for row in w:
        a = a + row
    b += 1
    return a, b


def export(function, exporter):
    """Exports with the axis of rows dynamic."""
    torch.manual_seed(3)
    inputs = torch.randn(4, 6), torch.randn(4, 6)
    return export_compat(Model(function).eval(), inputs, exporter=exporter, dynamic={"x": {0: "n"}, "w": {0: "n"}})


@pytest.mark.one_exporter
@pytest.mark.parametrize("name", REFUSED)
def test_two_names_are_refused(name, exporter):
    with pytest.raises(CompatError, match="second name") as error:
        export(REFUSED[name], exporter)
    assert "test_aliases.py:" in str(error.value)
    assert "clone()" in str(error.value)


@pytest.mark.one_exporter
@pytest.mark.parametrize("name", RIGHT)
def test_other_writes_are_right(name, exporter):
    session = export(RIGHT[name], exporter).session()
    for rows in (4, 1, 7):
        for sign in (1, -1):
            given = {"x": torch.randn(rows, 6), "w": sign * torch.randn(rows, 6).abs()}
            wanted = RIGHT[name](**{key: value.clone() for key, value in given.items()})
            found = session.run(None, {one.name: given[one.name].numpy() for one in session.get_inputs()})
            for ours, theirs in zip(found, wanted if isinstance(wanted, tuple) else [wanted], strict=True):
                torch.testing.assert_close(torch.from_numpy(ours), theirs, rtol=1e-4, atol=1e-4)
