import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS, Declined
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.functional.complex import Pair
from torch_onnx_compat.testing import assert_same_outputs

NAME = "full_of_complex_to_pair"
X = torch.randn(2, 3)
DYNAMIC = {"x": {0: "batch"}}


def model(x):
    z = torch.full(x.shape, 1, dtype=torch.complex64) + torch.full((2, 3)[1:], 2 - 1j)
    return (z * x).real, (torch.view_as_complex(torch.stack((x, x), -1)) * z).imag


def test_matches(exporter):
    assert_same_outputs(model, X, exporter, dynamic=DYNAMIC, uses=(NAME,))


def test_real_ones_are_left_alone(exporter):
    result = assert_same_outputs(lambda x: x + torch.full(x.shape, 2.0), X, exporter, dynamic=DYNAMIC)
    assert NAME not in {note.entry for note in result.applied}


def test_declines_out():
    with pytest.raises(Declined, match="out must be None, got a tensor"):
        catalogue()[NAME].body((2,), 1, dtype=torch.complex64, out=torch.ones(2, dtype=torch.complex64))


def test_sentinel(exporter):
    @rewrite(torch.full, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(*size, **options):
        shape = size[0]
        return Pair(torch.full(shape, 5.0), torch.full(shape, 5.0))

    with pytest.raises(VerificationError):
        assert_same_outputs(model, X, exporter, dynamic=DYNAMIC, rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError):
        assert_same_outputs(model, X, "torchscript", dynamic=DYNAMIC, exclude=[NAME])
