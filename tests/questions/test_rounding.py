"""Sizes at which rounding decides: those of a brute-force search, whatever the fraction."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import prepare
from torch_onnx_compat.questions.rounding import FAR_APART, sides_of
from torch_onnx_compat.questions.run import SymbolicRuns
from torch_onnx_compat.questions.search import FAR


class Keeps(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def forward(self, x):
        return x[: self.number(x.shape[0])]


def roundings(number):
    prepared = prepare(Keeps(number).eval(), (torch.randn(4, 3),), dynamic={"x": {0: "n"}})
    run = SymbolicRuns(Observation(prepared)).at({})
    assert run.is_complete
    return [sides_of(q, {"n": 4}, {"n": (1, None)}) for q in run.questions if q.kind == "rounding"]


@pytest.mark.parametrize("hundredths", [70, 58, 29, 7, 111, 35, 99])
@pytest.mark.parametrize(
    ("whole", "single"),
    [
        (lambda n, c: int(n * c), lambda n, c: int(np.float32(n) * np.float32(c))),
        (lambda n, c: math.ceil(n * c), lambda n, c: math.ceil(np.float32(n) * np.float32(c))),
        (lambda n, c: math.floor(n / 3 * c), lambda n, c: math.floor(np.float32(n) / np.float32(3) * np.float32(c))),
    ],
    ids=["int", "ceil", "floor"],
)
def test_the_sizes_are_those_at_which_float32_differs(hundredths, whole, single):
    c = hundredths / 100
    sides = roundings(lambda n: whole(n, c))
    found = {sizes["n"] for side in sides for sizes in side.others()}
    assert {n for n in range(1, FAR + 1) if whole(n, c) != single(n, c)} <= found


def test_far_sizes_are_tried_too():
    (side, *_) = roundings(lambda n: int(n * 0.7))
    assert [sizes["n"] for sizes in side.others()][:3] == [90, 170, 180]
    named = [sizes["n"] for sizes in side.named()]
    assert len(named) > len(FAR_APART)
    assert any(n >= 40 * 4 for n in named)


@pytest.mark.parametrize("number", [lambda n: n // 2, lambda n: n * 3 % 7 + 1, lambda n: min(n, 5)])
def test_whole_numbers_have_no_rounding(number):
    assert not roundings(number)


def test_a_half_is_exact():
    assert all(side.is_proven or not list(side.others()) for side in roundings(lambda n: int(n * 0.5)))


def test_a_fraction_that_a_tensor_takes_may_become_whole_there():
    """Its floor, the nearest whole number or its ceiling: 0.7 * 90 is a little less than 63."""

    class Fills(nn.Module):
        def forward(self, x):
            return torch.full((2,), x.shape[0] * 0.7, dtype=torch.float64)

    prepared = prepare(Fills().eval(), (torch.randn(4, 3),), dynamic={"x": {0: "n"}})
    (question,) = [q for q in SymbolicRuns(Observation(prepared)).at({}).questions if q.kind == "rounding"]
    sides = sides_of(question, {"n": 4}, {"n": (1, None)})
    found = {sizes["n"] for sizes in sides.others()}

    def whole(number):
        return math.floor(number), round(number), math.ceil(number)

    single = {n: float(np.float32(n) * np.float32(0.7)) for n in range(1, FAR + 1)}
    assert found == {n for n in single if whole(n * 0.7) != whole(single[n])}
    assert {90, 170, 180} <= found
    named = [sizes["n"] for sizes in sides.named()]
    assert {90, 170} <= set(named)


def test_the_whole_parts_of_a_condition_are_rounded_for_themselves():
    """Nowhere near 90 has the condition another answer: there it is that a part of it comes out otherwise."""
    sides = roundings(lambda n: 2 if math.floor(n * 0.7) == int(n * 0.7 + 1e-9) else 3)
    assert any({"n": 90} in list(side.others()) for side in sides)
