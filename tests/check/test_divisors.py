"""Python raises an error where a number of sizes is divided by 0, and a model may catch it."""

import pytest
import torch
from symbolic_runs import run

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import VerificationError


def floor_division(x):
    try:
        k = 12 // (x.shape[1] - 5)
    except ZeroDivisionError:
        k = 99
    return x * k


def remainder(x):
    try:
        k = x.shape[0] % (x.shape[1] - 5)
    except ZeroDivisionError:
        k = 99
    return x * k


def division(x):
    try:
        k = x.shape[0] / (x.shape[1] - 5)
    except ZeroDivisionError:
        k = 99
    return x * k


@pytest.mark.parametrize("model", [floor_division, remainder, division])
def test_a_divisor_of_zero_is_tried(model, exporter):
    with pytest.raises(VerificationError, match="n=5"):
        export_compat(model, (torch.randn(2, 9),), dynamic={"x": {0: "b", 1: "n"}}, exporter=exporter)


def test_a_divisor_that_is_never_zero_is_no_question(exporter):
    def model(x):
        return x * (x.shape[1] // x.shape[0]) + x.shape[1] % 4

    found = run(model, torch.randn(2, 9), {"x": {0: "b", 1: "n"}})
    assert not any("Eq(b, 0)" in str(question.expression) for question in found.questions)
    result = export_compat(model, (torch.randn(2, 9),), dynamic={"x": {0: "b", 1: "n"}}, exporter=exporter)
    for rows, columns in ((1, 1), (3, 10), (7, 5)):
        x = torch.randn(rows, columns)
        torch.testing.assert_close(result(x)[0], model(x))


def test_a_model_may_refuse_a_divisor_of_zero(exporter):
    def model(x):
        return x * (12 // (x.shape[1] // 4))

    result = export_compat(model, (torch.randn(2, 9),), dynamic={"x": {0: "b", 1: "n"}}, exporter=exporter)
    for columns in (4, 8, 40, 52):
        x = torch.randn(3, columns)
        torch.testing.assert_close(result(x)[0], model(x))
