import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.testing import assert_same_outputs

NAME = "zeros_of_complex_to_pair"
X = torch.randn(2, 3)
DYNAMIC = {"x": {0: "batch"}}


def model(x):
    z = torch.zeros(x.shape, dtype=torch.complex64)
    z[:, 1:] = torch.complex(x, x + 1)[:, 1:]
    return z.abs(), z.imag, (torch.empty(x.shape, dtype=torch.cfloat).copy_(z)).real


def test_matches(exporter):
    assert_same_outputs(model, X, exporter, dynamic=DYNAMIC, uses=(NAME,))


def test_real_ones_are_left_alone(exporter):
    result = assert_same_outputs(lambda x: x + torch.zeros(x.shape), X, exporter, dynamic=DYNAMIC)
    assert NAME not in {note.entry for note in result.applied}


def test_declines_out():
    with pytest.raises(Declined, match="out must be None, got a tensor"):
        catalogue()[NAME].body(2, dtype=torch.complex64, out=torch.ones(2, dtype=torch.complex64))


def test_sentinel(exporter):
    @rewrite((torch.zeros, torch.empty), name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*size, **options):
        shape = size[0]
        return Pair(torch.full(shape, 5.0), torch.full(shape, 5.0))

    with pytest.raises(VerificationError):
        assert_same_outputs(model, X, exporter, dynamic=DYNAMIC, rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError):
        assert_same_outputs(model, X, "torchscript", dynamic=DYNAMIC, exclude=[NAME])
