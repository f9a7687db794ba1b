"""Operators that fail within a trace, where the model goes on: stock torch ends the process."""

import torch
from torch import nn

from torch_onnx_compat.testing import assert_same_outputs

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
