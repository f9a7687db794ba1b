import pytest
import torch
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

INF, NAN = float("inf"), float("nan")
FLOATS = torch.tensor([5.3, -5.3, 7.0, -7.0, 0.0, 6.0, 1e10, -3.5e9, INF, NAN, 3.0, 0.9, 1.0, -1e-30, 4.0, -9.0])
DIVISORS = torch.tensor([3.0, 3.0, 0.1, -2.0, 5.0, -3.0, 3.0, 7.0, 2.0, 3.0, 1e9, 0.1, -0.1, 5.0, 0.0, -0.3])
INTS = torch.tensor([5, -5, 7, -7, 0, 1, 6, 2**40 + 1, -(2**40) - 1, 16777217, -16777217, 33, 3, -3, 1, -999])
INT_DIVISORS = torch.tensor([3, 3, -2, 2, 5, -5, -3, 3, 7, 2, 3, 1, -7, 2, 1000, 100])
EXAMPLE = (FLOATS, DIVISORS, INTS, INT_DIVISORS)


class Rounded(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def forward(self, f, g, i, j):
        short, byte = i.clamp(-99, 99).int(), i.clamp(0, 99).to(torch.uint8)
        pairs = [(f, g), (f.double(), g), (f, 3), (f, -2.5), (f.double(), 0.1), (f[:4, None], g[:3]), (f, j), (f, 0)]
        pairs += [(i, g), (i, j), (short, j.int()), (short, j), (byte, 3), (byte, j), (i, 7), (i, -5), (i[3], j[3])]
        pairs += [(7, j), (7, j.int()), (7, f), (i, 2.5)]
        results = [torch.div(a, b, rounding_mode=self.mode) for a, b in pairs]
        return *results, i.div(j, rounding_mode=self.mode), torch.divide(f, g, rounding_mode=self.mode)


@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_matches(exporter, mode):
    assert_same_outputs(Rounded(mode), EXAMPLE, exporter, uses=("div_rounding_mode",))


def test_matches_at_low_opset():
    assert_same_outputs(Rounded("trunc"), EXAMPLE, "torchscript", opset=13, uses=("div_rounding_mode",))


def test_plain_division_is_left_alone(exporter):
    result = assert_same_outputs(lambda f, g: f / g, (FLOATS, DIVISORS), exporter)
    assert not result.declined
    assert set(result.nodes) == {"Div"}


def test_declines_out():
    body = catalogue()["div_rounding_mode"].body
    with pytest.raises(Declined, match="out must be None, got a tensor"):
        body(FLOATS, 3, rounding_mode="floor", out=FLOATS.clone())


def test_sentinel(exporter):
    @rewrite(torch.div, name="div_rounding_mode", needed_on=EXPORTERS, registry=None)
    def broken(input, other, *, rounding_mode=None):
        return torch.floor(torch.div(input, other))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(
            lambda f: torch.div(f, 3, rounding_mode="trunc"), torch.tensor([-7.0]), exporter, rewrites=[broken]
        )


STILL_NEEDED = {
    "torchscript": lambda f, i: torch.div(f, 0.5, rounding_mode="trunc"),
    "dynamo": lambda f, i: torch.div(i, 3, rounding_mode="trunc"),
}


def test_still_needed(exporter):
    with pytest.raises(CompatError, match="does not compute what the model computes"):
        assert_same_outputs(
            STILL_NEEDED[exporter], (torch.tensor([1e30]), INTS), exporter, exclude=["div_rounding_mode"]
        )
