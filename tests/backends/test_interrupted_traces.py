"""Operators that fail within a trace, where the model goes on: stock torch ends the process."""

import pytest
import torch
from torch import nn

from torch_onnx_compat.testing import assert_same_outputs
from torch_onnx_compat.tracing import current_trace, resume

X = torch.randn(2, 3)


def forgiving(x):
    try:
        y = x.reshape(7, 13)
    except RuntimeError:
        y = x + 1
    z = y * 2
    try:
        z.add_(torch.ones(77))
    except RuntimeError:
        z = z - x
    return z


class Inner(nn.Module):
    def forward(self, x):
        return forgiving(x)


def test_a_model_may_catch_an_operators_error():
    result = assert_same_outputs(forgiving, X, "torchscript", dynamic={"x": {0: "batch"}})
    assert set(result.nodes) - {"Constant"} == {"Add", "Mul", "Sub"}


def test_within_modules_too():
    assert_same_outputs(nn.Sequential(Inner(), nn.ReLU(), Inner()), X, "torchscript")


def rounded(x):
    start = round((x.shape[-1] - 4) / 2)
    return x[:, start : start + 4]


def test_sizes_may_be_rounded_as_in_eager_torch():
    example = torch.randn(2, 9)
    assert_same_outputs(rounded, example, "torchscript", dynamic={"x": {0: "batch"}})
    assert not hasattr(torch.Tensor, "__round__")


def test_varying_sizes_may_be_rounded():
    assert_same_outputs(
        rounded, torch.randn(2, 9), "torchscript", dynamic={"x": {1: "width"}}, samples=[(torch.randn(2, 14),)]
    )


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace")
def test_an_index_that_does_not_fit_is_not_left_to_the_next_operator():
    """torch keeps a computed index aside until an operator takes it, also one that failed before its operator ran."""

    def forward(x):
        trace = current_trace()
        try:
            return torch.zeros(0)[x.shape[0] // 2]
        except IndexError:
            resume(trace)
        return x[1] + 1

    x = torch.arange(12.0).reshape(4, 3)
    traced = torch.jit.trace(forward, (torch.rand(6, 3),), check_trace=False)
    torch.testing.assert_close(traced(x), x[1] + 1)
