"""Tensors that methods of others make of sizes have the others' element type."""

import pytest
import torch

from torch_onnx_compat.testing import assert_same_outputs

X = torch.randn(2, 4)


def one(x):
    return x.new_tensor(x.shape[1])


def shape(x):
    return x.new_tensor(x.shape), x.new_tensor(data=list(x.shape)) / 3


def nested(x):
    rows, columns = x.shape
    return x.new_tensor([[rows, columns], [1, 2.5]]), x.new_tensor([rows, columns], dtype=torch.int64)


def halves(x):
    return x.half().new_tensor(x.shape) / 3, x.int().new_tensor([x.shape[0] / 2])


def after_a_decision(x):
    sizes = x.new_tensor(x.shape)
    return sizes / 3 if x.shape[1] > 5 else sizes


def full(x):
    rows, columns = x.shape
    return torch.full((rows,), columns), torch.full((2,), columns > 5), torch.full((2,), columns / 2)


@pytest.mark.parametrize("function", [one, shape, nested, halves, after_a_decision, full], ids=lambda f: f.__name__)
def test_tensors_of_sizes(function, exporter):
    dynamic = {"x": {0: "rows", 1: "columns"}}
    assert_same_outputs(function, X, exporter, dynamic=dynamic, samples=[(torch.randn(3, 7),), (torch.randn(1, 9),)])
