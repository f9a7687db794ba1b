"""Sizes of what torch makes of sizes that its C++ takes as plain numbers: what is asked of them is heard."""

import pytest
import torch
import torch.nn.functional as F
from symbolic_runs import run

CALLS = {
    "linspace": (lambda x: torch.linspace(0, 1, x.shape[2]).shape[0], "s2"),
    "logspace of more": (lambda x: torch.logspace(0, 1, x.shape[2] + 3).shape[0], "s2 + 3"),
    "windows": (lambda x: x.unfold(2, x.shape[2] // 2, 1).shape[4], "s2//2"),
    "number of windows": (lambda x: x.unfold(2, x.shape[2] // 2, 1).shape[2], "s2 - s2//2 + 1"),
    "classes": (lambda x: F.one_hot(x[0, 0].long() * 0, x.shape[3]).shape[2], "s3"),
    "two sizes": (lambda x: torch.hann_window(x.shape[2] + 2 * x.shape[3]).shape[0], "s2 + 2 * s3"),
    "windows of a pool": (lambda x: F.max_pool1d(x[0], x.shape[3] // 2, 1).shape[2], "s3 - s3//2 + 1"),
    "multiples of 8": (lambda x: F.pixel_unshuffle(x, 8).unfold(2, x.shape[2] // 8, 1).shape[4], "s2//8"),
}


def sizes(expression, height, width):
    return eval(expression, {"s2": height, "s3": width})


@pytest.mark.parametrize("name", CALLS)
def test_a_size_is_what_it_is_at_other_sizes(name):
    """The question is asked of the size that eager torch has, whatever the sizes are."""
    size, expression = CALLS[name]
    found = run(lambda x: x * 2 if size(x) > 1000 else x)
    assert not found.obstacle
    asked = [q for q in found.questions if q.kind == "condition" and q.expression.has(1000)]
    assert len(asked) == 1, [str(q) for q in found.questions]
    for height, width in ((600, 700), (995, 1003), (1000, 1001), (1001, 400), (1999, 20), (2001, 30), (2003, 3000)):
        names = {symbol: {"height": height, "width": width}[str(symbol)] for symbol in asked[0].expression.free_symbols}
        assert bool(asked[0].expression.xreplace(names)) == (sizes(expression, height, width) > 1000), (height, width)


def test_what_is_no_sum_of_multiples_stays_as_torch_has_it():
    """torch has the example's window of 24 there."""
    found = run(lambda x: x * 2 if F.max_pool1d(x[0], x.shape[3] // 2).shape[2] > 1000 else x)
    assert not found.obstacle
    assert [q for q in found.questions if q.kind == "number"]
    assert "width//24" in " ".join(str(q.expression) for q in found.questions if q.kind == "condition")


def test_a_call_that_writes_is_made_once():
    wanted = torch.full((2,), 2.0, dtype=torch.float64).polygamma_(4)

    def writes(x):
        made = torch.full((2,), 2.0, dtype=torch.float64)
        made.polygamma_(x.shape[2])
        assert torch.equal(made, wanted)
        return x

    found = run(writes, torch.randn(3, 3, 4, 5))
    assert not found.obstacle
    assert [q for q in found.questions if q.kind == "number"]


def test_random_numbers_are_drawn_once():
    def draw(size):
        torch.manual_seed(1)
        F.fractional_max_pool2d(torch.ones(1, 1, 64, 64), 2, output_size=size)
        return torch.rand(1)

    wanted = draw(32)

    def draws(x):
        assert torch.equal(draw(x.shape[2]), wanted)
        return x

    found = run(draws)
    assert not found.obstacle
    assert [q for q in found.questions if q.kind == "number"]
