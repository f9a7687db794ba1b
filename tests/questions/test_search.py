"""The sizes on the other side of a question."""

import pytest
import sympy
from torch.utils._sympy.functions import FloorDiv, Mod

from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.search import Sides

h, w = sympy.symbols("h w", integer=True, positive=True)


def sides(expression, kind="condition", numbers=(), bounds=None, **sizes):
    sizes = {"h": 32, "w": 48, **sizes}
    return Sides(Question(kind, expression, None, "net.py:1", "", numbers), sizes, bounds or {})


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (sympy.Eq(h, 513), {"h": 513}),
        (sympy.Ne(FloorDiv(h, 16), 14), {"h": 224}),
        (h > 512, {"h": 513}),
        (FloorDiv(h, 16) * FloorDiv(w, 16) > 196, None),
        (sympy.Eq(Mod(h, 7), 0), {"h": 35}),
        (sympy.Eq(h, w), None),
        (h * w > 100_000, None),
        (sympy.Eq(3 * h + 2, 1001), {"h": 333}),
    ],
)
def test_the_other_side_is_found(expression, wanted):
    question = sides(expression)
    found = list(question.others())
    assert found
    assert all(question.is_other(sizes) for sizes in found)
    if wanted is not None:
        assert any(sizes == {"h": 32, "w": 48, **wanted} for sizes in found)


def test_sizes_stay_within_the_bounds():
    assert not list(sides(h > 512, bounds={"h": (1, 100)}).others())
    assert all(sizes["h"] >= 16 for sizes in sides(h > 20, bounds={"h": (16, None)}).others())


def test_the_nearest_comes_first():
    assert next(sides(h > 40).others())["h"] == 41


def test_what_has_one_answer_is_proven_and_has_no_other_side():
    question = sides(h + w > 1)
    assert question.is_proven
    assert not list(question.others())


def test_a_number_is_tried_where_the_code_names_one():
    assert {"h": 512, "w": 48} in list(sides(h, "hash", (512,)).named())
    assert {"h": 72, "w": 48} in list(sides(FloorDiv(h, 8), "number", (9,)).named())
    assert {"h": 65, "w": 48} in list(sides(h, "number", (64,)).named())


def test_a_number_in_the_code_that_is_no_int64():
    assert next(sides(sympy.Min(h, 2**63 - 1) > 40, h=32).others()) == {"h": 41, "w": 48}
    (found,) = (f for f in sides(h > 2**63 - 2, bounds={"h": (1, None)}).others() if f["h"] == 2**63 - 1)
    assert found["w"] == 48


@pytest.mark.parametrize(
    ("expression", "size", "axis"),
    [
        (sympy.Eq(h, 1), 1, "h"),
        (sympy.Ne(h, 1), 1, "h"),
        (sympy.Eq(3 * h + 2, 8), 2, "h"),
        (sympy.Eq(h, 1), 2, ""),
        (sympy.Ne(h, 1), 2, ""),
        (sympy.Eq(Mod(h, 7), 0), 14, ""),
        (sympy.Eq(FloorDiv(h, 4), 3), 12, ""),
        (sympy.Eq(h * h, 4 * h), 4, ""),
        (sympy.Eq(h, w), 48, ""),
        (h < 2, 1, ""),
    ],
)
def test_an_equation_leaves_one_size(expression, size, axis):
    assert sides(expression, h=size).fixed_axis == axis


@pytest.mark.parametrize(
    ("expression", "numbers"),
    [
        (Mod(h, 4), {1, 2, 3}),
        (Mod(h * w, 3), {1, 2}),
        (sympy.Min(h, 5), {1, 2, 3, 4}),
        (Mod(h, 4) - Mod(w, 2), {-1, 1, 2, 3}),
        (FloorDiv(h, 8), None),
        (Mod(h, 99), None),
        (Mod(h, w), None),
    ],
)
def test_each_of_few_numbers_is_found(expression, numbers):
    question = sides(expression, "number")
    found = question.each
    assert (found if found is None else set(found)) == numbers
    assert all(question.answer(sizes) == number for number, those in (found or {}).items() for sizes in those)


def test_a_bound_leaves_few_numbers():
    assert set(sides(FloorDiv(h, 100), "number", bounds={"h": (1, 399)}).each) == {1, 2, 3}


def test_a_power_of_too_many_digits_is_not_computed():
    """The ladder has the constant, and its own power of two would be a number of a million million digits."""
    found = list(sides(sympy.Eq(2**h, 2**40)).others())
    assert found
    assert all(sizes["h"] == 40 for sizes in found)
