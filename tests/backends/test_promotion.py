"""Integers computed with fractions, as positions and distances are."""

import pytest
import torch

from torch_onnx_compat.backends.promotion import Promotion
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import assert_same_outputs


def positions(x):
    """Numbers of columns, halved, shifted and turned, as positions and distances are made."""
    columns = torch.arange(x.shape[-1])
    return (
        *(columns * 0.5 + x, 0.5 * columns, columns - 0.5 + x, 0.5 - columns, (columns + 0.5) / x.shape[-1]),
        *(1.0 / (1 + columns), torch.add(columns, 1.5, alpha=2), columns / 2.0, (columns + 1).div(0.7).sum()),
        *(columns.unsqueeze(0).sub(0.25) * x, torch.mul(columns, 0.1).sin()),
    )


@pytest.mark.parametrize("dynamic", [None, "batch", {"x": {1: "columns"}}])
def test_integers_beside_fractions(dynamic, exporter):
    assert_same_outputs(positions, torch.randn(2, 5), exporter, dynamic=dynamic)


def test_fixed_sizes_need_it(monkeypatch):
    monkeypatch.setattr("torch_onnx_compat.backends.promotion.ARITHMETIC", frozenset())
    with pytest.raises(CompatError, match="float64"):
        assert_same_outputs(positions, torch.randn(2, 5), "torchscript", dynamic=None)


def test_a_number_of_python_stays_wide():
    """Of a size, ``n * 0.1`` is Python's."""
    assert not Promotion().concerns(torch.mul, (torch.tensor(3), 0.1), {})
