"""Branches and rounds that compute with sizes of which none of their tensors has any."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.errors import VerificationError

BOTH = pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
DYNAMIC = {"x": {0: "rows", 1: "columns"}}


def zeros_of_one_length_or_another(x):
    rows, columns = x.shape
    y = torch.zeros(2) + rows if x.mean() > 0 else torch.zeros(3) + columns
    return torch.cat([y, y]) * x.mean()


def a_decision_within_a_branch(x):
    rows, columns = x.shape
    if x.mean() > 0:
        y = torch.zeros(2) + rows
        if x.std() > 1:
            y = torch.cat([y, torch.ones(1) * (rows * columns)])
    else:
        y = torch.zeros(3) + columns // 2
    return y * x.mean()


def rounds(x):
    rows, columns = x.shape
    total = x.sum(0)
    count = torch.tensor(0)
    while total.abs().max() > 0.1:
        total = total * 0.5 + torch.ones(columns) / (1000 * rows)
        count = count + 1
    return total, count


def in_windows(x):
    rows, columns = x.shape
    missing = -rows % 4
    if missing:
        x = nn.functional.pad(x, (0, 0, 0, missing))
    x = x.reshape(-1, 4, columns).cumsum(1).reshape(-1, columns)
    if missing:
        x = x[:-missing]
    return x


@BOTH
@pytest.mark.parametrize("model", [zeros_of_one_length_or_another, a_decision_within_a_branch, in_windows, rounds])
def test_sizes_of_the_inputs_are_known_inside(model, exporter):
    torch.manual_seed(0)
    result = export_compat(model, torch.rand(5, 6), exporter=exporter, dynamic=DYNAMIC)
    for size in ((5, 6), (3, 8), (1, 2)):
        for x in (torch.rand(size), -torch.rand(size), 4 * torch.randn(size)):
            torch.testing.assert_close(tuple(result(x)), model(x) if model is rounds else (model(x),))


def test_a_loop_that_never_ends_at_infinities_is_noted():
    result = export_compat(rounds, torch.rand(5, 6), exporter="torchscript", dynamic=DYNAMIC)
    assert any("at infinite inputs" in note and "does not end" in note for note in result.notes)


class LongRotations(nn.Module):
    """The base of rotary embeddings grows once a sequence is longer than the model was trained for."""

    LONGEST, WIDTH = 100, 8

    def forward(self, x):
        length, base = x.shape[1], 10000.0
        if length > self.LONGEST:
            base = base * (2 * length / self.LONGEST - 1) ** (self.WIDTH / (self.WIDTH - 2))
        frequencies = 1 / base ** (torch.arange(0, self.WIDTH, 2) / self.WIDTH)
        return x * torch.outer(torch.arange(length), frequencies).sin()


@BOTH
def test_a_branch_may_have_a_power_that_is_complex_at_the_example(exporter):
    dynamic = {"x": {1: "length"}}
    result = export_compat(LongRotations(), torch.randn(1, 8, 4), exporter=exporter, dynamic=dynamic)
    for length in (1, 8, 99, 100, 101, 250):
        x = torch.randn(1, length, 4)
        torch.testing.assert_close(result(x)[0], LongRotations()(x), rtol=1e-4, atol=1e-4)


@BOTH
def test_a_power_that_is_complex_at_other_sizes_is_refused(exporter):
    def model(x):
        return x * (x.shape[1] / 20 - 1) ** 1.5

    with pytest.raises(VerificationError, match="wanted"):
        export_compat(model, torch.randn(1, 40), exporter=exporter, dynamic={"x": {1: "length"}})


class Known(nn.Module):
    def __init__(self, are_equal):
        super().__init__()
        self.are_equal = are_equal
        self.register_buffer("known", torch.ones(16, 4))

    def forward(self, x):
        return x * 2 if self.are_equal(x, self.known) else x - 1


def by_shape_and_values(x, known):
    return x.shape == known.shape and bool((x == known).all())


EQUALITIES = pytest.mark.parametrize("are_equal", [torch.equal, torch.Tensor.equal, by_shape_and_values])


@EQUALITIES
@pytest.mark.parametrize("rows", [4, 16])
def test_tensors_of_other_sizes_are_not_equal(rows, are_equal):
    model = Known(are_equal)
    result = export_compat(model, torch.rand(rows, 4), exporter="torchscript", dynamic={"x": {0: "rows"}})
    for x in (torch.ones(16, 4), torch.rand(16, 4), torch.ones(4, 4), torch.ones(1, 4), torch.ones(20, 4)):
        torch.testing.assert_close(result(x)[0], model(x))


@EQUALITIES
def test_values_that_are_asked_for_at_other_sizes_only_are_refused_through_dynamo(are_equal):
    with pytest.raises(CompatError, match=r"test_sizes_in_branches\.py"):
        export_compat(Known(are_equal), torch.rand(4, 4), exporter="dynamo", dynamic={"x": {0: "rows"}})


@BOTH
def test_a_whole_power_of_a_negative_number_is_not_0(exporter):
    def model(x):
        columns = x.shape[1]
        if columns > 100:
            x = x * (1 - columns / 8) ** 2
        return x

    try:
        result = export_compat(model, torch.rand(2, 40), exporter=exporter, dynamic={"x": {1: "columns"}})
    except CompatError:
        assert exporter == "dynamo"  # torch's translation to ONNX asks whether the base is negative once more
        return
    for columns in (8, 40, 100, 101, 150):
        x = torch.rand(2, columns)
        torch.testing.assert_close(result(x)[0], model(x))
