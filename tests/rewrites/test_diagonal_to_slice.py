import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "diagonal_to_slice"
X = torch.randn(2, 3, 5)


def written(x):
    y = x.clone()
    y.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    y.diagonal(1, 1, 2).mul_(2.0)
    return y, y.diagonal(-1, -2, -1)


def test_matches(exporter):
    assert_entry(NAME, written, X, exporter, dynamic="batch")


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (1, 4)])
def test_equals_eager(shape):
    x = torch.randn(2, *shape)
    for offset in range(-4, 5):
        found, wanted = catalogue()[NAME].body(x, offset, 1, 2), x.diagonal(offset, 1, 2)
        if found is not NotImplemented:
            assert found.data_ptr() == wanted.data_ptr()
            torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_near_misses_are_left_alone(exporter):
    result = assert_same_outputs(lambda x: x.transpose(1, 2).diagonal(0, 1, 2), X, exporter)
    assert NAME not in {note.entry for note in result.applied}


def test_sentinel(exporter):
    @rewrite(torch.diagonal, name=NAME, needed_on=EXPORTERS, registry=None)
    def broken(input, offset=0, dim1=0, dim2=1):
        return input.flatten(-2)[..., : input.shape[-2]]

    with pytest.raises(VerificationError):
        assert_same_outputs(lambda x: x.diagonal(0, 1, 2), X, exporter, rewrites=[broken])


def test_still_needed(exporter):
    assert_still_needed(NAME, written, X, exporter)
