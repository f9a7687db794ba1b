"""What a reader is shown of a question."""

import sympy

from torch_onnx_compat.questions.question import Question


def test_a_long_formula_is_cut():
    height, width = sympy.symbols("h w", integer=True, positive=True)
    formula = sympy.Eq(sum((height // n) * (width // (n + 1)) for n in range(2, 9)), 1000)
    text = str(Question("condition", formula, False, "models/net.py:4"))
    assert text.startswith("models/net.py:4 asks whether Eq(")
    assert text.endswith("… (a formula of h, w)")
    assert len(text) < 160


def test_a_short_formula_is_whole():
    height = sympy.Symbol("h", integer=True, positive=True)
    assert str(Question("number", height // 2, 3, "net.py:4")) == "net.py:4 asks for floor(h/2) as a number"
