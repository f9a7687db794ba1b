"""Loops in the file that tell their first round by what there is before it, exported on positive values only.

A tensor of zeros in the place of None, or of a number, is neutral in a sum and nowhere else. What follows of it shows
at negative values, which no example here has.
"""

import pytest
import torch

from torch_onnx_compat import CompatError, export_compat

PROGRAMS, REFUSED = {}, {}


def program(forward):
    PROGRAMS[forward.__name__] = forward
    return forward


def refused(forward):
    REFUSED[forward.__name__] = forward
    return forward


@program
def best_row(x):
    best = None
    for row in x:
        if best is None or row.sum() > best.sum():
            best = row
    return best


@program
def best_by_number(x):
    best = None
    for number in range(x.shape[0]):
        if best is not None and x[number].sum() <= best.sum():
            continue
        best = x[number]
    return best


@program
def largest_of_all(x):
    largest = None
    for row in x:
        largest = row if largest is None else torch.maximum(largest, row)
    return largest


@program
def differences(x):
    before, parts = None, []
    for row in x:
        parts.append(row if before is None else row - before)
        before = row
    return torch.stack(parts)


@program
def instance_of_int(x):
    state = 0
    for row in x:
        state = row if isinstance(state, int) else torch.maximum(state, row)
    return state


@program
def is_a_tensor(x):
    state = 0
    for row in x:
        state = torch.maximum(state, row) if torch.is_tensor(state) else row
    return state


@program
def type_of_state(x):
    state = 0.0
    for row in x:
        state = row if type(state) is float else torch.minimum(state, row) - 1
    return state


@program
def has_a_shape(x):
    state = 0.0
    for row in x:
        state = torch.minimum(state, row) - 1 if hasattr(state, "shape") else row
    return state


@program
def dimensions_of_state(x):
    state = 0
    for row in x:
        state = row if not isinstance(state, torch.Tensor) or state.dim() == 0 else state * row
    return state


def is_number(value):
    return isinstance(value, (int, float))


@program
def helper_asks(x):
    state = 0
    for row in x:
        state = row if is_number(state) else torch.maximum(state, row)
    return state


@program
def false_before(x):
    state = False
    for row in x:
        state = row if state is False else torch.maximum(state, row)
    return state


@program
def attribute_of_state(x):
    state = 0.0
    for row in x:
        state = torch.maximum(state, row) if getattr(state, "ndim", None) == 1 else row
    return state


@program
def caught_type_error(x):
    state = 0
    for row in x:
        try:
            state = torch.maximum(row, state)
        except TypeError:
            state = row
    return state


@program
def matched_type(x):
    state = 0
    for row in x:
        match state:
            case int():
                state = row
            case _:
                state = torch.maximum(state, row)
    return state


@program
def two_names(x):
    largest, count = 0, 0
    for row in x:
        largest = torch.maximum(largest, row) if torch.is_tensor(largest) else row
        count += 1
    return largest * count


@program
def torch_add(x):
    total = x.new_zeros(x.shape[1])
    for row in x:
        total = torch.add(total, row)
    return total


@program
def a_sum(x):
    total = 0
    for row in x:
        total = total + row
    return total


@refused
def counter_that_stays_a_number(x):
    count, total = 0, x.new_zeros(x.shape[1])
    for row in x:
        if isinstance(count, int):
            total = total + row
        count += 1
    return total * count


@refused
def counter_in_a_helper(x):
    count, total = 1, x.new_zeros(x.shape[1])
    for row in x:
        if is_number(count):
            total = total + row
        count = count * 0.5
    return total * count


class Model(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


EXAMPLE = torch.linspace(0.5, 2, 12).reshape(2, 6)
AXES = {"x": {0: "batch", 1: "width"}}


@pytest.mark.one_exporter
@pytest.mark.parametrize("name", PROGRAMS)
def test_right_at_negative_values(name, exporter):
    model = Model(PROGRAMS[name])
    result = export_compat(model.eval(), EXAMPLE, exporter=exporter, dynamic=AXES)
    for rows, width in ((1, 4), (2, 6), (3, 2), (7, 5)):
        x = torch.randn(rows, width) - 2
        torch.testing.assert_close(result(x)[0], model(x))


@pytest.mark.parametrize("function", [a_sum, torch_add])
def test_a_sum_takes_one_loop(function):
    result = export_compat(Model(function).eval(), EXAMPLE, exporter="torchscript", dynamic=AXES)
    assert result.nodes["Loop"] == 1


@pytest.mark.parametrize("name", REFUSED)
def test_a_number_in_every_round_is_refused(name, exporter):
    with pytest.raises(CompatError, match="what kind of value a name holds decides, and it is a number before a loop"):
        export_compat(Model(REFUSED[name]).eval(), EXAMPLE, exporter=exporter, dynamic=AXES)
