"""Polynomials of sizes: every answer about them is right for all values of the unknowns."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat.graph.slim.size import Unknowns, at_least, compare, divide_exactly, evaluate

UNKNOWNS = Unknowns()
SIZES = [UNKNOWNS.get(name, is_natural=True) for name in "abc"]
ANY = UNKNOWNS.get("any", is_natural=False)


@st.composite
def expressions(draw):
    """A polynomial."""
    parts = [
        draw(st.one_of(st.integers(-5, 5), st.sampled_from([*SIZES, ANY]))) for _ in range(draw(st.integers(1, 5)))
    ]
    total = parts[0]
    for part in parts[1:]:
        kind = draw(st.sampled_from("+-*"))
        total = total + part if kind == "+" else total - part if kind == "-" else total * part
    return total


values = st.fixed_dictionaries({**{name: st.integers(0, 6) for name in "abc"}, "any": st.integers(-6, 6)})


@settings(deadline=None)
@given(expressions(), expressions(), values)
def test_arithmetic_is_that_of_numbers(left, right, numbers):
    a, b = evaluate(left, numbers), evaluate(right, numbers)
    assert evaluate(left + right, numbers) == a + b
    assert evaluate(left - right, numbers) == a - b
    assert evaluate(left * right, numbers) == a * b
    if left == right:
        assert a == b


@settings(deadline=None)
@given(expressions(), expressions(), values)
def test_every_answer_holds(left, right, numbers):
    a, b = evaluate(left, numbers), evaluate(right, numbers)
    order = compare(left, right)
    assert order is None or order == (a > b) - (a < b)
    for bound in (-1, 0, 1):
        assert not at_least(left, bound) or a >= bound
    exact = divide_exactly(left, right) if right != 0 else None
    assert exact is None or evaluate(exact, numbers) * b == a


@settings(deadline=None)
@given(expressions(), st.integers(1, 7), values)
def test_the_floor_of_a_quotient(number, divisor, numbers):
    found = UNKNOWNS.divide(number, divisor)
    known = dict(numbers)
    for unknown in {u for monomial in getattr(found, "terms", {}) for u in monomial}:
        if isinstance(unknown.key, tuple):
            _, rest, by = unknown.key
            known[unknown.key] = evaluate(rest, known) // by
            assert not unknown.is_natural or known[unknown.key] >= 0
    assert evaluate(found, known) == evaluate(number, numbers) // divisor


def test_equal_sizes_have_one_form():
    a, b, c = SIZES
    assert (a + b) * c == a * c + c * b
    assert (a * 64 * 49) - 49 * a * 64 == 0
    assert hash(a * b + 2) == hash(2 + b * a)
    assert divide_exactly(a * 3136 * 96, a * 49) == 64 * 96
    assert UNKNOWNS.divide(2 * a + 1, 2) == a
    assert UNKNOWNS.divide(a, 0) is None
    assert UNKNOWNS.divide(a, b) is None


@pytest.mark.parametrize("number", [7, -7, 0])
def test_numbers_stay_numbers(number):
    assert UNKNOWNS.divide(number, 2) == number // 2
