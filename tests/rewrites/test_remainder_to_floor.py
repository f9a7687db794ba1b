import pytest
import torch
from torch import nn

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import Declined
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.targets import Target
from torch_onnx_compat.targets.target import Row
from torch_onnx_compat.testing import assert_same_outputs

WITHOUT_MOD = Target("without_mod", rows=(Row("Mod", "refused"),))
# Quotients are far enough from integers that rounding does not take them there.
FLOATS = torch.tensor([5.3, -5.3, 7.0, -7.0, 0.4, 6.0, 1e3, -3.5e3, 3.2, -0.9])
DIVISORS = torch.tensor([3.0, 3.0, 2.3, -2.0, 5.0, -4.0, 3.0, 11.0, 2.0, 0.7])
INTS = torch.tensor([5, -5, 7, -7, 0, 1, 6, 2**40 + 1, -(2**40) - 1, -16777217])
INT_DIVISORS = torch.tensor([3, 3, -2, 2, 5, -5, -3, 3, 7, 3])
EXAMPLE = (FLOATS, DIVISORS, INTS, INT_DIVISORS)


class Rest(nn.Module):
    def forward(self, f, g, i, j):
        pairs = [(f, g), (f.double(), g), (f, 3), (f, -2.5), (f[:4, None], g[:3]), (f, j)]
        pairs += [(i, j), (i.int().clamp(-99, 99), j), (i.clamp(0, 9).to(torch.uint8), 4), (i, 7), (i, -5)]
        return *(a % b for a, b in pairs), torch.remainder(7, f), torch.remainder(7, j)


def test_matches(exporter):
    result = assert_same_outputs(Rest(), EXAMPLE, exporter, target=WITHOUT_MOD, uses=("remainder_to_floor",))
    assert "Mod" not in result.nodes


def test_integers_are_exact(exporter):
    example = (torch.tensor([-(2**63), 2**63 - 1, -(2**62) - 1, 9]), torch.tensor([10, -10, 3, -(2**63)]))
    result = assert_same_outputs(lambda i, j: (i % j, i % 7), example, exporter, target=WITHOUT_MOD)
    assert "remainder_to_floor" in {note.entry for note in result.applied}


def test_is_not_applied_where_mod_works(exporter):
    result = assert_same_outputs(lambda i: i % 3, INTS, exporter, uses=("remainder",))
    assert set(result.nodes) - {"Constant"} == {"Mod"}


def test_number_before_the_operator(exporter):
    result = assert_same_outputs(lambda i: 7 % i, INT_DIVISORS, exporter, target=WITHOUT_MOD)
    assert "Mod" not in result.nodes


def test_declines_out():
    with pytest.raises(Declined, match="out must be None, got a tensor"):
        catalogue()["remainder_to_floor"].body(FLOATS, 3, out=FLOATS.clone())


def test_sentinel(exporter):
    @rewrite(torch.remainder, name="remainder_to_floor", avoids=("Mod",), registry=None)
    def broken(input, other):
        return torch.fmod(input, other)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda i: i % 3, INTS, exporter, rewrites=[broken], include=["remainder_to_floor"])


def test_still_needed(exporter):
    stock = assert_same_outputs(lambda i: i % 3, INTS, exporter, exclude=["remainder", "remainder_to_floor"])
    assert stock.nodes["Mod"] == 1
