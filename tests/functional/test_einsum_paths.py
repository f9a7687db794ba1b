"""The order in which an einsum is summed is chosen from the example's sizes, and is no decision on them."""

import sys
import types

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.functional.einsum_paths import choose_by_example


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
    assert all(axis.proven for axis in result.axes)


class Cached(nn.Module):
    """Weights of Fourier modes, summed as tensorly has it done: an expression is made for the shapes, then called."""

    def __init__(self, equation, *shapes):
        super().__init__()
        self.equation = equation
        self.weights = nn.ParameterList(torch.randn(*shape, dtype=torch.cfloat) for shape in shapes)

    def forward(self, x):
        import opt_einsum

        spectrum = torch.fft.rfft(x)
        operands = [spectrum, *self.weights]
        expression = opt_einsum.contract_expression(self.equation, *[tuple(o.shape) for o in operands])
        return torch.view_as_real(expression(*operands)), opt_einsum.contract(self.equation, *operands).abs()


EQUATIONS = {
    "abc,bdc->adc": ((3, 4, 5),),
    "abc,bd->adc": ((3, 4),),
    "abc,be,edc->adc": ((3, 2), (2, 4, 5)),
    "abc,bd,ce->ade": ((3, 4), (5, 2)),
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_what_models_ask_of_the_library(equation, exporter):
    """The library tells by an array's class what computes with it, and took pairs for arrays of NumPy."""
    pytest.importorskip("opt_einsum")
    model = Cached(equation, *EQUATIONS[equation])
    result = export_compat(model, torch.randn(2, 3, 8), dynamic="batch", exporter=exporter)
    assert result.axes[0].proven


def test_pairs_are_computed_with_by_torch(monkeypatch):
    package, own = types.ModuleType("opt_einsum"), types.ModuleType("opt_einsum.contract")
    package.contract_path = own.contract_path = lambda subscripts, *operands, **options: (operands, options)
    own.infer_backend = plain = lambda operand: type(operand).__module__.partition(".")[0]
    monkeypatch.setitem(sys.modules, "opt_einsum", package)
    monkeypatch.setitem(sys.modules, "opt_einsum.contract", own)
    pair = Pair.of(torch.ones(2, 3, dtype=torch.cfloat))
    with choose_by_example():
        assert [own.infer_backend(operand) for operand in (pair, pair.real, 3)] == ["torch", "torch", "builtins"]
        operands, steps = own.contract_path("ab->ba", pair, einsum_call=True)
        assert (operands[0] is pair, steps) == (True, {"einsum_call": True, "shapes": True})
    assert (own.infer_backend, own.contract_path) == (plain, package.contract_path)
