"""Only a number that changes nothing is left out: an epsilon that keeps a divisor from being 0 stays."""

import pytest
import torch
from torch import nn

from torch_onnx_compat.testing import assert_same_outputs


class Plus(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def forward(self, x):
        return 1 / (x.abs() + self.number)


class Times(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def forward(self, x):
        return (x * self.number - x) * 1e6


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("number", [1e-12, 1e-9, 1e-8])
def test_an_epsilon_stays(number, exporter):
    x = torch.tensor([0.0, 1e-12, 2.0])
    result = assert_same_outputs(Plus(number), x, exporter)
    (found,) = result.session().run(None, {"x": x.numpy()})
    assert found[0] == pytest.approx(1 / number, rel=1e-3)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_factor_near_one_stays(exporter):
    result = assert_same_outputs(Times(1.000001), torch.tensor([1.0, 3.0, 70.0]), exporter)
    assert result.nodes["Mul"] == 2


def test_what_changes_nothing_goes():
    class Nothing(nn.Module):
        def forward(self, x):
            return ((x + 0.0) * 1.0 - 0.0).relu()

    assert set(assert_same_outputs(Nothing(), torch.randn(3), "dynamo").nodes) == {"Relu"}
