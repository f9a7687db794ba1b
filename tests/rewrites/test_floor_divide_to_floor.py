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


class Floor(nn.Module):
    def forward(self, f, g, i):
        pairs = [(f, g), (f.double(), g), (f, 3), (f, -2.5), (f[:4, None], g[:3]), (f, i), (i, 2.3)]
        return *(a // b for a, b in pairs), torch.floor_divide(7, f), f.floor_divide(2.5)


def test_matches(exporter):
    example = (FLOATS, DIVISORS, torch.arange(1, 11))
    result = assert_same_outputs(Floor(), example, exporter, target=WITHOUT_MOD, uses=("floor_divide_to_floor",))
    assert "Mod" not in result.nodes


def test_is_not_applied_where_mod_works(exporter):
    result = assert_same_outputs(lambda f: f // 3, FLOATS, exporter, uses=("floor_divide",))
    assert result.nodes["Mod"] == 1


def test_declines_integers(exporter):
    integers = torch.tensor([-7, -(2**63), 7])
    result = assert_same_outputs(lambda i: i // 3, integers, exporter, target=WITHOUT_MOD, uses=("floor_divide",))
    assert [note.reason for note in result.declined] == ["integers are divided without Mod anyway"]
    assert "Mod" not in result.nodes


def test_declines_out():
    with pytest.raises(Declined, match="out must be None, got a tensor"):
        catalogue()["floor_divide_to_floor"].body(FLOATS, 3, out=FLOATS.clone())


def test_sentinel(exporter):
    @rewrite(torch.Tensor.__floordiv__, name="floor_divide_to_floor", avoids=("Mod",), registry=None)
    def broken(input, other):
        return torch.ceil(torch.div(input, other))

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda f: f // 3, FLOATS, exporter, rewrites=[broken], include=["floor_divide_to_floor"])


def test_number_before_the_operator_is_left_to_the_graph_rules(exporter):
    result = assert_same_outputs(lambda f: 7 // f, DIVISORS, exporter, target=WITHOUT_MOD)
    assert "Mod" not in result.nodes


def test_graph_rules_take_over_without_it(exporter):
    result = assert_same_outputs(
        lambda f: f // 3, FLOATS, exporter, target=WITHOUT_MOD, exclude=["floor_divide_to_floor"]
    )
    assert "Mod" not in result.nodes
