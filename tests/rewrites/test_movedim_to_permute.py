import pytest
import torch

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs

NAME = "movedim_to_permute"
X = torch.randn(2, 3, 4, 5)


def many(x):
    return (
        *(x.movedim(-1, 0), torch.movedim(x, (0, -1), (-2, 1)), torch.moveaxis(x, 1, -1), x.moveaxis((0, 1), (-1, 2))),
        *(x.movedim((3, 2, 1, 0), (-1, -2, -3, -4)), x.movedim([0, 1, 2], [-1, 0, 1])),
    )


def test_matches(exporter):
    assert_entry(NAME, many, (X,), exporter, dynamic="batch")


def test_takes_one_node():
    result = assert_same_outputs(lambda x: x.movedim((0, -1), (2, 0)), (X,), "torchscript", uses=(NAME,))
    assert set(result.nodes) == {"Transpose"}


def test_axes_from_the_front_are_left_alone():
    result = assert_same_outputs(lambda x: x.movedim((0, 1), (2, 0)), (X,), "torchscript")
    assert not result.applied
    assert not result.declined


def test_sentinel():
    @rewrite(torch.movedim, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, source, destination):
        return input.permute(1, 2, 3, 0)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(lambda x: x.movedim(-1, 0), (X,), "torchscript", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="Invalid attribute perm"):
        assert_same_outputs(lambda x: x.movedim(-1, 0), (X,), "torchscript", exclude=[NAME])
