import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.testing import assert_same_outputs

NAME = "complex_to_pair"
X = torch.randn(2, 3, 4)
DYNAMIC = {"x": {0: "batch", 1: "length"}}


def model(x):
    z = torch.complex(x, x[:1] + 1)
    return z.real, torch.view_as_real(z.exp() * z), (z @ z.mT).imag, z.reshape(-1, 2, 2).abs()


def test_matches(exporter):
    assert_same_outputs(model, X, exporter, dynamic=DYNAMIC, uses=(NAME,))


def test_applied(exporter):
    result = assert_same_outputs(lambda x: (torch.complex(x, x + 1) * 2).imag, X, exporter, uses=(NAME,))
    assert "Concat" not in result.nodes


def test_real_tensors_are_left_alone(exporter):
    result = assert_same_outputs(lambda x: torch.stack((x, x + 1), -1), X, exporter)
    assert NAME not in {note.entry for note in result.applied}


def test_declines_out():
    with pytest.raises(Declined, match="out must be None, got a tensor"):
        catalogue()[NAME].body(X, X, out=torch.complex(X, X))


def test_sentinel(exporter):
    @rewrite(torch.complex, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(real, imag):
        return Pair(imag.expand_as(real), real)

    with pytest.raises(VerificationError):
        assert_same_outputs(model, X, exporter, rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError):
        assert_same_outputs(model, X, "torchscript", dynamic=DYNAMIC, exclude=[NAME])
