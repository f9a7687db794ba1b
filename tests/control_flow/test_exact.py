"""Comparisons of a tensor that stands for a number: those of Python, for every element type and constant."""

import math
import operator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat.control_flow.run.exact import compare_exactly, neighbours, promoted

SYMBOLS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]

constants = st.one_of(
    st.floats(),
    st.floats(-70_000, 70_000),
    st.integers(),
    st.integers(-300, 300),
    st.sampled_from([0.1, 0.7, 2**24 + 1, 2**53 + 1, 2**63, -(2**63), -(2**63) - 1, 10**400, 65519.9, 1e-45, -0.0]),
)


@settings(max_examples=400)
@given(st.data(), constants, st.sampled_from([*FLOATS, *INTEGERS]), st.sampled_from(sorted(SYMBOLS)), st.booleans())
def test_the_answer_is_that_of_python(data, constant, dtype, symbol, turned):
    if dtype.is_floating_point:
        near = [0.0, *neighbours(constant, dtype)]
        value = data.draw(st.one_of(st.sampled_from(near), st.floats(), st.floats(-1, 1)))
    else:
        info = torch.iinfo(dtype) if dtype != torch.bool else None
        least, most = (info.min, info.max) if info else (0, 1)
        value = data.draw(st.integers(least, most))
        if isinstance(constant, int) or math.isfinite(constant):
            value = data.draw(st.sampled_from([value, min(max(int(constant), least), most)]))
    tensor = torch.tensor(value, dtype=dtype)
    number = tensor.item()
    wanted = SYMBOLS[symbol](constant, number) if turned else SYMBOLS[symbol](number, constant)
    assert bool(compare_exactly(tensor, symbol, constant, turned=turned)) is wanted


@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbours_are_next_to_each_other(dtype):
    below, above = neighbours(1 / 3, dtype)
    assert below < 1 / 3 < above or below == above == 1 / 3
    if below != above:
        between = (below + above) / 2
        assert float(torch.tensor(between, dtype=dtype)) in (below, above)


@pytest.mark.parametrize("dtype", INTEGERS[:-1])
def test_what_is_promoted_does_not_overflow(dtype):
    most = torch.tensor(torch.iinfo(dtype).max, dtype=dtype)
    assert dtype == torch.int64 or int(promoted(most) + 1) == most.item() + 1
