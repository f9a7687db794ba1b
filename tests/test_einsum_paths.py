"""The order in which an einsum is summed is chosen from the example's sizes, and is no decision on them."""

import sys
import types

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.einsum_paths import choose_by_example


@pytest.fixture
def library(monkeypatch):
    """opt_einsum, which may not be installed."""
    made = types.ModuleType("opt_einsum")
    made.contract_path = lambda subscripts, *operands, **options: (subscripts, operands, options)
    monkeypatch.setitem(sys.modules, "opt_einsum", made)
    return made


def test_it_gets_numbers(library):
    plain = library.contract_path
    with choose_by_example():
        found = library.contract_path("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 4), optimize="auto")
    assert found == ("ij,jk->ik", ((2, 3), (3, 4)), {"optimize": "auto", "shapes": True})
    assert library.contract_path is plain


@pytest.mark.filterwarnings("ignore")
def test_it_gets_numbers_in_a_trace(library):
    sizes = []

    def function(x):
        sizes.extend(library.contract_path("ij->i", x)[1])
        return x * 2

    with choose_by_example():
        torch.jit.trace(function, torch.ones(2, 3), check_trace=False)
    assert sizes == [(2, 3)]
    assert type(sizes[0][0]) is int


def test_calls_with_shapes_are_left_alone(library):
    with choose_by_example():
        assert library.contract_path("ij->i", (2, 3), shapes=True) == ("ij->i", ((2, 3),), {"shapes": True})


class ThreeFactors(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 6))

    def forward(self, x, y):
        return torch.einsum("bij,bkj,jl->bikl", x, y, self.weight)


def test_a_product_of_three(exporter):
    """With opt_einsum installed, this was refused."""
    pytest.importorskip("opt_einsum")
    axes = {"x": {0: "batch", 1: "n"}, "y": {0: "batch", 1: "m"}}
    result = export_compat(
        ThreeFactors(), (torch.randn(3, 4, 5), torch.randn(3, 7, 5)), dynamic=axes, exporter=exporter
    )
    assert all(text.startswith("proven") for text in map(str, result.axes.values()))
