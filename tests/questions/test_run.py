"""A run without values and numbers sees every question about a size, whoever asks it."""

import functools
import itertools

import numpy as np
import pytest
import sympy
import torch
import torch.nn.functional as F
from symbolic_runs import DYNAMIC, run
from torch import nn

from torch_onnx_compat.backends.internals import expressions, number_kinds, number_watchers, symbolic
from torch_onnx_compat.backends.internals.quotients import quick_quotients
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import export_conditions, prepare
from torch_onnx_compat.questions.run import run_symbolically


def asked(function, **options):
    """Kind and expression of what Python asks; the run has to come to its end."""
    found = run(function, **options)
    assert not found.obstacle
    return {(q.kind, str(q.expression)) for q in found.questions if not q.operator}


def compares(x):
    return x * 2 if x.shape[2] == 513 else x


def compares_tuples(x):
    return x * 2 if x.shape[2:] == (32, 224) else x


def looks_among(x):
    return x * 2 if x.shape[2] in (513, 31) else x


def looks_up(x):
    return x * {512: 2.0}.get(x.shape[3], 1.0)


def writes_a_text(x):
    return x * 2 if f"{x.shape[2]}" == "513" else x


def asks_for_its_type(x):
    return x * 2 if isinstance(x.shape[2], int) and x.shape[2] > 512 else x


def asks_numpy(x):
    return x * 2 if np.prod(x.shape[2:]) > 4000 else x


def asks_for_bytes(x):
    return x * 2 if x.nbytes > 30000 else x


def counts_rows(x):
    for _ in range(x.shape[2]):
        x = x + 1
    return x


def has_no_rows_yet(x):
    for _ in torch.zeros(x.shape[2] // 64):
        x = x + 1
    return x


def lists_nothing_yet(x):
    return x * 2 if torch.arange(x.shape[2] // 64).tolist() else x


def strides(x):
    return x * 2 if F.max_pool2d(x, 16).shape[2] != 4 else x


@pytest.mark.parametrize(
    ("function", "question"),
    [
        (compares, ("condition", "Eq(height, 513)")),
        (compares_tuples, ("condition", "Eq(width, 224)")),
        (looks_among, ("condition", "Eq(height, 31)")),
        (looks_up, ("condition", "Eq(width, 512)")),
        (writes_a_text, ("text", "height")),
        (asks_for_its_type, ("condition", "height > 512")),
        (asks_numpy, ("condition", "height*width > 4000")),
        (asks_for_bytes, ("condition", "12*batch*height*width > 30000")),
        (counts_rows, ("number", "height")),
        (strides, ("condition", "Ne((height//16), 4)")),
    ],
)
def test_what_python_asks_is_seen(function, question):
    assert question in asked(function)


def test_a_convolution_asks_nothing_of_python():
    assert not asked(nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()))


def test_the_number_of_parts_is_asked_by_the_operator():
    found = run(lambda x: x * 2 if len(x.split(8, 2)) > 9 else x)
    assert any(q.kind == "number" and "split" in q.operator for q in found.questions)


@pytest.mark.parametrize("function", [has_no_rows_yet, lists_nothing_yet])
def test_the_number_of_parts_is_asked_though_there_is_none(function):
    assert ("number", "(height//64)") in {(q.kind, str(q.expression)) for q in run(function).questions}


def test_an_answer_is_forgotten():
    """After `height == 32` torch's own environment would take the height for 32 and ask no more."""

    def nested(x):
        if x.shape[2] == 32:
            x = x + 1
        return x * 2 if x.shape[2] > 300 else x

    assert {("condition", "Eq(height, 32)"), ("condition", "height > 300")} <= asked(nested)


def test_values_and_what_depends_on_no_input_are_no_questions():
    def on_values(x):
        table = torch.arange(6).float()
        if table.sum() > 3 and x.max() > 100:
            return x * table.max().item()
        return x + x[x > 0].shape[0]

    found = run(on_values)
    assert not found.obstacle
    assert not [q for q in found.questions if not q.operator]
    assert found.asks_values


def test_the_place_is_the_models_own_statement():
    (question,) = [q for q in run(compares).questions if not q.operator]
    assert question.place == f"questions/test_run.py:{compares.__code__.co_firstlineno + 1}"
    assert str(question) == f"{question.place} asks whether Eq(height, 513)"


def test_numbers_around_a_key_are_noted():
    def looks_up_somehow(x):
        return x * 2 if len({512, x.shape[3]}) == 1 else x

    (question,) = [q for q in run(looks_up_somehow).questions if q.kind == "hash"]
    assert 512 in question.numbers


def test_axes_of_one_name_are_one_symbol():
    class Two(nn.Module):
        def forward(self, x, y):
            return x * 2 if x.shape[0] == y.shape[0] else y

    with export_conditions():
        dynamic = {"x": {0: "n"}, "y": {0: "n"}}
        observation = Observation(prepare(Two(), (torch.randn(3, 2), torch.randn(3, 2)), dynamic=dynamic))
        found = run_symbolically(observation, observation.trace_inputs()).questions
        assert not [q for q in found if not q.operator]


def test_an_error_of_the_model_stops_the_run_and_is_told():
    found = run(lambda x: x.reshape(7, 11))
    assert found.obstacle


# What torch keeps private


def test_sizes_read_as_before_after_a_run():
    kinds, names = (torch.SymInt, torch.SymFloat, torch.SymBool), ("__hash__", "__str__", "__repr__", "__format__")
    before = {(kind, name): getattr(kind, name) for kind in kinds for name in names}
    plain = isinstance
    run(looks_up)
    assert {(kind, name): getattr(kind, name) for kind, name in before} == before
    assert isinstance is plain


def test_what_is_told_within_another_scope_is_its_own():
    """A run without numbers may be made while a model is captured."""
    symbols = symbolic.Symbols(lambda expression, answer: answer)
    size = symbols.fake(torch.zeros(5), {0})[0].shape[0]
    with number_kinds.told_as_numbers([__name__], lambda value: float):
        assert isinstance(size, float)
        with number_kinds.told_as_numbers([__name__]):
            assert isinstance(size, int)
            assert type(size) is int
        assert type(size) is float
    assert not {"isinstance", "type"} & set(globals())


def test_they_do_after_an_interrupt_too():
    before = torch.SymInt.__repr__
    plain = isinstance
    watched = number_watchers.watch_numbers(symbolic.Symbols(lambda expression, answer: answer), lambda what, of: None)
    with pytest.raises(KeyboardInterrupt), watched, number_kinds.told_as_numbers([__name__]):
        raise KeyboardInterrupt
    assert torch.SymInt.__repr__ is before
    assert isinstance is plain
    assert not {"isinstance", "type"} & set(globals())
    assert "__getattribute__" not in vars(torch.SymInt)


def test_expressions_become_functions():
    import sympy

    h, w = sympy.symbols("h w", integer=True, positive=True)
    from torch.utils._sympy.functions import CeilToInt, FloorDiv, IntTrueDiv, Mod

    written = {
        FloorDiv(h, 16) * w: lambda a, b: a // 16 * b,
        sympy.Ne(Mod(h, 7), 0): lambda a, b: a % 7 != 0,
        sympy.Max(h, w) - 1: lambda a, b: max(a, b) - 1,
        (h > 4) & (w <= 9): lambda a, b: a > 4 and b <= 9,
        CeilToInt(IntTrueDiv(h, 3)): lambda a, b: -(-a // 3),
    }
    for expression, plain in written.items():
        function = expressions.compile_expression(expression, [h, w])
        for a, b in itertools.product(range(1, 20, 3), repeat=2):
            assert function(a, b) == plain(a, b), expression


def test_what_no_table_knows_is_computed_by_sympy():
    import sympy

    h = sympy.Symbol("h", integer=True, positive=True)
    assert expressions.compile_expression(sympy.gamma(h), [h])(5) == 24


def test_an_expression_without_a_value_is_none():
    import sympy
    from torch.utils._sympy.functions import FloorDiv

    h = sympy.Symbol("h", integer=True, positive=True)
    assert expressions.compile_expression(FloorDiv(8, h - 2), [h])(2) is None


@pytest.mark.parametrize(
    ("text", "proven"), [("h >= 1", True), ("h + 2 > 2", True), ("h > 1", False), ("Ne(h, 5)", False)]
)
def test_what_holds_for_a_whole_range_is_proven(text, proven):
    import sympy

    h = sympy.Symbol("h", integer=True, positive=True)
    expression = sympy.sympify(text, {"h": h}, evaluate=False)
    assert expressions.has_one_value(expression, {h: (1, None)}) is proven


def test_a_function_is_a_model_too():
    with export_conditions():
        observation = Observation(prepare(asks_for_its_type, (torch.randn(3, 3, 32, 48),), dynamic=DYNAMIC))
        found = run_symbolically(observation, observation.trace_inputs())
    assert not found.obstacle
    assert "height > 512" in {str(q.expression) for q in found.questions}


SELECTIONS = {
    "mask": lambda x: x[x > 0],
    "places": lambda x: torch.where(x > 0)[0],
    "nonzero": lambda x: x.nonzero(),
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": lambda x: x.round().unique(),
    "joined": lambda x: torch.cat([x[x > 0], x.flatten()]),
    "pooled": lambda x: F.max_pool1d(x[x > 0][None], 2)[0],
    "repeated": lambda x: x.flatten().repeat_interleave((x.flatten() > 0).long()),
}


@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("dynamic", [None, DYNAMIC], ids=["static", "dynamic"])
def test_sizes_that_values_decide(name, dynamic):
    """A decision on the size of a selection is found, and one on the size of its source beside it is none."""
    select = SELECTIONS[name]

    def decides(x):
        kept = select(x)
        if x.dim() == 4 and kept.shape[0] > 7:
            return x * 2
        return x

    def does_not(x):
        kept = select(x)
        return x * kept.sum() if x.shape[0] > 2 else x

    def asks_for_emptiness(x):
        return x * 2 if select(x).shape[0] == 0 else x

    assert run(asks_for_emptiness, dynamic=dynamic).value_places
    found = run(decides, dynamic=dynamic)
    assert not found.obstacle
    assert f"questions/test_run.py:{decides.__code__.co_firstlineno + 2}" in found.value_places
    lines = range(does_not.__code__.co_firstlineno, does_not.__code__.co_firstlineno + 3)
    assert not {f"questions/test_run.py:{line}" for line in lines} & run(does_not, dynamic=dynamic).value_places


def test_texts_of_messages_are_no_questions():
    def complains(x):
        torch._assert(x.dim() == 4, f"got {x.shape}")
        if x.dim() != 4:
            raise ValueError(f"got {x.shape}")
        return nn.MultiheadAttention(48, 2).eval()(x[0], x[0], x[0])[0]

    def looks_at_the_text(x):
        text = f"{x.shape[0]}"
        return x * 2 if text == "7" else x

    assert not {kind for kind, _ in asked(complains)} & {"text", "hash"}
    assert ("text", "batch") in asked(looks_at_the_text)


def test_an_operator_that_makes_a_number_of_a_size_is_run_in_its_python_form():
    """Padding by nothing asks in C++ for every size; what comes after it would have none that varies."""

    def pads(x):
        y = F.pad(x, (0, 0, 0, 0, 0, 0))
        return y * 2 if y.shape[0] > 7 else y

    found = run(pads)
    assert not [q for q in found.questions if q.kind == "number"]
    assert "batch > 7" in [str(q.expression) for q in found.questions]


def test_a_batch_norm_asks_for_a_device_and_not_for_values():
    found = run(nn.BatchNorm2d(3).eval())
    assert found.is_complete


@functools.lru_cache(8)
def whole_parts(total, size):
    return (total // size) * size if total != 513 else total


def slices_by_a_cache(x):
    return x[:, :, : whole_parts(x.shape[2], 4)]


def test_a_look_up_in_a_cache_is_no_question_but_the_cached_function_asks():
    assert asked(slices_by_a_cache) == {("condition", "Ne(height, 513)")}


def asks_for_a_window(x):
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // 2, 2, w // 2, 2)
    return y * 2 if y.shape[5] == 2 else y


def test_a_shape_that_was_asked_for_is_the_shape():
    """torch computes a part of it, `width // (width // 2)`; windows of windows had sizes of hundreds of terms."""
    found = run(asks_for_a_window)
    assert found.is_complete
    assert not [question for question in found.questions if not question.operator]


def test_a_quotient_is_the_same_number_without_the_search_for_its_shortest_form():
    from torch.utils._sympy import functions

    def quotient(names):
        a, b = sympy.symbols(names, integer=True, positive=True)  # sympy remembers what it made of the same symbols
        made = functions.FloorDiv(6 * a * b + 4 * a * functions.FloorDiv(b, 3), 10 * a * b)
        return [made.subs({a: one, b: other}) for one, other in ((3, 7), (1, 1), (8, 100))]

    slow = quotient("a b")
    with quick_quotients():
        assert functions.sympy is not sympy
        assert quotient("c d") == slow
    assert functions.sympy is sympy


def test_a_product_of_many_sums_is_not_multiplied_out():
    """Sizes of padded windows: sympy took minutes to find that they have no common factor."""
    from torch.utils._sympy import functions

    names = sympy.symbols("p q r s t u v w", integer=True, positive=True)
    sums = (one + functions.Mod(one, 8) + other for one, other in itertools.pairwise(names))
    product = sympy.prod(sums)
    with quick_quotients():
        quotient = functions.FloorDiv(product, names[0] + names[1])
        assert functions.sympy.gcd(product, names[0] + names[1]) == 1
        assert functions.sympy.gcd(names[0] ** 2 - names[1] ** 2, names[0] + names[1]) == names[0] + names[1]
    sizes = dict(zip(names, range(3, 11), strict=True))
    assert quotient.subs(sizes) == product.subs(sizes) // 7
