"""Expressions at many sizes at once: what Python computes at each of them, one by one."""

import itertools
import random
import warnings

import numpy as np
import pytest
import sympy
from torch.utils._sympy.functions import (
    CeilToInt,
    FloatPow,
    FloatTrueDiv,
    FloorDiv,
    FloorToInt,
    IntTrueDiv,
    Max,
    Min,
    PowByNatural,
    PythonMod,
    RoundToInt,
    ToFloat,
    TruncToInt,
)

from torch_onnx_compat.backends.internals import many_sizes
from torch_onnx_compat.backends.internals.expressions import compile_expression
from torch_onnx_compat.questions.rounding import ROUNDINGS

SIZES = (1, 2, 3, 7, 90, 100, 4095, 2**31 - 1, 2**40)
SYMBOLS = sympy.symbols("h w", integer=True, positive=True)
PAIRS = list(itertools.product(SIZES, SIZES))
COLUMNS = [np.array(column) for column in zip(*PAIRS, strict=True)]


def whole(draw: random.Random, depth: int) -> sympy.Expr:
    if not depth:
        return draw.choice([*SYMBOLS, sympy.Integer(draw.choice([-3, 0, 1, 2, 7, 64]))])
    one, other = (whole(draw, depth - 1) for _ in range(2))
    kinds = [
        lambda: one + other,
        lambda: one - other,
        lambda: one * other,
        lambda: FloorDiv(one, other),
        lambda: PythonMod(one, other),
        lambda: Max(one, other),
        lambda: Min(one, other),
        lambda: abs(one),
        lambda: PowByNatural(one, sympy.Integer(2)),
        lambda: draw.choice([FloorToInt, CeilToInt, TruncToInt, RoundToInt])(fraction(draw, depth - 1)),
    ]
    return draw.choice(kinds)()


def fraction(draw: random.Random, depth: int) -> sympy.Expr:
    number = sympy.Float(draw.choice([0.1, 0.7, 1.5, -0.3]))
    one, other = whole(draw, max(depth - 1, 0)), whole(draw, max(depth - 1, 0))
    kinds = [
        lambda: IntTrueDiv(one, other),
        lambda: FloatTrueDiv(ToFloat(one), ToFloat(other)),
        lambda: ToFloat(one) * number,
        lambda: ToFloat(one) * number + other,
        lambda: FloatPow(ToFloat(abs(one)), sympy.Float(0.5)),
    ]
    return draw.choice(kinds)()


def condition(draw: random.Random, depth: int) -> sympy.Basic:
    kinds = [sympy.Eq, sympy.Ne, sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge]
    parts = [draw.choice(kinds)(whole(draw, depth), draw.choice([whole, fraction])(draw, depth)) for _ in range(2)]
    return draw.choice([sympy.And(*parts), sympy.Or(*parts), sympy.Not(parts[0])])


def expressions(seed: int) -> list[sympy.Basic]:
    """Random ones; torch's functions refuse some arguments when they are made, such as a divisor that is 0."""
    draw, found = random.Random(seed), []
    while len(found) < 100:
        try:
            made = draw.choice([whole, fraction, condition])(draw, 2)
        except ZeroDivisionError:
            continue
        if made.free_symbols:
            found.append(made)
    return found


@pytest.mark.parametrize("rounded", [None, *ROUNDINGS], ids=["float64", "float32", "more", "less"])
@pytest.mark.parametrize("seed", range(5))
def test_random_expressions(seed, rounded):
    computed = known = 0
    for expression in expressions(seed):
        try:
            found = many_sizes.values_at(expression, SYMBOLS, COLUMNS, rounded)
        except KeyError:
            continue
        one_by_one = compile_expression(expression, SYMBOLS, rounded)
        computed += 1
        for place, sizes in enumerate(PAIRS):
            if found.known[place]:
                known += 1
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    value = one_by_one(*sizes)
                assert (value is not None) == found.valid[place], (expression, sizes)
                if value is not None:
                    assert np.array_equal(found.numbers[place], value, equal_nan=True), (expression, sizes)
    assert computed >= 50
    assert known >= 0.6 * computed * len(PAIRS)


def test_what_python_does_not_compute_further_is_not_held_against_it():
    h, _ = SYMBOLS
    guarded = sympy.And(sympy.Gt(h, 2), sympy.Eq(FloorDiv(8, h - 2), 8), evaluate=False)
    found = many_sizes.values_at(guarded, [h], [np.array([1, 2, 3, 4])])
    one_by_one = [compile_expression(guarded, [h])(size) for size in (1, 2, 3, 4)]
    answers = zip(found.numbers.tolist(), found.valid.tolist(), strict=True)
    assert [number if is_valid else None for number, is_valid in answers] == one_by_one


def test_what_float64_does_not_hold_is_not_known():
    h, _ = SYMBOLS
    found = many_sizes.values_at(PowByNatural(h, sympy.Integer(7)), [h], [np.array([3, 1000])])
    assert (found.known.tolist(), found.numbers[0]) == ([True, False], 3**7)


def test_a_number_past_float64_is_not_known_to_have_no_whole_part():
    h, _ = SYMBOLS
    large = FloorToInt(PowByNatural(h, sympy.Integer(400)) * 1.0)
    found = many_sizes.values_at(Min(large, sympy.Integer(3)), [h], [np.array([1, 1000])])
    assert found.known.tolist() == [True, False]


def test_a_function_that_no_table_knows():
    h, _ = SYMBOLS
    with pytest.raises(KeyError):
        many_sizes.values_at(sympy.gamma(h), [h], [np.array([5])])
