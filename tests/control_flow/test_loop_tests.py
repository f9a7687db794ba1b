"""Loops whose test binds a name are right at other sizes and values: each round has the name's new value."""

import pytest
from torch.nn import functional

from control_flow.files import export_and_compare


def padded_to_threes(x):
    while (rest := x.shape[0]) % 3:
        x = x[: rest - 1] if rest > 3 else functional.pad(x, (0, 0, 0, 1))
    return x


def halved_to_one(x):
    rounds = 0
    while (most := x.abs().max()) > 0.3 and rounds < 20:
        x = x / 2
        rounds += 1
    return x, most


def bound_in_the_second_part(x):
    total = x.new_zeros(())
    while total < 20 and (step := x.abs().mean() + 0.5) > 0.1:
        if total > 9:
            break
        if step > 1.5:
            total = total + 1
            continue
        total = total + step
    return total * x


def bound_twice_with_an_else(x):
    i, seen = 0, x.new_zeros(())
    while (value := x[0, 0] * i) < 3 and (following := i + 1) < 9:
        seen, i = seen + value, following
        if seen > 20:
            break
    else:
        x = x * 2
    return x + value + seen


@pytest.mark.one_exporter
@pytest.mark.parametrize("model", [halved_to_one, bound_in_the_second_part, bound_twice_with_an_else])
def test_values_that_a_test_binds(exporter, model, tmp_path):
    export_and_compare(model, exporter, tmp_path)


def test_sizes_that_a_test_binds(tmp_path):
    export_and_compare(padded_to_threes, "torchscript", tmp_path)
