"""Generators: decisions about what is yielded stay as they are, and the error says so; others are rewritten."""

import pytest
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError

X = torch.linspace(-1, 2, 12).reshape(3, 4)


def over_rows(x):
    def scaled():
        for i in range(x.shape[0]):
            yield x[i] * i

    return torch.stack(list(scaled()))


def as_a_list(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * i)
    return torch.stack(rows)


def decided_inside(x):
    def scaled():
        for i in range(3):
            y = x[:, i]
            if y.sum() > 0:
                y = y * 2
            yield y

    return torch.stack(list(scaled()))


def test_a_loop_that_yields_is_refused_with_the_remedy(exporter):
    with pytest.raises(CompatError, match=r"it is a generator, which runs piece by piece; append the items to a list"):
        export_compat(over_rows, X, dynamic="batch", exporter=exporter)


def test_the_remedy_helps():
    result = export_compat(as_a_list, X, dynamic="batch", exporter="torchscript")
    for rows in (1, 3, 5):
        x = torch.rand(rows, 4)
        assert torch.allclose(result(x)[0], as_a_list(x))


def test_decisions_beside_what_is_yielded_are_rewritten(exporter):
    result = export_compat(decided_inside, X, dynamic="batch", exporter=exporter)
    for x in (torch.rand(5, 4), -torch.rand(1, 4), torch.randn(3, 4)):
        assert torch.allclose(result(x)[0], decided_inside(x))
