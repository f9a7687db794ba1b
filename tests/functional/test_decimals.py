"""Decimal rounding by torch's operators: Python's own result, bit by bit."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat.functional.decimals import TorchArithmetic, round_decimal


def rounded(number, digits):
    return round_decimal(TorchArithmetic, torch.tensor([number], dtype=torch.float64), digits).item()


@given(st.floats(-1e6, 1e6), st.integers(-3, 6))
@settings(max_examples=150, deadline=None)
def test_any_number(number, digits):
    assert rounded(number, digits) == round(number, digits)


@given(st.integers(-100_000, 100_000), st.integers(1, 5), st.sampled_from([0.5, 0.05, 0.005, 0.35, 0.15, 5, 25, 250]))
@settings(max_examples=250, deadline=None)
def test_numbers_that_look_half_way(number, digits, step):
    assert rounded(number * step, digits) == round(number * step, digits)
    assert rounded(number * step, -digits) == round(number * step, -digits)


@pytest.mark.parametrize(("number", "digits"), [(0.35, 1), (2.675, 2), (0.15, 1), (1.005, 2), (2.5, 0), (15.0, -1)])
def test_well_known_ones(number, digits):
    assert rounded(number, digits) == round(number, digits)
