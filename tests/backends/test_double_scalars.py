"""Float64 tensors of shape () through TorchScript, whose exporter takes them for Python's floats."""

import pytest
import torch
from torch.nn import functional

from torch_onnx_compat import export_compat
from torch_onnx_compat.backends import internals

NUMBER = torch.tensor(71.23456789012345, dtype=torch.float64)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + x,
        lambda x: x * 2 + 1,
        lambda x: x * x - x / 3,
        lambda x: torch.where(x > 0.1, x, x * 2),
        lambda x: x // (x + 1.5),
        lambda x: torch.div(x, x + 1.5, rounding_mode="trunc"),
        lambda x: functional.celu(x - 72),
        lambda x: x.expand(4).mean() * 0.1 + x,
        lambda x: torch.where(x > 71.23456789012344, x, -x),
    ],
)
def test_what_is_computed_of_them_is_float64(function):
    result = export_compat(function, (NUMBER,), exporter="torchscript")
    assert result.table


def test_beside_other_types():
    def model(x, narrow, row):
        return x + narrow, x * row, narrow * 2.5, (narrow * 0.1 + x) * 0.1

    example = (NUMBER, torch.tensor(0.3), torch.rand(3))
    assert export_compat(model, example, exporter="torchscript").table


def test_the_passes_are_torch_s_own_again():
    names = ("_jit_pass_onnx_node_shape_type_inference", "_jit_pass_onnx_scalar_type_analysis")
    before = [getattr(torch._C, name) for name in names]
    with internals.keep_double_scalars():
        assert not any(getattr(torch._C, n) is f for n, f in zip(names, before, strict=True))
    assert [getattr(torch._C, name) for name in names] == before
    with pytest.raises(KeyboardInterrupt), internals.keep_double_scalars():
        raise KeyboardInterrupt
    assert [getattr(torch._C, name) for name in names] == before
