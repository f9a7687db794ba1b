"""Questions whether the smallest of several sizes is divisible, which sympy takes for answered."""

import numpy as np
import pytest
import sympy
import torch
from torch import nn

from torch_onnx_compat import export_compat

QUESTIONS = {
    "remainder": lambda h: min(24, 14 * h) % 14 == 0,
    "of a product": lambda h: (min(24, 14 * h) * h) % 14 == 0,
    "of a negative": lambda h: -min(24, 14 * h) % 14 == 0,
    "quotient": lambda h: min(24, 14 * h) // 14 * 14 == min(24, 14 * h),
    "largest": lambda h: max(24, 10 * h) % 20 == 0,
}


class Divides(nn.Module):
    """What hangs on the answer shows at few values only."""

    def __init__(self, question):
        super().__init__()
        self.question = question

    def forward(self, x):
        return torch.where(x > 100, 0.0, x) if self.question(x.shape[0]) else x + 0


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_an_even_size_is_not_taken_for_divisible(question, exporter):
    model = Divides(question)
    result = export_compat(model, torch.randn(5, 40), dynamic={"x": {0: "rows"}}, exporter=exporter)
    for rows in (1, 2, 3, 4, 7, 14):
        x = torch.full((rows, 40), 200.0)
        (found,) = result.session().run(None, {"x": x.numpy()})
        np.testing.assert_array_equal(found, model(x).numpy())


def test_sympy_is_as_it_was():
    before = sympy.Mul._prop_handler["integer"]
    export_compat(Divides(QUESTIONS["remainder"]), torch.randn(5, 40), dynamic={"x": {0: "rows"}}, exporter="dynamo")
    assert sympy.Mul._prop_handler["integer"] is before
