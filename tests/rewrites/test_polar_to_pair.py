import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.testing import assert_same_outputs

NAME = "polar_to_pair"
X = torch.randn(2, 3, 4)
DYNAMIC = {"x": {0: "batch", 1: "length"}}


def model(x):
    z = torch.polar(x.abs() + 1, x * 3)
    return z.real, z.imag, torch.view_as_real(z * z), torch.polar(torch.ones_like(x), x).abs()


def test_matches(exporter):
    assert_same_outputs(model, X, exporter, dynamic=DYNAMIC, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(lambda x: torch.polar(x.exp(), x).imag, X, exporter, uses=(NAME,))
    assert result.nodes["Sin"] == 1
    assert "Concat" not in result.nodes


def test_sines_are_left_alone(exporter):
    result = assert_same_outputs(lambda x: x.cos() * x.sin(), X, exporter)
    assert NAME not in {note.entry for note in result.applied}


def test_declines_out():
    with pytest.raises(Declined, match="out must be None, got a tensor"):
        catalogue()[NAME].body(X, X, out=torch.complex(X, X))


def test_sentinel(exporter):
    @rewrite(torch.polar, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(abs, angle):
        return Pair(abs * angle.sin(), abs * angle.cos())

    with pytest.raises(VerificationError):
        assert_same_outputs(model, X, exporter, rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError):
        assert_same_outputs(model, X, "torchscript", dynamic=DYNAMIC, exclude=[NAME])
