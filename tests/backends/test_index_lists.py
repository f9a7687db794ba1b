"""Lists with tensors in an index."""

import pytest
import torch

from torch_onnx_compat.testing import assert_same_outputs

X = torch.randn(4, 3)


def columns(x):
    return x[:, [x[0].argmax(), x[1].argmax()]]


def nested_lists(x):
    return x[:, [[x[0].argmax(), 0], [1, x[1].argmax()]]]


def with_slices_and_numbers(x):
    return x[None, 1:, [x[0].argmax(), 0]]


def written_columns(x):
    y = x.clone()
    y[:, [x[0].argmin(), x[0].argmax()]] = 5.0
    return y


def with_a_size(x):
    return x[:, [x[0].argmax(), x.shape[1] - 1]]


def of_another_view(x):
    y = x.clone()
    y[1:][:, [x[0].argmax()]] += 2
    return y.view(-1), y


FUNCTIONS = [columns, nested_lists, with_slices_and_numbers, written_columns, with_a_size, of_another_view]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_numbers_in_lists_are_not_frozen(function, exporter):
    samples = [(torch.randn(4, 3),) for _ in range(4)]
    assert_same_outputs(function, X, exporter, samples=samples)
    assert_same_outputs(function, X, exporter, dynamic={"x": {0: "rows", 1: "columns"}}, samples=[(torch.randn(7, 5),)])


def by_asarray(x):
    return torch.asarray([x.sum(), x.mean(), 2.0]) * x[0]


def by_new_tensor(x):
    return x.new_tensor([[x.sum(), x.mean(), 2.0]]) * x


@pytest.mark.parametrize("function", [by_asarray, by_new_tensor], ids=lambda function: function.__name__)
def test_tensors_of_values(function, exporter):
    assert_same_outputs(function, X, exporter, samples=[(torch.randn(4, 3),)])
